"""Memory that a process has had use for, and has none any more."""

from __future__ import annotations

import gc

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Of `mallopt`."""
_LARGE = 128 * 1024
"""Bytes."""


def keep_little() -> None:
    """Have the C library give large pieces back at once, and keep no stock for each thread: for who lives long.

    By itself it learns from the first large messages to keep as much as those took. Other libraries than glibc have
    nothing of that. What is there by now is no garbage, and Python looks the more often through what comes.
    """
    import ctypes

    gc.collect()
    gc.freeze()

    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
        set_option(option, value)
