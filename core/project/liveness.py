"""Who is responsible for a run, proven by a kernel lock; asking them to end it, and finishing it where nobody is.

What a dead run left running is found by its control group. Where there is none, what gave up parent and environment in
the last moments of the wrapper, or forks on and on without them, is known to nobody.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from enum import Enum

from .. import paths
from ..errors import SubdeckError
from ..run import artifacts, own_copy
from ..run.artifacts import RunnerFacts
from ..run.events import RunStarted
from ..run.model import StopReason, StopRequest, newer_schema
from ..run.proven import has_result
from ..run.restoring import let_in, restore
from ..run.snapshot import RunSnapshot
from ..runners import forker, standby
from ..runners.hosts import see_to_relay
from ..system import cgroup, files, processes, termination
from ..system.directory import RefusedError
from ..system.line_file import MOST_HELD
from ._remains import Remains
from .ownership import check_own, is_own

_WRAPPERS = frozenset({"subdeck.core.wrapper", standby.OPTION, forker.OPTION})
"""Among the arguments of every wrapper is one of these."""
BUSY_AGAIN = 0.02
"""Seconds after which a lock that a prober holds is tried again."""
FINISHING_S = 5.0
"""Seconds after which a prober that holds the lock is not waited for any more."""
GLANCE_S = 0.04
"""The same for who looks again soon and has more to do meanwhile."""
DYING_S = 0.5
"""Seconds after which a process whose locks the kernel has released is not on its way out."""
GOING_S = 1.0
"""Seconds that a wrapper gets to go once its result is there."""


class Proof(Enum):
    FINISHED = "finished"
    """There is a result."""
    ALIVE = "alive"
    """Its launcher or its wrapper holds the lock, or a prober did for longer than it was waited for."""
    UNKNOWN = "unknown"
    """Nobody here holds it, but another machine, boot or pid namespace may, or a newer subdeck wrote it; or its end
    cannot be proven or written just now (rights, a full disk, too many open files)."""
    FOREIGN = "foreign"
    """This user's subdeck did not make it: nobody here finds out more, or ends it."""
    GONE = "gone"
    """There is no such run directory."""


def reconcile(
    project: paths.Project, run_id: str, *, by: str | None, patience: float = FINISHING_S, is_sole: bool = False
) -> Proof:
    """Find out whether somebody is responsible for a run; where nobody is, end what it left running and finish it.

    The result is signed with `by`; with None nothing is ended or written. Takes microseconds as a rule; up to
    `patience` seconds while another process does the same, and up to 11 s to end what is left running. Of a foreign run
    not even the lock is tried. `is_sole` says that no other machine or container is at work in the project: its caller
    has a lock on all of it, so a run of another boot or pid namespace whose lock is free is one of the past.
    """
    run_dir = project.run_dir(run_id)
    if has_result(run_dir):
        return Proof.FINISHED
    flags = os.O_RDONLY if by is None else os.O_RDWR
    try:
        if not is_own(run_dir, certain=True):
            return Proof.FOREIGN if files.exists(run_dir) else Proof.GONE
        if by is not None and not os.path.lexists(own_copy.lock_of(run_dir)):
            if _has_wrapper(run_id, run_dir):
                return Proof.ALIVE  # somebody has taken its lock away; it makes another
            flags |= os.O_CREAT
        lock = _open_lock(run_dir, flags)
    except OSError:
        return _unknown_or_gone(run_dir)
    try:
        if not _take(lock, run_dir, patience):
            return Proof.ALIVE
        if _has_ended(run_dir, by):
            return Proof.FINISHED
        if _has_wrapper(run_id, run_dir):
            return Proof.ALIVE  # this is not the lock that it holds
        if not os.path.lexists(run_dir):
            own_copy.remove(run_dir)
            return Proof.GONE  # somebody has removed it, and nobody is at work in it
        facts = artifacts.read_runner(run_dir, certain=True)
        if by is None or not _may_be_finished(run_dir, facts, is_sole):
            return Proof.UNKNOWN
        return _finish(project, run_id, by, facts, lock)
    except OSError:
        return _unknown_or_gone(run_dir)
    finally:
        os.close(lock)


