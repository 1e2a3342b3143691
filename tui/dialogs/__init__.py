"""Dialogs that several features use: a question, one line of input, help, a text to read."""
