"""Text as it fits the screen: cells, figures, times, paths. Knows no widget of this app."""
