"""Which results are unread, stored for each project and shared by all windows and starts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property

from ...core.paths import iso_time
from ...core.project.read_marks import NEW, SEEN, SINCE, WAITED_SINCE, add_marks, line, locked, marks_file
from ...core.run.snapshot import RunSnapshot
from ...core.system import files

__all__ = ["NEW", "SEEN", "Marks", "SeenFile"]

LARGEST = 512 * 1024
"""Bytes of the file; if it is larger, marks that no longer matter are dropped."""
SETTLED_S = 60.0
"""Seconds after which every app and every command has noticed the end of a run."""
HANDED_OVER_S = 2.0
"""Seconds that the command waiting for a run has to print its result and to mark it as read."""


class Marks:
    """The content of the file; nothing is unread before it is read."""

    def __init__(self) -> None:
        self._since = ""
        """Background runs that finished from this ISO time on are unread; empty before the file is read."""
        self._waited_since = ""
        """The same for foreground runs."""
        self._seen: dict[str, bool] = {}
        """By run id, whether the file marks it as read."""
        self._here: dict[str, bool] = {}
        """The same by this window, whose marks may not be in the file yet."""

    def take(self, content: bytes) -> None:
        """Apply these lines; invalid ones are ignored."""
        for text in content.decode("ascii", "replace").splitlines():
            word, _, value = text.partition(" ")
            if word == SINCE:
                self._since, self._waited_since = value, ""
                self._seen.clear()
            elif word == WAITED_SINCE:
                self._waited_since = self._waited_since or value
            elif word in (SEEN, NEW):
                self._seen[value] = word == SEEN

    def note(self, mark: str, run_id: str) -> None:
        """Add a mark of this window."""
        self._here[run_id] = mark == SEEN

    def is_unread(self, run: RunSnapshot) -> bool:
        """Return whether a run has ended and its result was neither opened, marked as read, nor printed."""
        if run.end is None:
            return False
        seen = self.mark_of(run.run_id)
        if seen is not None:
            return not seen
        since = self._since if run.meta.background else self._waited_since
        return bool(since) and run.end.ended_at >= since

    def shortened(self, runs: Iterable[RunSnapshot], now: float) -> bytes:
        """Return equivalent lines for these runs, which have to be all: results older than a minute are read from now
        on unless they are marked as unread.
        """
        settled = iso_time(now - SETTLED_S)
        since = {True: max(settled, self._since), False: max(settled, self._waited_since)}
        lines = [line(SINCE, since[True]), line(WAITED_SINCE, since[False])]
        runs_by_id = {run.run_id: run for run in runs}
        for run in runs_by_id.values():
            if run.end is None:
                continue
            is_late = run.end.ended_at >= since[run.meta.background]
            if self.is_unread(run):
                lines += [line(NEW, run.run_id)] * (not is_late or self.mark_of(run.run_id) is False)
            elif is_late:
                lines.append(line(SEEN, run.run_id))
        launched = settled[:19].translate({ord("-"): "", ord(":"): "", ord("T"): "-"})
        for run_id, seen in self._seen.items():
            run = runs_by_id.get(run_id)
            if run.end is None if run else run_id[: len(launched)] >= launched:  # its end is not known here yet
                lines.append(line(SEEN if seen else NEW, run_id))
        return b"".join(lines)

    def is_being_handed_over(self, run: RunSnapshot, now: float) -> bool:
        """Return whether a run ended so recently that the command waiting for it may still mark it as read."""
        if run.end is None or run.meta.background or self.mark_of(run.run_id) is not None:
            return False
        return iso_time(now - HANDED_OVER_S) < run.end.ended_at < iso_time(now + HANDED_OVER_S)

    def mark_of(self, run_id: str) -> bool | None:
        """Return whether a run was marked as read, or as unread; None without a mark."""
        here = self._here.get(run_id)
        return True if here else self._seen.get(run_id, here)


class SeenFile:
    """Reads the marks of all windows, and appends marks. Every method may block; a read-only app only reads."""

    def __init__(self, project_root: str, *, readonly: bool = False) -> None:
        self._project_root = project_root
        self._readonly = readonly
        self._signature: tuple[int, int, int] | None = None
        """Of the file as last read."""
        self._waited_since = ""
        """A line missing in files of an earlier version; empty before such a file is read."""

    @cached_property
    def _path(self) -> str:
        return marks_file(self._project_root)  # not before the first paint

    @property
    def has_changed(self) -> bool:
        """Whether the file was written since the last read; costs one stat."""
        return self._look() != self._signature

    def read(self, now: str) -> bytes:
        """Return all marks. A missing or invalid file is created with the start time `now`, in ISO form.

        If it cannot be written, the marks last until the app is closed.
        """
        signature = self._look()
        content = b"" if signature is None else self._content()
        if not content.startswith(SINCE.encode()):
            content = line(SINCE, now) + line(WAITED_SINCE, now)
            if not self._readonly:
                try:
                    content = self._begin(content)
                except OSError:
                    return content
            signature = self._look()
        elif line(WAITED_SINCE, "")[:-1] not in content:  # results of an earlier version do not become unread
            if not self._waited_since:
                self._waited_since = now
                self.add(WAITED_SINCE, [now])
                signature = self._look()
            content += line(WAITED_SINCE, self._waited_since)
        self._signature = signature
        return content

    def _begin(self, content: bytes) -> bytes:
        """Create the file; return its content, which differs if another app was first. Raises OSError."""
        files.make_private_directory(os.path.dirname(self._path))
        try:
            files.write_new(self._path, content)
        except FileExistsError:
            with locked(self._path, os.O_RDONLY):
                if (there := self._content()).startswith(SINCE.encode()):
                    return there
                files.write_whole(self._path, content)
        return content

    def shorten(self, content: bytes, shorter: bytes) -> None:
        """Replace the read lines by equivalent ones, and keep marks added since."""
        if self._readonly or len(shorter) > len(content) // 2:
            return
        try:
            with locked(self._path, os.O_RDONLY):
                if (there := self._content()).startswith(content):
                    files.write_whole(self._path, shorter + there[len(content) :])
        except OSError:
            return

    def add(self, mark: str, run_ids: Iterable[str]) -> None:
        """Append a mark for each of these runs."""
        if self._readonly:
            return
        try:
            add_marks(self._path, mark, run_ids)
        except OSError:
            return  # it lasts until the app is closed

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
