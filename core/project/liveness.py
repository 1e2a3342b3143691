"""Prove by a kernel lock whether a process is responsible for a run; ask it to stop, or finish a run without one.

Processes left by a dead run are found by its control group. Without one, a process is missed if it dropped its parent
and its environment in the wrapper's last moments, or keeps forking without them.
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
from ..run import artifacts, second_copy
from ..run.artifacts import RunnerFacts
from ..run.events import RunStarted
from ..run.model import StopReason, StopRequest, newer_schema
from ..run.proven import has_result
from ..run.repair import let_in, restore
from ..run.snapshot import RunSnapshot
from ..runners import forker, standby
from ..runners.hosts import see_to_relay
from ..system import cgroup, files, processes, termination
from ..system.directory import RefusedError
from ..system.line_file import MOST_HELD
from ._lost_result import Remains
from .ownership import check_own, is_own

_WRAPPERS = frozenset({standby.WRAPPER, standby.OPTION, forker.OPTION})
"""Every wrapper has one of these among its arguments."""
BUSY_AGAIN = 0.02
"""Seconds between two tries of a lock that a prober holds."""
FINISHING_S = 5.0
"""Seconds to wait for a prober that holds the lock."""
GLANCE_S = 0.04
"""The same for a caller that checks again soon and has other work to do."""
DYING_S = 0.5
"""Seconds that a process may need to exit after the kernel has released its locks."""
GOING_S = 1.0
"""Seconds that a wrapper gets to exit once its result exists."""


class Proof(Enum):
    FINISHED = "finished"
    """It has a result."""
    ALIVE = "alive"
    """Its launcher or its wrapper holds the lock, or a prober held it for longer than the wait."""
    UNKNOWN = "unknown"
    """It is not held here, but another machine, boot or pid namespace may hold it, or a newer subdeck wrote it; or its
    end cannot be proven or written just now (permissions, a full disk, too many open files).
    """
    FOREIGN = "foreign"
    """This user's subdeck did not make it: it is neither examined further nor ended here."""
    GONE = "gone"
    """Its directory does not exist."""


def reconcile(
    project: paths.Project, run_id: str, *, by: str | None, patience: float = FINISHING_S, is_sole: bool = False
) -> Proof:
    """Find out whether a process is responsible for a run; if not, end the processes that it left and finish it.

    The result is signed with `by`; with None nothing is ended or written. Usually takes microseconds; up to `patience`
    seconds while another process does the same, and up to 11 s to end leftover processes. The lock of an untrusted run
    is not even tried. `is_sole` says that no other machine or container works in the project: the caller has locked all
    of it, so a run of another boot or pid namespace with a free lock is over.
    """
    run_dir = project.run_dir(run_id)
    if has_result(run_dir):
        return Proof.FINISHED
    flags = os.O_RDONLY if by is None else os.O_RDWR
    try:
        if not is_own(run_dir, certain=True):
            return Proof.FOREIGN if files.exists(run_dir) else Proof.GONE
        if by is not None and not os.path.lexists(second_copy.lock_of(run_dir)):
            if _has_wrapper(run_id, run_dir):
                return Proof.ALIVE  # its lock was removed; it makes another
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
            return Proof.ALIVE  # it holds a different lock
        if not os.path.lexists(run_dir):
            second_copy.remove(run_dir)
            return Proof.GONE  # it was removed, and no process works in it
        facts = artifacts.read_runner(run_dir, certain=True)
        if by is None or not _may_be_finished(run_dir, facts, is_sole):
            return Proof.UNKNOWN
        return _finish(project, run_id, by, facts, lock)
    except OSError:
        return _unknown_or_gone(run_dir)
    finally:
        os.close(lock)


def _has_ended(run_dir: str, by: str | None) -> bool:
    """Return whether a run has ended. Restore the permissions of its directory first, except for a reader (`by=None`),
    which changes nothing. Raises OSError.
    """
    if by is not None:
        let_in(run_dir)
    return has_result(run_dir, certain=True)


def _may_be_finished(run_dir: str, facts: RunnerFacts | None, is_sole: bool) -> bool:
    """Return whether this machine may end a run whose lock is free, and could write its result.

    Raises OSError.
    """
    # A run with a permit may be on its host, even if the record here is gone.
    is_ours = is_here(facts) if facts else not os.path.lexists(f"{run_dir}/{paths.PERMIT}")
    is_of_past = _is_of_earlier_boot(facts, run_dir) or (is_sole and files.is_local(run_dir))
    return (is_ours or is_of_past) and not artifacts.is_newer(run_dir) and not files.unwritable(run_dir)


