"""A separate project, and a process that acts as the wrappers of its running runs."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from subdeck.core.paths import Project


@contextmanager
def made_project() -> Iterator[Project]:
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, ".git"))
        yield Project(os.path.realpath(directory))


class Writer:
    """Holds runs, and writes events to the newest of them, until the context is left."""

    def __init__(
        self,
        project: Project,
        runs: int,
        *,
        per_second: float = 0,
        seconds: float = 0,
        writing: int | None = None,
        kind: str = "text",
    ) -> None:
        """Return when all runs exist."""
        numbers = (runs, per_second, seconds, runs if writing is None else writing)
        argv = (sys.executable, "-m", "tests.bench.writer", project.root, *map(str, numbers), kind)
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout
        self._process.stdout.readline()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def begin(self) -> None:
        assert self._process.stdin
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def written(self) -> dict[str, list[float]]:
        """Wait for the last event; return run id -> monotonic seconds of each event from the second on."""
        assert self._process.stdout
        return msgspec.json.decode(self._process.stdout.readline())
