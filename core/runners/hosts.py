"""The runner for other machines: it leaves a run for the relay of the project, which finds a host for it.

What the run needs of its launcher, the relay may be older than, or live longer: that stands in the run's `environment`
until its host has it. The relay is a program of its own, and started by its name.
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
from ..run.model import RunnerKind
from ..system import files, processes
from ..text.decoding import UNDECODABLE, decode

if TYPE_CHECKING:
    from subprocess import Popen

RELAY = "subdeck.core.hosts.relay"
PATIENCE_S = 5.0
"""How long a launcher waits for the relay to have a run, counted from the last one that was left for it."""
_LOOK_AGAIN_S = 0.5
_COMING_UP_S = 10.0
"""How long a relay that was started here may take to come up."""


class Luggage(Struct, frozen=True, omit_defaults=True):
    """`environment` of a run on a host: what its launcher knew. Annotations are evaluated here, as in `run.model`."""

    env: dict[str, str] = {}
    """The launcher's variables that travel."""
    agent_env: dict[str, str] = {}
    """What the settings add for the child."""
    check: str = ""
    """The operator's check, as JSON; empty for none."""


class _Relay(Struct):
    """A relay that was started here."""

    process: "Popen[bytes]"
    started: float


_relays: dict[str, _Relay] = {}
"""By the root of their projects."""
_left: dict[str, float] = {}
"""When this process left a run for the relay of a project last."""


def start(
    root: str, run_dir: str, environment: Mapping[str, str], arguments: Sequence[str], names: Sequence[str]
) -> Callable[[], bool]:
    """Leave a run for the relay of the project at `root`, with what its wrapper would get here.

    Of the environment travel the variables of these names. Returns what says that it was taken up. Raises LaunchError,
    OSError.
    """
    luggage = Luggage(_travelling(environment, names), _agent_environment(environment), _check(arguments))
    try:
        content = msgspec.json.encode(luggage)
    except UNDECODABLE as error:
        what = "a variable to pass to hosts is not UTF-8 text"
        raise LaunchError(what, where="hosts.env", hint="unset it, or remove it from the list") from error
    files.write_new(os.path.join(run_dir, paths.ENVIRONMENT), content)
    # It names no machine: whoever finds nobody vouching for the run does not know, and never calls it lost.
    facts = RunnerFacts(RunnerKind.HOSTS, host="", boot_id="", pid_namespace="", pid=1)
    files.write_whole(os.path.join(run_dir, paths.RUNNER), msgspec.json.encode(facts))
    project, place = paths.Project(root), os.path.join(run_dir, paths.PLACE)
    see_to_relay(project)
    _left[root] = time.monotonic()
    looked = 0.0

    def has_gone() -> bool:
        nonlocal looked
        if os.path.exists(place):
            return True
        now = time.monotonic()
        if now - looked > _LOOK_AGAIN_S:
            looked = now
            see_to_relay(project)  # the one that was there may have just ended
        return now - _left[root] > PATIENCE_S

    return has_gone


def read_luggage(run_dir: str) -> Luggage:
    """Return what the launcher left for the start. Raises OSError; what is broken is as good as nothing."""
    try:
        return decode(files.read(os.path.join(run_dir, paths.ENVIRONMENT)), Luggage)
    except (FileNotFoundError, *UNDECODABLE):
        return Luggage()


def see_to_relay(project: paths.Project) -> None:
    """Start the relay of a project with runs on hosts, unless there is one. Raises nothing.

    A child agent starts none: it would be ended with the child.
    """
    known = _relays.get(project.root)
    if known is not None and known.process.poll() is None and time.monotonic() - known.started < _COMING_UP_S:
        return
    if paths.is_child() or has_relay(project):
        return
    from subprocess import DEVNULL, Popen

    own = {name: value for name, value in os.environ.items() if name != processes.RUN_MARK}
    try:
        process = Popen(
            (sys.executable, "-P", "-E", "-m", RELAY, project.root),
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            cwd="/",
            env=own,
            start_new_session=True,
        )
    except OSError:
        return  # who looks next tries again
    _relays[project.root] = _Relay(process, time.monotonic())


def has_relay(project: paths.Project) -> bool:
    """Return whether a relay of the project lives; also where that cannot be told."""
    try:
        lock = files.open_lock(project.relay_lock)
    except OSError:
        return True
    try:
        # Shared, as others ask it too; a relay that comes up meanwhile tries again.
        return not files.try_lock(lock, shared=True)
    except OSError:
        return True
    finally:
        os.close(lock)


def _travelling(environment: Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
    return {name: environment[name] for name in names if name in environment}


def _agent_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the settings add for the child, which the wrapper would get in a single variable."""
    try:
        return decode(environment.get(paths.AGENT_ENVIRONMENT, "{}"), dict[str, str])
    except UNDECODABLE:
        return {}


def _check(arguments: Sequence[str]) -> str:
    """Return the check that the wrapper would get."""
    given = list(arguments)
    return given[given.index("--check") + 1] if "--check" in given else ""
