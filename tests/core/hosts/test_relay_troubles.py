"""Faults on the user's own machine cause nothing that cannot be undone."""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import time
from pathlib import Path

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.hosts._carrier import OutOfReach
from subdeck.core.hosts.code.transfer import Brought, CodeCarriage
from subdeck.core.hosts.protocol import Ack, Answer, Said, Start, Stop, Verb
from subdeck.core.hosts.relay import __main__ as relay_program
from subdeck.core.hosts.relay.__main__ import MOST_FILES, allow_many_files
from subdeck.core.hosts.relay.relay import Relay
from subdeck.core.hosts.relay.runs import RemoteRun
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunReason, RunResult, StopRequest
from subdeck.core.run.placement import Permit, Place, PlaceState, give_permit, read_permit, read_place
from subdeck.core.system import files
from subdeck.core.system.directory import Directory

from tests.core.hosts.hosting import until
from tests.core.hosts.teller import Teller, Told, log, relay, relay_of

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


@pytest.fixture
def teller() -> Teller:
    return Teller()


def exhaust(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have the kernel fail every check for a file of such a name."""
    status = Directory.status

    def refused(directory: Directory, name: str) -> os.stat_result:
        if name in names:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), name)
        return status(directory, name)

    monkeypatch.setattr(Directory, "status", refused)


async def test_what_cannot_be_looked_at_was_not_deleted(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host is asked to end a run only if the run's directory is gone, not if checking it fails."""
    run = Told(project, teller)
    artifacts.write_result(str(run.dir), msgspec.json.decode(run.end().result, type=RunResult))
    teller.known = (run.id,)
    with monkeypatch.context() as patch:
        exhaust(patch, run.id)
        async with relay(project, teller):
            await until(lambda: f"{run.id}: [Errno 24]" in log(project), "the log to say so")
            assert not teller.asked
    async with relay(project, teller):
        await until(lambda: any(isinstance(asked, Ack) for asked in teller.asked), "the host to be told of its end")
        assert not [asked for asked in teller.asked if isinstance(asked, Stop)]


def test_a_run_that_cannot_be_looked_at_is_not_known(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run counts as started if its environment file is gone, not if checking the file fails."""
    run = Told(project, teller)
    remote_run = RemoteRun(project, run.id, run.meta)
    remote_run.open()
    assert remote_run.was_started
    exhaust(monkeypatch, paths.ENVIRONMENT)
    with pytest.raises(OSError, match="Too many open files"):
        remote_run.open()


async def test_a_change_at_the_time_of_another_is_seen(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory that has just changed may change again at the same time, so it is read until that time is over."""
    monkeypatch.setattr("subdeck.core.hosts.relay.runs.COARSE_S", 60.0)
    run = Told(project, teller, permit="")
    found = relay_of(project, teller)
    for _ in range(3):
        found.tick()
    changed = run.dir.stat().st_mtime_ns
    artifacts.write_stop(str(run.dir), StopRequest(by="operator", force=False, at=paths.now_iso()))
    os.utime(run.dir, ns=(changed, changed))
    found.tick()
    result = await until(lambda: run.result, "its end")
    assert "stopped by the user before it was sent to a host" == result.error_message
    await found._shut_down()


async def test_a_permit_that_was_given_in_spite_of_an_error(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose permit is on the disk is handled, even if granting it then failed."""

    def given(run_dir: str, permit: Permit) -> Permit:
        give_permit(run_dir, permit)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("subdeck.core.hosts.relay.runs.give_permit", given)
    run = Told(project, teller, permit="")
    (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")
    async with relay(project, teller):
        await teller.heard()
        await teller.tell(offers=(run.id,))
        await until(lambda: any(isinstance(asked, Start) for asked in teller.asked), "the run to be started")
        await until(lambda: (facts := artifacts.read_runner(str(run.dir))) and facts.host, "its host to be named")
    assert (permit := read_permit(str(run.dir))) and "h1" == permit.host


async def test_a_run_that_is_given_up_while_its_end_comes(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user abandons a run while its result arrives, the user's result counts, the host's is kept beside it."""
    run = Told(project, teller)

    async def fetch(*_: object) -> Brought:
        given_up = {"reason": RunReason.LOST, "written_by": artifacts.GIVEN_UP_BY}
        artifacts.write_result(str(run.dir), msgspec.json.decode(run.end(**given_up).result, type=RunResult))
        return Brought()

    monkeypatch.setattr(CodeCarriage, "fetch", fetch)
    teller.known = (run.id,)
    async with relay(project, teller):
        await teller.tell(ends=(run.end(),))
        late = await until(lambda: artifacts.read_late_result(str(run.dir)), "the end that the host told")
        assert RunReason.DONE == late.reason
        await until(lambda: any(isinstance(asked, Ack) for asked in teller.asked), "the host to be told")
        assert not [asked for asked in teller.asked if isinstance(asked, Stop)]
    assert run.result and RunReason.LOST == run.result.reason


def test_a_relay_may_hold_as_many_files_as_the_machine_allows() -> None:
    """A relay raises its limit of open files up to the machine's maximum: each run holds one file open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        allow_many_files()
        most = MOST_FILES if limits[1] == resource.RLIM_INFINITY else min(limits[1], MOST_FILES)
        assert (most, limits[1]) == resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


async def test_a_host_without_room_is_asked_again(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that its host could not start for lack of space waits with that reason, and can be stopped."""
    monkeypatch.setattr("subdeck.core.hosts.relay.relay.NO_ROOM_S", 0.05)
    teller.says = Answer(Said.NOT_NOW, "No space left on device")
    waiting, stopped = Told(project, teller), Told(project, teller)
    for run in (waiting, stopped):
        (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")

    def place(run: Told) -> tuple[str, str]:
        found = read_place(str(run.dir))
        return (found.state, found.why) if found else ("", "")

    async with relay(project, teller):
        why = "h1 cannot take the run yet: No space left on device"
        for run in (waiting, stopped):
            await until(lambda run=run: place(run) == (PlaceState.PLACED, why), "it to say what it waits for")
        artifacts.write_stop(str(stopped.dir), StopRequest(by="operator", force=False, at=paths.now_iso()))
        result = await until(lambda: stopped.result, "its end")
        assert "stopped by the user before it was started" == result.error_message
        assert waiting.result is None
        teller.says, teller.known = Answer(Said.KNOWN), (waiting.id,)
        await until(lambda: place(waiting) == (PlaceState.PLACED, ""), "it to be started")
    assert waiting.result is None


async def test_what_a_host_lacked_is_not_said_when_it_is_gone(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of an unreachable host shows that it is unreachable, not that it lacked space."""
    teller.says = Answer(Said.NOT_NOW, "No space left on device")
    run = Told(project, teller)
    (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")

    async def gone(key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        raise OutOfReach("no answer")

    async with relay(project, teller):
        await until(lambda: (place := read_place(str(run.dir))) and place.why, "it to say what it waits for")
        monkeypatch.setattr(teller, "call", gone)
        place = await until(lambda: out_of_reach(run), "nobody to vouch for it")
    assert "" == place.why


def out_of_reach(run: Told) -> Place | None:
    """Return a run's place once the run is unreachable."""
    place = read_place(str(run.dir))
    return place if place and place.state is PlaceState.OUT_OF_REACH else None


async def test_a_relay_waits_for_what_was_given_up(project: Project, teller: Teller) -> None:
    """After its last run a relay continues while a reachable host still has an abandoned or deleted run."""
    last, given_up, deleted = (Told(project, teller) for _ in range(3))
    fields = {"reason": RunReason.LOST, "written_by": artifacts.GIVEN_UP_BY}
    artifacts.write_result(str(given_up.dir), msgspec.json.decode(given_up.end(**fields).result, type=RunResult))
    files.remove_tree(str(deleted.dir))
    teller.known = (last.id, given_up.id, deleted.id)
    found = relay_of(project, teller)
    task = asyncio.get_running_loop().create_task(found.run(idle=0.5))
    unwanted = {given_up.id, deleted.id}
    await until(
        lambda: unwanted == {asked.run for asked in teller.asked if isinstance(asked, Stop)}, "both to be ended"
    )
    for run, left in ((last, (given_up.id, deleted.id)), (given_up, (deleted.id,))):
        teller.known = left
        await teller.tell(ends=(run.end(),))
        await until(lambda run=run: run.id in {ack.run for ack in teller.asked if isinstance(ack, Ack)}, "its end")
        pulled = teller.pulled
        await until(lambda pulled=pulled: task.done() or teller.pulled > pulled + 8, "it to go on")
        assert not task.done()
    teller.known = ()
    await asyncio.wait_for(task, 20)
    assert artifacts.read_late_result(str(given_up.dir))


async def test_a_relay_that_was_stopped_goes_on(project: Project, teller: Teller) -> None:
    """A relay with a run continues, even if its process was stopped for longer than it waits for a run."""
    run = Told(project, teller)
    teller.known = (run.id,)
    task = asyncio.get_running_loop().create_task(relay_of(project, teller).run(idle=0.2))
    await until(lambda: teller.pulled > 1, "it to know the run")
    time.sleep(0.5)
    pulled = teller.pulled
    await until(lambda: task.done() or teller.pulled > pulled + 2, "it to go on")
    assert not task.done()
    teller.known = ()
    await teller.tell(ends=(run.end(),))
    await asyncio.wait_for(task, 20)


async def test_what_was_given_up_is_ended_however_often_it_takes(project: Project, teller: Teller) -> None:
    """A host that fails to end an abandoned run is asked again until it has ended it."""
    run = Told(project, teller)
    fields = {"reason": RunReason.LOST, "written_by": artifacts.GIVEN_UP_BY}
    artifacts.write_result(str(run.dir), msgspec.json.decode(run.end(**fields).result, type=RunResult))
    teller.known, teller.says = (run.id,), Answer(Said.REFUSED, "OSError: No space left on device")

    def stops() -> int:
        return sum(isinstance(asked, Stop) for asked in teller.asked)

    async with relay(project, teller):
        await until(lambda: stops() > 2, "it to be told again")
        teller.says = Answer(Said.TOLD)
        told = stops()
        await until(lambda: stops() > told, "it to be told once more")
        told = stops()
        await teller.heard()
        await teller.heard()
        assert told == stops()


async def test_a_carrier_that_fails_is_started_again(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relay restarts a carrier that ends unexpectedly, and logs why."""
    runs = iter([KeyError(13), None])
    carries = asyncio.Event()

    async def run() -> None:
        if error := next(runs):
            raise error
        carries.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(teller, "run", run)
    async with relay(project, teller):
        await asyncio.wait_for(carries.wait(), 20)
    assert "carry carriers: an unexpected error (KeyError)" in Path(project.relay_log).read_text()


def test_a_relay_that_fails_begins_again(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay continues after an unexpected error from what the files hold, and logs the error."""
    monkeypatch.setattr(relay_program, "AGAIN_S", 0.0)
    begun: list[Relay] = []

    async def run(self: Relay) -> None:
        begun.append(self)
        if len(begun) == 1:
            raise KeyError(13)

    monkeypatch.setattr(Relay, "run", run)
    monkeypatch.setattr(relay_program, "allow_many_files", lambda: None)
    before = os.umask(0)
    try:
        relay_program.main(project.root)
    finally:
        os.umask(before)
    assert 2 == len(set(begun))
    assert "the relay failed and restarts: an unexpected error (KeyError)" in Path(project.relay_log).read_text()
