"""Taking text out of the app: an answer, a code block or a transcript piped to a command; files that a line names."""
