"""The requests that go on: each works in a thread of its own, because the engine is synchronous."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import anyio

from ..system.log import log_fault

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that a cancelled call has for telling its runs to stop."""


class Calls:
    """Runs the work of requests, and knows what is still under way."""

    def __init__(self) -> None:
        self._open: dict[threading.Thread, threading.Event] = {}

    async def run(self, work: Callable[[threading.Event], T]) -> T:
        """Return what `work` answers in its thread; a cancelled caller sets the event that `work` was given.

        The caller is held until the work has taken notice. The thread is a daemon: one that takes none, on a disk
        that hangs say, does not keep the process.
        """
        cancelled = threading.Event()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        thread = threading.Thread(target=_settle, args=(loop, answer, work, cancelled), name="call", daemon=True)
        self._open[thread] = cancelled
        thread.start()
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            cancelled.set()
            with anyio.move_on_after(PATIENCE, shield=True):
                await asyncio.wait({answer})
            raise
        finally:
            del self._open[thread]

    def cancel_all(self) -> None:
        """Cancel everything from outside the loop, and wait until it has taken notice."""
        under_way = dict(self._open)
        for cancelled in under_way.values():
            cancelled.set()
        deadline = time.monotonic() + PATIENCE
        for thread in under_way:
            thread.join(max(0.0, deadline - time.monotonic()))


def _settle(
    loop: asyncio.AbstractEventLoop,
    answer: asyncio.Future[T],
    work: Callable[[threading.Event], T],
    cancelled: threading.Event,
) -> None:
    try:
        value = work(cancelled)
    except Exception as error:
        log_fault("answering a call", error)
        in_loop(loop, _unless_done, answer, answer.set_exception, error)
    else:
        in_loop(loop, _unless_done, answer, answer.set_result, value)


def _unless_done(answer: asyncio.Future[Any], settle: Callable[[Any], None], outcome: object) -> None:
    if not answer.done():
        settle(outcome)
    if isinstance(outcome, Exception):
        answer.exception()  # counts as seen, also where the caller has gone


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., object], *arguments: object) -> None:
    """Have the loop call a function soon; never blocks, and a loop that has ended is no error."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return  # closed: nobody is left who waits


BEAT = 20.0
"""Seconds without news after which the last words are sent again: clients give up on a call that they hear nothing of,
the first of them after 60."""

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""`ServerSession.report_progress`: progress, total, message."""


class Relay:
    """That of one call; `tell` is for its thread, the rest for the loop."""

    def __init__(self, report: Report, beat: float = BEAT) -> None:
        self._report = report
        self._beat = beat
        self._loop = asyncio.get_running_loop()
        self._latest = self._unsent = ""
        self._news = asyncio.Event()
        self._sent = 0
        self._closed = False

    def tell(self, text: str) -> None:
        """Take the latest words; never blocks, whether or not the client reads."""
        in_loop(self._loop, self._take, text)

    async def during(self, work: Awaitable[T]) -> T:
        """Pass on what is told while `work` goes on, to the last word before its answer."""
        sending = asyncio.create_task(self._pass_on())
        try:
            answer = await work
            # What the thread told before it answered has been taken: the loop calls in the order it was asked.
            self._closed = True
            self._news.set()
            await sending
            return answer
        finally:
            sending.cancel()

    async def _pass_on(self) -> None:
        while self._unsent or not self._closed:
            try:
                await asyncio.wait_for(self._news.wait(), self._beat)
            except TimeoutError:
                self._unsent = self._latest
            self._news.clear()
            text, self._unsent = self._unsent, ""
            if text:
                self._sent += 1
                await self._report(self._sent, None, text)

    def _take(self, text: str) -> None:
        self._latest = self._unsent = text
        self._news.set()
