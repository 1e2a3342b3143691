"""The time of a command from its start to its end."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator

from subdeck.core.paths import Project

from . import made_up
from .figures import Figure, in_turn_ms, quietly, usually

FINISHED = usually(1000, smoke=20)


def measure() -> Iterator[Figure]:
    subdeck = os.path.join(os.path.dirname(sys.executable), "subdeck")
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, ".git"))
        made_up.finished(Project(os.path.realpath(directory)), FINISHED)
        floor, help_ms, status_ms = in_turn_ms(
            (
                lambda: quietly(sys.executable, "-c", "pass"),
                lambda: quietly(subdeck, "--help"),
                lambda: quietly(subdeck, "status", "--all", cwd=directory),
            ),
            repeats=usually(15, smoke=1),
        )
    yield _ratio("subdeck --help", help_ms, floor, 5)
    yield _ratio(f"subdeck status --all, {FINISHED} finished runs", status_ms, floor, 6)


def _ratio(name: str, measured: float, floor: float, most: float) -> Figure:
    ratio = measured / floor
    return Figure(
        name, f"{ratio:.1f}x ({measured:.0f} ms)", f"python -c pass: {floor:.1f} ms", f"{most}x", ratio <= most
    )
