"""Keys and the actions behind them.

Features declare actions with `command.py`; `actions.py` collects them; `keymap.py` binds keys, writes them on the
screen and replaces them by your own; `help.py` groups actions for the help and the key reference.
"""
