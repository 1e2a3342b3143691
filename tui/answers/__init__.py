"""Get text out of the app: pipe an answer, a code block or a transcript to a command; open files that a line names."""
