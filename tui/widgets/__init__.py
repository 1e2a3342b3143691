"""Widgets that several features use.

Features and dialogs may import all of them. They know actions, but not the engine.
"""
