"""Which ends the operator has looked at: kept on disk for each project, so that all windows and the next start know.

The file is a list of marks, each a line that is appended at once, so that several windows may write; the last mark of
a run counts. Of what ended before the first mark was made nobody asks any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import cached_property

from ...core.paths import project_key, state_file
from ...core.run.snapshot import RunSnapshot
from ...core.system import files

SINCE, SEEN, NEW = "since", "seen", "new"
LARGEST = 512 * 1024
"""Bytes of the file; then it begins anew, with what is still to be looked at."""


class Marks:
    """What the file says; nothing is news before it was read."""

    def __init__(self) -> None:
        self._since = ""
        """When the first mark was made, an ISO time; empty before it was read."""
        self._seen: dict[str, bool] = {}
        """By run id, whether it was looked at."""

    def take(self, content: bytes) -> None:
        """Follow these lines; one that makes no sense is left out."""
        for line in content.decode("ascii", "replace").splitlines():
            word, _, about = line.partition(" ")
            if word == SINCE:
                self._since = about
                self._seen.clear()
            elif word in (SEEN, NEW):
                self._seen[about] = word == SEEN

    def is_news(self, run: RunSnapshot) -> bool:
        """Return whether a run has ended and nobody has looked at it since."""
        if not self._since or run.end is None:
            return False
        seen = self._seen.get(run.run_id)
        return run.meta.background and run.end.ended_at >= self._since if seen is None else not seen

    def is_seen(self, run_id: str) -> bool:
        return self._seen.get(run_id, False)


class SeenFile:
    """Reads what any window has marked, and appends marks. All of it may block; a read-only app only reads."""

    def __init__(self, project_root: str, *, readonly: bool = False) -> None:
        self._project_root = project_root
        self._readonly = readonly
        self._signature: tuple[int, int, int] | None = None
        """Of the file as it was read last."""

    @cached_property
    def _path(self) -> str:
        return state_file("seen", project_key(self._project_root))  # not before the first paint

    @property
    def has_changed(self) -> bool:
        """Whether somebody has written since it was read last; the cost is one look at the file."""
        return self._look() != self._signature

    def read(self, now: str, news: Callable[[], Iterable[str]]) -> bytes:
        """Return all marks. One that is missing is begun `now`, an ISO time; one too large begins anew with `news`.

        Where nothing can be written the marks hold for as long as the app is open.
        """
        signature = self._look()
        content = b"" if signature is None else self._content()
        if not content.startswith(SINCE.encode()) or len(content) > LARGEST:
            content = b"".join([_line(SINCE, now), *(_line(NEW, run_id) for run_id in news())])
            if not self._readonly:
                try:
                    files.write_state(self._path, content)
                except OSError:
                    return content
            signature = self._look()
        self._signature = signature
        return content

    def add(self, mark: str, run_ids: Iterable[str]) -> None:
        """Append a mark for each of these runs."""
        if self._readonly:
            return
        try:
            descriptor = files.open_private(self._path, os.O_WRONLY | os.O_APPEND)
        except OSError:
            return  # it holds for as long as the app is open
        try:
            os.write(descriptor, b"".join(_line(mark, run_id) for run_id in run_ids))
        finally:
            os.close(descriptor)

    def _look(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    def _content(self) -> bytes:
        try:
            return files.read(self._path)
        except OSError:
            return b""


def _line(word: str, about: str) -> bytes:
    return f"{word} {about}\n".encode("ascii", "replace")
