"""The palette: search for everything that the deck can reach."""