def _finish(project: paths.Project, run_id: str, by: str, facts: RunnerFacts | None, lock: int) -> Proof:
    """End the processes that a run left and write its result, unless another process does so with another lock.

    Raises OSError.
    """
    run_dir = project.run_dir(run_id)
    restore(run_dir)
    went = "" if facts is None or is_here(facts) else _what_went(facts)
    remains = Remains(project, run_id, facts, went=went)
    is_certain = True
    if not went:
        left_overs = LeftOvers(run_id, run_dir, facts, remains.fold.child)
        not_ended, is_certain = left_overs.end(), left_overs.is_certain
    elif facts and facts.boot_id == processes.boot_id():
        not_ended = LeftOvers(run_id, run_dir, None, None).end()  # by its mark, if visible from here
    else:
        not_ended = ()  # nothing of an earlier boot is left, and its pids now belong to others
    if has_result(run_dir, certain=True):
        return Proof.FINISHED
    if _is_replaced(lock, run_dir):
        return Proof.ALIVE
    remains.finish(by, not_ended, is_certain=is_certain)
    files.remove(os.path.join(project.active, run_id))
    return Proof.FINISHED


def _open_lock(run_dir: str, flags: int) -> int:
    """Open a run's lock; read-only if it cannot be written, which is enough to lock it. Raises OSError."""
    path = second_copy.lock_of(run_dir)
    try:
        return files.open_file(path, flags)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return files.open_file(path, os.O_RDONLY)


def _is_replaced(lock: int, run_dir: str) -> bool:
    """Return whether a lock was removed while it was held, and another one is in its place: the holder of that lock has
    also found the run without a holder. Raises OSError.
    """
    try:
        return not os.path.samestat(os.lstat(second_copy.lock_of(run_dir)), os.fstat(lock))
    except FileNotFoundError:
        return False


def _unknown_or_gone(run_dir: str) -> Proof:
    try:
        if has_result(run_dir, certain=True):
            return Proof.FINISHED  # it has just ended, which removed its second copy
        os.lstat(f"{run_dir}/.")
    except (FileNotFoundError, NotADirectoryError):
        return Proof.UNKNOWN if second_copy.exists(run_dir) else Proof.GONE
    except OSError:
        pass
    return Proof.UNKNOWN


def _is_of_earlier_boot(facts: RunnerFacts | None, run_dir: str) -> bool:
    """Return whether certainly no process of a run is left: this machine was restarted since, and no other machine can
    have continued the run.
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
    """Return why the processes of a run from another boot or pid namespace are gone."""
    if facts.boot_id == processes.boot_id():
        return "its container no longer exists"
    is_known = facts.host == processes.host() and facts.machine_id == processes.machine_id()
    return "this machine was restarted during the run" if is_known else "its machine no longer exists"


def is_here(facts: RunnerFacts) -> bool:
    """Return whether the pids in `facts` are those of this machine, boot and pid namespace."""
    ours = (processes.host(), processes.boot_id(), processes.pid_namespace())
    return (facts.host, facts.boot_id, facts.pid_namespace) == ours


def ask_to_stop(project: paths.Project, run: RunSnapshot, *, force: bool, by: str, reason: StopReason) -> None:
    """Write `stop.json` and signal the wrapper; a wrapper that is still starting finds the request later.

    A later request never weakens an earlier one. The relay passes it to the host of a remote run, at once or when the
    host is reachable again. Raises SubdeckError for a run that is untrusted, or that another machine or boot holds.
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
        wrappers = {}  # it finds the request on its own
    for pid, started in wrappers.items():
        processes.send(pid, signal.SIGTERM, started)
        processes.send(pid, signal.SIGCONT, started)  # a paused wrapper could not react to it


def _has_wrapper(run_id: str, run_dir: str) -> bool:
    """Return whether another process is a living wrapper of a run; a killed one gets a moment to exit.

    Raises OSError if that cannot be checked.
    """
    deadline = time.monotonic() + DYING_S
    while living_wrappers(run_id, run_dir).keys() - {os.getpid()}:
        if time.monotonic() > deadline:
            return True
        time.sleep(BUSY_AGAIN)
    return False


def living_wrappers(run_id: str, run_dir: str) -> dict[int, int | None]:
    """Return the living wrapper of a run, pid and start time, even if it could not record its pid.

    Raises OSError if that cannot be checked.
    """
    facts = artifacts.read_runner(run_dir, certain=True)
    if facts is not None:
        return {facts.pid: facts.pid_started} if _is_of_run(facts, run_dir) else {}
    pids = [pid for pid in processes.marked(run_id) if not _WRAPPERS.isdisjoint(processes.arguments(pid))]
    if len(pids) > 1:  # its agent process looks like it until exec
        parents = processes.living()
        pids = [pid for pid in pids if parents.get(pid) not in pids]
    return {pid: processes.start_time(pid) for pid in pids}


