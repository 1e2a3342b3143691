"""The log of a relay, for people: a few lines for each problem, bounded in size."""

from __future__ import annotations

import os

from ... import paths
from ...system import files
from ...text.plain import one_line

MOST_BYTES = 256 * 1024
"""Size at which the older half of the log is dropped."""
_LINE = 500
"""Characters."""


class Journal:
    def __init__(self, path: str) -> None:
        self._path = path
        self._last = ""

    def note(self, text: str) -> None:
        """Add a line unless it repeats the last one. Raises nothing: a failing log must not end a relay."""
        line = one_line(text, _LINE)
        if line == self._last:
            return
        self._last = line
        try:
            descriptor = files.open_private(self._path, os.O_RDWR | os.O_APPEND)
            try:
                os.write(descriptor, f"{paths.now_iso()} {os.getpid()} {line}\n".encode("utf-8", "replace"))
                size = os.fstat(descriptor).st_size
                newer = os.pread(descriptor, MOST_BYTES // 2, size - MOST_BYTES // 2) if size > MOST_BYTES else b""
            finally:
                os.close(descriptor)
            if newer:
                files.write_whole(self._path, newer.partition(b"\n")[2])
        except OSError:
            return
