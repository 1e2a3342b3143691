"""What a host's agent does about the files of runs: takes snapshots in, readies trees, gives back what is left.

Nothing of it is in the event loop: git takes as long as it does in threads.
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
"""In the spool."""


class HostCode:
    def __init__(self, root: str) -> None:
        """`root` is the spool, which the agent has alone. Raises OSError."""
        self._pool = Pool(os.path.join(root, DIRECTORY))

    @property
    def runs(self) -> tuple[str, ...]:
        """Return the runs of which something is kept."""
        return self._pool.runs

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Return the runs of which nobody has tried to find out what they left."""
        return self._pool.unfinished

    async def answer_code(self, piece: CodePiece) -> CodeSaid:
        """Take a piece of a snapshot, or say what of it is here."""
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
        """Return the directory in which a run works, with the files that were sent for it. Raises SubdeckError."""
        try:
            return await asyncio.to_thread(self._pool.prepare, run_id, code)
        except OSError as error:
            what = f"cannot write its files there: {error.strerror or error}"
            raise SubdeckError(
                what, where=str(error.filename or ""), hint="check disk space and permissions"
            ) from error

    async def finish(self, run_id: str) -> None:
        """Note what a run that has ended has left, and let another one have its tree. For any run; raises nothing."""
        await asyncio.to_thread(self._pool.finish, run_id)

    async def answer_fetch(self, run_id: str, offset: int) -> Fetched:
        """Return a piece of what a run that has ended has left."""
        return await asyncio.to_thread(self._fetched, run_id, offset)

    def _fetched(self, run_id: str, offset: int) -> Fetched:
        lease = self._pool.finish(run_id)
        if lease is None:
            return Fetched(why="the host does not have its files")
        left = lease.left
        if left is None:
            where = one_line(self._pool.aside(run_id), 500)
            return Fetched(why=f"cannot pack its changes: {lease.why}; they stay on the host, in {where}"[:1000])
        told = one_line("; ".join(left.skipped), 1000)
        if not left.tree:
            return Fetched(tree=lease.code.tree, why=told)
        try:
            with self._pool.open_pack(run_id) as pack:
                pack.seek(offset)
                content = pack.read(PIECE)
        except OSError as error:
            return Fetched(why=f"cannot read its changes: {error.strerror or error}")
        return Fetched(total=left.size, content=content, tree=left.tree, commit=left.commit, why=told)

    async def purge(self, unused: float) -> None:
        """Remove what nobody has asked for in a long time, and the files of repositories that no run has come with for
        so many seconds. Raises OSError.
        """
        await asyncio.to_thread(self._pool.purge)
        await asyncio.to_thread(self._pool.purge_repositories, unused)

    async def forget(self, run_id: str) -> None:
        """Remove what is kept of a run. For any run."""
        await asyncio.to_thread(self._pool.forget, run_id)
