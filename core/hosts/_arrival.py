"""A run's arrival on a host: create its directory in the spool, adapt it to this machine, and start its wrapper."""

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
from ..run.environment import OF_A_RUN, for_wrapper
from ..run.model import SCHEMA_VERSION, RunMeta, RunnerKind, newer_schema
from ..runners.forker import Forker
from ..runners.process import HasGone, WrapperCall, reap, start_wrapper
from ..system import files
from ..text.decoder import UNDECODABLE, decode, why
from ..text.plain import one_line
from ._full_disk import is_of_full_disk
from ._spool import has_begun
from .protocol import Start

_STARTING = threading.Lock()
"""Serializes starting wrappers: the list of started wrappers is shared by all threads."""


class Refused(Exception):
    """The run cannot start on this host; the message is for the operator."""


class Destination(Struct, frozen=True):
    """This host's side of a run."""

    name: str
    """Host name."""
    project: paths.Project
    """Project of the operator's relay, in the spool."""
    slots: int
    slot_files: str
    lease: str
    """Path of the lease file."""
    forker: Forker


class Arrived(Struct, frozen=True):
    """A run whose wrapper was started but may not hold the run yet."""

    run_dir: str
    lock: int
    """Lock that holds the run until it is closed."""
    has_gone: HasGone

    @property
    def is_taken(self) -> bool:
        """Whether the wrapper holds the run, or has exited."""
        return os.path.exists(f"{self.run_dir}/{paths.RUNNER}") or self.has_gone()


def take_in(start: Start, destination: Destination, directory: str | None = None) -> Arrived | None:
    """Create a run and start its wrapper; return None if the run is already here or has finished.

    The run works in `directory`, by default in its meta's `cwd`. If the wrapper cannot be started, the run gets a
    failed result; if the disk was full, the run's directory is removed. Raises Refused, SubdeckError, OSError.
    """
    run_dir = destination.project.run_dir(start.run)
    if has_begun(run_dir):
        return None
    meta = _meta(start)
    cwd = directory or _checked_cwd(meta, start, destination.name)
    settings = _settings(destination.project)
    agent = _agent(meta, settings)
    host_meta = replace(
        meta,
        cwd=cwd,
        runner=RunnerKind.PROCESS,
        host=destination.name,
        agent_command=agent.command,
        max_running=None,
        session_path=meta.session_path and f"{run_dir}/{paths.CHILD_SESSION}",
        system_prompt_path=meta.system_prompt_path and f"{run_dir}/{paths.SYSTEM_PROMPT}",
    )
    check = _check_option(start)
    may_have_wrapper = os.path.lexists(run_dir)
    lock = _lock_of(host_meta, start.prompt, destination)
    try:
        _furnish(host_meta, start, run_dir, {**agent.env, **start.agent_env})
        may_have_wrapper = True  # also if the start fails: a wrapper may have been forked without answering
        has_gone = _start_wrapper(host_meta, start, destination, check, settings)
    except (SubdeckError, OSError) as error:
        if may_have_wrapper or not is_of_full_disk(error):
            return artifacts.fail_launch(host_meta, run_dir, lock, error, by="host")
        files.remove_tree(run_dir)
        os.close(lock)
        raise
    except BaseException:
        os.close(lock)
        raise
    return Arrived(run_dir, lock, has_gone)


def _lock_of(meta: RunMeta, prompt: bytes, destination: Destination) -> int:
    """Create a run, or reopen one whose agent was killed before the wrapper took it; return its lock descriptor.

    Only the first of several wrappers takes the run, so starting another one is safe. Raises Refused.
    """
    run_dir = destination.project.run_dir(meta.run_id)
    try:
        if os.path.lexists(run_dir):
            lock = files.open_lock(f"{run_dir}/{paths.LOCK}")
            files.lock(lock, shared=True)
            return lock
        files.remove_tree(os.path.join(destination.project.runs, f".{meta.run_id}"))  # left by an agent that was killed
        return artifacts.create_run(destination.project.runs, meta, prompt.decode("utf-8", "surrogateescape"))
    except (SubdeckError, OSError) as error:
        raise Refused(one_line(f"{destination.name}: {error}", 900)) from error


