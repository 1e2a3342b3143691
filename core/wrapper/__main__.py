"""The wrapper of one run: lock it, record its holder, wait in its queue; then load the rest and supervise the agent.

`python -P -E -c … subdeck.core.wrapper RUN_DIR ACTIVE_FILE [--slots LIMIT DIRECTORY]… [--session FILE] [--tmux SOCKET
SESSION WINDOW] [--check COMMAND] [--lease FILE AGENT_S OPERATOR_S] [--no-group]`. Two hundred of these may wait in a
queue, so nothing here loads json, msgspec, subprocess, collections or contextlib. Files written while waiting are put
together by hand from values that need no escaping.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from .. import paths
from ..run import proven
from ..runners import standby
from ..system import files, processes
from ._lease import Lease
from ._queue import (
    LOOK_AGAIN_S,
    Gate,
    Queue,
    Reservation,
    SessionReservation,
    Signals,
    SlotReservation,
    StopRequested,
    take_all,
    watch_signals,
)
from ._run_lock import RunHold
from ._runner_file import RunnerFile

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Callable

NO_GROUP = "--no-group"
"""The option for a run without its own control group."""
FORK = "--fork"
"""`forker.OPTION`, without that module."""


def main(arguments: list[str]) -> int:
    if arguments in ([standby.OPTION], [FORK]):
        arguments = _ordered(arguments[0])
        if not arguments:
            return 0
    run_dir, activity_file, *options = arguments
    may_group = NO_GROUP not in options
    reservations, tmux, check, lease = _read_options([option for option in options if option != NO_GROUP], run_dir)
    runner, hold = RunnerFile(run_dir, tmux), RunHold(run_dir)
    signals = watch_signals(run_dir, runner.try_again, hold.renew)
    signals.lease = lease
    held: list[int] = []
    leave: Callable[[], None] = held.clear
    is_faulty = False
    try:
        if not hold.take():
            if proven.has_result(run_dir):  # no other wrapper will read it
                files.remove(os.path.join(run_dir, paths.ENVIRONMENT))
            return 0
        _take_environment(run_dir)
        runner.write()
        if tmux:
            from ._terminal import hush

            hush()
        signals.look_each_second()
        queue = Queue(lambda kind: _report_queued(run_dir, activity_file, kind))
        try:
            # The process that stops a run writes a request, then looks for a process to signal. We announce ourselves,
            # then look for a request.
            if not proven.has_stop(run_dir):
                held += take_all(reservations, queue, signals)
                _take_over_sessions(reservations, queue, signals)
                Gate(os.path.join(os.path.dirname(run_dir), paths.SLOTS)).pass_through(queue, signals)
        except StopRequested:
            pass  # the supervisor finds the same signal and writes a result without a start
        from ._containment import Containment

        containment = Containment(run_dir, runner, may_group=may_group)
        leave = containment.remove
        supervise = _load()
        processes.become_subreaper()
        supervise(
            *(run_dir, activity_file, signals, containment),
            events_written=int(queue.reported),
            check_order=check,
            warning=hold.trouble,
        )
        if proven.has_result(run_dir):  # from now on it makes any other wrapper exit
            files.remove(os.path.join(run_dir, paths.TAKEN))
            files.remove(os.path.join(run_dir, paths.STARTING))
    except Exception as error:
        is_faulty = True
        _leave_fault(run_dir, error)
    finally:
        for descriptor in reversed(held):
            os.close(descriptor)
        hold.close()
    if not is_faulty or _finish(run_dir):  # otherwise the next reader needs group and list
        leave()
    signals.stop_looking()
    return int(is_faulty)


def _leave_fault(run_dir: str, error: Exception) -> None:
    """Record a failure of the wrapper, with a traceback in `stderr.log`, before the run is released."""
    try:
        import traceback

        traceback.print_exception(error)
    except Exception:  # the fault may be that no more files can be opened
        _complain(f"{error}\n")
    fault = f"{type(error).__name__}: {error}\n"
    if not _write(os.path.join(run_dir, paths.FAULT), fault, os.O_TRUNC):
        _complain(f"\n{paths.FAULT_WORDS}{fault}")  # stderr.log is open already


def _finish(run_dir: str) -> bool:
    """Finish a run that no other process will finish; return whether it has finished, is gone, or is untrusted."""
    try:
        from ..project.liveness import Proof, reconcile

        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(run_dir))))
        proof = reconcile(paths.Project(home), os.path.basename(run_dir), by="wrapper")
    except StopRequested:
        raise
    except Exception as error:
        _complain(f"{error}\n")
        return False  # the next reader tries again
    return proof in (Proof.FINISHED, Proof.GONE, Proof.FOREIGN)


def _ordered(option: str) -> list[str]:
    """Load everything that a run needs, then wait for one; return its arguments, empty if there is nothing to run.

    Depending on the option, this process or a fork of it runs it.
    """
    processes.close_inherited()
    os.chdir("/")
    _load("ctypes", with_usual_kind=True)
    if option == FORK:
        from ..runners import forker

        arguments = forker.serve()
    else:
        arguments = standby.receive() or []
    if arguments:
        _appear_as(arguments[0])
    return arguments


def _appear_as(run_dir: str) -> None:
    """Take on the mark and the streams of a run's wrapper, as seen from outside."""
    processes.wear_mark(os.path.basename(run_dir))
    stderr = files.open_private(os.path.join(run_dir, paths.STDERR), os.O_WRONLY | os.O_APPEND)
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for source, descriptor in ((nowhere, 0), (nowhere, 1), (stderr, 2)):
        os.dup2(source, descriptor)
    os.close(nowhere)
    os.close(stderr)


