"""`python -P -E -m subdeck.core.notify [--locked]`: send what is in the spool, unless another sender is running.

With `--locked` the process that started this one has passed on the lock of the spool.
"""

from __future__ import annotations

import gc
import os
import sys

from ..system.imports import import_msgspec, load


def main() -> None:
    """Load everything, then work: an agent's request is waiting."""
    gc.disable()  # nothing here becomes garbage before it works
    import_msgspec()
    serve = load(f"{__package__}._serve").serve
    gc.enable()
    try:
        serve(is_locked="--locked" in sys.argv[1:])
    except OSError as error:
        from ..system.log import log_fault

        log_fault("sending alerts", error)
        os._exit(1)
    os._exit(0)  # every thread is done, and the interpreter would take 10 ms to clean up


if __name__ == "__main__":
    main()
