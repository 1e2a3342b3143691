"""The default runner: a plain process in a session of its own."""

from __future__ import annotations

import os
import subprocess

from .. import paths
from ..errors import LaunchError
from ..run.model import RunnerKind
from ..system import files
from .base import WrapperCall

_started: list[subprocess.Popen[bytes]] = []
"""Wrappers of this process, kept until they are reaped; their locks, not they, tell how their runs stand."""


class ProcessRunner:
    name = RunnerKind.PROCESS

    def check(self) -> None:
        return

    def launch(self, call: WrapperCall) -> StartedProcess:
        _reap()
        try:
            with open(os.path.join(call.run_dir, paths.STDERR), "ab", opener=files.open_private) as stderr:
                process = subprocess.Popen(
                    call.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    cwd="/",
                    env=call.environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise LaunchError(f"the wrapper could not be started: {error.strerror}", where=call.argv[0]) from error
        _started.append(process)
        return StartedProcess(process)


class StartedProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def has_gone(self) -> bool:
        return self._process.poll() is not None


def _reap() -> None:
    _started[:] = [process for process in _started if process.poll() is None]