def _has_ended(run_dir: str, by: str | None) -> bool:
    """Return whether a run has ended. Restore the permissions of its directory first, unless `by` is None: then this is
    a reader, which changes nothing. Raises OSError.
    """
    if by is not None:
        let_in(run_dir)
    return has_result(run_dir, certain=True)


def _may_be_finished(run_dir: str, facts: RunnerFacts | None, is_sole: bool) -> bool:
    """Return whether a run whose lock is free is this machine's to end, and its end could be written.

    Raises OSError.
    """
    # One with a permit may be on its host, whatever became of the record here.
    is_ours = is_here(facts) if facts else not os.path.lexists(f"{run_dir}/{paths.PERMIT}")
    is_of_past = _is_of_earlier_boot(facts, run_dir) or (is_sole and files.is_local(run_dir))
    return (is_ours or is_of_past) and not artifacts.is_newer(run_dir) and not files.unwritable(run_dir)


def _finish(project: paths.Project, run_id: str, by: str, facts: RunnerFacts | None, lock: int) -> Proof:
    """End what a run left running and write its end, unless somebody else does that with another lock by now.

    Raises OSError.
    """
    run_dir = project.run_dir(run_id)
    restore(run_dir)
    went = "" if facts is None or is_here(facts) else _what_went(facts)
    remains = Remains(project, run_id, facts, went=went)
    is_certain = True
    if not went:
        left = LeftOvers(run_id, run_dir, facts, remains.fold.child)
        not_ended, is_certain = left.end(), left.is_certain
    elif facts and facts.boot_id == processes.boot_id():
        not_ended = LeftOvers(run_id, run_dir, None, None).end()  # by its mark, as far as it can be seen from here
    else:
        not_ended = ()  # of an earlier boot nothing is left, and its pids are others' by now
    if has_result(run_dir, certain=True):
        return Proof.FINISHED
    if _is_replaced(lock, run_dir):
        return Proof.ALIVE
    remains.finish(by, not_ended, is_certain=is_certain)
    files.remove(os.path.join(project.active, run_id))
    return Proof.FINISHED


def _open_lock(run_dir: str, flags: int) -> int:
    """Open a run's lock; for reading where it may not be written to, which is enough for locking it. Raises OSError."""
    path = own_copy.lock_of(run_dir)
    try:
        return files.open_file(path, flags)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return files.open_file(path, os.O_RDONLY)


def _is_replaced(lock: int, run_dir: str) -> bool:
    """Return whether a lock was taken away while it was held, and another one is in its place: whoever holds that has
    found the run without a holder, too. Raises OSError.
    """
    try:
        return not os.path.samestat(os.lstat(own_copy.lock_of(run_dir)), os.fstat(lock))
    except FileNotFoundError:
        return False


def _unknown_or_gone(run_dir: str) -> Proof:
    try:
        if has_result(run_dir, certain=True):
            return Proof.FINISHED  # it has just ended, and its second copy went with that
        os.lstat(f"{run_dir}/.")
    except (FileNotFoundError, NotADirectoryError):
        return Proof.UNKNOWN if own_copy.exists(run_dir) else Proof.GONE
    except OSError:
        pass
    return Proof.UNKNOWN


def _is_of_earlier_boot(facts: RunnerFacts | None, run_dir: str) -> bool:
    """Return whether certainly nothing of a run is left: this very machine was restarted since, and no other one can
    have taken the run up.
    """
    if facts is None:
        return False
    ours = (processes.host(), processes.machine_id())
    boots = (facts.boot_id, processes.boot_id())
    return (
        (facts.host, facts.machine_id) == ours
        and all((*ours, *boots))
        and boots[0] != boots[1]
        and files.is_local(run_dir)
    )


