"""The agent's conversation: new for each run, continued from an earlier run, or shared by a preset's runs."""

from __future__ import annotations

import os
import re
from contextlib import suppress

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..agent_kinds import USUAL
from ..agents.agent import Naming
from ..errors import UsageError
from ..paths import hex_digest
from ..project.ownership import check_own, is_own, session_file
from ..run import artifacts
from ..run.events import EventTail, SessionTold
from ..run.model import AgentSession, RunMeta, RunnerKind
from ..system import files
from ..text.plain import one_line

_ID = r"[A-Za-z0-9][A-Za-z0-9-]{0,127}"
"""Without `_`, which separates the preset's name from the id in the name of a shared file."""

_ID_BYTES = 200
"""Most bytes of a file with an id."""
_NAME_LENGTH = 60
"""Most characters of a preset's name in a file name."""
_BEGINNING = 256 * 1024
"""Bytes at the start of a run's events in which its agent reports the session id."""
_CHUNK = 1024 * 1024
"""Bytes per copy step."""


class Keeper(Struct, frozen=True):
    """The agent that keeps a run's conversation."""

    agent: str = USUAL
    """Its name; other agents cannot continue the conversation."""
    naming: Naming = Naming.FILE

    @property
    def suffix(self) -> str:
        """Suffix of a sticky conversation's file, which holds the conversation or only the agent's id for it."""
        return ".jsonl" if self.naming is Naming.FILE else f".{self.agent}.id"


OURS = Keeper()


class ChildSession(Struct, frozen=True):
    id: str | None
    """None if the agent will report it."""
    source: str | None = None
    """File of the run to continue, copied at launch."""
    shared: str | None = None
    """File of a sticky conversation, or of its id: it outlives the run, and one run at a time uses it."""
    is_new: bool = False
    """Whether a sticky conversation did not exist when planned."""
    agent_session: AgentSession | None = None
    """None if the conversation is a file of subdeck's."""

    @property
    def lock(self) -> str | None:
        return f"{self.shared}.lock" if self.shared else None

    def path_in(self, run_dir: str) -> str:
        return self.shared or os.path.join(run_dir, paths.CHILD_SESSION)


def own_session(
    project: paths.Project, *, session_id: str | None, preset: str, cwd: str, agent: Keeper = OURS
) -> ChildSession:
    """Return a new conversation or the wanted one; if it is a file, it is copied into the run directory.

    Raises UsageError if no finished run of that preset, directory and agent has the id.
    """
    if session_id is None:
        return _begun(agent)
    run_id, source = _find_source(project, _checked(session_id, agent), preset, cwd, agent)
    if agent.naming is Naming.FILE:
        return ChildSession(session_id, source=source)
    return ChildSession(session_id, agent_session=AgentSession(resume=session_id, source=run_id))


def _new_id() -> str:
    """Return a random UUID (version 4) without the `uuid` module, which examines the platform on import."""
    number = bytearray(os.urandom(16))
    number[6], number[8] = number[6] & 0x0F | 0x40, number[8] & 0x3F | 0x80
    digits = number.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _begun(agent: Keeper, id_file: str | None = None) -> ChildSession:
    session_id = None if agent.naming is Naming.TAKEN else _new_id()
    if agent.naming is Naming.FILE:
        return ChildSession(session_id)
    return ChildSession(session_id, agent_session=AgentSession(id_file=id_file))


def sticky_session(
    *, session_id: str | None, preset: str, cwd: str, agent: Keeper = OURS, project: paths.Project | None = None
) -> ChildSession:
    """Return the conversation shared by a preset's runs in a directory: the wanted one, the newest, or a new one.

    If the agent keeps it, its last run is looked up in `project`. Raises UsageError if a wanted id has no file.
    """
    digits = hex_digest(os.fsencode(os.path.realpath(cwd)), 16)
    directory = os.path.join(paths.shared_sessions(), digits)
    prefix = f"{_file_name(preset)}_"
    if agent.naming is not Naming.FILE:
        session = _sticky_elsewhere(directory, prefix, agent, session_id=session_id, preset=preset, cwd=cwd)
        return _with_source(session, project, preset, cwd, agent)
    existing_id = _checked(session_id, agent) if session_id is not None else _newest(directory, prefix, agent.suffix)
    chosen_id = existing_id or _new_id()
    path = os.path.join(directory, f"{prefix}{chosen_id}.jsonl")
    if session_id is not None and not os.path.isfile(path):
        raise _unknown(session_id, preset, cwd)
    return ChildSession(chosen_id, shared=path, is_new=existing_id is None)


