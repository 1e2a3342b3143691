"""What keeps the processes of a run together while its wrapper lives, and tells whoever comes after it which they are.

A control group, where one can be made: what is in it is the run's. Elsewhere a list of the processes that were handed
to this wrapper, for by then they may have given up their parent and their environment.
"""

from __future__ import annotations

import _thread
import os

from .. import paths
from ..system import cgroup, ending, files, processes
from .runner_file import RunnerFile

LOOK_S = 0.1
"""Between two looks at the children at least."""


class Containment:
    """Of the run that this process, a subreaper, supervises."""

    def __init__(self, run_dir: str, runner: RunnerFile, *, may_group: bool) -> None:
        self.runner = runner
        self._home = _own_group() if may_group else None
        self._group = f"{self._home}/{cgroup.PREFIX}{os.path.basename(run_dir)}"
        self._list = os.path.join(run_dir, paths.CHILDREN)
        self._known: set[int] = set()
        self._looked = 0.0
        self._is_inside = False
        self._moving = _thread.allocate_lock()
        self._moving.acquire()
        if self._home:
            _thread.start_new_thread(self._move, ())  # the kernel takes 14 ms, in which there is much to load
        else:
            self._moving.release()

    def enter(self) -> None:
        """Make sure that what is started from now on is in the group, if there is one."""
        with self._moving:
            pass
        if self._home and not self._is_inside:
            self._moving.acquire()
            self._move()

    def add_child(self, pid: int) -> None:
        """Write down the child that was just started."""
        self.runner.add_child(pid, _start_time(pid))
        self.look(0.0)

    def look(self, now: float) -> None:
        """Write down the children that have come, unless a group says which they are; with 0 for `now` at once."""
        if self._is_inside or 0 < now < self._looked + LOOK_S:
            return
        self._looked = now
        there = set(processes.children())
        new = there - self._known
        self._known = there
        lines = (f"{pid} {started}\n" for pid in new if (started := _start_time(pid)))
        if text := "".join(lines):
            self._note(text)

    def end(self, patience: float) -> tuple[str, ...]:
        """End all that is left of the run; return what could not be ended, for a person."""
        return ending.end_children(patience, self._kill_group if self._is_inside else None)

    def kill(self) -> None:
        """Kill all that is below this process, once."""
        ending.kill_below()

    def remove(self) -> None:
        """Take the group away, or the list: the run has ended."""
        files.remove(self._list)
        with self._moving:
            pass
        if self._home:
            self._leave()
            cgroup.remove(self._group)
            cgroup.remove_old(self._home)

    def _move(self) -> None:
        try:
            try:
                os.mkdir(self._group, 0o700)
            except FileExistsError:
                pass
            cgroup.move_here(self._group)
            self._is_inside = True
        except OSError:
            cgroup.remove(self._group)
            self._home = None
        finally:
            self._moving.release()

    def _leave(self) -> None:
        if self._home and self._is_inside:
            try:
                cgroup.move_here(self._home)
                self._is_inside = False
            except OSError:
                return  # it stays; an empty group costs nothing

    def _kill_group(self) -> None:
        self._leave()
        if not self._is_inside:
            try:
                cgroup.kill(self._group)
            except OSError:
                return  # an older kernel: one by one, then

    def _note(self, text: str) -> None:
        try:
            descriptor = files.open_private(self._list, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
        except OSError:
            return  # a full disk keeps no run from going on


def _own_group() -> str | None:
    try:
        return cgroup.own()
    except OSError:
        return None


def _start_time(pid: int) -> int | None:
    try:
        return processes.start_time(pid)
    except OSError:
        return None
