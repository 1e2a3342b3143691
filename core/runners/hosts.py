"""The runner for other machines: it leaves a run for the project's relay, which finds a host.

The relay may be older than the launcher or outlive it, so the launcher's part of the run is stored in the run's
`environment` until its host has it. The relay is a separate program, started by its module name.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import LaunchError
from ..run.artifacts import RunnerFacts
from ..run.environment import own_variables
from ..run.model import RunnerKind
from ..system import files, processes
from ..system.record import read_record
from ..text.decoder import UNDECODABLE

if TYPE_CHECKING:
    from subprocess import Popen

RELAY = "subdeck.core.hosts.relay"
PATIENCE_S = 5.0
"""Seconds that a launcher waits for the relay to notice its last run."""
_LOOK_AGAIN_S = 0.5
_COMING_UP_S = 10.0
"""Seconds that a relay started here may take to come up."""


class Luggage(Struct, frozen=True, omit_defaults=True):
    """The launcher's part of a run on a host, in its `environment`. Annotations are evaluated here, as in
    `run.model`.
    """

    env: dict[str, str] = {}
    """The launcher's variables to send."""
    agent_env: dict[str, str] = {}
    """Variables that the settings add for the agent."""
    check: str = ""
    """The operator's check as JSON; empty for none."""


class _Relay(Struct):
    """A relay that this process started."""

    process: "Popen[bytes]"
    started: float


_relays: dict[str, _Relay] = {}
"""By project root."""
_left_at: dict[str, float] = {}
"""When this process last left a run for a project's relay."""


def start(
    root: str, run_dir: str, environment: Mapping[str, str], arguments: Sequence[str], names: Sequence[str]
) -> Callable[[], bool]:
    """Leave a run for the relay of the project at `root`, with what its wrapper would get here.

    Sends the variables in `names`. Returns a check that the relay noticed the run or the wait is over. Raises
    LaunchError, OSError.
    """
    luggage = Luggage(_travelling(environment, names), _agent_variables(environment), _check(arguments))
    try:
        content = msgspec.json.encode(luggage)
    except UNDECODABLE as error:
        what = "a variable to pass to hosts is not UTF-8 text"
        raise LaunchError(what, where="hosts.env", hint="unset it, or remove it from the list") from error
    files.write_new(os.path.join(run_dir, paths.ENVIRONMENT), content)
    # No machine is named, so that a run whose lock is free counts as unknown, never as lost.
    facts = RunnerFacts(RunnerKind.HOSTS, host="", boot_id="", pid_namespace="", pid=1)
    files.write_whole(os.path.join(run_dir, paths.RUNNER), msgspec.json.encode(facts))
    project, place_file = paths.Project(root), os.path.join(run_dir, paths.PLACE)
    see_to_relay(project)
    _left_at[root] = time.monotonic()
    looked = 0.0

    def has_gone() -> bool:
        nonlocal looked
        if os.path.exists(place_file):
            return True
        now = time.monotonic()
        if now - looked > _LOOK_AGAIN_S:
            looked = now
            see_to_relay(project)  # an earlier relay may have just exited
        return now - _left_at[root] > PATIENCE_S

    return has_gone


def read_luggage(run_dir: str) -> Luggage:
    """Return what the launcher left for the start; empty if missing or damaged. Raises OSError."""
    return read_record(os.path.join(run_dir, paths.ENVIRONMENT), Luggage, Luggage(), certain=True)


def see_to_relay(project: paths.Project) -> None:
    """Start the relay of a project with runs on hosts, unless it is running.

    Raises nothing. An agent's own subdeck starts none, because it would end with the agent.
    """
    relay = _relays.get(project.root)
    if relay is not None and relay.process.poll() is None and time.monotonic() - relay.started < _COMING_UP_S:
        return
    if paths.is_child() or has_relay(project):
        return
    from subprocess import DEVNULL, Popen

    environment = {name: value for name, value in os.environ.items() if name != processes.RUN_MARK}
    try:
        process = Popen(
            (sys.executable, "-P", "-E", "-m", RELAY, project.root),
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd="/",
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return  # the next check tries again
    _relays[project.root] = _Relay(process, time.monotonic())


def has_relay(project: paths.Project) -> bool:
    """Return whether a relay of the project is running; True if that cannot be checked."""
    try:
        lock = files.open_lock(project.relay_lock)
    except OSError:
        return True
    try:
        # Shared, because others test it too; a relay that is starting tries again.
        return not files.try_lock(lock, shared=True)
    except OSError:
        return True
    finally:
        os.close(lock)


def _travelling(environment: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: environment[name] for name in names if name in environment}


def _agent_variables(environment: Mapping[str, str]) -> dict[str, str]:
    try:
        return own_variables(environment)
    except UNDECODABLE:
        return {}


def _check(arguments: Sequence[str]) -> str:
    """Return the check that the wrapper would get."""
    words = list(arguments)
    return words[words.index("--check") + 1] if "--check" in words else ""
