"""The default runner: a plain process in a session of its own; and each runner by its name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from .. import paths
from ..errors import LaunchError, RunnerUnavailable, nearest
from ..run.model import RunnerKind
from ..system import files
from ..text.plain import one_line
from . import standby
from .base import Runner, Started, WrapperCall

if TYPE_CHECKING:
    from subprocess import Popen

_started: list[Started] = []
"""Wrappers of this process, kept until they are reaped; their locks, not they, tell how their runs stand."""


class ProcessRunner:
    name = RunnerKind.PROCESS

    def check(self) -> None:
        return

    def launch(self, call: WrapperCall) -> Started:
        _started[:] = [wrapper for wrapper in _started if not wrapper.has_gone()]
        wrapper = _take_standby(call) or _start(call)
        _started.append(wrapper)
        return wrapper


class StartedProcess:
    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process

    def has_gone(self) -> bool:
        return self._process.poll() is not None


def _take_standby(call: WrapperCall) -> Started | None:
    """Give the run to the wrapper that stands by, if there is one; a run that may have to wait needs a smaller one."""
    if call.may_wait or (ready := standby.take()) is None:
        return None
    is_taken = False
    try:
        is_taken = ready.fits(call.environment) and ready.hand_over(call.arguments)
    finally:
        if not is_taken:  # when the launcher is interrupted, too
            ready.dismiss()
    return ready if is_taken else None


def _start(call: WrapperCall) -> Started:
    from subprocess import DEVNULL, Popen

    try:
        with open(os.path.join(call.run_dir, paths.STDERR), "ab", opener=files.open_private) as stderr:
            process = Popen(
                call.argv,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=stderr,
                cwd="/",
                env=call.environment,
                start_new_session=True,
            )
    except OSError as error:
        raise LaunchError(f"the wrapper could not be started: {error.strerror}", where=call.argv[0]) from error
    return StartedProcess(process)


def runner_of(name: str, tmux_socket: str) -> Runner:
    """Return a runner by its name; libtmux is loaded only for the one that needs it. Raises RunnerUnavailable."""
    if name == RunnerKind.PROCESS:
        return ProcessRunner()
    if name == RunnerKind.TMUX:
        from .tmux import TmuxRunner

        return TmuxRunner(tmux_socket)
    hint = nearest(name, RunnerKind) or f"known are {', '.join(RunnerKind)}"
    raise RunnerUnavailable(f'no runner is called "{one_line(name, 40)}"', where="runner", hint=hint)
