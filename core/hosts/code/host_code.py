"""The host agent's handling of run files: receives snapshots, prepares trees, returns changes.

All of this runs in threads, because git may take long.
"""

from __future__ import annotations

import asyncio
import os

from ...errors import SubdeckError
from ...text.plain import one_line
from .._full_disk import is_of_full_disk
from ..protocol import PIECE, Code, CodePiece, CodeSaid, Fetched
from ._pool import Pool

DIRECTORY = "code"
"""Its name in the spool."""


class HostCode:
    def __init__(self, root: str) -> None:
        """`root` is the spool, which only this agent uses. Raises OSError."""
        self._pool = Pool(os.path.join(root, DIRECTORY))

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs with stored files."""
        return self._pool.runs

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The runs that have a tree, with no attempt yet to find their changes."""
        return self._pool.unfinished

    async def answer_code(self, piece: CodePiece) -> CodeSaid:
        """Accept a piece of a snapshot, or report how much is here."""
        return await asyncio.to_thread(self._take, piece)

    def _take(self, piece: CodePiece) -> CodeSaid:
        try:
            return self._pool.cache(piece.code).take(piece)
        except SubdeckError as error:
            return CodeSaid(why=one_line(error.what, 300), not_now=is_of_full_disk(error))
        except OSError as error:
            why = f"cannot save the snapshot there: {error.strerror or error}"
            return CodeSaid(why=why, not_now=is_of_full_disk(error))

    async def prepare(self, run_id: str, code: Code) -> str:
        """Return the working directory of a run, with its snapshot. Raises SubdeckError."""
        try:
            return await asyncio.to_thread(self._pool.prepare, run_id, code)
        except OSError as error:
            what = f"cannot write its files there: {error.strerror or error}"
            raise SubdeckError(
                what, where=str(error.filename or ""), hint="check disk space and permissions"
            ) from error

    async def finish(self, run_id: str) -> None:
        """Store a finished run's changes, and free its tree. Accepts any run; raises nothing."""
        await asyncio.to_thread(self._pool.finish, run_id)

    async def answer_fetch(self, run_id: str, offset: int) -> Fetched:
        """Return a piece of a finished run's changes."""
        return await asyncio.to_thread(self._fetched, run_id, offset)

    def _fetched(self, run_id: str, offset: int) -> Fetched:
        lease = self._pool.finish(run_id)
        if lease is None:
            return Fetched(why="the host does not have its files")
        changes = lease.left
        if changes is None:
            where = one_line(self._pool.aside(run_id), 500)
            return Fetched(why=f"cannot pack its changes: {lease.why}; they stay on the host, in {where}"[:1000])
        skipped = one_line("; ".join(changes.skipped), 1000)
        if not changes.tree:
            return Fetched(tree=lease.code.tree, why=skipped)
        try:
            with self._pool.open_pack(run_id) as pack:
                pack.seek(offset)
                content = pack.read(PIECE)
        except OSError as error:
            return Fetched(why=f"cannot read its changes: {error.strerror or error}")
        return Fetched(total=changes.size, content=content, tree=changes.tree, commit=changes.commit, why=skipped)

    async def purge(self, unused: float) -> None:
        """Remove old archived trees, and repositories that no run has used for `unused` seconds. Raises OSError."""
        await asyncio.to_thread(self._pool.purge)
        await asyncio.to_thread(self._pool.purge_repositories, unused)

    async def forget(self, run_id: str) -> None:
        """Remove a run's files. Accepts any run."""
        await asyncio.to_thread(self._pool.forget, run_id)
