"""The open runs of a project that were left for a relay: found, looked at as their directories change, let go."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Collection, KeysView, Mapping

from ... import paths
from ...run import artifacts
from ...run.mark import Verifier
from ...run.model import RunnerKind
from ...run.proven import has_result
from ...system import files
from .journal import Journal
from .remote import Remote

SWEEP_S = 60.0
"""Between two looks at all runs of the project: one may have lost its record in `active/`, or have been changed without
a trace in the time of its directory.
"""
TICK_S = 0.1
"""The most by which the time of a change is coarser than the changes: one that comes later is another time."""


class Runs:
    def __init__(self, project: paths.Project, journal: Journal) -> None:
        self._project = project
        self._journal = journal
        self._open: dict[str, Remote] = {}
        self._at: defaultdict[str, dict[str, Remote]] = defaultdict(dict)
        """Of them those with a permit, by the spool that it is for."""
        self._not_ours: set[str] = set()
        """Names in `active/` that no relay cares for."""
        self._seen: dict[str, tuple[int, float | None]] = {}
        """When the directory of a run was last changed, as it was looked at, and when that was seen first; None once it
        was looked at so long after that nothing more can have come at that time.
        """
        self._swept = 0.0

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._open

    @property
    def ids(self) -> KeysView[str]:
        return self._open.keys()

    @property
    def all(self) -> Collection[Remote]:
        """All of them, as of now."""
        return tuple(self._open.values())

    def get(self, run_id: str) -> Remote | None:
        return self._open.get(run_id)

    def at(self, spool: str, via: str) -> Mapping[str, Remote]:
        """Return those that have the permit for a spool at that address, as of now."""
        return {run_id: run for run_id, run in self._at.get(spool, {}).items() if run.is_at(spool, via)}

    @property
    def counts(self) -> Mapping[str, int]:
        """How many there are by spool."""
        return {spool: len(there) for spool, there in self._at.items()}

    def take_up(self) -> None:
        """Find runs that were left for a relay."""
        names = artifacts.run_ids(self._project.active)
        if time.monotonic() - self._swept > SWEEP_S:
            self._swept = time.monotonic()
            self._seen.clear()
            names = [*names, *artifacts.run_ids(self._project.runs)]
        new = [name for name in names if name not in self._open and name not in self._not_ours]
        verifier = Verifier()
        for name in sorted(new):
            try:
                if remote := self._taken_up(name, verifier):
                    self._open[name] = remote
                    self.index(remote)
            except OSError as error:
                self._journal.note(f"cannot read {name}: {error}")

    def _taken_up(self, name: str, verifier: Verifier) -> Remote | None:
        """Return a run that is ours to care for; None for any other. Raises OSError."""
        run_dir = self._project.run_dir(name)
        if has_result(run_dir):
            self._not_ours.add(name)
            return None
        meta, is_own = artifacts.read_owned_meta(run_dir, verifier, certain=True)
        if meta is None or not is_own or not files.exists(f"{run_dir}/{paths.RUNNER}"):
            return None  # its launcher may be still at it
        if meta.runner != RunnerKind.HOSTS or meta.is_newer:
            self._not_ours.add(name)
            return None
        remote = Remote(self._project, name, meta)
        remote.open()
        return remote

    def look(self, remote: Remote) -> bool:
        """Find out what is wanted of a run where its directory has changed; False where it is over, or was deleted.

        Raises OSError.
        """
        try:
            changed = os.stat(remote.run_dir).st_mtime_ns
        except FileNotFoundError:
            return False
        now = time.monotonic()
        seen, since = self._seen.get(remote.id, (0, None))
        if changed == seen and since is None:
            return True
        if has_result(remote.run_dir):
            return False
        remote.look()
        self.index(remote)
        since = now if since is None or changed != seen else since
        self._seen[remote.id] = (changed, None if now - since > TICK_S else since)
        return True

    def index(self, remote: Remote) -> None:
        """Note which spool a run has the permit for, if any."""
        if remote.spool:
            self._at[remote.spool][remote.id] = remote

    def drop(self, remote: Remote) -> None:
        """Have it no more among the open ones."""
        self._open.pop(remote.id, None)
        there = self._at.get(remote.spool, {})
        there.pop(remote.id, None)
        if not there:
            self._at.pop(remote.spool, None)
        self._seen.pop(remote.id, None)

    def close(self, run_id: str) -> None:
        """Never take up a run again that has ended."""
        self._not_ours.add(run_id)