def _what_went(facts: RunnerFacts) -> str:
    """Say what the processes of a run have gone with that was not of this boot and pid namespace."""
    if facts.boot_id == processes.boot_id():
        return "its container no longer exists"
    is_known = facts.host == processes.host() and facts.machine_id == processes.machine_id()
    return "this machine was restarted during the run" if is_known else "its machine no longer exists"


def is_here(facts: RunnerFacts) -> bool:
    """Return whether the pids in `facts` are those of this machine, this boot and this pid namespace."""
    ours = (processes.host(), processes.boot_id(), processes.pid_namespace())
    return (facts.host, facts.boot_id, facts.pid_namespace) == ours


def ask_to_stop(project: paths.Project, run: RunSnapshot, *, force: bool, by: str, reason: StopReason) -> None:
    """Write `stop.json` and signal the wrapper; one that has not come up yet finds the request when it does.

    A request is never made weaker by a later one. The host of a run gets it from the relay, at once or when it is back
    in reach. Raises SubdeckError for a run that is foreign, or that another machine or boot holds.
    """
    check_own(project, run.run_id)
    if run.newer_schema:
        raise SubdeckError(
            f"run {run.meta.short_id} was {newer_schema(run.newer_schema)}",
            where=run.run_id,
            hint="stop it with the subdeck that launched it",
        )
    if run.unwritable:
        raise SubdeckError(f"cannot write the stop request: {run.unwritable}", where=run.run_id)
    if run.elsewhere and not run.is_remote:
        raise SubdeckError(
            f"run {run.meta.short_id} belongs to another machine, boot or pid namespace",
            where=run.run_id,
            hint="stop it where it was started; subdeck rm removes it here",
        )
    run_dir = project.run_dir(run.run_id)
    earlier = artifacts.read_stop(run_dir)
    if earlier is None or (force and not earlier.force):
        request = StopRequest(by=by, force=force, at=paths.now_iso(), reason=reason)
        try:
            artifacts.write_stop(run_dir, request)
        except OSError as error:
            raise SubdeckError(f"cannot write the stop request: {error.strerror}", where=run_dir) from error
    if run.is_remote:
        see_to_relay(project)
        return
    try:
        wrappers = living_wrappers(run.run_id, run_dir)
    except OSError:
        wrappers = {}  # it finds the request by itself
    for pid, started in wrappers.items():
        processes.send(pid, signal.SIGTERM, started)
        processes.send(pid, signal.SIGCONT, started)  # one that was stopped could do nothing about it


def _has_wrapper(run_id: str, run_dir: str) -> bool:
    """Return whether a wrapper of a run lives that is not this process; one that was killed gets a moment to go.

    Raises OSError where it cannot be looked.
    """
    deadline = time.monotonic() + DYING_S
    while living_wrappers(run_id, run_dir).keys() - {os.getpid()}:
        if time.monotonic() > deadline:
            return True
        time.sleep(BUSY_AGAIN)
    return False


def living_wrappers(run_id: str, run_dir: str) -> dict[int, int | None]:
    """Return the living wrapper of a run, pid and start time, also one that could not write down who it is.

    Raises OSError where it cannot be looked.
    """
    facts = artifacts.read_runner(run_dir, certain=True)
    if facts is not None:
        return {facts.pid: facts.pid_started} if _is_of_run(facts, run_dir) else {}
    found = [pid for pid in processes.marked(run_id) if not _WRAPPERS.isdisjoint(processes.arguments(pid))]
    if len(found) > 1:  # its child looks like it until it has become the agent
        parents = processes.living()
        found = [pid for pid in found if parents.get(pid) not in found]
    return {pid: processes.start_time(pid) for pid in found}


def _is_of_run(facts: RunnerFacts, run_dir: str) -> bool:
    """Return whether the process that `facts` name is of the run: with its mark, or as earlier wrappers with its lock.

    A pid and a start time alone are only what a file says.
    """
    if facts.pid_started is None or not is_here(facts) or not processes.is_alive(facts.pid, facts.pid_started):
        return False
    marked = processes.is_marked(facts.pid, os.path.basename(run_dir))
    return marked or processes.has_open(facts.pid, os.path.join(run_dir, paths.LOCK))


