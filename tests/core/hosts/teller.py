"""A host with scripted answers, and a relay that calls it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from subdeck.core import paths
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.hosts._carrier import Carrier, Link, Wish
from subdeck.core.hosts.protocol import PROTOCOL, Answer, End, HostFacts, Pull, Pulled, Said, Verb, decode_asked, encode
from subdeck.core.hosts.relay.connections import CarrierSet
from subdeck.core.hosts.relay.journal import Journal
from subdeck.core.hosts.relay.relay import Relay
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.model import STATUS_OF, RunMeta, RunnerKind, RunReason, RunResult
from subdeck.core.run.placement import Permit, give_permit
from subdeck.core.system import files

from tests.core.hosts.hosting import until
from tests.factories import make_meta, make_run

SPOOL, OTHER = "a" * 32, "b" * 32


class Teller(Carrier):
    """A host with scripted answers."""

    name = "test"

    def __init__(self) -> None:
        self.tells: list[bytes] = []
        """Answers to the next pulls; afterwards the host has no news."""
        self.says = Answer(Said.KNOWN)
        self.known: tuple[str, ...] = ()
        self.asked: list[Any] = []
        self.pulled = 0
        self.protocol = PROTOCOL
        self.slots = 2
        self.wishes: Mapping[str, Wish] = {}
        self.why_not = ""
        """Why no run can be started there, in the carrier's words."""

    async def run(self) -> None:
        await asyncio.Event().wait()

    @property
    def links(self) -> Mapping[str, Link]:
        return {"h1": Link("h1", "h1", 2, why_not=self.why_not)}

    @property
    def fault(self) -> str:
        return self.why_not

    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        asked = decode_asked(verb, message)
        if not isinstance(asked, Pull):
            self.asked.append(asked)
            return encode(self.says)
        self.pulled += 1
        await asyncio.sleep(0.01)
        return self.tells.pop(0) if self.tells else encode(self.pulls())

    def want(self, wishes: Mapping[str, Wish]) -> None:
        self.wishes = wishes

    def pulls(self, **others: Any) -> Pulled:
        told: dict[str, Any] = {
            "spool": SPOOL,
            "host": "h1",
            "facts": HostFacts(slots=self.slots, subdeck="9.9"),
            "known": self.known,
        }
        told["protocol"] = self.protocol
        return Pulled(**{**told, **others})

    async def tell(self, **others: Any) -> None:
        """Send a message, and wait until it was accepted."""
        self.tells.append(encode(self.pulls(**others)))
        await self.heard()

    async def heard(self) -> None:
        await until(lambda: not self.tells, "it to be asked")
        pulled = self.pulled
        await until(lambda: self.pulled > pulled + 1, "it to be asked again")


class Told:
    """An open run, with or without a permit for the teller's spool."""

    def __init__(self, project: Project, teller: Carrier, *, permit: str = SPOOL, **meta: Any) -> None:
        self.project, self.teller = project, teller
        self.meta, lock = make_run(project, host_meta(**meta))
        os.close(lock)
        self.id = self.meta.run_id
        self.dir = Path(project.run_dir(self.id))
        runner = RunnerFacts(RunnerKind.HOSTS, "", "", "", pid=1)
        files.write_whole(str(self.dir / paths.RUNNER), msgspec.json.encode(runner))
        if permit:
            give_permit(str(self.dir), Permit(permit, "h1", paths.now_iso()))
        files.make_private_directory(project.active)
        (Path(project.active) / self.id).touch()

    def end(self, **others: Any) -> End:
        asked = {"run_id": self.id, "reason": RunReason.DONE, "written_by": "wrapper", **others}
        result = RunResult(**{"status": STATUS_OF.get(asked["reason"], RunReason.DONE), **asked})
        return End(self.id, msgspec.json.encode(result))

    @property
    def result(self) -> RunResult | None:
        return artifacts.read_result(str(self.dir))


def host_meta(**others: Any) -> RunMeta:
    return make_meta(**{"runner": RunnerKind.HOSTS, **others})


def relay_of(project: Project, teller: Carrier) -> Relay:
    """Return a relay that is not running yet."""
    carrier_set = CarrierSet(HostsSettings(unreachable_after=0.5), (teller,))
    return Relay(project, lambda: carrier_set, Journal(project.relay_log))


@asynccontextmanager
async def relay(project: Project, teller: Carrier) -> AsyncIterator[Relay]:
    found = relay_of(project, teller)
    task = asyncio.get_running_loop().create_task(found.run())
    try:
        yield found
        assert not task.done(), "the relay ended"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def log(project: Project) -> str:
    return files.content(project.relay_log).decode()
