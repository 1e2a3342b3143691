"""Commands, messages and files of runs, and the background tasks that send them to hosts."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Collection, Coroutine
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ... import paths
from ...config.host_settings import HostsSettings
from ...errors import SubdeckError, reason
from ...git import repository
from ...run.model import RunReason, RunResult, StopRequest
from ...runners.hosts import read_luggage
from ...system import files
from ...system.log import log_fault
from ...text.plain import one_line, plain
from .._carrier import OutOfReach
from ..code.transfer import Call, CodeCarriage, NoRoom, code_of
from ..protocol import MOST_MESSAGE, Ack, Answer, BadMessage, Message, Said, Start, Stop, Verb, decode_answer, encode
from .journal import Journal
from .runs import InvalidContent, RemoteRun, decode_result
from .slots import Host

AGAIN_S = 1.0
"""Seconds to pause after a failure."""
MANY = 1000
"""Number of pauses from which expired ones are dropped: hosts may have named runs that never existed."""
CANCEL_S = 0.5
"""Seconds until a task that still runs is cancelled again."""
START_S = 60.0
"""Seconds to wait for the answer to a start."""
HEAD_S = 5.0
"""Seconds for which a directory's commit is not read again."""
CODE_S = 300.0
"""Seconds to wait for an answer about a repository's files: some need git to work."""
CALL_S = 15.0
"""Seconds to wait for any other answer."""


