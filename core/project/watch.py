"""One watch for all active runs; the only module that knows watchfiles.

What it answers is a hint where to look: the kernel may drop notices without a word, so whoever follows also sweeps.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from threading import Event

from msgspec import Struct

from ..paths import Project, is_run_id

BEAT_MS = 250
"""Milliseconds after which a watch answers even without news."""
STEP_MS = 11
DEBOUNCE_MS = 20
CALM_STEP_MS = 80
"""The step while nothing has happened for `CALM_AFTER` seconds: its wake-ups are most of what an idle watch costs."""
CALM_AFTER = 3.0


class Changes(Struct, frozen=True):
    """Where something happened since the answer before; empty at a beat without news."""

    runs: frozenset[str] = frozenset()
    presets: bool = False
    sessions: bool = False
    anew: bool = False
    """The watch has just begun, or begun again: what happened before it did was not seen."""


def watch(project: Project, preset_dirs: Callable[[], tuple[str, ...]], stop: Event) -> Iterator[Changes]:
    """Yield what changes in `active/`, `sessions/` and the preset directories until `stop` is set.

    Directories that come and go are followed: the nearest one that exists stands for one that does not yet.
    """
    while not stop.is_set():
        wanted = (project.active, project.sessions, *preset_dirs())
        watched = _existing(wanted)
        try:
            yield from _watch(project, preset_dirs(), watched, wanted, stop)
        except (OSError, RuntimeError):
            # Out of inotify watches, or a directory went meanwhile: the sweep alone still finds everything.
            stop.wait(BEAT_MS / 1000)
            yield Changes()


def _watch(
    project: Project, preset_dirs: tuple[str, ...], watched: tuple[str, ...], wanted: tuple[str, ...], stop: Event
) -> Iterator[Changes]:
    # 60 ms: only for who follows. The backend itself, because a step is given there with each look, not once for all.
    from watchfiles._rust_notify import RustNotify

    anew = True
    newest = time.monotonic()
    with RustNotify(list(watched), False, False, 0, False, False) as notify:
        while True:
            step = STEP_MS if time.monotonic() - newest < CALM_AFTER else CALM_STEP_MS
            found = notify.watch(DEBOUNCE_MS, step, BEAT_MS, stop)
            if found == "signal":
                raise KeyboardInterrupt
            if found == "stop":
                return
            batch = found if isinstance(found, set) else set[tuple[int, str]]()
            if batch:
                newest = time.monotonic()
            places = [os.path.split(path) for _, path in batch]
            yield Changes(
                runs=frozenset(name for parent, name in places if parent == project.active and is_run_id(name)),
                presets=anew or any(parent in preset_dirs for parent, _ in places),
                sessions=anew or any(parent == project.sessions for parent, _ in places),
                anew=anew,
            )
            anew = False
            if _existing(wanted) != watched or any(path in watched for _, path in batch):
                return  # a directory came or went; one that came back is another one


def _existing(directories: tuple[str, ...]) -> tuple[str, ...]:
    """Return for each directory itself or its nearest ancestor that exists, without repeats."""
    found: dict[str, None] = {}
    for directory in directories:
        while not os.path.isdir(directory) and directory != os.path.dirname(directory):
            directory = os.path.dirname(directory)
        found[directory] = None
    return tuple(found)
