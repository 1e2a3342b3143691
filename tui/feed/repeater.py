"""Work that is repeated on request, under supervision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from textual.dom import DOMNode
from textual.widget import Widget

from ...core.system.log import log_fault
from ..terminal.after_close import is_open, was_closed
from .supervision import PATIENCE_S, Supervised, Supervisor

if TYPE_CHECKING:
    from textual.worker import Worker


class SupervisingWidget(Widget):
    """Runs the work of repeaters, under one supervisor."""

    supervisor: Supervisor


class Repeater:
    """Does some work on request, never twice at a time; a request during the work repeats it once afterwards.

    Work that fails, or takes longer than `patience` seconds without a beat, is reported in a banner and repeated.
    """

    def __init__(
        self,
        node: SupervisingWidget,
        work: Callable[[], Awaitable[None]],
        stopped: str,
        *,
        patience: float = PATIENCE_S,
    ) -> None:
        """Begin the banner with `stopped`: "Updates stopped". `work` reads with `Bridge.read`."""
        self._node = node
        self._work = work
        self._is_wanted = False
        self._running: Worker[None] | None = None
        self._attempt: object = None
        """Identifies the current work; replaced once that was abandoned."""
        self._supervised = Supervised(node.supervisor, stopped, self._restart, self._abandon, patience)

    @property
    def is_busy(self) -> bool:
        return self._running is not None

    def ask(self) -> None:
        self._is_wanted = True
        if self._running is None and not self._supervised.is_waiting:
            self._begin()

    def beat(self) -> None:
        """Report progress of long work; any thread may call it."""
        self._supervised.beat()

    def _begin(self) -> None:
        self._attempt = attempt = object()
        self._supervised.begin()
        self._running = self._node.run_worker(partial(self._repeat, attempt), exit_on_error=False)

    async def _repeat(self, attempt: object) -> None:
        try:
            while self._is_wanted:
                self._is_wanted = False
                await self._work()
                self._supervised.beat()
        except Exception as error:
            if attempt is self._attempt:
                self._running = None
                self._end(error)
        else:
            self._running = None
            self._supervised.rest()

    def _end(self, error: Exception) -> None:
        if was_closed(error, self._work):
            self._supervised.rest()
        else:
            log_fault(f"in {getattr(self._work, '__qualname__', 'a worker')}", error)
            self._supervised.fail(error)

    def _abandon(self) -> None:
        self._attempt = None
        if self._running is not None:
            self._running.cancel()
            self._running = None

    def _restart(self) -> None:
        owner = getattr(self._work, "__self__", None)
        if isinstance(owner, DOMNode) and not is_open(owner):
            self._supervised.rest()
            return
        self._is_wanted = True
        self._begin()
