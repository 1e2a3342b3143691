"""The process that keeps a demo alive: it creates the deck, plays its agents, and removes everything at the end.

`python -m subdeck.core.demo DIRECTORY PID`: until stdin is closed or the process PID has ended.
"""

from __future__ import annotations

import heapq
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from itertools import count

from ..errors import SubdeckError
from ..paths import Project, user_settings_file
from ..system import files
from . import _deck, _script
from ._deck import MadeDeck
from ._held_run import HeldRun
from ._script import Script
from .playground import READY, project_of

_LOOK_S = 1.0
"""Seconds between two checks for stop requests without a signal."""
_ROUNDS = (60, 300)
"""Rounds per run: 7 to 40 minutes, so about each minute one run ends and another begins."""
_AGAIN_S = 20.0
"""Seconds after the end of the run with the request until another one appears."""
_SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)
"""Signals that wake a wrapper for a stop or a reply; they have no other meaning here."""


class Feeder:
    """Plays the runs of a deck, each when it is due."""

    def __init__(self, made: MadeDeck) -> None:
        self._made = made
        self._scripts: dict[HeldRun, Script] = {}
        self._due: list[tuple[float, int, HeldRun]] = []
        self._order = count()
        self._requests = 0
        self._asks_at: float | None = None
        """When another run makes a request; None while one is open."""
        for run in made.silent:
            self._play(run, _script.silent())
        for run in (*made.group, *made.working):
            self._work(run)
        for run in made.waiting:
            self._play(run, _script.after_request(run, 0))

    def pause(self) -> float:
        """Return the seconds until something is due."""
        return max(0.0, self._due[0][0] - time.monotonic()) if self._due else _LOOK_S

    def look(self) -> None:
        """Read the runs' inboxes, and end runs with a stop request."""
        for run in tuple(self._scripts):
            with self._played_alone(run):
                run.hear()
                if reason := run.wanted_end():
                    self._scripts.pop(run).close()
                    run.end(reason)
                    self._replace(run)

    def play(self) -> None:
        """Play the next step of each run that is due."""
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, run = heapq.heappop(self._due)
            if run in self._scripts:
                with self._played_alone(run):
                    self._step(run, now)
        if self._asks_at is not None and now >= self._asks_at:
            self._asks_at = None
            self._requests += 1
            run = self._made.asking(self._requests)
            self._play(run, _script.after_request(run, self._requests))

    @contextmanager
    def _played_alone(self, run: HeldRun) -> Generator[None]:
        """Drop a run if its files cannot be written; the others continue."""
        try:
            yield
        except OSError:
            self._scripts.pop(run, None)

    def _step(self, run: HeldRun, now: float) -> None:
        if run.child.is_interrupted:
            run.pause()
        if message := run.deliver():
            self._scripts[run] = _answering(run, message, self._scripts[run])
        pause = _script.TICK_S if run.child.is_waiting else next(self._scripts[run], None)
        run.touch()
        if pause is None:
            del self._scripts[run]
            self._replace(run)
        else:
            heapq.heappush(self._due, (now + pause, next(self._order), run))

    def _replace(self, run: HeldRun) -> None:
        """Keep the number of live runs about constant."""
        if run.meta.permissions:
            self._asks_at = time.monotonic() + _AGAIN_S
        elif run not in self._made.silent:
            self._work(self._made.starting())

    def _work(self, run: HeldRun) -> None:
        chance = self._made.chance
        self._play(run, _script.at_work(run, chance, chance.randint(*_ROUNDS)))

    def _play(self, run: HeldRun, played: Script) -> None:
        self._scripts[run] = played
        first = time.monotonic() + self._made.chance.uniform(0, 2)
        heapq.heappush(self._due, (first, next(self._order), run))


def _answering(run: HeldRun, message: str, script: Script) -> Script:
    """Answer a message, and continue."""
    yield from _script.say(run, f"This is a demo: no agent reads “{message[:80]}”. I continue with my task.")
    yield from script


def main() -> int:
    """Play until the demo is over."""
    directory, parent = sys.argv[1], int(sys.argv[2])
    ended = _Ended(parent)
    try:
        made = _make(directory)
    except (OSError, SubdeckError) as error:
        reason = error.what if isinstance(error, SubdeckError) else error.strerror
        print(reason, flush=True)
        shutil.rmtree(directory, ignore_errors=True)
        return 1
    feeder = Feeder(made)
    os.write(1, READY)
    try:
        looked_at = 0.0
        while not ended.wait(min(feeder.pause(), _LOOK_S)):
            now = time.monotonic()
            if ended.is_woken or now >= looked_at + _LOOK_S:
                ended.is_woken = False
                looked_at = now
                feeder.look()
            feeder.play()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return 0


def _make(directory: str) -> MadeDeck:
    """Write the presets, the settings and the runs."""
    project = Project(project_of(directory))
    _deck.write_presets(project)
    files.make_private_directory(os.path.dirname(user_settings_file()))
    files.write_whole(user_settings_file(), b"agent: offline\n")
    return MadeDeck(project, asks_leave=True)


class _Ended:
    """Waits until a signal comes or the demo is over: its stdin is closed, or its parent has ended."""

    def __init__(self, parent: int) -> None:
        self.is_woken = False
        wakes, wakeup = os.pipe()
        os.set_blocking(wakes, False)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, lambda number, frame: None)
        self._wakes = wakes
        self._poll = select.poll()
        for descriptor in (0, wakes):
            self._poll.register(descriptor, select.POLLIN)
        self._has_gone = False
        try:
            self._poll.register(os.pidfd_open(parent), select.POLLIN)
        except ProcessLookupError:
            self._has_gone = True
        except OSError:
            pass  # an old kernel: the end of stdin shows the parent's end
        self._has_gone |= os.getppid() != parent

    def wait(self, seconds: float) -> bool:
        """Wait for at most `seconds`; return whether the demo is over."""
        ready = {descriptor for descriptor, _ in self._poll.poll(seconds * 1000)}
        if self._wakes in ready:
            os.read(self._wakes, 4096)
            self.is_woken = True
            ready.remove(self._wakes)
        return self._has_gone or bool(ready)


if __name__ == "__main__":
    raise SystemExit(main())
