"""Starting a run's wrapper: as a process in a new session, in a tmux window, or on a host."""

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
"""Returns True once a wrapper has exited; does not wait."""

_SCOPE = ("systemd-run", "--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes")

_started: list[HasGone] = []
"""Wrappers of this process, kept until they are reaped; the state of their runs comes from locks instead."""


class WrapperCall(Struct, frozen=True):
    """How to start the wrapper of one run."""

    meta: RunMeta
    project: str
    """Its root directory."""
    run_dir: str
    arguments: tuple[str, ...]
    """Run directory, activity file, and options."""
    environment: Mapping[str, str]
    """The launcher's environment."""
    in_scope: bool = False
    """Whether to start it in a systemd scope, a control group in which it can create its own."""
    is_held: bool = False
    """Whether the project's queue is paused."""

    @property
    def may_wait(self) -> bool:
        """Whether it may have to wait before it starts the agent."""
        return self.is_held or any(option in self.arguments[2:] for option in ("--slots", "--session"))

    @property
    def own_environment(self) -> dict[str, str]:
        """The wrapper's environment, with the run's mark, so that a not yet marked agent can be found."""
        return {**self.environment, processes.RUN_MARK: self.meta.run_id}

    @property
    def argv(self) -> tuple[str, ...]:
        # -E: no PYTHON* variable of a user may change the supervisor; -P: nor a module in the working directory.
        program = standby.loading(standby.WRAPPER_PROGRAM)
        wrapper = (sys.executable, "-P", "-E", *program, standby.WRAPPER, *self.arguments)
        return (*_SCOPE, f"--description=subdeck run {self.meta.run_id}", "--", *wrapper) if self.in_scope else wrapper


def usable_runner(name: str) -> RunnerKind:
    """Return a runner by name. Raises RunnerUnavailable if it is unknown or tmux is missing."""
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
    """Start a run's wrapper as its meta says; on a host, with the launcher's variables in `host_env`.

    Pass a `forker` to start many. Raises LaunchError, or SubdeckError if tmux cannot be run.
    """
    if call.meta.runner == RunnerKind.TMUX:
        return _start_in_tmux(call, tmux_socket)
    if call.meta.runner == RunnerKind.HOSTS:
        from .hosts import start  # not needed by runs on this machine

        return start(call.project, call.run_dir, call.environment, call.arguments, host_env)
    reap()
    if forker and (forked := _fork_off(call, forker)):
        return forked
    has_gone = _hand_to_standby(call) or _start_process(call)
    _started.append(has_gone)
    return has_gone


def reap() -> None:
    """Reap this process's exited wrappers; the kernel keeps each until then."""
    _started[:] = [has_gone for has_gone in _started if not has_gone()]


def _hand_to_standby(call: WrapperCall) -> HasGone | None:
    """Hand the run to the standby wrapper, if there is one; runs that may wait get a smaller process."""
    if call.may_wait or call.in_scope or (ready := standby.waiting()) is None:
        return None
    if not ready.hand_over(call.arguments, call.environment):
        standby.dismiss()
        return None
    standby.forget()  # only now: an interrupted launcher must still dismiss it
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
    from . import tmux  # imports libtmux, which other runners do not need

    # The environment goes into a file that only this user can read; the wrapper unlinks it.
    block = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in call.environment.items())
    files.write_new(os.path.join(call.run_dir, paths.ENVIRONMENT), block)
    session, window = tmux.session_name(call.project), tmux.window_name(call.meta.title, call.meta.short_id)
    # Set by a program, because tmux gives windows its server's environment, which may have another PATH.
    mark = (processes.find_program("env") or "/usr/bin/env", f"{processes.RUN_MARK}={call.meta.run_id}")
    pid = tmux.open_window(
        socket, session, window, call.meta.run_id, (*mark, *call.argv, "--tmux", socket, session, window)
    )
    return _end_of(pid)


def _end_of(pid: int) -> HasGone:
    """Return a check of whether a process that another process reaps has exited."""
    started = processes.start_time(pid)
    return lambda: started is None or not processes.is_alive(pid, started)
