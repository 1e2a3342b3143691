"""One watch for all active runs; the only module that knows watchfiles.

What it answers is a hint where to look: the kernel may drop notices without a word, so whoever follows also sweeps.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from threading import Event

from msgspec import Struct

from .paths import Project, is_run_id

BEAT_MS = 250
"""Milliseconds after which a watch answers even without news."""
STEP_MS = 11
DEBOUNCE_MS = 20


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
    import watchfiles  # 60 ms: only for who follows

    anew = True
    batches = watchfiles.watch(
        *watched,
        watch_filter=None,
        debounce=DEBOUNCE_MS,
        step=STEP_MS,
        stop_event=stop,
        rust_timeout=BEAT_MS,
        yield_on_timeout=True,
        recursive=False,
    )
    for batch in batches:
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
    """Answer for each directory itself or its nearest ancestor that exists, without repeats."""
    found: dict[str, None] = {}
    for directory in directories:
        while not os.path.isdir(directory) and directory != os.path.dirname(directory):
            directory = os.path.dirname(directory)
        found[directory] = None
    return tuple(found)