def _with_source(
    session: ChildSession, project: paths.Project | None, preset: str, cwd: str, agent: Keeper
) -> ChildSession:
    """Add the last run of a conversation that its agent keeps; some agents need its messages."""
    if project is None or session.id is None or session.is_new or session.agent_session is None:
        return session
    with suppress(UsageError):
        run_id, _ = _find_source(project, session.id, preset, cwd, agent)
        return replace(session, agent_session=replace(session.agent_session, source=run_id))
    return session


def _sticky_elsewhere(
    directory: str, prefix: str, agent: Keeper, *, session_id: str | None, preset: str, cwd: str
) -> ChildSession:
    """Return the conversation whose id is in a file; the wrapper reads and writes the file once it holds the lock."""
    if session_id is not None:
        named = (name for name in files.names(directory) if name.startswith(prefix) and name.endswith(agent.suffix))
        checked_id = _checked(session_id, agent)
        file = next((path for name in named if _id_in(path := os.path.join(directory, name)) == checked_id), "")
        if not file:
            raise _unknown(session_id, preset, cwd)
    else:
        newest = _newest(directory, prefix, agent.suffix)
        file = os.path.join(directory, f"{prefix}{newest or _new_id()}{agent.suffix}")
        session_id = _id_in(file)
    session = _begun(agent, file)
    is_new = not os.path.lexists(file)
    return replace(session, id=session_id or session.id, shared=file, is_new=is_new)


def _id_in(path: str) -> str | None:
    """Return the id of a sticky conversation; None if the agent has not created one."""
    try:
        return files.read(path)[:_ID_BYTES].decode("ascii", "replace").strip() or None
    except OSError:
        return None


def begin_sticky(session: ChildSession, *, preset: str, cwd: str, agent: Keeper = OURS) -> ChildSession:
    """Return a sticky conversation whose file exists; only one of several simultaneous launches creates it.

    Raises OSError.
    """
    assert session.shared  # noqa: S101 - for the type: it is a sticky one
    directory = os.path.dirname(session.shared)
    files.make_private_directory(os.path.dirname(directory))
    files.make_private_directory(directory)
    descriptor = files.open_directory(directory)
    try:
        with suppress(OSError):  # some network file systems cannot lock directories
            files.lock(descriptor)
        if session.is_new:
            session = sticky_session(session_id=None, preset=preset, cwd=cwd, agent=agent)
        _begin(session, cwd)
    finally:
        os.close(descriptor)
    return session


def _begin(session: ChildSession, cwd: str) -> None:
    """Write the header if the file is missing, or empty and unused."""
    assert session.shared and session.lock  # noqa: S101 - for the type: it is a sticky one
    try:
        files.write_new(session.shared, b"" if session.agent_session else _header(session, cwd))
    except FileExistsError:
        if session.agent_session:
            return
        if os.stat(session.shared).st_size:
            return
        lock = files.open_lock(session.lock)
        try:
            if files.try_lock(lock):
                files.write_whole(session.shared, _header(session, cwd))
        finally:
            os.close(lock)


def prepare(session: ChildSession, run_dir: str, cwd: str) -> None:
    """Write the run's own file: a copy of the continued conversation, or a header with the id that the agent must use.
    Raises OSError.
    """
    path = session.path_in(run_dir)
    if session.source is None:
        files.write_new(path, _header(session, cwd))
    else:
        with open(files.open_regular(session.source)[0], "rb") as source:
            files.write_new(path, iter(lambda: source.read(_CHUNK), b""))


def _header(session: ChildSession, cwd: str) -> bytes:
    header = {"type": "session", "version": 3, "id": session.id, "timestamp": paths.now_iso()}
    header["cwd"] = cwd.encode("utf-8", "replace").decode()  # the directory's name may not be UTF-8
    return msgspec.json.encode(header) + b"\n"


