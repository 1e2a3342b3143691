"""Sends the files of runs to hosts, and fetches the changes: the relay's part.

Transfers are split into pieces and resume after interruptions, also by another relay; their packs are kept with the
runs' work. A snapshot is sent to each host once, even if many runs begin with it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
import time
from collections.abc import Awaitable, Callable
from typing import IO

from msgspec import Struct

from ... import paths
from ...errors import SubdeckError
from ...git.packs import PACKING_S, carrier_content, write_commit, write_pack
from ...git.program import Git
from ...run.model import RunMeta
from ...system import files
from ...text.plain import one_line
from ...work import remote
from ...work.records import Away, read_away, read_record
from ...work.remote import PACKS, carriers
from ...work.source import usable
from .._full_disk import is_of_full_disk
from ..protocol import PIECE, BadMessage, Code, CodePiece, CodeSaid, Fetched, FetchPiece, Verb, decode_answer, encode

Call = Callable[[Verb, bytes], Awaitable[bytes]]
"""Calls one host; raises OutOfReach."""

OLD_S = 3600.0
"""Seconds after which a pack is no longer kept for other hosts."""


class NoRoom(Exception):
    """A host has no room for the files now; they may be sent again."""


class Brought(Struct, frozen=True):
    """The outcome of fetching a finished run's changes."""

    snapshot: str = ""
    """The commit that its branch begins with; empty if its changes are unknown."""
    branch: str = ""
    """Empty if nothing was changed."""
    errors: tuple[str, ...] = ()
    """What could not be fetched, and why, as clauses."""


def code_of(project: paths.Project, run_id: str) -> Code | None:
    """Return the description of a run's snapshot for hosts; None for a run without files.

    Raises SubdeckError if the run has files, but they are no longer available.
    """
    away = read_away(paths.work_dir(project, run_id))
    if away is None:
        if files.exists(os.path.join(project.run_dir(run_id), paths.CODE)):
            hint = "check whether XDG_STATE_HOME has changed, or that directory was emptied"
            raise SubdeckError("the files to send are no longer available", where=run_id, hint=hint)
        return None
    return Code(
        repository=away.repository,
        tree=away.tree,
        carrier=away.carrier,
        subdirectory=away.prefix,
        sparse=away.sparse,
    )


