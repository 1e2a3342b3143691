"""How a run comes to a host: its directory is made in the spool, fitted to this machine, and its wrapper started."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..agent_kinds import KINDS
from ..agents.agent import AgentChoice
from ..agents.choice import choose_agent
from ..config.settings import Settings
from ..config.workspace import load_settings
from ..errors import SubdeckError, in_one_line
from ..git import repository
from ..launch.child_session import ChildSession, prepare
from ..run import artifacts
from ..run.changes import CheckCommand
from ..run.model import SCHEMA_VERSION, RunMeta, RunnerKind, RunReason, RunResult, RunStatus, newer_schema
from ..runners.forker import Forker
from ..runners.process import HasGone, WrapperCall, reap, start_wrapper
from ..system import files
from ..text.decoding import UNDECODABLE, decode, why
from ..text.plain import one_line
from ._full_disk import is_of_full_disk
from ._spool import has_begun
from .protocol import Start

_STARTING = threading.Lock()
"""Wrappers are started one after the other: what is known of those that were started is no thread's own."""
_NOT_THE_HOSTS = frozenset({paths.AGENT_ENVIRONMENT, paths.CHILD, "SUBDECK_RUN_ID"})
"""Variables that the agent has got for itself, if any."""


class Refused(Exception):
    """The run cannot be started here; in words for the operator."""


class Place(Struct, frozen=True):
    """What a run finds on this host."""

    name: str
    """The host's."""
    project: paths.Project
    """That of the operator's relay, in the spool."""
    slots: int
    slot_files: str
    lease: str
    """The file."""
    forker: Forker


class Arrived(Struct, frozen=True):
    """A run whose wrapper was started, and has not taken it yet."""

    run_dir: str
    lock: int
    """Holds the run until that is closed."""
    has_gone: HasGone

    @property
    def is_taken(self) -> bool:
        """Whether the wrapper holds the run, or never will."""
        return os.path.exists(f"{self.run_dir}/{paths.RUNNER}") or self.has_gone()


def take_in(start: Start, place: Place, directory: str | None = None) -> Arrived | None:
    """Make a run and start its wrapper; None for a run that is there already, or that has ended here.

    It works in `directory`, by default in that of its meta. Where the wrapper could not be started the run has a result
    that says so; nothing is left of one for which the disk has no room. Raises Refused, SubdeckError, OSError.
    """
    run_dir = place.project.run_dir(start.run)
    if has_begun(run_dir):
        return None
    meta = _meta(start)
    cwd = directory or _checked_cwd(meta, start, place.name)
    settings = _settings(place.project)
    agent = _agent(meta, settings)
    own = replace(
        meta,
        cwd=cwd,
        runner=RunnerKind.PROCESS,
        host=place.name,
        agent_command=agent.command,
        max_running=None,
        session_path=meta.session_path and f"{run_dir}/{paths.CHILD_SESSION}",
        system_prompt_path=meta.system_prompt_path and f"{run_dir}/{paths.SYSTEM_PROMPT}",
    )
    check = _check_option(start)
    may_have_wrapper = os.path.lexists(run_dir)
    lock = _lock_of(own, start.prompt, place)
    try:
        _furnish(own, start, run_dir, {**agent.env, **start.agent_env})
        may_have_wrapper = True  # also where starting it fails: one may have been forked off that did not answer
        has_gone = _start_wrapper(own, start, place, check, settings)
    except (SubdeckError, OSError) as error:
        if may_have_wrapper or not is_of_full_disk(error):
            return _failed(own, run_dir, lock, error)
        files.remove_tree(run_dir)
        os.close(lock)
        raise
    except BaseException:
        os.close(lock)
        raise
    return Arrived(run_dir, lock, has_gone)


def _lock_of(meta: RunMeta, prompt: bytes, place: Place) -> int:
    """Make a run, or take up one of which its agent was killed before the wrapper had it; return what holds it.

    Of several wrappers of a run only the first takes it, so another one may be started at any time. Raises Refused.
    """
    run_dir = place.project.run_dir(meta.run_id)
    try:
        if os.path.lexists(run_dir):
            lock = files.open_lock(f"{run_dir}/{paths.LOCK}")
            files.lock(lock, shared=True)
            return lock
        files.remove_tree(os.path.join(place.project.runs, f".{meta.run_id}"))  # of an agent that was killed over it
        return artifacts.create_run(place.project.runs, meta, prompt.decode("utf-8", "surrogateescape"))
    except (SubdeckError, OSError) as error:
        raise Refused(one_line(f"{place.name}: {error}", 900)) from error


def _meta(start: Start) -> RunMeta:
    """Read the run's record. Raises Refused for one that this host cannot do."""
    try:
        meta = decode(start.meta, RunMeta)
    except UNDECODABLE as error:
        raise Refused(f"cannot read its {paths.META} here: {why(error)}") from error
    if meta.schema_version > SCHEMA_VERSION:
        raise Refused(f"the run was launched with {newer_schema(meta.schema_version)}; also install it on the host")
    if meta.run_id != start.run:
        raise Refused(f"its {paths.META} belongs to another run")
    if meta.runner == RunnerKind.TMUX:
        raise Refused("a run in tmux cannot start on another machine; use the runner hosts")
    if meta.session_lock or (meta.agent_session and meta.agent_session.id_file):
        raise Refused("a sticky preset's conversation stays on your own machine, with its lock")
    if meta.worktree:
        raise Refused("worktrees exist only on your own machine; on hosts, code: git keeps changes separate")
    if meta.by_hand:
        raise Refused("a run can be opened in the agent only on your own machine")
    return meta


