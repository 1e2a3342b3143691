"""What a run whose wrapper died left running: found by its mark and by what the wrapper wrote down, and ended."""

from __future__ import annotations

import os

from ..run.events import RunStarted
from ..system import ending, processes

PATIENCE_S = 0.5
"""Between TERM and KILL."""


def end_left_overs(run_id: str, child: RunStarted | None) -> tuple[str, ...]:
    """End what carries the run's mark, and the child that said goodbye to its environment, with all below them.

    Returns what could not be ended, for a person. Raises OSError where it was not possible to look.
    """
    roots: dict[int, int] = {}
    if child and child.child_pid_started:
        roots[child.child_pid] = child.child_pid_started
    return ending.end_found(lambda: _found(run_id, roots), PATIENCE_S)


def _found(run_id: str, roots: dict[int, int]) -> dict[int, int]:
    """Return all that lives of the run, pids and start times."""
    parents = processes.living()
    found = set(processes.marked(run_id))
    found |= {pid for pid, started in roots.items() if processes.is_alive(pid, started)}
    found |= set(processes.below(found, parents))
    return {pid: started for pid in found - {os.getpid()} if (started := processes.start_time(pid))}