def _meta(start: Start) -> RunMeta:
    """Read the run's meta. Raises Refused if this host cannot run it."""
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
    """Return the run's working directory. Raises Refused if it is missing, unreadable or at another commit."""
    cwd, there = meta.cwd, one_line(meta.cwd, 300)
    if not os.path.isabs(cwd) or not os.path.isdir(cwd):
        raise Refused(
            f"the run needs {there}, but {host} has no directory {there}; share the file system with "
            "the host, or set hosts.code to git"
        )
    if not os.access(cwd, os.R_OK | os.X_OK):
        raise Refused(f"the run needs {there}, but {host}:{there} cannot be opened; check its permissions")
    if start.head:
        checkout = repository.find(cwd)
        head = (checkout and checkout.head) or ""
        if head != start.head:
            trouble = f" ({one_line(checkout.trouble, 200)})" if checkout and checkout.trouble else ""
            raise Refused(
                f"{there} is at commit {start.head[:12]}, but {host}:{there} is at {head[:12] or 'none'}{trouble}; "
                "check out the same commit there, share the file system, or set hosts.code to git"
            )
    return cwd


def _settings(project: paths.Project) -> Settings:
    """Read this host's user settings. Raises Refused."""
    try:
        return load_settings(project)
    except SubdeckError as error:
        raise Refused(f"cannot read the host's settings: {one_line(in_one_line(error), 500)}") from error


def _agent(meta: RunMeta, settings: Settings) -> AgentChoice:
    """Return the agent installed here for the run. Raises Refused."""
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
    """Write the run's files other than its meta and prompt.

    Raises OSError. Environment variables go into a file that the wrapper removes, so no key appears on a command line.
    """
    if meta.session_path and not os.path.lexists(meta.session_path):
        if start.session:
            files.write_new(meta.session_path, start.session)
        else:
            prepare(ChildSession(meta.child_session_id), run_dir, meta.cwd)
    if start.code:
        files.write_new(os.path.join(run_dir, paths.CODE), msgspec.json.encode(start.code))
    brought = {name: value for name, value in start.env.items() if _is_variable(name, value)}
    variables = for_wrapper(agent_env, without=OF_A_RUN, added=brought)
    block = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in variables.items())
    files.write_whole(os.path.join(run_dir, paths.ENVIRONMENT), block)


def _is_variable(name: str, value: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name and "\0" not in value


def _start_wrapper(
    meta: RunMeta, start: Start, destination: Destination, check: tuple[str, ...], settings: Settings
) -> Callable[[], bool]:
    """Start the wrapper in a new session, with its slots, leases and check. Raises LaunchError."""
    run_dir, bell = destination.project.run_dir(meta.run_id), os.path.join(destination.project.active, meta.run_id)
    try:
        os.close(files.open_private(bell, os.O_WRONLY))
    except OSError:
        pass  # all runs are also checked every second
    lease = ("--lease", destination.lease, f"{start.lease_agent:g}", f"{start.lease_operator:g}")
    no_group = ("--no-group",) if settings.cgroup == "off" else ()
    call = WrapperCall(
        meta=meta,
        project=destination.project.root,
        run_dir=run_dir,
        arguments=(run_dir, bell, "--slots", str(destination.slots), destination.slot_files, *lease, *check, *no_group),
        in_scope=settings.cgroup == "scope",
        environment=for_wrapper(without=OF_A_RUN),
    )
    with _STARTING:
        return start_wrapper(call, "", forker=destination.forker)


def reap_wrappers() -> None:
    """Reap exited wrappers, because this process lives long."""
    with _STARTING:
        reap()
