"""Widgets that several features use.

Features and dialogs may import all of them. They know actions, and nothing of the engine.
"""
