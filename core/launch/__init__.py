"""From a request to running wrappers: what is decided, what is written, what is started.

The engine imports from it when something is launched; nothing below the engine does.
"""
