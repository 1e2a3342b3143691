"""What a run whose wrapper died left running: found by its control group, its mark and what the wrapper wrote down.

Without a control group that is not all of it: what gave up parent and environment in the last moments of the wrapper,
or forks on and on without them, is known to nobody.
"""

from __future__ import annotations

import os

from .. import paths
from ..run.events import RunStarted
from ..system import cgroup, ending, files, processes

PATIENCE_S = 0.5
"""Between TERM and KILL."""
MOST_CHILDREN = 64 * 1024
"""Bytes of the list of children that are read, its newest."""


class LeftOvers:
    """The processes of one run."""

    def __init__(self, run_id: str, run_dir: str, child: RunStarted | None) -> None:
        """`child` is None where pids that were written down are not those of this machine and boot."""
        self._run_id = run_id
        self._group = cgroup.find(run_id)
        self._written: set[tuple[int, int]] = set()
        """Pids and start times."""
        if child:
            self._written = set(_children(run_dir))
            if child.child_pid_started:
                self._written.add((child.child_pid, child.child_pid_started))

    def end(self) -> tuple[str, ...]:
        """End all of them; return what could not be ended, for a person. Raises OSError where it cannot be looked."""
        left = ending.end_found(self._found, PATIENCE_S, self._kill_group)
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


def _children(run_dir: str) -> list[tuple[int, int]]:
    """Read the list that the wrapper kept; what is torn or not of ours says nothing."""
    lines = files.content(f"{run_dir}/{paths.CHILDREN}")[-MOST_CHILDREN:].split(b"\n")
    words = (line.split() for line in lines)
    return [(int(two[0]), int(two[1])) for two in words if len(two) == 2 and all(map(bytes.isdigit, two))]
