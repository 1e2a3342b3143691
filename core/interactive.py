"""Continue a run in the agent's own program, in this terminal: `python -m subdeck.core.interactive RUN BY`.

The run stays with its wrapper. On request the wrapper ends the agent and describes how to start the program. It waits
while this process holds a lock or the program lives. If either process dies, the other knows the state.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from . import paths
from .errors import RunBusy, SubdeckError
from .project.liveness import living_wrappers, reconcile
from .project.ownership import check_own
from .project.talk import wake
from .run import second_copy
from .run.events import EventTail, Message
from .run.inbox import EntryKind, InboxClosed, put
from .run.model import MessageState, RunMeta
from .run.proven import has_result, has_stop
from .spec.request import RunRequest
from .system import files, processes
from .system.record import read_record
from .text.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

LOOK_S = 0.05
"""Seconds between checks for the invitation."""
LIFE_S = 1.0
"""Seconds between two checks that the wrapper lives, or for a stop request."""
_LEAVE_SCREEN = b"\x1b[?1049l\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[<u\x1b[?25h\x1b[0m\r\n"
"""Resets terminal modes that a killed program may have left on."""


class Invitation(Struct, frozen=True):
    """How to start the agent's own program, as described by the run's wrapper."""

    id: str
    argv: tuple[str, ...]
    cwd: str
    environment: dict[str, str]
    grace: float


def command(run_dir: str, by: str) -> tuple[str, ...]:
    """Return the command that runs this module in another terminal."""
    return (sys.executable, "-P", "-E", "-m", __name__, run_dir, by)


def request_by_hand(meta: RunMeta, session: str | None) -> RunRequest:
    """Return a request that continues a run's conversation with the run's setup."""
    is_adhoc = not meta.preset
    return RunRequest(
        task="Continue a run interactively.",
        preset=meta.preset or None,
        model=meta.resolved_model or None,
        cwd=meta.cwd,
        agent=meta.agent,
        tools=meta.tools.resolved if is_adhoc else None,
        prompt=(meta.system_prompt or "") if is_adhoc else "",
        child_session=session,
        follow_up=meta.run_id,
        by_hand=True,
    )


def take_over(run_dir: str, by: str) -> int:
    """Let a person continue a run until they exit the agent's program; return its exit code.

    Raises SubdeckError if the run cannot be opened in the agent, or is already open there.
    """
    project, run_id = _project(run_dir)
    check_own(project, run_id)
    try:
        with _held(run_dir) as lock:
            invitation = _invited(run_dir, by)
            code = _run(invitation, run_dir, lock)
    finally:
        wake(run_id, run_dir)
        if not _has_wrapper(run_dir):
            reconcile(project, run_id, by="take-over")
    return code


@contextmanager
def _held(run_dir: str) -> Generator[int]:
    """Lock the conversation and the run, so that a dead wrapper does not end the run while a person has it open."""
    locks: list[int] = []
    try:
        locks.append(lock := files.open_lock(os.path.join(run_dir, paths.HAND)))
        if not files.try_lock(lock) or _is_alive(lock):
            raise RunBusy(
                f"run {run_dir[-6:]} is already open in the agent", where=run_dir, hint="exit the agent there"
            )
        os.ftruncate(lock, 0)
        for path in {second_copy.lock_of(run_dir), os.path.join(run_dir, paths.LOCK)}:
            locks.append(files.open_file(path, os.O_RDWR))
            files.lock(locks[-1], shared=True)
        yield lock
    except OSError as error:
        raise SubdeckError(f"run {run_dir[-6:]} cannot be locked: {error.strerror}", where=run_dir) from error
    finally:
        for held in reversed(locks):
            os.close(held)


def _is_alive(lock: int) -> bool:
    """Whether the program started under an earlier lock is alive."""
    words = os.pread(lock, 100, 0).split()
    return len(words) == 2 and all(map(bytes.isdigit, words)) and processes.is_alive(int(words[0]), int(words[1]))


def _invited(run_dir: str, by: str) -> Invitation:
    """Request the run, and wait until its agent has ended."""
    events = EventTail(os.path.join(run_dir, paths.EVENTS), _size(os.path.join(run_dir, paths.EVENTS)))
    try:
        entry = put(run_dir, EntryKind.TAKE_OVER, by=by)
    except InboxClosed:
        raise _too_late(run_dir) from None
    wake(os.path.basename(run_dir), run_dir)
    _say(f"run {run_dir[-6:]}: the agent's UI opens here when its turn ends (ctrl+c cancels)")
    path = os.path.join(run_dir, paths.INVITATION)
    looked = time.monotonic()
    while True:
        if invitation := _read(path, entry.id):
            files.remove(path)
            return invitation
        for event in events.read():
            if isinstance(event, Message) and event.id == entry.id and event.state is not MessageState.ACCEPTED:
                raise SubdeckError(f"cannot open run {run_dir[-6:]} in the agent: {event.reason}", where=run_dir)
        if time.monotonic() > looked + LIFE_S:
            looked = time.monotonic()
            if has_result(run_dir) or not _has_wrapper(run_dir):
                raise _too_late(run_dir)
        time.sleep(LOOK_S)


def _read(path: str, invitation_id: str) -> Invitation | None:
    invitation = read_record(path, Invitation)
    return invitation if invitation and invitation.id == invitation_id else None


def _too_late(run_dir: str) -> SubdeckError:
    return RunBusy(f"run {run_dir[-6:]} has just finished", where=run_dir, hint="open it again in its present state")


def _run(invitation: Invitation, run_dir: str, lock: int) -> int:
    """Run the agent's program in this terminal, and end it on a stop request."""
    terminal = {name: os.environ[name] for name in _TERMINAL if name in os.environ}
    environment = {name: value for name, value in invitation.environment.items() if name not in _TERMINAL}
    environment |= terminal | {processes.RUN_MARK: os.path.basename(run_dir)}
    former = {number: signal.signal(number, _pass) for number in (signal.SIGINT, signal.SIGQUIT)}
    settings, end_with_parent = _settings(), processes.ending_with_parent(signal.SIGHUP)
    try:
        child = subprocess.Popen(invitation.argv, cwd=invitation.cwd, env=environment, preexec_fn=end_with_parent)
    except OSError as error:
        what = f"cannot start {one_line(invitation.argv[0], 200)}: {error.strerror}"
        raise SubdeckError(what, where=run_dir) from error
    try:
        os.pwrite(lock, f"{child.pid} {processes.start_time(child.pid) or 0}\n".encode(), 0)
        return _wait(child, invitation.grace, run_dir)
    finally:
        if child.poll() is None:
            child.kill()
            child.wait()
        for number, handler in former.items():
            signal.signal(number, handler)
        if child.returncode and settings is not None:
            with suppress(OSError, termios.error):
                os.write(1, _LEAVE_SCREEN)
                termios.tcsetattr(0, termios.TCSADRAIN, settings)


