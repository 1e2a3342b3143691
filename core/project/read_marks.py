"""Which results are read: a file of marks per project, for all open apps and all commands that print results.

Each mark is a line, appended in one write, so that several processes may write; the last mark of a run counts.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from ..paths import project_key, state_file
from ..system import files

SINCE = "since"
"""First word of the file: from this time on, results of background runs are unread until they are marked."""
WAITED_SINCE = "waited-since"
"""The same for runs that a command or a parent agent waits for; files of earlier versions lack it."""
SEEN, NEW = "seen", "new"


def marks_file(project_root: str) -> str:
    """Return the path of a project's marks; the first app opened on the project creates the file."""
    return state_file("seen", project_key(project_root))


def line(word: str, value: str) -> bytes:
    return f"{word} {value}\n".encode("ascii", "replace")


def add_marks(path: str, mark: str, run_ids: Iterable[str]) -> None:
    """Append a mark for each of these runs. Raises OSError, also if there is no file: then nothing is unread."""
    with locked(path, os.O_WRONLY | os.O_APPEND) as descriptor:
        os.write(descriptor, b"".join(line(mark, run_id) for run_id in run_ids))


@contextmanager
def locked(path: str, flags: int) -> Generator[int]:
    """Open the file of marks, and keep other processes from writing to it or replacing it. Raises OSError."""
    while True:
        descriptor = files.open_file(path, flags)
        try:
            files.lock(descriptor)
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                yield descriptor
                return
        finally:  # it was replaced while this process waited
            os.close(descriptor)


def mark_read(project_root: str, run_ids: Iterable[str]) -> None:
    """Mark the results of runs as read, for a caller that waited for them. If that fails they stay unread."""
    try:
        add_marks(marks_file(project_root), SEEN, run_ids)
    except OSError:
        return
