"""The palette: whatever can be reached from the deck, found by what is typed."""