def _find_source(project: paths.Project, session_id: str, preset: str, cwd: str, agent: Keeper) -> tuple[str, str]:
    """Return the last run of a conversation, and its file, or the agent's id for it. Raises UsageError."""
    from ..project.liveness import Proof, reconcile  # most conversations are new

    sources: list[tuple[str, str, str]] = []
    """Launch time, run id, and file or session id."""
    foreign = ""
    for name in sorted(artifacts.run_ids(project.runs), reverse=True):
        if sources and name[:15] != sources[0][1][:15]:
            break  # ids order runs by the second; within a second only the meta tells
        run_dir = project.run_dir(name)
        meta = artifacts.read_meta(run_dir)
        if meta is None or meta.is_newer or meta.preset != preset:
            continue
        if os.path.realpath(meta.cwd) != os.path.realpath(cwd):
            continue
        result = artifacts.read_result(run_dir)
        reported_id = result.child_session_id if result else _reported_session(run_dir)
        if session_id not in (meta.child_session_id, reported_id):
            continue
        if not is_own(run_dir):
            foreign = foreign or name
            continue
        if result is None and reconcile(project, name, by="launcher") is not Proof.FINISHED:
            raise UsageError(
                f"run {name[-6:]} is still using the agent session {session_id}",
                where="session id",
                hint=f"wait for it (subdeck wait {name[-6:]}), or stop it",
            )
        _check_keeper(meta, session_id, agent)
        if session := (session_id if meta.agent_session else session_file(run_dir, meta)):
            sources.append((meta.created_at, name, session))
    if not sources and foreign:
        check_own(project, foreign)
    if not sources:
        raise _unknown(session_id, preset, cwd)
    return max(sources)[1:]


def _check_keeper(meta: RunMeta, session_id: str, agent: Keeper) -> None:
    """Raise UsageError if this agent cannot continue a run's conversation."""
    is_other = meta.agent_session and meta.agent != agent.agent
    if is_other or bool(meta.agent_session) != (agent.naming is not Naming.FILE):
        raise _of_another(session_id, meta.agent, agent.agent)
    if meta.agent_session and meta.runner == RunnerKind.HOSTS:
        raise UsageError(
            f"{one_line(meta.agent, 64)} keeps the agent session {session_id} on the host of run {meta.short_id}",
            where="session id",
            hint="remove the id to begin a new session",
        )


def directory_of(project: paths.Project, session_id: str, cwd: str) -> str:
    """Return where to continue a conversation begun in a directory: there, or in its run's worktree."""
    here = os.path.realpath(cwd)
    for name in sorted(artifacts.run_ids(project.runs), reverse=True):
        run_dir = project.run_dir(name)
        meta = artifacts.read_meta(run_dir)
        if meta is None or meta.is_newer or not meta.worktree or os.path.realpath(meta.origin_cwd) != here:
            continue
        result = artifacts.read_result(run_dir)
        reported_id = result.child_session_id if result else None
        if session_id in (meta.child_session_id, reported_id) and is_own(run_dir):
            return meta.cwd
    return cwd


def _reported_session(run_dir: str) -> str | None:
    """Return the id reported by the agent of a run without a result, whose wrapper may have been killed."""
    events = EventTail(os.path.join(run_dir, paths.EVENTS)).read(_BEGINNING)
    return next((event.id for event in events if isinstance(event, SessionTold)), None)


def _of_another(session_id: str, keeper: str, agent: str) -> UsageError:
    return UsageError(
        f'the agent session "{one_line(session_id, 80)}" belongs to the agent {one_line(keeper, 64)}, not {agent}',
        where="session id",
        hint="use that agent, or remove the id to begin a new session",
    )


def _unknown(session_id: str, preset: str, cwd: str) -> UsageError:
    whose = f'the preset "{one_line(preset, 64)}"' if preset else "a one-off run"
    return UsageError(
        f'no agent session "{one_line(session_id, 80)}" of {whose} in {one_line(cwd, 200)}',
        where="session id",
        hint="a session id belongs to its run's preset and directory; remove it to begin a new session",
    )


def _checked(session_id: str, agent: Keeper) -> str:
    is_id = re.fullmatch(_ID, session_id) if agent.naming is Naming.FILE else paths.is_session_id(session_id)
    if not is_id:
        what = f'"{one_line(session_id, 80)}" is not an agent session id'
        raise UsageError(what, where="session id", hint="copy the whole id")
    return session_id


def _file_name(preset: str) -> str:
    """Return a preset's name with only file-name characters, plus a short hash if that changes it."""
    clean = re.sub(r"[^A-Za-z0-9._-]+", "-", preset)[:_NAME_LENGTH]
    return clean if clean == preset else f"{clean}-{hex_digest(preset.encode(), 6)}"


def _newest(directory: str, prefix: str, suffix: str) -> str | None:
    """Return the id of a preset's most recently written conversation."""
    file_name = re.compile(rf"{re.escape(prefix)}({_ID}){re.escape(suffix)}")
    conversations: list[tuple[int, str]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if (named := file_name.fullmatch(entry.name)) and entry.is_file():
                    conversations.append((entry.stat().st_mtime_ns, named[1]))
    except OSError:
        return None
    return max(conversations)[1] if conversations else None
