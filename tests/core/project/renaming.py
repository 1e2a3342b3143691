"""`python -P renaming.py WAY PLACE ASIDE DECOY`: renames a directory away and back until its stdin is closed.

It acts as a program unknown to its run, so that the wrapper, which ends its agent's processes, does not end it.
"""

from __future__ import annotations

import ctypes
import os
import random
import select
import sys
import time

_EXCHANGE = 2
_HERE = -100
WAYS = ("away", "link", "exchange")


def main(way: str, place: str, aside: str, decoy: str) -> None:
    """Rename the directory; restore it at the end, unless its place is taken."""
    exchange = ctypes.CDLL(None).renameat2
    print(flush=True)
    while not select.select([0], [], [], 0)[0]:
        time.sleep(random.choice((0, 0, 0.0002, 0.002)))
        try:
            if way == "exchange":
                for _ in range(2):
                    exchange(_HERE, os.fsencode(place), _HERE, os.fsencode(decoy), _EXCHANGE)
                    time.sleep(random.choice((0, 0.0002, 0.002, 0.02)))
                continue
            os.rename(place, aside)
            if way == "link":
                os.symlink(decoy, place)
                time.sleep(random.choice((0, 0.0002, 0.002, 0.02)))
                os.unlink(place)
            else:
                time.sleep(random.choice((0, 0.0002, 0.002, 0.02)))
            os.rename(aside, place)
        except OSError:
            _put_back(place, aside)


def _put_back(place: str, aside: str) -> None:
    try:
        if os.path.islink(place):
            os.unlink(place)
        os.rename(aside, place)
    except OSError:
        pass  # it is restored, or another directory is there


if __name__ == "__main__":
    main(*sys.argv[1:])
