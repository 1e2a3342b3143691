"""What a run whose wrapper died left running: found by its control group, its mark and what the wrapper wrote down.

Without a control group that is not all of it: what gave up parent and environment in the last moments of the wrapper,
or forks on and on without them, is known to nobody.
"""

from __future__ import annotations

import os

from .. import paths
from ..run.artifacts import RunnerFacts
from ..run.events import RunStarted
from ..system import cgroup, files, processes, termination
from ..system.directory import RefusedError

PATIENCE_S = 0.5
"""Between TERM and KILL."""
MOST_CHILDREN = 64 * 1024
"""Bytes of the list of children that are read, its newest."""


class LeftOvers:
    """The processes of one run."""

    def __init__(self, run_id: str, run_dir: str, facts: RunnerFacts | None, started: RunStarted | None) -> None:
        """`facts` and `started` are what the wrapper wrote down. Raises OSError where it cannot be looked."""
        self._run_id = run_id
        self._group = cgroup.find(run_id)
        self._written: set[tuple[int, int]] = set()
        """Pids and start times."""
        if facts or (started and _is_of_now(started)):
            children = ((record.child_pid, record.child_pid_started) for record in (facts, started) if record)
            self._written = {(pid, began) for pid, began in children if pid and began}
            self._written.update(_listed(run_dir))

    @property
    def is_certain(self) -> bool:
        """Whether a control group says which they are: else some may not be found."""
        return self._group is not None

    def end(self) -> tuple[str, ...]:
        """End all of them; return what could not be ended, for a person. Raises OSError where it cannot be looked."""
        left = termination.end_found(self._found, PATIENCE_S, self._kill_group)
        if self._group:
            cgroup.remove(self._group)
        return left

    def _found(self) -> dict[int, int]:
        """Return all that lives, pids and start times, but for this process."""
        parents = processes.living()
        found = set(processes.marked(self._run_id))
        found |= {pid for pid, started in self._written if processes.is_alive(pid, started)}
        if self._group:
            found |= set(cgroup.members(self._group))
        found |= set(processes.below(found, parents))
        return {pid: started for pid in found - {os.getpid()} if (started := processes.start_time(pid))}

    def _kill_group(self) -> None:
        if self._group:
            try:
                if os.getpid() not in cgroup.members(self._group):  # whoever looks may be of the run itself
                    cgroup.kill(self._group)
            except OSError:
                return  # an older kernel: one by one, then


def _is_of_now(started: RunStarted) -> bool:
    """Return whether the pids in an event are those of this boot and pid namespace, as far as the event says."""
    ours = (processes.boot_id(), processes.pid_namespace())
    return bool(started.boot_id) and (started.boot_id, started.pid_namespace) == ours


def _listed(run_dir: str) -> list[tuple[int, int]]:
    """Read the list that the wrapper kept; what is torn or not of ours says nothing. Raises OSError."""
    try:
        content = files.read(f"{run_dir}/{paths.CHILDREN}")
    except (FileNotFoundError, RefusedError):
        return []
    words = (line.split() for line in content[-MOST_CHILDREN:].split(b"\n"))
    return [(int(two[0]), int(two[1])) for two in words if len(two) == 2 and all(map(bytes.isdigit, two))]