class BackgroundTasks:
    """The pending commands of a relay, by action and subject: one at a time each, retried after a failure."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._not_before: dict[tuple[str, str], float] = {}
        """When a task may run again, by `time.monotonic`."""

    def run(self, action: str, subject: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task unless it is running or has just failed."""
        key = (action, subject)
        if key in self._running or self._not_before.get(key, 0.0) > time.monotonic():
            return
        self._not_before.pop(key, None)
        self._running[key] = asyncio.create_task(self._run(key, work))

    def is_running(self, action: str, subject: str) -> bool:
        return (action, subject) in self._running

    def put_off(self, action: str, subject: str, seconds: float) -> None:
        """Delay a task by at least `seconds`."""
        now = time.monotonic()
        if len(self._not_before) > MANY:
            self._not_before = {key: due for key, due in self._not_before.items() if due > now}
        self._not_before[action, subject] = now + seconds

    def allow(self, action: str, subject: str) -> None:
        """Let a task run at once."""
        self._not_before.pop((action, subject), None)

    def guard(self, run: RemoteRun, act: Callable[[RemoteRun], None]) -> None:
        """Act on a run; log a failure, so that it does not affect other runs."""
        try:
            act(run)
        except Exception as error:
            self._note_fault(run.id, error)

    async def end(self) -> None:
        """Cancel all tasks."""
        await cancelled(self._running.values())

    async def _run(self, key: tuple[str, str], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:
            self.put_off(*key, AGAIN_S)
            self._note_fault(" ".join(key), error)
        finally:
            self._running.pop(key, None)

    def _note_fault(self, subject: str, error: Exception) -> None:
        """Log a failure; an unexpected one with its traceback, if the user wants a log."""
        if not isinstance(error, (OutOfReach, BadMessage, InvalidContent, SubdeckError, OSError)):
            log_fault(subject, error)
        is_ours = isinstance(error, (OutOfReach, BadMessage, InvalidContent)) and str(error)
        self._journal.note(f"{subject}: {error if is_ours else reason(error)}")


async def cancelled(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel tasks repeatedly, because the code that a task waits in may swallow a cancellation."""
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=CANCEL_S)


class Transfers:
    """Sends commands, messages and files of runs to their hosts.

    Methods that call a host raise OutOfReach and BadMessage, after which the host may or may not have acted.
    """

    def __init__(self, project: paths.Project, relay: str) -> None:
        self._project = project
        self._relay = relay
        self._heads: dict[str, tuple[str, float]] = {}
        """The commit of each directory, and when it was read."""
        self._carriage = CodeCarriage(relay, project)

    async def start_run(self, host: Host, run: RemoteRun, settings: HostsSettings) -> RunResult | None:
        """Start a run or note why it is put off; return a result if the host refuses it. Raises OSError."""
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
            run.why_put_off = ""
            run.note_contact()
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
        """Return the commit of a local directory; empty outside git or if git fails."""
        head = self._heads.get(cwd)
        if head is None or time.monotonic() - head[1] > HEAD_S:
            checkout = await asyncio.to_thread(repository.find, cwd)
            head = self._heads[cwd] = ((checkout and checkout.head) or "", time.monotonic())
        return head[0]

    async def _send_code(self, host: Host, run: RemoteRun) -> RunResult | None:
        """Send a host the files of a run; return the run's result if they are rejected. Raises NoRoom."""
        try:
            why = await self._carriage.send(
                f"{host.carrier and host.carrier.name} {host.key}", self._code_call(host), run.id
            )
        except SubdeckError as error:
            what = f"cannot send its files to {host.name}: {one_line(error.what, 500)}"
            return run.own_result(RunReason.START_FAILED, what)
        if not why:
            return None
        return run.own_result(RunReason.START_FAILED, f"{host.name} rejected its files: {plain(why)}")

    async def send_stop(self, host: Host, run: RemoteRun) -> None:
        """Send the run's stop request."""
        request = run.stop_request
        answer = await self._ask(host, Verb.STOP, Stop(self._relay, run.id, request))
        if answer.said is Said.TOLD:
            run.stop_sent = request
            return
        raise BadMessage(f"{host.name} rejected the request to stop {run.id}: {answer.said} {answer.why}")

    async def stop_orphan(self, host: Host, run_id: str, why: str) -> None:
        """Stop an orphaned run; `why` is the user's action: abandoned or deleted."""
        request = StopRequest(by=f"the user, who had {why} it", force=True, at=paths.now_iso())
        answer = await self._ask(host, Verb.STOP, Stop(self._relay, run_id, msgspec.json.encode(request)))
        if answer.said not in (Said.TOLD, Said.UNKNOWN):
            raise BadMessage(f"{host.name} rejected the request to end {run_id}: {answer.said} {answer.why}")

    async def send_messages(self, host: Host, run: RemoteRun) -> None:
        """Send a run's messages in order; each is kept until the host has it."""
        for entry in list(run.unsent.values()):
            answer = await self._ask(host, Verb.MESSAGE, Message(self._relay, run.id, msgspec.json.encode(entry)))
            if answer.said not in (Said.TOLD, Said.KNOWN, Said.REFUSED):
                raise BadMessage(f"{host.name} rejected a message for {run.id}: {answer.said}")
            if answer.said is Said.REFUSED:
                run.refuse(entry.id, f"{host.name}: {answer.why}")
            else:
                run.mark_sent(entry.id)

    async def finish_run(self, host: Host, run: RemoteRun, content: bytes) -> None:
        """Publish a host's result once its changes are here. Raises InvalidContent, OSError."""
        result = decode_result(run.id, content)
        brought = await self._carriage.fetch(self._code_call(host), run.meta, host.name)
        errors = tuple(map(plain, brought.errors))
        result = replace(
            result,
            snapshot=brought.snapshot,
            branch=brought.branch,
            artifact_errors=(*result.artifact_errors, *errors),
        )
        await asyncio.to_thread(run.end, result)

    async def release_code(self, run_id: str) -> None:
        """Release the files kept for a run until it finished."""
        await asyncio.to_thread(self._carriage.settle, run_id)

    async def acknowledge(self, host: Host, run_id: str) -> None:
        """Report that a run is completely here."""
        await self._ask(host, Verb.ACK, Ack(self._relay, run_id))

    async def _ask(self, host: Host, verb: Verb, message: Struct, timeout: float = CALL_S) -> Answer:
        answer = await self._call(host, verb, encode(message), timeout)
        decoded: Answer = decode_answer(verb, answer)
        return decoded

    async def _call(self, host: Host, verb: Verb, message: bytes, timeout: float) -> bytes:
        if host.carrier is None:
            raise OutOfReach(f"{host.name} is not online")
        answer = await host.carrier.call(host.key, verb, message, timeout)
        host.last_seen = max(host.last_seen, time.monotonic())
        return answer

    def _code_call(self, host: Host) -> Call:
        """Return a function that calls a host about files."""
        return lambda verb, message: self._call(host, verb, message, CODE_S)


def _no_room(host: Host, why: str) -> str:
    return f"{host.name} cannot take the run yet: {plain(one_line(why, 300))}"
