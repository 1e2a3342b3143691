"""How the panes share the screen."""
