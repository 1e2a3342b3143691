"""Keep a run's processes together while its wrapper lives, and list them for a process that cleans up later.

With a control group its members are the run's. Without one, a list of the wrapper's children, which may have lost their
parent and their environment by then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from .. import paths
from ..system import cgroup, files, processes, spawn, termination
from ._runner_file import RunnerFile

LOOK_S = 0.1
"""Minimum seconds between checks of the children."""


class Containment:
    """The processes of the run that this subreaper supervises."""

    def __init__(self, run_dir: str, runner: RunnerFile, *, may_group: bool) -> None:
        self.runner = runner
        self._group = cgroup.make(os.path.basename(run_dir)) if may_group else None
        self._list = os.path.join(run_dir, paths.CHILDREN)
        self._known: set[int] = set()
        self._looked = 0.0
        self._spared: dict[int, int] = {}
        """Children that do not belong to the run, pids and start times."""

    def spare(self, pid: int) -> None:
        """Let a child that was just started outlive the run, with everything below it: it is not the run's."""
        if started := _start_time(pid):
            self._spared[pid] = started

    def start(
        self,
        argv: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
        stdin: int | None,
        one_output: bool = False,
    ) -> spawn.Child:
        """Start a child, in the group if there is one. Raises what `spawn.start` does."""
        child = spawn.start(
            argv,
            directory=directory,
            environment=environment,
            stdin=stdin,
            group=self._group,
            one_output=one_output,
        )
        if self._group and not child.is_grouped:
            self._remove_group()
        return child

    def add_child(self, pid: int) -> None:
        """Record the child that was just started."""
        self.runner.add_child(pid, _start_time(pid))
        self.look(0.0)

    def look(self, now: float) -> None:
        """Record new children, unless a group has them; with 0 for `now` at once."""
        if self._group or 0 < now < self._looked + LOOK_S:
            return
        self._looked = now
        there = {pid for pid in processes.children() if not self._is_spared(pid)}
        new = there - self._known
        self._known = there
        lines = (f"{pid} {started}\n" for pid in new if (started := _start_time(pid)))
        if text := "".join(lines):
            self._note(text)

    def end(self, patience: float) -> tuple[str, ...]:
        """End the run's remaining processes; return any that survive, as text for a person."""
        return termination.end_children(patience, self._kill_group, self._spared)

    def kill(self) -> None:
        """Kill all descendants of this process but the spared ones, once."""
        termination.kill_below(self._spared)

    def remove(self) -> None:
        """Remove the group or the list: the run has ended."""
        files.remove(self._list)
        self._remove_group()

    def _is_spared(self, pid: int) -> bool:
        return pid in self._spared and processes.is_alive(pid, self._spared[pid])

    def _kill_group(self) -> None:
        if self._group:
            try:
                cgroup.kill(self._group)
            except OSError:
                return  # an older kernel: kill them one by one

    def _remove_group(self) -> None:
        if self._group:
            cgroup.remove(self._group)
            cgroup.remove_old(os.path.dirname(self._group))
            self._group = None

    def _note(self, text: str) -> None:
        try:
            descriptor = files.open_private(self._list, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
        except OSError:
            return  # a full disk must not stop a run


def _start_time(pid: int) -> int | None:
    try:
        return processes.start_time(pid)
    except OSError:
        return None
