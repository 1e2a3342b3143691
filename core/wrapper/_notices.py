"""The notices of a run for the user away from the terminal; nothing is loaded for them until one is due."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..run.model import RunMeta, RunResult

if TYPE_CHECKING:
    from ..run.events import Request

LOOK_S = 2.0
"""Seconds between two checks that a sender is running while this run's notices wait."""
LONGEST_S = 1200.0
"""Seconds after the last notice for which that is checked: by then every delivery is over."""


class Notices:
    """Queues the notices of one run."""

    def __init__(self, meta: RunMeta, run_dir: str, spare: Callable[[int], None]) -> None:
        """`spare` gets the pid of each sender that is started here: it does not belong to the run."""
        self._meta = meta
        self._root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(run_dir))))
        self._spare = spare
        self._looked = 0.0
        self._last: float | None = None
        """When the last notice was queued, in monotonic seconds; None before the first."""

    def asked(self, request: Request) -> None:
        """Report that the agent waits for a reply."""
        if self._meta.is_in_spool:
            return  # the machine that launched the run reports it
        from ..notices.dispatch import dispatch
        from ..notices.notice import request_notice

        self._note(dispatch(lambda: request_notice(self._meta, self._root, request, at=time.time()), reaps=False))

    def decided(self, request_id: str) -> None:
        """Take the notice of a request back, unless it is on its way."""
        if self._last is None:
            return
        from ..notices.notice import request_notice_id
        from ..notices.spool import withdraw

        withdraw(request_notice_id(self._meta.run_id, request_id))

    def ended(self, result: RunResult) -> None:
        """Report the end of the run."""
        if self._meta.is_in_spool:
            return
        from ..notices.dispatch import dispatch
        from ..notices.notice import end_notice

        self._note(dispatch(lambda: end_notice(self._meta, self._root, result, at=time.time()), reaps=False))

    def look(self, now: float) -> None:
        """Start another sender if one was killed before it had sent everything."""
        if self._last is None or now < self._looked + LOOK_S or now > self._last + LONGEST_S:
            return
        self._looked = now
        from ..notices.dispatch import resume_sending

        self._note(resume_sending(reaps=False), is_new=False)

    def _note(self, sender: int | None, *, is_new: bool = True) -> None:
        if is_new:
            self._last = time.monotonic()
        if sender:
            self._spare(sender)
