"""What a relay tells a host about one run, and what it makes of the answer."""

from __future__ import annotations

import asyncio
import os
import time

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ... import paths
from ...config.host_settings import HostsSettings
from ...errors import SubdeckError
from ...git import repository
from ...run.model import RunReason, RunResult, StopRequest
from ...runners.hosts import read_luggage
from ...system import files
from ...text.plain import one_line, plain
from .._carrier import OutOfReach
from ..code.transfer import Call, CodeCarriage, NoRoom, code_of
from ..protocol import MOST_MESSAGE, Ack, Answer, BadMessage, Message, Said, Start, Stop, Verb, decode_answer, encode
from .journal import Journal
from .remote import Remote, decode_result
from .roster import Host

START_S = 60.0
HEAD_S = 5.0
"""How long it is taken for granted which commit a directory is at."""
CODE_S = 300.0
CALL_S = 15.0
"""How long an answer may take."""


class Courier:
    """Every method that asks a host raises OutOfReach and BadMessage; then it may have been done or not."""

    def __init__(self, project: paths.Project, relay: str, journal: Journal) -> None:
        self._project = project
        self._relay = relay
        self._journal = journal
        self._heads: dict[str, tuple[str, float]] = {}
        """The commit that a directory is at, and when it was asked for."""
        self._carriage = CodeCarriage(relay, project)

    async def start(self, host: Host, run: Remote, settings: HostsSettings) -> RunResult | None:
        """Have a run started, or put off; return its end where the host will not. Raises OSError, too."""
        try:
            code = code_of(self._project, run.id)
        except SubdeckError as error:
            return run.own_result(RunReason.START_FAILED, f"{error.what}: {error.hint}")
        try:
            if code and (refusal := await self._send_code(host, run)):
                return refusal
        except NoRoom as error:
            run.put_off(_no_room(host, str(error)))
            return None
        luggage = read_luggage(run.run_dir)
        message = Start(
            relay=self._relay,
            run=run.id,
            spool=run.spool,
            meta=files.read(os.path.join(run.run_dir, paths.META)),
            prompt=files.read(os.path.join(run.run_dir, paths.PROMPT)),
            env=luggage.env,
            agent_env=luggage.agent_env,
            session=files.content(os.path.join(run.run_dir, paths.CHILD_SESSION)),
            check=luggage.check.encode("utf-8", "replace"),
            head="" if code else await self._head(run.meta.cwd),
            code=code,
            lease_agent=settings.lease.agent,
            lease_operator=settings.lease.operator,
            keep=settings.keep,
            keep_unused=settings.keep_unused,
        )
        if (size := len(encode(message))) > MOST_MESSAGE:
            what = f"its prompt and conversation ({size >> 20} MB) exceed the limit for hosts ({MOST_MESSAGE >> 20} MB)"
            return run.own_result(RunReason.START_FAILED, what)
        run.may_have_begun = True
        answer = await self._ask(host, Verb.START, message, START_S)
        if answer.said is Said.KNOWN:
            run.not_now = ""
            run.hear()
            return None
        why = one_line(answer.why, 600)
        if answer.said is Said.NOT_NOW:
            run.put_off(_no_room(host, why))
            return None
        if answer.said is Said.REFUSED:
            return run.own_result(
                RunReason.START_FAILED, f"{host.name} refused the run: {plain(why) or 'no reason given'}"
            )
        raise BadMessage(f"{host.name} answered {answer.said} to the start of {run.id}: {why}")

    async def _head(self, cwd: str) -> str:
        """Return the commit that a directory here is at; empty outside git, or where git does not say."""
        known = self._heads.get(cwd)
        if known is None or time.monotonic() - known[1] > HEAD_S:
            found = await asyncio.to_thread(repository.find, cwd)
            known = self._heads[cwd] = ((found and found.head) or "", time.monotonic())
        return known[0]

    async def _send_code(self, host: Host, run: Remote) -> RunResult | None:
        """See that a host has the files that a run works with; return its end where it does not take them.

        Raises NoRoom.
        """
        try:
            why = await self._carriage.send(
                f"{host.carrier and host.carrier.name} {host.key}", self._call(host), run.id
            )
        except SubdeckError as error:
            what = f"cannot send its files to {host.name}: {one_line(error.what, 500)}"
            return run.own_result(RunReason.START_FAILED, what)
        if not why:
            return None
        return run.own_result(RunReason.START_FAILED, f"{host.name} rejected its files: {plain(why)}")

    async def stop(self, host: Host, run: Remote) -> None:
        """Pass on the request to stop, until the host has it."""
        request = run.stop_wanted
        answer = await self._ask(host, Verb.STOP, Stop(self._relay, run.id, request))
        if answer.said is Said.TOLD:
            run.stop_told = request
            return
        raise BadMessage(f"{host.name} rejected the request to stop {run.id}: {answer.said} {answer.why}")

    async def end_there(self, host: Host, run_id: str, why: str) -> None:
        """End what goes on of a run that nobody waits for any more."""
        request = StopRequest(by=f"the user, who had {why} it", force=True, at=paths.now_iso())
        answer = await self._ask(host, Verb.STOP, Stop(self._relay, run_id, msgspec.json.encode(request)))
        if answer.said not in (Said.TOLD, Said.UNKNOWN):
            raise BadMessage(f"{host.name} rejected the request to end {run_id}: {answer.said} {answer.why}")

    async def send(self, host: Host, run: Remote) -> None:
        """Pass on what was sent to a run, in its order; each is kept until the host has it."""
        for entry in list(run.unsent.values()):
            answer = await self._ask(host, Verb.MESSAGE, Message(self._relay, run.id, msgspec.json.encode(entry)))
            if answer.said not in (Said.TOLD, Said.KNOWN, Said.REFUSED):
                raise BadMessage(f"{host.name} rejected a message for {run.id}: {answer.said}")
            if answer.said is Said.REFUSED:
                run.refuse(entry.id, f"{host.name}: {answer.why}")
            else:
                run.settle(entry.id)

    async def end(self, host: Host, run: Remote, content: bytes) -> None:
        """Publish the end of a run as its host tells it, once what it changed is here. Raises Misfit, OSError."""
        result = decode_result(run.id, content)
        brought = await self._carriage.fetch(self._call(host), run.meta, host.name)
        errors = tuple(map(plain, brought.errors))
        result = replace(
            result,
            snapshot=brought.snapshot,
            branch=brought.branch,
            artifact_errors=(*result.artifact_errors, *errors),
        )
        await asyncio.to_thread(run.end, result)

    async def settle(self, run_id: str) -> None:
        """Let go what was kept for a run until its end."""
        await asyncio.to_thread(self._carriage.settle, run_id)

    async def ack(self, host: Host, run_id: str) -> None:
        """Say that all of a run is here."""
        await self._ask(host, Verb.ACK, Ack(self._relay, run_id))

    async def _ask(self, host: Host, verb: Verb, message: Struct, timeout: float = CALL_S) -> Answer:
        answer = await self._told(host, verb, encode(message), timeout)
        decoded: Answer = decode_answer(verb, answer)
        return decoded

    async def _told(self, host: Host, verb: Verb, message: bytes, timeout: float) -> bytes:
        if host.carrier is None:
            raise OutOfReach(f"{host.name} is not online")
        answer = await host.carrier.call(host.key, verb, message, timeout)
        host.heard = max(host.heard, time.monotonic())
        return answer

    def _call(self, host: Host) -> Call:
        """Return what asks a host about files: git takes its time for some of the answers."""
        return lambda verb, message: self._told(host, verb, message, CODE_S)


def _no_room(host: Host, why: str) -> str:
    return f"{host.name} has no free slot yet: {plain(one_line(why, 300))}"