class CodeCarriage:
    """The transfers of one relay."""

    def __init__(self, relay: str, project: paths.Project) -> None:
        self._relay = relay
        self._project = project
        self._works = paths.works_dir(project)
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        """One per host and repository, so that runs with the same files do not send them twice."""
        self._packing = asyncio.Lock()
        self._here = threading.Lock()
        """For changes to the repository: many runs may finish at once, and git does not wait long for a lock."""

    async def send(self, host: str, call: Call, run_id: str) -> str:
        """Ensure that a host has a run's snapshot; return why it was rejected, empty if the host has it.

        `host` identifies it among all carriers. Raises OutOfReach and NoRoom, after which the next call resumes;
        SubdeckError and OSError if it cannot be sent from here.
        """
        directory = paths.work_dir(self._project, run_id)
        away, code = read_away(directory), code_of(self._project, run_id)
        if away is None or code is None:
            raise SubdeckError("its starting files are no longer available", where=run_id)
        async with self._locks.setdefault((host, code.repository), asyncio.Lock()):
            try:
                reply = await self._sent(call, away, code)
                if reply.why and reply.size and not reply.not_now:
                    # The part that was already there did not match the rest: send the whole pack again.
                    reply = await self._sent(call, away, code)
            except BadMessage as error:
                return one_line(str(error), 300)
            if reply.not_now:
                raise NoRoom(reply.why)
            return "" if reply.has_all else one_line(reply.why, 300) or "the host rejected the files"

    async def _sent(self, call: Call, away: Away, code: Code) -> CodeSaid:
        """Send what a host lacks of a snapshot, resuming an interrupted transfer; return its last answer.

        In a rejection `size` is the offset where this transfer resumed.
        """
        parents = await asyncio.to_thread(self._parents, away)

        async def ask(offset: int = 0, content: bytes = b"", *, last: bool = False) -> CodeSaid:
            piece = CodePiece(relay=self._relay, code=code, parents=parents, offset=offset, content=content, last=last)
            answer: CodeSaid = decode_answer(Verb.CODE, await call(Verb.CODE, encode(piece)))
            return answer

        reply = await ask()
        if reply.has_all or reply.why or reply.not_now:
            return reply
        if reply.parent and reply.parent not in parents:
            return CodeSaid(why="the host reports an unrequested snapshot")
        path, is_new = await self._pack(away, reply.parent)
        descriptor = files.open_file(path, os.O_RDONLY)
        try:
            total = os.fstat(descriptor).st_size
            began = offset = 0 if is_new or reply.size > total else reply.size
            while True:
                content = os.pread(descriptor, PIECE, offset)
                end = offset + len(content)
                reply = await ask(offset, content, last=end == total)
                if reply.has_all:
                    return reply
                if reply.why or reply.size != end or end == total:
                    break
                offset = end
        finally:
            os.close(descriptor)
        await asyncio.to_thread(files.remove, path)
        why = reply.why or "the host did not accept a part of the files"
        return CodeSaid(why=why, size=began, not_now=reply.not_now)

    def _parents(self, away: Away) -> tuple[str, ...]:
        """Return the earlier snapshots that still exist here, newest first."""
        git = usable(away.root).git
        commits = [commit for commit in carriers(self._works, away.common_dir) if commit != away.carrier]
        if not commits:
            return ()
        output = git.run("cat-file", "--batch-check", input="".join(f"{commit}\n" for commit in commits).encode())
        there = [line.split() for line in output.decode("ascii", "replace").splitlines()]
        return tuple(words[0] for words in there if len(words) == 3 and words[1] == "commit")

    async def _pack(self, away: Away, parent: str) -> tuple[str, bool]:
        """Return the path of a pack for a host that has `parent`, and whether it is new: a transfer cannot resume with
        a new pack, because packs differ each time.
        """
        async with self._packing:
            return await asyncio.to_thread(self._packed, away, parent)

    def _packed(self, away: Away, parent: str) -> tuple[str, bool]:
        directory = os.path.join(self._works, PACKS)
        files.make_private_directory(directory)
        for name in files.names(directory):
            old = os.path.join(directory, name)
            if os.stat(old).st_mtime < time.time() - OLD_S:
                files.remove(old)
        path = os.path.join(directory, f"{away.carrier}-{parent or 'none'}")
        if files.exists(path):
            return path, False
        repository = usable(away.root)
        git = Git(repository.root, patience=PACKING_S)
        write_commit(git, carrier_content(away.tree))  # in case git has removed it
        begun = f"{path}.{os.getpid()}"
        try:
            descriptor = files.open_private(begun, os.O_RDWR | os.O_TRUNC)
            with open(descriptor, "w+b") as file:
                write_pack(git, file, away.carrier, parent)
            files.rename(begun, path)
        finally:
            files.remove(begun)
        return path, True

    async def fetch(self, call: Call, meta: RunMeta, host: str) -> Brought:
        """Fetch a finished run's changes as a branch.

        `host` is named in its commit. Raises OutOfReach or OSError, for example if the disk is full; the next call
        resumes.
        """
        directory = paths.work_dir(self._project, meta.run_id)
        if read_away(directory) is None:
            record = read_record(directory)
            return Brought(record.base, record.branch) if record and record.away else Brought()
        path = os.path.join(directory, "back.pack")
        try:
            fetched = await self._fetched(call, meta.run_id, path)
            if not fetched.tree:
                return Brought(errors=(one_line(fetched.why, 300) or "the host does not report its changes",))
            errors = (one_line(fetched.why, 1000),) if fetched.why else ()
            made = await asyncio.to_thread(self._made, meta, host, path, fetched)
            return Brought(made.base, made.branch, errors)
        except (SubdeckError, BadMessage) as error:
            if is_of_full_disk(error):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path) from error
            what = error.what if isinstance(error, SubdeckError) else str(error)
            return Brought(errors=(f"cannot fetch its changes: {one_line(what, 300)}",))

    def _made(self, meta: RunMeta, host: str, path: str, fetched: Fetched) -> remote.Back:
        with self._here:
            return self._brought(meta, host, path, fetched)

    def _brought(self, meta: RunMeta, host: str, path: str, fetched: Fetched) -> remote.Back:
        if not fetched.total:
            return remote.unchanged(self._project, meta, host)
        try:
            descriptor = files.open_file(path, os.O_RDONLY)
            with open(descriptor, "rb") as pack:
                return remote.bring_back(self._project, meta, host, pack, fetched.tree, fetched.commit)
        finally:
            files.remove(path)

    async def _fetched(self, call: Call, run_id: str, path: str) -> Fetched:
        """Fetch a run's whole pack into a file; return the last answer."""
        descriptor = files.open_private(path, os.O_RDWR)
        begun = 0
        with open(descriptor, "r+b", buffering=0) as file:
            while True:
                size = os.fstat(descriptor).st_size
                answer = await call(Verb.FETCH, encode(FetchPiece(relay=self._relay, run=run_id, offset=size)))
                fetched: Fetched = decode_answer(Verb.FETCH, answer)
                if not (fetched.tree and fetched.total):
                    return fetched
                if fetched.total > remote.MOST:
                    file.truncate(0)
                    raise SubdeckError(f"{fetched.total:,} bytes exceed the limit", where=run_id)
                if size > fetched.total or len(fetched.content) < min(PIECE, fetched.total - size):
                    file.truncate(0)  # its beginning here is of another pack
                    begun += 1
                    if begun > 1 or not size:
                        raise SubdeckError("the host sends less of it than it says that there is", where=run_id)
                    continue
                _write(file, fetched.content[: fetched.total - size], size)
                if size + len(fetched.content) >= fetched.total:
                    return fetched

    def settle(self, run_id: str) -> None:
        """Release what was kept for a run that has its result. Blocks while git runs; raises nothing."""
        with self._here:
            remote.settle(self._project, run_id)


def _write(file: IO[bytes], content: bytes, offset: int) -> None:
    written = 0
    while written < len(content):
        written += os.pwrite(file.fileno(), content[written:], offset + written)
