"""What all handlers share: the project, the devices, the served names, and the browsers that wait for changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import ParamSpec, TypeVar, cast

from tornado.concurrent import Future
from tornado.ioloop import IOLoop, PeriodicCallback
from tornado.locks import Condition

from ..errors import SubdeckError
from ..system.log import log_fault
from ._attempts import Attempts
from ._runs import Runs
from .address import Served
from .devices import Devices

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 2
LOOK_MS = 1000
"""Milliseconds between two looks for changes while a browser waits for them."""
MOST_WAITING = 16
"""Browsers that may wait for changes; a further one has to be refreshed."""
KEEP_ALIVE = timedelta(seconds=25)


class Site:
    """One served project."""

    def __init__(
        self, runs: Runs, devices: Devices, served: Served, *, readonly: bool, assets: dict[str, bytes]
    ) -> None:
        self.runs = runs
        self.devices = devices
        self.served = served
        self.readonly = readonly
        self.assets = assets
        """By file name."""
        self.attempts = Attempts()
        self._threads = ThreadPoolExecutor(THREADS, "page")
        self.changes = Changes(lambda: self.call(runs.state))

    async def call(self, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function that blocks in a thread, and return its result."""
        return await IOLoop.current().run_in_executor(self._threads, lambda: function(*args, **options))

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)


class Changes:
    """Tells browsers that runs or requests have changed. Looks only while one waits."""

    def __init__(self, look: Callable[[], Awaitable[tuple[object, ...]]]) -> None:
        """`look` returns a value that differs if another page would be shown."""
        self._look_for = look
        self._changed = Condition()
        self._waiting = 0
        self._state: tuple[object, ...] | None = None
        self._looks: PeriodicCallback | None = None

    def join(self) -> bool:
        """Begin to wait; return False if too many browsers do. Each that has joined must leave."""
        if self._waiting >= MOST_WAITING:
            return False
        self._waiting += 1
        return True

    async def begin(self) -> None:
        """Look now, and then regularly."""
        if self._looks is None:
            self._looks = PeriodicCallback(self._look, LOOK_MS)
            self._looks.start()
        await self._look()

    def leave(self) -> None:
        self._waiting -= 1
        if not self._waiting and self._looks is not None:
            self._looks.stop()
            self._looks = self._state = None

    def wait(self) -> Future[bool]:
        """Return what becomes true at a change, and false if none comes for some time."""
        return cast("Future[bool]", self._changed.wait(timeout=KEEP_ALIVE))

    async def _look(self) -> None:
        try:
            state = await self._look_for()
        except (SubdeckError, OSError) as error:
            log_fault("in a look for changes", error)
            return
        if self._state not in (None, state):
            self._changed.notify_all()
        self._state = state
