"""Sending the files of runs to hosts, and fetching what is left of them: the relay's part.

Both go in pieces and go on where they broke, whichever relay does so; what is made for that is kept beside the work of
the runs. A snapshot goes to each host once, however many runs begin with it.
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
"""Asks one host; raises OutOfReach."""

OLD_S = 3600.0
"""After this a pack that was made is not needed by a further host."""


class NoRoom(Exception):
    """A host has no room for the files now; they may be sent again."""


class Brought(Struct, frozen=True):
    """What became of the files of a run that has ended."""

    snapshot: str = ""
    """The commit that its branch begins with; empty where it is not known what the run changed."""
    branch: str = ""
    """Empty where nothing was changed."""
    errors: tuple[str, ...] = ()
    """What did not come back, and why, clauses."""


def code_of(project: paths.Project, run_id: str) -> Code | None:
    """Return the snapshot that a run works with, as hosts are told; None for one that takes no files along.

    Raises SubdeckError where it does, and they are not known any more.
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
    """Of one relay."""

    def __init__(self, relay: str, project: paths.Project) -> None:
        self._relay = relay
        self._project = project
        self._works = paths.works_dir(project)
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        """One for each host and repository: what one run brings there the next one need not."""
        self._packing = asyncio.Lock()
        self._here = threading.Lock()
        """For what changes the repository: many runs may end at once, and git waits for nobody long."""

    async def send(self, host: str, call: Call, run_id: str) -> str:
        """See that a host has the snapshot of a run; return why it does not take it, empty where it has all.

        `host` is what the carrier calls it. Raises OutOfReach and NoRoom, and goes on another time; SubdeckError and
        OSError where it cannot be sent from here.
        """
        directory = paths.work_dir(self._project, run_id)
        away, code = read_away(directory), code_of(self._project, run_id)
        if away is None or code is None:
            raise SubdeckError("its starting files are no longer available", where=run_id)
        async with self._locks.setdefault((host, code.repository), asyncio.Lock()):
            try:
                said = await self._sent(call, away, code)
                if said.why and said.size and not said.not_now:
                    # What was there of it did not go with the rest: once more, all of it.
                    said = await self._sent(call, away, code)
            except BadMessage as error:
                return one_line(str(error), 300)
            if said.not_now:
                raise NoRoom(said.why)
            return "" if said.has_all else one_line(said.why, 300) or "the host rejected the files"

    async def _sent(self, call: Call, away: Away, code: Code) -> CodeSaid:
        """Send what a host lacks of a snapshot, from where it broke the last time; return what it says in the end.

        Of what it refused `size` is where this went on.
        """
        parents = await asyncio.to_thread(self._parents, away)

        async def ask(offset: int = 0, content: bytes = b"", *, last: bool = False) -> CodeSaid:
            piece = CodePiece(relay=self._relay, code=code, parents=parents, offset=offset, content=content, last=last)
            answer: CodeSaid = decode_answer(Verb.CODE, await call(Verb.CODE, encode(piece)))
            return answer

        said = await ask()
        if said.has_all or said.why or said.not_now:
            return said
        if said.parent and said.parent not in parents:
            return CodeSaid(why="the host reports an unrequested snapshot")
        path, is_new = await self._pack(away, said.parent)
        descriptor = files.open_file(path, os.O_RDONLY)
        try:
            total = os.fstat(descriptor).st_size
            began = offset = 0 if is_new or said.size > total else said.size
            while True:
                content = os.pread(descriptor, PIECE, offset)
                end = offset + len(content)
                said = await ask(offset, content, last=end == total)
                if said.has_all:
                    return said
                if said.why or said.size != end or end == total:
                    break
                offset = end
        finally:
            os.close(descriptor)
        await asyncio.to_thread(files.remove, path)
        why = said.why or "the host did not accept a part of the files"
        return CodeSaid(why=why, size=began, not_now=said.not_now)

    def _parents(self, away: Away) -> tuple[str, ...]:
        """Return the earlier snapshots that are still here, the newest first."""
        git = usable(away.root).git
        known = [one for one in carriers(self._works, away.common_dir) if one != away.carrier]
        if not known:
            return ()
        said = git.run("cat-file", "--batch-check", input="".join(f"{one}\n" for one in known).encode())
        there = [line.split() for line in said.decode("ascii", "replace").splitlines()]
        return tuple(words[0] for words in there if len(words) == 3 and words[1] == "commit")

    async def _pack(self, away: Away, parent: str) -> tuple[str, bool]:
        """Return the path of what a host needs that has `parent`, and whether it was made just now: a pack is not the
        same a second time, so that nothing goes on with it.
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
        write_commit(git, carrier_content(away.tree))  # where git has forgotten it
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
        """Bring back what a run that has ended has left, as a branch. `host` is named in its commit.

        Raises OutOfReach, and goes on another time; so it does after an OSError, as where the disk is full.
        """
        directory = paths.work_dir(self._project, meta.run_id)
        if read_away(directory) is None:
            known = read_record(directory)
            return Brought(known.base, known.branch) if known and known.away else Brought()
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
        """Have all of the pack of a run in a file; return what was said with its last piece."""
        descriptor = files.open_private(path, os.O_RDWR)
        begun = 0
        with open(descriptor, "r+b", buffering=0) as file:
            while True:
                size = os.fstat(descriptor).st_size
                answer = await call(Verb.FETCH, encode(FetchPiece(relay=self._relay, run=run_id, offset=size)))
                said: Fetched = decode_answer(Verb.FETCH, answer)
                if not (said.tree and said.total):
                    return said
                if said.total > remote.MOST:
                    file.truncate(0)
                    raise SubdeckError(f"{said.total:,} bytes exceed the limit", where=run_id)
                if size > said.total or len(said.content) < min(PIECE, said.total - size):
                    file.truncate(0)  # another pack than the one whose beginning is here
                    begun += 1
                    if begun > 1 or not size:
                        raise SubdeckError("the host sends less of it than it says that there is", where=run_id)
                    continue
                _write(file, said.content[: said.total - size], size)
                if size + len(said.content) >= said.total:
                    return said

    def settle(self, run_id: str) -> None:
        """Let go what was kept for a run whose result is there. Blocks for as long as git. Raises nothing."""
        with self._here:
            remote.settle(self._project, run_id)


def _write(file: IO[bytes], content: bytes, offset: int) -> None:
    written = 0
    while written < len(content):
        written += os.pwrite(file.fileno(), content[written:], offset + written)