def _checked_cwd(meta: RunMeta, start: Start, host: str) -> str:
    """Return where the run works. Raises Refused where that is not the operator's directory, as far as can be told."""
    cwd, there = meta.cwd, one_line(meta.cwd, 300)
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise Refused(
            f"the run needs {there}, but {host} has no directory {there}; share the file system with "
            "the host, or set hosts.code to git"
        )
    if not os.access(cwd, os.R_OK | os.X_OK):
        raise Refused(f"the run needs {there}, but {host}:{there} cannot be opened; check its permissions")
    if start.head:
        found = repository.find(cwd)
        head = (found and found.head) or ""
        if head != start.head:
            trouble = f" ({one_line(found.trouble, 200)})" if found and found.trouble else ""
            raise Refused(
                f"{there} is at commit {start.head[:12]}, but {host}:{there} is at {head[:12] or 'none'}{trouble}; "
                "check out the same commit there, share the file system, or set hosts.code to git"
            )
    return cwd


def _settings(project: paths.Project) -> Settings:
    """Read this host's own settings: the user's. Raises Refused."""
    try:
        return load_settings(project)
    except SubdeckError as error:
        raise Refused(f"cannot read the host's settings: {one_line(in_one_line(error), 500)}") from error


def _agent(meta: RunMeta, settings: Settings) -> AgentChoice:
    """Find the run's agent on this host. Raises Refused."""
    name = meta.agent if meta.agent in KINDS or meta.agent in settings.agents else meta.kind
    try:
        choice = choose_agent(name, settings)
    except SubdeckError as error:
        why = "; ".join(filter(None, (one_line(error.what, 250), one_line(error.hint, 250))))
        raise Refused(f"the agent {one_line(meta.agent, 64)} does not work there: {why}") from error
    if choice.kind != meta.kind:
        raise Refused(f"the agent {one_line(name, 64)} is {choice.kind} there, but {one_line(meta.kind, 64)} here")
    return choice


def _check_option(start: Start) -> tuple[str, ...]:
    if not start.check:
        return ()
    try:
        return ("--check", msgspec.json.encode(decode(start.check, CheckCommand)).decode("utf-8", "replace"))
    except UNDECODABLE as error:
        raise Refused(f"cannot read its check: {why(error)}") from error


def _furnish(meta: RunMeta, start: Start, run_dir: str, agent_env: Mapping[str, str]) -> None:
    """Write what the run has beside its record and its prompt. Raises OSError.

    Its variables go through a file, which the wrapper removes: a key is in no command line.
    """
    if meta.session_path and not os.path.lexists(meta.session_path):
        if start.session:
            files.write_new(meta.session_path, start.session)
        else:
            prepare(ChildSession(meta.child_session_id), run_dir, meta.cwd)
    if start.code:
        files.write_new(os.path.join(run_dir, paths.CODE), msgspec.json.encode(start.code))
    variables = {name: value for name, value in os.environ.items() if name not in _NOT_THE_HOSTS}
    variables |= {name: value for name, value in start.env.items() if _is_variable(name, value)}
    if agent_env:
        variables[paths.AGENT_ENVIRONMENT] = msgspec.json.encode(agent_env).decode("utf-8", "replace")
    block = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())
    files.write_whole(os.path.join(run_dir, paths.ENVIRONMENT), block)


def _is_variable(name: str, value: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name and "\0" not in value


def _start_wrapper(
    meta: RunMeta, start: Start, place: Place, check: tuple[str, ...], settings: Settings
) -> Callable[[], bool]:
    """Start it in a session of its own, with what it waits for and what ends it. Raises LaunchError."""
    run_dir, bell = place.project.run_dir(meta.run_id), os.path.join(place.project.active, meta.run_id)
    try:
        os.close(files.open_private(bell, os.O_WRONLY))
    except OSError:
        pass  # all runs are looked at each second, too
    lease = ("--lease", place.lease, f"{start.lease_agent:g}", f"{start.lease_operator:g}")
    no_group = ("--no-group",) if settings.cgroup == "off" else ()
    call = WrapperCall(
        meta=meta,
        project=place.project.root,
        run_dir=run_dir,
        arguments=(run_dir, bell, "--slots", str(place.slots), place.slot_files, *lease, *check, *no_group),
        in_scope=settings.cgroup == "scope",
        environment={name: value for name, value in os.environ.items() if name not in _NOT_THE_HOSTS},
    )
    with _STARTING:
        return start_wrapper(call, "", forker=place.forker)


def reap_wrappers() -> None:
    """Take note of the wrappers that have ended, as a process does that lives long."""
    with _STARTING:
        reap()


def _failed(meta: RunMeta, run_dir: str, lock: int, error: SubdeckError | OSError) -> None:
    """Write the end of a run whose wrapper could not be started, and let go of it."""
    files.remove(os.path.join(run_dir, paths.ENVIRONMENT))
    result = RunResult(
        run_id=meta.run_id,
        status=RunStatus.FAILED,
        reason=RunReason.START_FAILED,
        written_by="host",
        error_message=getattr(error, "strerror", None) or str(error),
        resolved_model=meta.resolved_model,
        ended_at=paths.now_iso(),
    )
    try:
        artifacts.write_result(run_dir, result)
    except OSError:
        pass  # who looks next finds that nobody is responsible
    finally:
        os.close(lock)
