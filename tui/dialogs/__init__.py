"""Dialogs that several features use: a question, one line of input, help, a text to read.

Features and commands may import them. They know actions and the bridge, and nothing of runs or presets.
"""
