"""Two machines for tests of sent files: here a repository with the relay's part, there a host's part."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

from subdeck.core import paths
from subdeck.core.hosts._carrier import OutOfReach
from subdeck.core.hosts.code.host_code import HostCode
from subdeck.core.hosts.code.transfer import Brought, CodeCarriage, code_of
from subdeck.core.hosts.protocol import (
    Code,
    CodePiece,
    Fetched,
    FetchPiece,
    Verb,
    decode_asked,
    encode,
)
from subdeck.core.run.model import RunMeta
from subdeck.core.work.remote import take

from ...factories import make_finished, make_meta
from ..git.repositories import make, write

RELAY = "0123456789ab"


def own(directory: Path) -> Path:
    """Give a repository an author, as a user's settings would."""
    for key, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        with open(directory / ".git" / "config", "a") as file:
            section, name = key.split(".")
            file.write(f"[{section}]\n\t{name} = {value}\n")
    return directory


@dataclass
class Machines:
    """One repository of the user, and a host."""

    root: Path
    spool: Path
    told: list[CodePiece | FetchPiece] = field(default_factory=list[CodePiece | FetchPiece])
    """Requests to the host."""
    fails_after: int = -1
    """Number of requests that the host still answers; -1 for all."""

    def __post_init__(self) -> None:
        self.project = paths.Project(str(self.root))
        self.restart()
        self.carriage = CodeCarriage(RELAY, self.project)

    def restart(self) -> None:
        """Kill the host's agent, and start another one."""
        self.spool.mkdir(parents=True, exist_ok=True)
        self.host = HostCode(str(self.spool))

    async def call(self, verb: Verb, message: bytes) -> bytes:
        if self.fails_after == 0:
            raise OutOfReach("cut")
        self.fails_after -= 1
        asked = decode_asked(verb, message)
        self.told.append(asked)
        await asyncio.sleep(0)
        if isinstance(asked, CodePiece):
            return encode(await self.host.answer_code(asked))
        assert isinstance(asked, FetchPiece)
        answer: Fetched = await self.host.answer_fetch(asked.run, asked.offset)
        return encode(answer)

    @property
    def sent(self) -> int:
        """Bytes of snapshots that were sent."""
        return sum(len(asked.content) for asked in self.told if isinstance(asked, CodePiece))

    def launch(self, count: int = 1, *, sparse: tuple[str, ...] = (), directory: str = "") -> list[RunMeta]:
        """Launch runs with the files as they are now."""
        cwd = os.path.join(self.root, directory) if directory else str(self.root)
        metas = [make_meta(preset="scout", cwd=cwd) for _ in range(count)]
        begun = take(self.project, metas, sparse)
        return [make_finished(self.project, begun[meta.run_id]) for meta in metas]

    def code(self, meta: RunMeta) -> Code:
        code = code_of(self.project, meta.run_id)
        assert code is not None
        return code

    async def send(self, meta: RunMeta) -> str:
        return await self.carriage.send("h1", self.call, meta.run_id)

    async def begin(self, meta: RunMeta) -> Path:
        """Send the files of a run to the host; return its working directory there."""
        assert await self.send(meta) == ""
        return Path(await self.host.prepare(meta.run_id, self.code(meta)))

    async def end(self, meta: RunMeta) -> Brought:
        """Fetch a run's changes, as a relay does before it publishes the result."""
        await self.host.finish(meta.run_id)
        brought = await self.carriage.fetch(self.call, meta, "h1")
        await self.host.forget(meta.run_id)
        self.carriage.settle(meta.run_id)
        return brought


def make_machines(directory: Path) -> Machines:
    root = own(
        make(
            directory / "mine",
            {"a.txt": "one\n", "src/b.py": "b = 1\n", "docs/c.md": "c\n", ".gitignore": "*.o\n.pi/\n"},
        )
    )
    write(root, {"a.txt": "one\ntwo\n", "new.txt": "new\n", "built.o": "o"})
    return Machines(root, directory / "spool")
