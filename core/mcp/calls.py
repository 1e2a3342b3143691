"""Open requests: each is worked on in a thread of its own, because the engine is synchronous."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from ..system.log import log_fault

T = TypeVar("T")

CANCEL_TIMEOUT_S = 5.0
"""How long a cancelled call has to stop its runs."""


class Calls:
    """The requests that are being worked on."""

    def __init__(self) -> None:
        self._open: dict[threading.Thread, threading.Event] = {}

    async def run(self, work: Callable[[threading.Event], T]) -> T:
        """Run `work` in a thread and return its value; when the caller is cancelled, the event given to `work` is set.

        The caller then waits until the work has ended. The thread is a daemon, so that one that never ends, on a disk
        that hangs say, does not keep the process from ending.
        """
        cancelled = threading.Event()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        thread = threading.Thread(target=_settle, args=(loop, done, work, cancelled), name="call", daemon=True)
        self._open[thread] = cancelled
        thread.start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            cancelled.set()
            with anyio.move_on_after(CANCEL_TIMEOUT_S, shield=True):
                await asyncio.wait({done})
            raise
        finally:
            del self._open[thread]

    def cancel_all(self) -> None:
        """Cancel all open requests, from outside the loop, and wait until they have ended."""
        under_way = dict(self._open)
        for cancelled in under_way.values():
            cancelled.set()
        deadline = time.monotonic() + CANCEL_TIMEOUT_S
        for thread in under_way:
            thread.join(max(0.0, deadline - time.monotonic()))


def _settle(
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[T],
    work: Callable[[threading.Event], T],
    cancelled: threading.Event,
) -> None:
    try:
        value = work(cancelled)
    except Exception as error:
        log_fault("working on a request", error)
        in_loop(loop, _fail, done, error)
    else:
        in_loop(loop, done.set_result, value)


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    done.set_exception(error)
    done.exception()  # retrieved here, in case the caller has gone


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    """Have the loop call a function soon; never blocks, and a loop that has ended is not an error."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return  # closed: nobody is left who waits


KEEP_ALIVE_S = 20.0
"""After this long without progress the last report is sent again: some clients give up after 60 s of silence."""

SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""`ServerSession.report_progress`: progress, total, message."""


class Relay:
    """The progress of one call, from its thread to the client; `report` is for the thread, the rest for the loop."""

    def __init__(self, send: SendProgress, keep_alive: float = KEEP_ALIVE_S) -> None:
        self._send = send
        self._keep_alive = keep_alive
        self._loop = asyncio.get_running_loop()
        self._latest = self._unsent = ""
        self._news = asyncio.Event()
        self._sent = 0
        self._closed = False

    def report(self, text: str) -> None:
        """Send this next; never blocks, whether or not the client reads."""
        in_loop(self._loop, self._take, text)

    async def during(self, work: Awaitable[T]) -> T:
        """Send the reports while `work` is running, the last one before its value is returned."""
        sending = asyncio.create_task(self._pass_on())
        try:
            value = await work
            # What the thread reported before it ended has arrived: the loop calls functions in the order of requests.
            self._closed = True
            self._news.set()
            await sending
            return value
        finally:
            sending.cancel()

    async def _pass_on(self) -> None:
        while self._unsent or not self._closed:
            try:
                await asyncio.wait_for(self._news.wait(), self._keep_alive)
            except TimeoutError:
                self._unsent = self._latest
            self._news.clear()
            text, self._unsent = self._unsent, ""
            if text:
                self._sent += 1
                await self._send(self._sent, None, text)

    def _take(self, text: str) -> None:
        self._latest = self._unsent = text
        self._news.set()
