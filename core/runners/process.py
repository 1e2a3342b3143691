"""How the wrapper of a run is started: as a process in a session of its own, in a window of tmux, or on a host."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from .. import paths
from ..errors import LaunchError, RunnerUnavailable, nearest
from ..run.model import RunMeta, RunnerKind
from ..system import files, processes
from ..text.plain import one_line
from . import standby
from .forker import Forker

HasGone = Callable[[], bool]
"""Returns True once a wrapper has ended, without waiting."""

_SCOPE = ("systemd-run", "--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes")

_started: list[HasGone] = []
"""Wrappers of this process, kept until they are reaped; their locks, not they, tell how their runs stand."""


class WrapperCall(Struct, frozen=True):
    """How the wrapper of one run is to be started."""

    meta: RunMeta
    project: str
    """Its root."""
    run_dir: str
    arguments: tuple[str, ...]
    """Run directory, activity file, and what it waits for."""
    environment: Mapping[str, str]
    """The launcher's."""
    in_scope: bool = False
    """Whether systemd makes a scope for it, a control group in which it can make its own."""
    is_held: bool = False
    """Whether the operator holds the queue of the project."""

    @property
    def may_wait(self) -> bool:
        """Whether there is something that it has to wait for before it starts the child."""
        return self.is_held or any(option in self.arguments[2:] for option in ("--slots", "--session"))

    @property
    def own_environment(self) -> dict[str, str]:
        """The wrapper's: with the mark of the run, so that a child that has not yet its own can be found."""
        return {**self.environment, processes.RUN_MARK: self.meta.run_id}

    @property
    def argv(self) -> tuple[str, ...]:
        # -E: no PYTHON* variable of a user may change what supervises; -P: nor a module in the working directory.
        wrapper = (sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *self.arguments)
        return (*_SCOPE, f"--description=subdeck run {self.meta.run_id}", "--", *wrapper) if self.in_scope else wrapper


def usable_runner(name: str) -> RunnerKind:
    """Return a runner by its name. Raises RunnerUnavailable for an unknown one, and where tmux is missing."""
    runner = RunnerKind(name)
    if not runner.is_known:
        hint = nearest(name, RunnerKind) or f"known: {', '.join(RunnerKind)}"
        raise RunnerUnavailable(f'unknown runner "{one_line(name, 40)}"', where="runner", hint=hint)
    if runner is RunnerKind.TMUX and processes.find_program("tmux") is None:
        raise RunnerUnavailable(
            "tmux is not installed",
            code="runner.tmux_missing",
            where="runner tmux",
            hint="apt install tmux (or your system's package of that name), or choose the process runner",
        )
    return runner


def start_wrapper(
    call: WrapperCall, tmux_socket: str, host_env: Sequence[str] = (), forker: Forker | None = None
) -> HasGone:
    """Start the wrapper as the run's meta says; on a host with those variables of the launcher that `host_env` names.

    Who starts many has a forker for them.
    Raises LaunchError, or SubdeckError where tmux cannot be run.
    """
    if call.meta.runner == RunnerKind.TMUX:
        return _start_in_tmux(call, tmux_socket)
    if call.meta.runner == RunnerKind.HOSTS:
        from .hosts import start  # which runs of this machine do without

        return start(call.project, call.run_dir, call.environment, call.arguments, host_env)
    reap()
    if forker and (forked := _fork_off(call, forker)):
        return forked
    has_gone = _hand_to_standby(call) or _start_process(call)
    _started.append(has_gone)
    return has_gone


def reap() -> None:
    """Take note of the wrappers of this process that have ended: until then the kernel keeps each."""
    _started[:] = [has_gone for has_gone in _started if not has_gone()]


def _hand_to_standby(call: WrapperCall) -> HasGone | None:
    """Give the run to the wrapper that stands by, if there is one; a run that may have to wait needs a smaller one."""
    if call.may_wait or call.in_scope or (ready := standby.waiting()) is None:
        return None
    if not ready.hand_over(call.arguments, call.environment):
        standby.dismiss()
        return None
    standby.forget()  # not before: a launcher that is interrupted on the way dismisses it
    return ready.has_gone


def _fork_off(call: WrapperCall, forker: Forker) -> HasGone | None:
    pid = None if call.in_scope else forker.fork_off(call.arguments, call.environment)
    return None if pid is None else _end_of(pid)


def _start_process(call: WrapperCall) -> HasGone:
    from subprocess import DEVNULL, Popen

    try:
        with open(os.path.join(call.run_dir, paths.STDERR), "ab", opener=files.open_private) as stderr:
            process = Popen(
                call.argv,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=stderr,
                cwd="/",
                env=call.own_environment,
                start_new_session=True,
            )
    except OSError as error:
        raise LaunchError(f"cannot start the wrapper: {error.strerror}", where=call.argv[0]) from error
    return lambda: process.poll() is not None


def _start_in_tmux(call: WrapperCall, socket: str) -> HasGone:
    from . import tmux  # with libtmux, which other runs do without

    # The environment is left where only this user and the wrapper, which unlinks it, can read it.
    block = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in call.environment.items())
    files.write_new(os.path.join(call.run_dir, paths.ENVIRONMENT), block)
    session, window = tmux.session_name(call.project), tmux.window_name(call.meta.title, call.meta.short_id)
    # By a program, for tmux gives a window the environment of its server, whose PATH may be another.
    mark = (processes.find_program("env") or "/usr/bin/env", f"{processes.RUN_MARK}={call.meta.run_id}")
    pid = tmux.open_window(
        socket, session, window, call.meta.run_id, (*mark, *call.argv, "--tmux", socket, session, window)
    )
    return _end_of(pid)


def _end_of(pid: int) -> HasGone:
    """Return what tells of the end of a process that somebody else reaps."""
    started = processes.start_time(pid)
    return lambda: started is None or not processes.is_alive(pid, started)
