"""A project with runs on hosts, its relay and the agents of the hosts, all in the test's own process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from subdeck.core import paths
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.engine import Engine
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts.protocol import Pull, Stop, Verb, decode_answer, encode
from subdeck.core.hosts.relay.connections import CarrierSet
from subdeck.core.hosts.relay.journal import Journal
from subdeck.core.hosts.relay.relay import Relay, relay_id
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunResult, StopRequest
from subdeck.core.run.placement import Place, read_permit, read_place
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.system import files

from tests.core.hosts.hosting import hosting, until
from tests.factories import request, write_settings
from tests.host_carrier import AgentCarrier

SETTINGS = {"ssh": ["me@h1"]}
"""Any host, so that the launcher accepts the runner; the test's carrier decides which host is called."""
REACH = 0.8
MIRRORED = (paths.STDERR, paths.STDOUT, paths.TRANSCRIPT, paths.EVENTS)


class Relaying:
    """The user's side of a test; the engine's blocking calls run in a thread."""

    def __init__(self, project_dir: Path, agents: list[HostAgent], **hosts: Any) -> None:
        write_settings(hosts=SETTINGS, runner="hosts")
        self.engine = Engine.open(str(project_dir))
        self.project = self.engine.project
        self.carrier = AgentCarrier(relay_id(self.project), *agents)
        self.carrier_set = CarrierSet(HostsSettings(**{"unreachable_after": REACH, **hosts}), (self.carrier,))
        self.relay: Relay | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = -1

    async def __aenter__(self) -> Relaying:
        os.makedirs(self.project.runs, exist_ok=True)
        self._lock = files.open_lock(self.project.relay_lock)  # so that no command starts a relay in its own process
        files.lock(self._lock)
        self.begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()
        os.close(self._lock)
        request = msgspec.json.encode(StopRequest(by="the test", force=True, at=paths.now_iso()))
        for agent in self.carrier.agents.values():
            for run_id in await self._left(agent):
                await agent.answer(Verb.STOP, encode(Stop(self.carrier.relay, run_id, request)))
            await until(lambda agent=agent: not agent.has_open_runs, "runs to end")

    async def _left(self, agent: HostAgent) -> tuple[str, ...]:
        """Return the runs that a test has left on a host."""
        if not agent.has_open_runs:
            return ()
        pulled = decode_answer(Verb.PULL, await agent.answer(Verb.PULL, encode(Pull(self.carrier.relay, {}, 0))))
        return pulled.known

    def begin(self) -> None:
        """Start a relay that knows only the files, as a new process would."""
        self.relay = Relay(self.project, lambda: self.carrier_set, Journal(self.project.relay_log))
        self._task = asyncio.get_running_loop().create_task(self.relay.run())

    async def kill(self) -> None:
        """End the relay without notice; the kernel releases its locks."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def launch(self, *scripts: tuple[str, ...], **others: Any) -> list[str]:
        """Launch a run of the puppet for each script."""
        requests = [request(*script, **others) for script in scripts]
        runs = await asyncio.to_thread(self.engine.launch, requests, background=True)
        return sorted(run.run_id for run in runs)

    async def start(self, *script: str, **others: Any) -> str:
        (run_id,) = await self.launch(script, **others)
        return run_id

    async def end(self, run_id: str) -> RunResult:
        return await until(lambda: self.result(run_id), f"the end of {run_id}: {self.log}")

    async def see(self, run_id: str, is_so: Callable[[RunSnapshot], Any], what: str) -> RunSnapshot:
        """Wait until a run meets a condition."""

        def seen() -> RunSnapshot | None:
            run = self.snapshot(run_id)
            return run if run and is_so(run) else None

        return await until(seen, f"{what}; the relay says {self.log}")

    def snapshot(self, run_id: str) -> RunSnapshot | None:
        return next(iter(self.engine.snapshots((run_id,))), None)

    def place(self, run_id: str) -> Place | None:
        return read_place(self.run_dir(run_id))

    def result(self, run_id: str) -> RunResult | None:
        return artifacts.read_result(self.run_dir(run_id))

    def run_dir(self, run_id: str) -> str:
        return self.project.run_dir(run_id)

    def text(self, run_id: str, name: str = paths.EVENTS) -> str:
        return files.content(os.path.join(self.run_dir(run_id), name)).decode()

    def on_host(self, run_id: str, agent: HostAgent) -> Path:
        """Return the directory of a run on its host, delivered or not."""
        place = Path(agent._root.path) / self.carrier.relay
        there = place / ".pi/subagents/runs" / run_id
        return there if there.exists() else place / "done" / run_id

    def agent_of(self, run_id: str) -> HostAgent:
        """Return the host that a run was placed on."""
        permit = read_permit(self.run_dir(run_id))
        return self.carrier.agents[permit.host if permit else ""]

    def assert_mirrored(self, run_id: str, agent: HostAgent) -> None:
        for name in MIRRORED:
            here = files.content(os.path.join(self.run_dir(run_id), name))
            there = [files.content(str(self.on_host(run_id, agent) / name)) for _ in range(2)]
            assert here in there, name  # a run whose files are all here may just be moving to `done`

    @property
    def log(self) -> str:
        return files.content(self.project.relay_log).decode()

    @property
    def hosts(self) -> Any:
        return msgspec.json.decode(files.content(self.project.hosts_file) or b"{}")


@asynccontextmanager
async def relaying(project_dir: Path, root: Path, *slots: int, **hosts: Any) -> AsyncIterator[Relaying]:
    """Run a project with a relay and the hosts h1, h2, … with the given numbers of slots."""
    async with AsyncExitStack() as stack:
        agents = [
            await stack.enter_async_context(hosting(root / f"spool{number}", slots=count, name=f"h{number}"))
            for number, count in enumerate(slots, 1)
        ]
        yield await stack.enter_async_context(Relaying(project_dir, agents, **hosts))