def _load(*parts: str, with_usual_kind: bool = False) -> Callable[..., None]:
    """Load the code that starts and supervises a child, and the named modules. A wrapper in a queue does without."""
    gc.disable()  # nothing here becomes garbage; checking takes 4 ms
    from ..system.imports import import_msgspec, load

    import_msgspec()
    from .supervise import supervise

    for part in parts:
        load(part)
    if with_usual_kind:
        from ..agent_kinds import KINDS, USUAL  # it needs msgspec

        load(f"{KINDS[USUAL].package}.child")

    gc.freeze()
    gc.enable()
    return supervise


def _read_options(options: list[str], run_dir: str) -> tuple[list[Reservation], tuple[str, ...], str, Lease | None]:
    """Return reservations in the order to take them, the pane, the check in JSON, and the lease. A session comes first,
    so that no wrapper waits for one while it holds a slot.
    """
    reservations: list[Reservation] = []
    tmux: tuple[str, ...] = ()
    check, lease = "", None
    while options:
        option = options.pop(0)
        if option == "--slots":
            limit, directory = options.pop(0), options.pop(0)
            reservations.append(SlotReservation(directory, int(limit), os.path.basename(run_dir)))
        elif option == "--session":
            reservations.append(SessionReservation(options.pop(0), run_dir))
        elif option == "--tmux":
            tmux = (options.pop(0), options.pop(0), options.pop(0))
        elif option == "--check":
            check = options.pop(0)
        elif option == "--lease":
            lease = Lease(options.pop(0), float(options.pop(0)), float(options.pop(0)))
        else:
            raise SystemExit(f"unknown option of the wrapper: {option}")
    return reservations, tmux, check, lease


def _take_over_sessions(reservations: list[Reservation], queue: Queue, signals: Signals) -> None:
    """Finish runs whose wrapper died while holding a session, and wait until each is finished: until then their agent
    may write to the session. Raises StopRequested.
    """
    for reservation in reservations:
        if not isinstance(reservation, SessionReservation):
            continue
        before = reservation.holder_before
        with signals.ending_the_wait():
            while before and not proven.has_result(before) and not _finish(before):
                queue.enter("session")
                time.sleep(LOOK_AGAIN_S)
        reservation.record_holder()


def _take_environment(run_dir: str) -> None:
    """Apply the launcher's environment if it was left in a file; variables set by tmux stay.

    A file that another user created or can change is removed: it decides where programs are found, and what they load.
    """
    path = os.path.join(run_dir, paths.ENVIRONMENT)
    try:
        descriptor, status = files.open_regular(path)
        with open(descriptor, "rb") as file:
            block = file.read()
    except OSError:
        return
    files.remove(path)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        _complain(f"{path} is ignored: another user could have written it\n")
        return
    kept = {name: os.environ[name] for name in ("TERM", "TMUX", "TMUX_PANE") if name in os.environ}
    os.environ.clear()
    for name, _, value in (entry.partition("=") for entry in os.fsdecode(block).split("\0") if entry):
        os.environ[name] = value
    os.environ.update(kept)


def _report_queued(run_dir: str, activity_file: str, kind: str) -> None:
    event = f'{{"type":"queued","seq":1,"ts":"{paths.now_iso()}","for":"{kind}"}}\n'
    _write(os.path.join(run_dir, paths.EVENTS), event, os.O_APPEND)
    _write(activity_file, '{"seq":1}\n', 0)


def _write(path: str, text: str, flag: int) -> bool:
    """Write as much as the disk takes; return whether it worked. A failure here must not cost the run its result."""
    try:
        descriptor = files.open_private(path, os.O_WRONLY | flag)
        try:
            os.write(descriptor, text.encode("utf-8", "replace"))
        finally:
            os.close(descriptor)
    except OSError as error:
        _complain(f"{path}: {error.strerror}\n")
        return False
    return True


def _complain(text: str) -> None:
    try:
        os.write(2, text.encode("utf-8", "replace"))
    except OSError:
        return  # the pane is gone, or stderr.log is on the same full disk


def program() -> None:
    arguments = sys.argv[1:]
    exit_code = main(arguments[1:] if arguments[:1] == [standby.WRAPPER] else arguments)
    gc.freeze()  # otherwise the interpreter collects garbage before it exits: 7 ms for each run
    sys.exit(exit_code)


if __name__ == "__main__":
    program()
