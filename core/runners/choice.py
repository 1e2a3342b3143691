"""The runners by name."""

from __future__ import annotations

from ..errors import RunnerUnavailable, nearest
from ..run.model import RunnerKind
from ..text.plain import one_line
from .base import Runner


def runner_of(name: str, tmux_socket: str) -> Runner:
    """Return a runner by its name; libtmux is loaded only for the one that needs it. Raises RunnerUnavailable."""
    if name == RunnerKind.PROCESS:
        from .process import ProcessRunner

        return ProcessRunner()
    if name == RunnerKind.TMUX:
        from .tmux import TmuxRunner

        return TmuxRunner(tmux_socket)
    hint = nearest(name, RunnerKind) or f"known are {', '.join(RunnerKind)}"
    raise RunnerUnavailable(f'no runner is called "{one_line(name, 40)}"', where="runner", hint=hint)
