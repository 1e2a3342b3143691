"""Whether something failed for want of room on a disk: that passes, and what was refused for it is asked for again."""

from __future__ import annotations

import errno
import re

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_SAID = re.compile("No space left on device|Disk quota exceeded")
"""By git."""


def is_of_full_disk(error: BaseException) -> bool:
    """Return whether an error, or one that it was raised for, says that a disk is full."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    if _SAID.search(getattr(error, "said", "") or str(error)):
        return True
    return error.__cause__ is not None and is_of_full_disk(error.__cause__)
