"""Which runs are silent: they become so because time passes, without an update; one look a second asks for all."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot

LATE_S = 5.0
"""Without a look for so long, the app itself stood still: what its runs have written meanwhile is still to be read."""
CATCH_UP_S = 5.0
"""How long that may take; until then nobody is called silent."""


class SilenceWatch:
    """Times are those of `time.monotonic`; a look costs a comparison until the next run is due."""

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        """When each running run is silent if it writes nothing more."""
        self._next = math.inf
        """No run is due before."""
        self._looked_at: float | None = None
        self._trusted_from = -math.inf
        self.silent: set[str] = set()
        """Changed by this watch only."""
        self._seen: set[str] = set()
        """Of the silent ones, those that the operator has looked at."""

    @property
    def needing(self) -> set[str]:
        """The silent runs that nobody has looked at since they became so."""
        return self.silent - self._seen

    def put(self, run: RunSnapshot) -> None:
        """Note a run that is new or changed; one that has written something is not silent any more."""
        due = run.silent_from
        if due == self._due.get(run.run_id):
            return
        self.forget(run.run_id)
        if due is not None:
            self._due[run.run_id] = due
            self._next = min(self._next, due)

    def forget(self, run_id: str) -> None:
        self._due.pop(run_id, None)
        self.silent.discard(run_id)
        self._seen.discard(run_id)

    def look(self, clock: float) -> set[str]:
        """Return the runs that have become silent since the last look."""
        if self._looked_at is not None and clock - self._looked_at > LATE_S:
            self._trusted_from = clock + CATCH_UP_S
        self._looked_at = clock
        if clock < self._next or clock < self._trusted_from:
            return set()
        due = {run_id for run_id, moment in self._due.items() if moment <= clock}
        self._next = min((moment for moment in self._due.values() if moment > clock), default=math.inf)
        became = due - self.silent
        self.silent |= became
        return became

    def mark_seen(self, run_id: str) -> bool:
        """Note that a run was looked at; return whether it is silent and was not looked at before."""
        if run_id not in self.silent or run_id in self._seen:
            return False
        self._seen.add(run_id)
        return True