def _is_of_run(facts: RunnerFacts, run_dir: str) -> bool:
    """Return whether the process in `facts` is of the run: with its mark, or, for earlier wrappers, with its lock.

    A pid and a start time alone are only claims in a file.
    """
    if facts.pid_started is None or not is_here(facts) or not processes.is_alive(facts.pid, facts.pid_started):
        return False
    marked = processes.is_marked(facts.pid, os.path.basename(run_dir))
    return marked or processes.has_open(facts.pid, os.path.join(run_dir, paths.LOCK))


class WrapperWatch:
    """The living wrappers of open runs; one call returns the dead ones, while a proof of life takes several each."""

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
        """Watch a run's wrapper if it is a living process of this machine, unless too many are watched already."""
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

        Closing is not enough: epoll keeps its registration while a child process between fork and exec has a copy.
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
        """Return the runs whose wrappers have died since the last call, and stop watching them."""
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
    """Take a run's lock exclusively; None while another process has it. The descriptor holds it until it is closed.

    Waits for a wrapper that has written the result and is about to exit.
    """
    try:
        lock = _open_lock(run_dir, os.O_RDWR)
    except OSError:
        return None
    deadline = time.monotonic() + GOING_S
    with contextlib.suppress(OSError):  # the directory was removed, or its file system has no locks
        while not (is_taken := _take(lock, run_dir, FINISHING_S)) and has_result(run_dir, certain=True):
            if time.monotonic() > deadline:
                break
            time.sleep(BUSY_AGAIN)
        if is_taken:
            return lock
    os.close(lock)
    return None


def _take(lock: int, run_dir: str, patience: float) -> bool:
    """Take the lock exclusively; False if its launcher or wrapper has it, or a prober for `patience` seconds.

    They hold it shared, and probers exclusively: a shared try tells them apart while no other prober tries, which a
    lock on the directory ensures. Raises OSError if the directory was removed or nothing can be locked there.
    """
    deadline = time.monotonic() + patience
    while True:
        descriptor = files.open_directory(second_copy.trusted_directory(run_dir))
        try:
            with contextlib.suppress(OSError):  # some network file systems cannot lock directories
                files.lock(descriptor)
            if files.try_lock(lock):
                return True
            if files.try_lock(lock, shared=True):
                files.unlock(lock)
                return files.try_lock(lock)  # a prober may just have finished
        finally:
            os.close(descriptor)
        if time.monotonic() > deadline:
            return False
        time.sleep(BUSY_AGAIN)


# --- leftover processes of a dead run --------------------------------------------------------------------------------

PATIENCE_S = 0.5
"""Seconds between TERM and KILL."""
MOST_CHILDREN = 64 * 1024
"""Bytes read of the list of child processes, its newest."""


class LeftOvers:
    """The leftover processes of one run."""

    def __init__(self, run_id: str, run_dir: str, facts: RunnerFacts | None, started: RunStarted | None) -> None:
        """`facts` and `started` are the wrapper's records. Raises OSError if processes cannot be checked."""
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
        """Whether a control group lists them: otherwise some may be missed."""
        return self._group is not None

    def end(self) -> tuple[str, ...]:
        """End all of them; return those left, for the user. Raises OSError if processes cannot be checked."""
        not_ended = termination.end_found(self._living, PATIENCE_S, self._kill_group)
        if self._group:
            cgroup.remove(self._group)
        return not_ended

    def _living(self) -> dict[int, int]:
        """Return all living ones, pids and start times, except this process."""
        parents = processes.living()
        pids = set(processes.marked(self._run_id))
        pids |= {pid for pid, started in self._written if processes.is_alive(pid, started)}
        if self._group:
            pids |= set(cgroup.members(self._group))
        pids |= set(processes.below(pids, parents))
        return {pid: started for pid in pids - {os.getpid()} if (started := processes.start_time(pid))}

    def _kill_group(self) -> None:
        if self._group:
            try:
                if os.getpid() not in cgroup.members(self._group):  # this process may belong to the run itself
                    cgroup.kill(self._group)
            except OSError:
                return  # an older kernel: they are ended one by one


def _is_of_now(started: RunStarted) -> bool:
    """Return whether an event states that its pids are of this boot and pid namespace."""
    ours = (processes.boot_id(), processes.pid_namespace())
    return bool(started.boot_id) and (started.boot_id, started.pid_namespace) == ours


def _listed(run_dir: str) -> list[tuple[int, int]]:
    """Read the list that the wrapper kept, skipping torn and invalid lines. Raises OSError."""
    try:
        content = files.read(f"{run_dir}/{paths.CHILDREN}")
    except (FileNotFoundError, RefusedError):
        return []
    words = (line.split() for line in content[-MOST_CHILDREN:].split(b"\n"))
    return [(int(two[0]), int(two[1])) for two in words if len(two) == 2 and all(map(bytes.isdigit, two))]
