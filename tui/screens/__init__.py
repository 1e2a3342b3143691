"""Full screens and dialogs of the app."""
