"""Open requests: each is worked on in a thread of its own, because some take hours and the client may cancel any."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ..errors import explained
from ..system.log import log_fault
from .protocol import INTERNAL_ERROR, Fields, ProtocolError, RequestId

CANCEL_TIMEOUT_S = 5.0
"""How long cancelled calls have to stop their runs."""

Answer = Callable[[Fields | None, Fields | None], None]
"""Takes a result or an error; neither for a request that is not answered."""


class Call:
    """One request that is worked on."""

    def __init__(self, request_id: RequestId, answer: Answer) -> None:
        self.id = request_id
        self.cancelled = threading.Event()
        """Set when the work shall end; it is answered all the same, unless the client said so."""
        self.on_drop: Callable[[], None] | None = None
        """Takes back what else was about to be sent, when the client cancels it."""
        self._answer = answer
        self._settling = threading.Lock()
        self._is_settled = False

    def settle(self, *, result: Fields | None = None, error: Fields | None = None) -> None:
        """Answer it, unless that was done, or the client has cancelled it."""
        with self._settling:
            is_first, self._is_settled = not self._is_settled, True
        if is_first:
            self._answer(result, error)

    def drop(self) -> None:
        """Cancel it for the client, who gets nothing more of it."""
        self.settle()
        self.cancelled.set()
        if self.on_drop:
            self.on_drop()

    def fail(self, error: Exception) -> None:
        """Answer with an error that nobody expected."""
        log_fault("working on a request", error)
        self.settle(error=ProtocolError(INTERNAL_ERROR, str(explained(error))).error)

    def work_on(self, work: Callable[[Call], Fields]) -> None:
        """Answer with what `work` returns, or with its error."""
        try:
            result = work(self)
        except ProtocolError as error:
            self.settle(error=error.error)
        except Exception as error:
            self.fail(error)
        else:
            self.settle(result=result)


class Calls:
    """The requests that are being worked on."""

    def __init__(self) -> None:
        self._open: dict[Call, threading.Thread] = {}
        self._change = threading.Lock()

    def start(self, call: Call, work: Callable[[Call], Fields]) -> None:
        """Work on a call in a thread; a daemon, so that one that hangs on a disk does not keep the process from ending.

        Raises ProtocolError where there can be no more threads.
        """

        def run() -> None:
            try:
                call.work_on(work)
            finally:
                with self._change:
                    self._open.pop(call, None)

        thread = threading.Thread(target=run, name="call", daemon=True)
        with self._change:
            self._open[call] = thread
        try:
            thread.start()
        except RuntimeError as error:
            with self._change:
                del self._open[call]
            raise ProtocolError(INTERNAL_ERROR, "too many requests at the same time") from error

    def drop(self, request_id: RequestId) -> None:
        """Cancel a request for the client, if it is still open. Some clients write the number of one as text."""
        with self._change:
            meant = [call for call in self._open if str(call.id) == str(request_id)]
        for call in meant:
            call.drop()

    def cancel_all(self) -> None:
        """Cancel all open requests, and wait until they have ended."""
        with self._change:
            under_way = dict(self._open)
        for call in under_way:
            call.cancelled.set()
        deadline = time.monotonic() + CANCEL_TIMEOUT_S
        for thread in under_way.values():
            thread.join(max(0.0, deadline - time.monotonic()))
