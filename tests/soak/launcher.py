"""The command line, with another program than Python for starting wrappers: `launcher.py PROGRAM WORDS…`."""

from __future__ import annotations

import sys

from subdeck.tui.main import program

if __name__ == "__main__":
    sys.executable = sys.argv.pop(1)
    program()
