"""What reaches the screen: updates of the engine as messages, and the files of the shown run in pieces.

The only package of the app that calls the engine.
"""
