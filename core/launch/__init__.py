"""From a request to running wrappers: plan the runs, write their files, start them.

The engine imports this package only to launch; nothing below the engine imports it.
"""