class WrapperWatch:
    """The living wrappers of open runs; one call says which have died, where a proof of life costs several each."""

    def __init__(self) -> None:
        self._deaths = select.epoll()
        self._pidfds: dict[str, int] = {}
        """By run id."""
        self._run_ids: dict[int, str] = {}
        """By pidfd."""

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._pidfds

    def __del__(self) -> None:
        for run_id in tuple(self._pidfds):
            self.forget(run_id)
        self._deaths.close()

    def add(self, run_id: str, run_dir: str) -> None:
        """Watch a run's wrapper if it is a living process of this machine, and few enough are watched already."""
        if run_id in self._pidfds or len(self._pidfds) >= MOST_HELD:
            return
        facts = artifacts.read_runner(run_dir)
        if facts is None or facts.pid_started is None or not is_here(facts):
            return
        try:
            pidfd = os.pidfd_open(facts.pid)
        except (OSError, OverflowError):
            return
        try:
            if not processes.is_alive(facts.pid, facts.pid_started):
                raise ProcessLookupError
            self._deaths.register(pidfd, select.EPOLLIN)
        except OSError:
            os.close(pidfd)
        else:
            self._pidfds[run_id] = pidfd
            self._run_ids[pidfd] = run_id

    def forget(self, run_id: str) -> None:
        """Stop watching a run's wrapper.

        Closing alone is not enough: epoll keeps its registration while a child between fork and exec has a copy.
        """
        pidfd = self._pidfds.pop(run_id, None)
        if pidfd is not None:
            del self._run_ids[pidfd]
            self._unregister(pidfd)
            os.close(pidfd)

    def _unregister(self, pidfd: int) -> None:
        with contextlib.suppress(OSError):
            self._deaths.unregister(pidfd)

    def take_dead(self) -> set[str]:
        """Return the runs whose wrappers have died since the last call; they are not watched any more."""
        dead = set[str]()
        for pidfd, _ in self._deaths.poll(0):
            if run_id := self._run_ids.get(pidfd):
                dead.add(run_id)
            else:
                self._unregister(pidfd)
        for run_id in dead:
            self.forget(run_id)
        return dead


def hold(run_dir: str) -> int | None:
    """Take a run's lock exclusively; None while somebody else has it. The descriptor holds it until it is closed.

    A wrapper that has written the result is about to go: that is waited for.
    """
    try:
        lock = _open_lock(run_dir, os.O_RDWR)
    except OSError:
        return None
    deadline = time.monotonic() + GOING_S
    with contextlib.suppress(OSError):  # the directory has gone, or its file system has no locks
        while not (is_taken := _take(lock, run_dir, FINISHING_S)) and has_result(run_dir, certain=True):
            if time.monotonic() > deadline:
                break
            time.sleep(BUSY_AGAIN)
        if is_taken:
            return lock
    os.close(lock)
    return None


def _take(lock: int, run_dir: str, patience: float) -> bool:
    """Take the lock exclusively; False when its launcher or wrapper has it, or a prober for `patience` seconds.

    They hold it shared and probers exclusively: a shared try tells them apart while no other prober is at it, which a
    lock on the directory sees to. Raises OSError when the directory has gone or nothing can be locked there.
    """
    deadline = time.monotonic() + patience
    while True:
        turn = files.open_directory(own_copy.place_of(run_dir))
        try:
            with contextlib.suppress(OSError):  # some network file systems lock no directories
                files.lock(turn)
            if files.try_lock(lock):
                return True
            if files.try_lock(lock, shared=True):
                files.unlock(lock)
                return files.try_lock(lock)  # a prober may have been at its end just now
        finally:
            os.close(turn)
        if time.monotonic() > deadline:
            return False
        time.sleep(BUSY_AGAIN)


# --- what is left over of a dead run ---------------------------------------------------------------------------------

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
