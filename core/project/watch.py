"""One watch for all active runs and for the presets; the only module that knows watchfiles.

What it yields are hints where to look: the kernel may drop notices without a word, so whoever follows also sweeps.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from ..paths import Project, is_run_id

BEAT_S = 0.1
"""Seconds after which something is yielded even without news; in a calm a little more."""
STEP_S = 0.011
DEBOUNCE_S = 0.02
CALM_PAUSE_S = 0.17
"""Seconds added to a step while nothing has happened for `CALM_AFTER_S`: wake-ups are most of what a calm costs."""
CALM_AFTER_S = 3.0
CHECK_S = 1.0
"""Seconds after which the directories are looked for, should the notice of one that came or went be lost."""


class Stop(Protocol):
    """What ends a watch, a `threading.Event` for instance; it is asked again and again."""

    def is_set(self) -> bool: ...


class Changes(Struct, frozen=True):
    """Where something happened since the last time; empty at a beat without news."""

    runs: frozenset[str] = frozenset()
    """Ids of runs whose activity file was written, or came or went."""
    presets: bool = False
    restarted: bool = False
    """The watch has just begun, or begun again: what happened before it did was not seen."""


class _PacedStop:
    """Makes watchfiles look less often in a calm: it asks for the stop before each of its looks."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self.pause = 0.0
        """Seconds to sleep at each question."""

    def is_set(self) -> bool:
        if self.pause:
            time.sleep(self.pause)
        return self._stop.is_set()


def watch(project: Project, preset_dirs: Callable[[], tuple[str, ...]], stop: Stop) -> Iterator[Changes]:
    """Yield what changes in `active/` and the preset directories, at each beat at least, until `stop` is set.

    Directories that come and go are followed: the nearest one that exists stands for one that does not yet.
    """
    while not stop.is_set():
        presets = preset_dirs()
        try:
            yield from _watch(project.active, presets, stop)
        except (OSError, RuntimeError):
            # Out of inotify watches, or a directory went meanwhile: the sweep alone still finds everything.
            time.sleep(BEAT_S)
            yield Changes()


def _watch(active: str, presets: tuple[str, ...], stop: Stop) -> Iterator[Changes]:
    """Watch the directories that exist now, until one of them comes or goes."""
    import watchfiles  # 60 ms: only for who follows

    wanted = (active, *presets)
    watched = _existing(wanted)
    paced_stop = _PacedStop(stop)
    newest = checked = time.monotonic()
    restarted = True
    for batch in watchfiles.watch(
        *watched,
        watch_filter=None,
        step=int(STEP_S * 1000),
        debounce=int(DEBOUNCE_S * 1000),
        rust_timeout=int(BEAT_S * 1000),
        yield_on_timeout=True,
        stop_event=paced_stop,
        recursive=False,
        force_polling=False,
    ):
        now = time.monotonic()
        places = [os.path.split(path) for _, path in batch]
        runs = frozenset(name for parent, name in places if parent == active and is_run_id(name))
        touches_presets = any(parent in presets for parent, _ in places)
        if runs or touches_presets:
            newest = now  # others may be busy in the directories above, which are no reason to hurry
        paced_stop.pause = CALM_PAUSE_S if now - newest >= CALM_AFTER_S else 0.0
        yield Changes(runs, presets=restarted or touches_presets, restarted=restarted)
        restarted = False
        if len(places) > len(runs) or now - checked >= CHECK_S:
            checked = now
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
