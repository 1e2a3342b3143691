"""Detect full disks. The condition passes, so a request that failed because of it is sent again."""

from __future__ import annotations

import errno
import re

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_MESSAGES = re.compile("No space left on device|Disk quota exceeded")
"""Git's messages."""


def is_of_full_disk(error: BaseException) -> bool:
    """Return whether an error or its cause reports a full disk."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    if _MESSAGES.search(getattr(error, "stderr", "") or str(error)):
        return True
    return error.__cause__ is not None and is_of_full_disk(error.__cause__)
