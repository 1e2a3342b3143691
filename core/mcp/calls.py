"""The requests that go on: each works in a thread of its own, because the engine is synchronous."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import anyio

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that a cancelled call has for telling its runs to stop."""


class Calls:
    """Runs the work of requests, and knows what is still under way."""

    def __init__(self) -> None:
        self._open: dict[threading.Thread, threading.Event] = {}

    async def run(self, work: Callable[[threading.Event], T]) -> T:
        """Answer what `work` answers in its thread; a cancelled caller sets the event that `work` was given.

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