_TERMINAL = ("TERM", "COLORTERM", "TMUX", "TMUX_PANE", "COLUMNS", "LINES", "TERM_PROGRAM", "SSH_TTY")
"""Variables that describe this terminal."""


def _wait(child: subprocess.Popen[bytes], grace: float, run_dir: str) -> int:
    """Wait for the program. On a stop request terminate it, and kill it after the grace period."""
    kill_at: float | None = None
    while True:
        with suppress(subprocess.TimeoutExpired):
            return child.wait(LIFE_S if kill_at is None else LOOK_S)
        if not has_stop(run_dir):
            continue
        if kill_at is None:
            child.terminate()
            kill_at = time.monotonic() + grace
        elif time.monotonic() > kill_at:
            child.kill()


def _pass(number: int, frame: object) -> None:
    """Leave a key to the program. Unlike an ignored signal, a handler is not inherited."""


def _settings() -> list[Any] | None:
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _has_wrapper(run_dir: str) -> bool:
    try:
        return bool(living_wrappers(os.path.basename(run_dir), run_dir))
    except OSError:
        return True


def _project(run_dir: str) -> tuple[paths.Project, str]:
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(run_dir))))
    return paths.Project(root), os.path.basename(run_dir)


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _say(text: str) -> None:
    with suppress(OSError):
        os.write(1, f"{text}\r\n".encode())


def main(arguments: Sequence[str]) -> int:
    """Open the run in this terminal, and show an error there before its window closes."""
    run_dir, by = arguments
    try:
        return take_over(run_dir, by)
    except KeyboardInterrupt:
        return 130
    except SubdeckError as error:
        _say(str(error))
        if os.isatty(0):
            _say("[Enter closes this window]")
            with suppress(OSError, KeyboardInterrupt):
                os.read(0, 1)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
