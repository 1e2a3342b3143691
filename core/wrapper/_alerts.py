"""The alerts of a run for the user away from the terminal; nothing is loaded for them until one is due."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

from ..paths import user_settings_file
from ..run.model import RunMeta, RunResult

if TYPE_CHECKING:
    from ..budget.used_up import BudgetWatch
    from ..run.events import Request

LOOK_S = 2.0
"""Seconds between two checks that a sender is running while this run's alerts wait."""
LEAST_SILENCE_S = 60.0
"""Seconds before which no agent counts as idle: `open_run.LEAST_S`, without that module."""
LONGEST_S = 1200.0
"""Seconds after the last alert for which that is checked: by then every delivery is over."""


class _Silence:
    """The time since the agent last wrote something."""

    def __init__(self, heard_at: float) -> None:
        self.heard_at = heard_at
        self.until: float | None = None
        """Until when the silence is normal, in monotonic seconds; None before that was looked up."""
        self.is_settled = False
        """Whether it was reported."""
        self.alert_seq: int | None = None


class Alerts:
    """Queues the alerts of one run."""

    def __init__(self, meta: RunMeta, run_dir: str, spare: Callable[[int], None]) -> None:
        """`spare` gets the pid of each sender that is started here: it does not belong to the run."""
        self._meta = meta
        self._run_dir = run_dir
        self._root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(run_dir))))
        self._spare = spare
        self._looked = 0.0
        self._last: float | None = None
        """When the last alert was queued, in monotonic seconds; None before the first."""
        self._budgets: BudgetWatch | None = None
        self._silence = _Silence(0.0)

    def asked(self, request: Request) -> None:
        """Report that the agent waits for a reply."""
        if self._meta.is_in_spool:
            return  # the machine that launched the run reports it
        from ..alerts.alert import request_alert
        from ..alerts.dispatch import dispatch

        self._note(dispatch(lambda: request_alert(self._meta, self._root, request, at=time.time()), reaps=False))

    def decided(self, request_id: str) -> None:
        """Withdraw the alert of a request."""
        if self._last is None:
            return
        from ..alerts.dispatch import settle_request

        settle_request(self._meta.run_id, request_id)

    def ended(self, result: RunResult) -> None:
        """Report the end of the run."""
        self._take_back_silence()
        if self._meta.is_in_spool:
            return
        from ..alerts.alert import end_alert
        from ..alerts.dispatch import dispatch

        self._note(dispatch(lambda: end_alert(self._meta, self._root, result, at=time.time()), reaps=False))

    def spent(self) -> None:
        """Report daily budgets that are used up."""
        if not is_configured():
            return
        from ..budget.ledger import local_day
        from ..budget.used_up import BudgetWatch

        self._budgets = self._budgets or BudgetWatch(self._root)
        for sender in self._budgets.look(local_day()):
            self._note(sender)

    def look_for_silence(self, now: float, heard_at: float, last_seq: int, *, is_quiet: bool) -> None:
        """Report once that the agent has been idle for longer than usual; withdraw the alert when it continues.

        `heard_at` is when it last wrote something, `is_quiet` says that no tool is running and no user is waited for.
        """
        if heard_at != self._silence.heard_at:
            self._take_back_silence()
            self._silence = _Silence(heard_at)
        if not is_quiet or self._silence.is_settled or now < heard_at + LEAST_SILENCE_S or self._meta.is_in_spool:
            return
        if self._silence.until is None:
            self._silence.until = heard_at + self._patience()
        if now >= self._silence.until:
            self._silence.is_settled = True
            from ..alerts.alert import idle_alert
            from ..alerts.dispatch import dispatch

            self._silence.alert_seq = last_seq
            self._note(dispatch(lambda: idle_alert(self._meta, self._root, last_seq, at=time.time()), reaps=False))

    def _take_back_silence(self) -> None:
        if self._silence.alert_seq is None:
            return
        from ..alerts.alert import idle_alert_id
        from ..alerts.spool import withdraw

        withdraw(idle_alert_id(self._meta.run_id, self._silence.alert_seq))

    def _patience(self) -> float:
        """Return the seconds of silence that are normal for this agent, as for the readers of the run."""
        if not is_configured():
            return inf
        from ..run.open_run import usual_patience

        return usual_patience(self._run_dir, self._meta.limits.stall)

    def look(self, now: float) -> None:
        """Start another sender if one was killed before it had sent everything."""
        if self._last is None or now < self._looked + LOOK_S or now > self._last + LONGEST_S:
            return
        self._looked = now
        from ..alerts.dispatch import resume_sending

        self._note(resume_sending(reaps=False), is_new=False)

    def _note(self, sender: int | None, *, is_new: bool = True) -> None:
        if is_new:
            self._last = time.monotonic()
        if sender:
            self._spare(sender)


def is_configured() -> bool:
    """Whether there is a settings file: without one alerts are off, and nothing is loaded."""
    return os.path.exists(user_settings_file())
