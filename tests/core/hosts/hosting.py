"""A host's agent in this process, called without a carrier, as a relay calls it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from subdeck.core import paths
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts.protocol import (
    Ack,
    Answer,
    Have,
    Hold,
    Message,
    Pull,
    Pulled,
    Said,
    Start,
    Stop,
    Verb,
    decode_answer,
    encode,
)
from subdeck.core.run.inbox import InboxEntry
from subdeck.core.run.model import RunMeta, RunResult, StopRequest

from tests.factories import GRACE, make_meta, write_settings

RELAY = "0123456789ab"
OTHER_RELAY = "ba9876543210"


@asynccontextmanager
async def hosting(root: Path, *, slots: int = 4, **others: Any) -> AsyncIterator[HostAgent]:
    """Run an agent on a spool; at the end it releases the spool, and its runs continue."""
    write_settings()
    agent = HostAgent(str(root), slots=slots, **others)
    running = asyncio.get_running_loop().create_task(agent.run())
    try:
        yield agent
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        agent.close()


async def until(predicate: Callable[[], Any], what: str, timeout: float = 60.0) -> Any:
    """Wait as `wait_until` does, while the event loop runs."""
    deadline = time.monotonic() + timeout
    while not (value := predicate()):
        assert time.monotonic() < deadline, f"waited {timeout:g} s for {what}"
        await asyncio.sleep(0.01)
    return value


class Asking:
    """A relay's side: its files of each run, as in the user's project."""

    def __init__(self, agent: HostAgent, relay: str = RELAY) -> None:
        self.agent = agent
        self.relay = relay
        self.files: dict[str, dict[str, bytes]] = {}
        self.bells: dict[str, bytes] = {}
        self.results: dict[str, RunResult] = {}
        self.last: Pulled | None = None

    async def ask(self, verb: Verb, asked: msgspec.Struct) -> Any:
        return decode_answer(verb, await self.agent.answer(verb, encode(asked)))

    async def start(self, *script: str, meta: RunMeta | None = None, **others: Any) -> tuple[str, Answer]:
        """Start a run of the puppet; each argument is one of its commands."""
        meta = meta or host_meta()
        record = others.pop("meta_record", None)
        asked = {
            "relay": self.relay,
            "run": meta.run_id,
            "spool": self.agent.spool_id,
            "meta": msgspec.json.encode(meta) if record is None else record,
            "prompt": "\n".join(script).encode(),
        }
        return meta.run_id, await self.ask(Verb.START, Start(**{**asked, **others}))

    async def begin(self, *script: str, **others: Any) -> str:
        run_id, answer = await self.start(*script, **others)
        assert Answer(Said.KNOWN) == answer
        self.files[run_id] = {}
        return run_id

    async def pull(self, wait: float = 1.0, **others: Any) -> Pulled:
        """Pull and store the news as a relay does, asserting that each piece continues its file."""
        pulled = await self.ask(Verb.PULL, Pull(self.relay, self.have, wait, **others))
        for run_id, name, offset, content in map(msgspec.structs.astuple, pulled.chunks):
            known = self.files[run_id].setdefault(name, b"")
            assert len(known) == offset, (name, len(known), offset)
            self.files[run_id][name] = known + content
        self.bells |= {bell.run: bell.content for bell in pulled.bells}
        for end in pulled.ends:
            self.results[end.run] = msgspec.json.decode(end.result, type=RunResult)
        self.last = pulled
        return pulled

    @property
    def have(self) -> dict[str, Have]:
        return {
            run_id: Have({name: len(content) for name, content in found.items()}, self.bells.get(run_id, b""))
            for run_id, found in self.files.items()
            if run_id not in self.results
        }

    async def pull_until(self, predicate: Callable[[], Any], what: str, timeout: float = 60.0, **others: Any) -> None:
        deadline = time.monotonic() + timeout
        while not predicate():
            assert time.monotonic() < deadline, f"pulled {timeout:g} s for {what}"
            await self.pull(wait=0.5, **others)

    async def pull_end(self, *run_ids: str, timeout: float = 60.0, **others: Any) -> RunResult:
        await self.pull_until(lambda: self.results.keys() >= set(run_ids), "the ends of runs", timeout, **others)
        return self.results[run_ids[-1]]

    async def stop(self, run_id: str, *, force: bool = False) -> Answer:
        request = StopRequest(by="operator", force=force, at=paths.now_iso())
        return await self.ask(Verb.STOP, Stop(self.relay, run_id, msgspec.json.encode(request)))

    async def ack(self, run_id: str) -> Answer:
        return await self.ask(Verb.ACK, Ack(self.relay, run_id))

    async def hold(self, run_id: str) -> Answer:
        return await self.ask(Verb.HOLD, Hold(self.relay, run_id))

    async def say(self, run_id: str, entry: InboxEntry) -> Answer:
        return await self.ask(Verb.MESSAGE, Message(self.relay, run_id, msgspec.json.encode(entry)))

    def run_dir(self, run_id: str) -> Path:
        return self.agent_project / ".pi/subagents/runs" / run_id

    @property
    def agent_project(self) -> Path:
        return Path(self.agent._root.path) / self.relay

    def text(self, run_id: str, name: str) -> str:
        return self.files[run_id].get(name, b"").decode()


class AskingThere(Asking):
    """A relay's side for an agent outside of this process."""

    agent: Any

    async def learn(self) -> None:
        """Learn the id of the host's spool, for permits."""
        self.agent.spool_id = (await self.pull(wait=0)).spool


def host_meta(**others: Any) -> RunMeta:
    return make_meta(**{"runner": "hosts", "grace_seconds": GRACE, "agent_kind": "pi", **others})
