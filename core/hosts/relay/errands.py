"""What a relay does beside all else, because it takes its time: one of a kind at once, and again where one failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any

from ...errors import SubdeckError, reason
from ...system.log import log_fault
from .._carrier import OutOfReach
from ..protocol import BadMessage
from .journal import Journal
from .remote import Misfit, Remote

AGAIN_S = 1.0
"""After what failed it is tried again."""
MANY = 1000
"""From so many on it is forgotten what may be tried again by now: hosts may have named what never was."""
CANCEL_S = 0.5
"""After which what was cancelled and goes on is cancelled again."""


class Errands:
    """Each goes by what is done, and the name of what it is done for."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._again: dict[tuple[str, str], float] = {}
        """When what failed may be tried again."""

    def run(self, what: str, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin one, unless it is being done, or has failed just now."""
        key = (what, name)
        if key in self._tasks or self._again.get(key, 0.0) > time.monotonic():
            return
        self._again.pop(key, None)
        self._tasks[key] = asyncio.create_task(self._done(key, work))

    def is_running(self, what: str, name: str) -> bool:
        return (what, name) in self._tasks

    def put_off(self, what: str, name: str, seconds: float) -> None:
        """Begin it after so many seconds at the earliest."""
        now = time.monotonic()
        if len(self._again) > MANY:
            self._again = {key: due for key, due in self._again.items() if due > now}
        self._again[what, name] = now + seconds

    def allow(self, what: str, name: str) -> None:
        """Begin it whenever it is wanted."""
        self._again.pop((what, name), None)

    def guard(self, remote: Remote, act: Callable[[Remote], None]) -> None:
        """Do something about a run; whatever is wrong with one, the others are seen to."""
        try:
            act(remote)
        except Exception as error:
            self._note_fault(remote.id, error)

    async def end(self) -> None:
        """End all that is being done."""
        await ended(self._tasks.values())

    async def _done(self, key: tuple[str, str], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:
            self.put_off(*key, AGAIN_S)
            self._note_fault(" ".join(key), error)
        finally:
            self._tasks.pop(key, None)

    def _note_fault(self, what: str, error: Exception) -> None:
        """Write down what went wrong; what nobody expects with its traceback, where somebody wants a log."""
        if not isinstance(error, (OutOfReach, BadMessage, Misfit, SubdeckError, OSError)):
            log_fault(what, error)
        is_ours = isinstance(error, (OutOfReach, BadMessage, Misfit)) and str(error)
        self._journal.note(f"{what}: {error if is_ours else reason(error)}")


async def ended(tasks: Collection[asyncio.Task[None]]) -> None:
    """End tasks, however often it takes: what they wait in may take one cancellation for its own."""
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=CANCEL_S)
