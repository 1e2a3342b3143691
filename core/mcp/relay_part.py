"""Progress on its way from a call's thread to the client; of what cannot leave in time the latest is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .calls import in_loop

T = TypeVar("T")

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
