"""A run's changes, as files and their differences; applying them begins here."""
