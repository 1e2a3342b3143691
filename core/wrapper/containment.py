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


class Group:
    """A control group that this process moves into, if it may, while there is much to load: the kernel takes 14 ms."""

    def __init__(self, name: str) -> None:
        self._home = _own_group()
        self._path = f"{self._home}/{name}"
        self.is_inside = False
        self._moving = _thread.allocate_lock()
        self._moving.acquire()
        if self._home:
            _thread.start_new_thread(self._move, ())
        else:
            self._moving.release()

    @classmethod
    def of_run(cls, run_dir: str) -> Group:
        return cls(cgroup.PREFIX + os.path.basename(run_dir))

    @classmethod
    def of_standby(cls) -> Group:
        """Make one before it is known for which run."""
        name = f"{cgroup.STANDBY}{os.getpid()}"
        if home := _own_group():
            cgroup.remove(f"{home}/{name}")  # of an earlier process with this pid
        return cls(name)

    def label(self, run_dir: str) -> bool:
        """Let the group be found by a run's id; return whether this process is in a group that can be."""
        with self._moving:
            pass
        try:
            if self.is_inside:
                cgroup.label(self._path, os.path.basename(run_dir))
        except OSError:
            return False
        return self.is_inside

    def enter(self) -> None:
        """Make sure that what is started from now on is in the group, if there is one."""
        with self._moving:
            pass
        if self._home and not self.is_inside:
            self._moving.acquire()
            self._move()

    def kill(self) -> None:
        """Leave the group and kill what stays."""
        self._leave()
        if not self.is_inside:
            try:
                cgroup.kill(self._path)
            except OSError:
                return  # an older kernel: one by one, then

    def remove(self) -> None:
        """Take the group away: what was in it has ended."""
        with self._moving:
            pass
        if self._home:
            self._leave()
            cgroup.remove(self._path)
            cgroup.remove_old(self._home)

    def _move(self) -> None:
        try:
            try:
                os.mkdir(self._path, 0o700)
            except FileExistsError:
                pass
            cgroup.move_here(self._path)
            self.is_inside = True
        except OSError:
            cgroup.remove(self._path)
            self._home = None
        finally:
            self._moving.release()

    def _leave(self) -> None:
        if self._home and self.is_inside:
            try:
                cgroup.move_here(self._home)
                self.is_inside = False
            except OSError:
                return  # it stays; an empty group costs nothing


class Containment:
    """Of the run that this process, a subreaper, supervises."""

    def __init__(self, run_dir: str, runner: RunnerFile, group: Group | None) -> None:
        self.runner = runner
        self._group = group
        self._list = os.path.join(run_dir, paths.CHILDREN)
        self._known: set[int] = set()
        self._looked = 0.0

    def enter(self) -> None:
        """Make sure that what is started from now on is in the group, if there is one."""
        if self._group:
            self._group.enter()

    def add_child(self, pid: int) -> None:
        """Write down the child that was just started."""
        self.runner.add_child(pid, _start_time(pid))
        self.look(0.0)

    def look(self, now: float) -> None:
        """Write down the children that have come, unless a group says which they are; with 0 for `now` at once."""
        if self._is_grouped or 0 < now < self._looked + LOOK_S:
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
        return ending.end_children(patience, self._group.kill if self._group and self._is_grouped else None)

    def kill(self) -> None:
        """Kill all that is below this process, once."""
        ending.kill_below()

    def remove(self) -> None:
        """Take the group away, or the list: the run has ended."""
        files.remove(self._list)
        if self._group:
            self._group.remove()

    @property
    def _is_grouped(self) -> bool:
        return self._group is not None and self._group.is_inside

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
