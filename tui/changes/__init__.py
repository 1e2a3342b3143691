"""What a run changed, as files and their differences; taking it over begins here."""
