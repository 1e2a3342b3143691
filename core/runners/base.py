"""What a runner does: start the wrapper of a run somewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from ..run.model import RunMeta, RunnerKind


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

    @property
    def may_wait(self) -> bool:
        """Whether there is something that it has to wait for before it starts the child."""
        return len(self.arguments) > 2

    @property
    def argv(self) -> tuple[str, ...]:
        # -E: no PYTHON* variable of a user may change what supervises; -P: nor a module in the working directory.
        return (sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *self.arguments)


class AttachInfo(Struct, frozen=True):
    """How a person gets into the pane of a run, and out of it again."""

    argv: tuple[str, ...]
    """To be run in the terminal."""
    leave: tuple[str, ...]
    """The keys to press one after the other, as people write them: `("ctrl+b", "d")`."""
    switches: bool = False
    """True where the terminal is in the same tmux already: the command ends at once and another pane is shown."""


class Started(Protocol):
    """A wrapper that was started."""

    def has_gone(self) -> bool:
        """Return True once the wrapper has ended, without waiting."""
        ...


class Runner(Protocol):
    name: RunnerKind

    def check(self) -> None:
        """Raise RunnerUnavailable where something the runner needs is missing."""
        ...

    def launch(self, call: WrapperCall) -> Started:
        """Start a wrapper. Raises LaunchError."""
        ...
