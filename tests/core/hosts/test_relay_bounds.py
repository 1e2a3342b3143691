"""Limits on a host's messages: its files stay in their place, and no message ends the relay."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.errors import SubdeckError
from subdeck.core.hosts.protocol import (
    PROTOCOL,
    Answer,
    Bell,
    Chunk,
    End,
    HostFacts,
    Said,
    Start,
    encode,
)
from subdeck.core.hosts.relay.journal import MOST_BYTES, Journal
from subdeck.core.hosts.relay.relay import relay_id
from subdeck.core.hosts.relay.runs import RemoteRun
from subdeck.core.paths import Project
from subdeck.core.project.queue import hold, write_order
from subdeck.core.run.model import LogCaps, RunReason
from subdeck.core.run.placement import read_host_states, read_permit, read_place
from subdeck.core.run.signature import KEY_BYTES
from subdeck.core.system import files

from tests.core.git.repositories import git, make
from tests.core.hosts.hostile_host import HostilePeer, Peers
from tests.core.hosts.hosting import until
from tests.core.hosts.teller import OTHER, SPOOL, Teller, Told, log, relay

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


@pytest.fixture
def teller() -> Teller:
    return Teller()


async def test_only_files_of_a_run_are_taken(project: Project, teller: Teller) -> None:
    """A host cannot write subdeck's own records, nor files that no run has."""
    run = Told(project, teller)
    before = {path.name: path.read_bytes() for path in run.dir.iterdir() if path.is_file()}
    async with relay(project, teller):
        names = (paths.META, paths.RUNNER, paths.RESULT, paths.PROMPT, paths.PERMIT, paths.PLACE, paths.LOCK)
        sizes = {name: len(before.get(name, b"")) for name in names}
        await teller.tell(known=(run.id,), chunks=[Chunk(run.id, name, size, b"{}") for name, size in sizes.items()])
        assert all(f"it sent an unexpected file {name}" in log(project) for name in names)
    after = {path.name: path.read_bytes() for path in run.dir.iterdir() if path.is_file()}
    assert before.items() <= {**after, paths.RUNNER: before[paths.RUNNER]}.items()
    assert set() == after.keys() - before.keys() - {paths.PLACE}


async def test_a_piece_is_taken_where_it_fits(project: Project, teller: Teller) -> None:
    """A repeated piece, or one after a gap, changes nothing."""
    run = Told(project, teller)
    teller.known = (run.id,)
    async with relay(project, teller):
        pieces = ((0, b"one\n"), (0, b"two\n"), (9, b"three\n"), (4, b"two\n"), (4, b"TWO\n"), (8, b""))
        await teller.tell(chunks=tuple(Chunk(run.id, paths.STDOUT, offset, piece) for offset, piece in pieces))
        assert b"one\ntwo\n" == (run.dir / paths.STDOUT).read_bytes()


async def test_a_host_speaks_for_its_own_runs(project: Project, teller: Teller) -> None:
    """A host cannot report on a run whose permit is for another spool, or that has no permit."""
    runs = [Told(project, teller, permit=permit) for permit in (OTHER, "")]
    async with relay(project, teller):
        ids = tuple(run.id for run in runs)
        chunks = tuple(Chunk(run_id, paths.STDOUT, 0, b"one\n") for run_id in ids)
        bells = tuple(Bell(run_id, b'{"seq":7}\n') for run_id in ids)
        ends = tuple(run.end() for run in runs)
        await teller.tell(known=ids, chunks=chunks, bells=bells, ends=ends)
        for run in runs:
            assert run.result is None
            assert not (run.dir / paths.STDOUT).exists()
            assert b'{"seq":7}\n' != files.content(os.path.join(project.active, run.id))


async def test_a_log_is_bounded(project: Project, teller: Teller) -> None:
    """A log is mirrored up to its cap and its last part; the result reports that the rest is missing."""
    run = Told(project, teller, log_caps=LogCaps(stdout=10))
    teller.known = (run.id,)
    async with relay(project, teller):
        piece = b"x" * (5 * 1024 * 1024)
        await teller.tell(chunks=(Chunk(run.id, paths.STDOUT, 0, piece),))
        await teller.tell(chunks=(Chunk(run.id, paths.STDOUT, len(piece), piece),))
        assert len(piece) == (run.dir / paths.STDOUT).stat().st_size
        assert "its stdout.log is longer than 8 MB" in log(project)
        await teller.tell(ends=(run.end(),))
        result = await until(lambda: run.result, "its end")
        assert ("stdout.log: too long, the rest stays on its host",) == result.artifact_errors


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty or truncated"),
        (b'{"runId": 7}', "cannot read the reported result"),
        (
            msgspec.json.encode({"runId": "x", "status": "completed", "reason": "lost", "writtenBy": ""}),
            "the reported result is invalid",
        ),
        (
            msgspec.json.encode({"runId": "x", "status": "odd", "reason": "odd", "writtenBy": ""}),
            "the reported result is invalid",
        ),
    ],
    ids=["nothing", "broken", "contradicts", "unknown"],
)
async def test_an_end_that_is_none(project: Project, teller: Teller, content: bytes, why: str) -> None:
    """An invalid result is rejected with the reason in the log; a later valid one is accepted."""
    run = Told(project, teller)
    teller.known = (run.id,)
    async with relay(project, teller):
        await teller.tell(ends=(End(run.id, content),))
        await until(lambda: why in log(project), "the log to say so")
        assert run.result is None

        async def better() -> bool:
            await teller.tell(ends=(run.end(),))
            return run.result is not None

        deadline = asyncio.get_running_loop().time() + 20
        while not await better():
            assert asyncio.get_running_loop().time() < deadline


async def test_an_end_names_no_path_of_this_machine(project: Project, teller: Teller) -> None:
    """A result cannot name a conversation path on this machine, nor another run."""
    run = Told(project, teller)
    teller.known = (run.id,)
    async with relay(project, teller):
        await teller.tell(ends=(run.end(run_id="20200101-000000-abcdef", conversation="/etc/passwd"),))
        result = await until(lambda: run.result, "its end")
        assert (run.id, None) == (result.run_id, result.conversation)


async def test_what_is_no_message_is_noted(project: Project, teller: Teller) -> None:
    """After any invalid answer the relay continues, and logs the error."""
    run = Told(project, teller, permit="")
    async with relay(project, teller):
        await until(lambda: read_place(str(run.dir)), "the run to be taken up")
        for answer in (b"", b"\xc1", b"\x80", encode(Answer(Said.KNOWN)), b"x" * 100):
            teller.tells.append(answer)
            await teller.heard()
        assert "no Pulled" in log(project)


async def test_an_offer_of_what_nobody_asked_for(project: Project, teller: Teller) -> None:
    """A run gets its permit only after a slot was requested, and an unknown run gets nothing."""
    run = Told(project, teller, permit="", needs={"gpu": 1.0})
    async with relay(project, teller):
        await until(lambda: read_place(str(run.dir)), "the run to be taken up")
        await teller.tell(offers=(run.id, "20200101-000000-abcdef"))
        assert read_permit(str(run.dir)) is None
        assert not [asked for asked in teller.asked if isinstance(asked, Start)]


async def test_a_host_of_another_version(project: Project, teller: Teller) -> None:
    """Answers of a host with another version are ignored; log, list of hosts and waiting runs show why."""
    run = Told(project, teller, permit="")
    why = f"subdeck 9.9 there uses protocol version {PROTOCOL + 1}, this one uses version {PROTOCOL}; install the"
    async with relay(project, teller):
        for _ in range(2):
            teller.protocol = PROTOCOL + 1
            await until(lambda: waits_for(run).startswith(f"h1: {why}"), "the run to say why it waits")
            await until(lambda: faults(project)[0].startswith(f"test: h1: {why}"), "the list of hosts to say so")
            assert f"follow test h1: {why}" in log(project)
            teller.tells.append(encode(teller.pulls(offers=(run.id,))))
            await until(lambda: not teller.tells, "the offer to be told")
            teller.protocol = PROTOCOL
            await until(lambda: waits_for(run) == "", "it to wait for nothing but its turn")
        assert read_permit(str(run.dir)) is None
        await until(lambda: faults(project) == ("",), "the list of hosts to be well")


async def test_a_host_where_no_run_can_be_started(project: Project, teller: Teller) -> None:
    """A host that cannot start runs gets no permit for its offers, and waiting runs show why, even one bound to it."""
    runs = [Told(project, teller, permit="", host=host) for host in ("", "h1")]
    teller.why_not = "h1 is out of the way"
    async with relay(project, teller):
        for run in runs:
            await until(lambda run=run: waits_for(run) == "h1 is out of the way", "the run to say why it waits")
        await teller.tell(offers=tuple(run.id for run in runs))
        assert [None, None] == [read_permit(str(run.dir)) for run in runs]
        teller.why_not = ""
        for run in runs:
            await until(lambda run=run: waits_for(run) == "", "it to wait for nothing but its turn")
        await teller.tell(offers=tuple(run.id for run in runs))
        for run in runs:
            await until(lambda run=run: read_permit(str(run.dir)), "its permit")


async def test_a_run_whose_host_is_out_of_the_way(project: Project, teller: Teller) -> None:
    """A run with a permit waits for its blocked host, shows the reason, and starts as soon as possible."""
    run = Told(project, teller)
    (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")
    teller.why_not = "h1 is out of the way"
    async with relay(project, teller):
        await until(lambda: waits_for(run) == "h1 is out of the way", "it to say why")
        assert not teller.asked
        teller.why_not = ""
        await until(lambda: [asked for asked in teller.asked if isinstance(asked, Start)], "its start")


async def test_the_operators_order_and_hold(project: Project, teller: Teller) -> None:
    """The run moved to the front gets the only slot; while the queue is paused no run does."""
    first, second = (Told(project, teller, permit="") for _ in range(2))
    teller.slots = 1
    write_order(project.slots, [second.id, first.id])
    hold(project.slots, True)
    async with relay(project, teller):
        await until(lambda: waits_for(first) == waits_for(second) == "", "both to be taken up")
        await teller.tell(offers=(first.id, second.id))
        assert [None, None] == [read_permit(str(run.dir)) for run in (first, second)]
        hold(project.slots, False)
        await until(lambda: teller.wishes.keys() == {second.id}, "the slot to be given to the second")
        await teller.tell(offers=(first.id, second.id))
        await until(lambda: read_permit(str(second.dir)), "its permit")
        assert read_permit(str(first.dir)) is None


def waits_for(run: Told) -> str:
    place = read_place(str(run.dir))
    return place.why if place else "no relay"


def faults(project: Project) -> tuple[str, ...]:
    states = read_host_states(project)
    return states.faults if states and states.faults else ("",)


async def test_an_offer_of_another_host(project: Project) -> None:
    """A run launched for one host, or for a resource, goes to no other host, whichever offers a slot."""
    h1, h2 = HostilePeer(SPOOL, "h1"), HostilePeer(OTHER, "h2")
    h2.facts = HostFacts(slots=2, labels={"gpu": 2.0})
    peers = Peers(h1=h1, h2=h2)
    runs = [Told(project, peers, permit="", host="h2"), Told(project, peers, permit="", needs={"gpu": 1.0})]
    offers = tuple(run.id for run in runs)
    async with relay(project, peers):
        for run in runs:
            await until(lambda run=run: (place := read_place(str(run.dir))) and not place.why, "a host to suit it")
        await h1.tell(offers=offers)
        for run in runs:
            await until(lambda run=run: f"{run.id}, which is not for" in log(project), "the log to say so")
            assert read_permit(str(run.dir)) is None
        await h2.tell(offers=offers)
        for run in runs:
            await until(lambda run=run: read_permit(str(run.dir)), "its permit")
    assert {OTHER} == {permit.spool for run in runs if (permit := read_permit(str(run.dir)))}


async def test_a_host_that_refuses(project: Project, teller: Teller) -> None:
    """If a host refuses a run, the run ends with the host's reason, sanitized for display."""
    run = Told(project, teller)
    (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")
    teller.says = Answer(Said.REFUSED, "there is no \x1b[31m/work\nhere")
    async with relay(project, teller):
        result = await until(lambda: run.result, "its end")
        assert (RunReason.START_FAILED, "relay") == (result.reason, result.written_by)
        assert "h1 refused the run: there is no /work here" == result.error_message


async def test_what_is_too_large_for_any_message(
    project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run too large for a message to a host fails with the sizes; no host is asked to start it."""
    run = Told(project, teller)
    (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")
    (run.dir / paths.CHILD_SESSION).write_bytes(bytes(3 * 1024 * 1024))
    monkeypatch.setattr("subdeck.core.hosts.relay.transfers.MOST_MESSAGE", 2 * 1024 * 1024)
    async with relay(project, teller):
        result = await until(lambda: run.result, "its end")
        assert (RunReason.START_FAILED, "relay") == (result.reason, result.written_by)
        assert "its prompt and conversation (3 MB) exceed the limit for hosts (2 MB)" == result.error_message
        assert not [asked for asked in teller.asked if isinstance(asked, Start)]


async def test_the_commit_that_a_run_is_to_find_travels(project: Project, teller: Teller) -> None:
    """With `code: path` a host gets the local commit of the directory, so that it can refuse another one."""
    root = make(Path(project.root), {"a.txt": "one\n"})
    run = Told(project, teller, cwd=str(root))
    (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")
    async with relay(project, teller):
        starts = await until(lambda: [one for one in teller.asked if isinstance(one, Start)], "the run to be started")
    assert git(root, "rev-parse", "HEAD").strip() == starts[0].head


async def test_a_run_that_its_host_forgot(project: Project, teller: Teller) -> None:
    """A run that its host forgot is not started again: it is no longer vouched for, and shows the reason."""
    run = Told(project, teller)
    async with relay(project, teller):
        await until(lambda: (place := read_place(str(run.dir))) and place.why, "what is wrong")
        assert "h1 no longer knows the run" == getattr(read_place(str(run.dir)), "why", "")
        assert not [asked for asked in teller.asked if isinstance(asked, Start)]
    assert run.result is None


async def test_one_run_is_no_others_fault(project: Project, teller: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error in one run does not affect the others."""
    runs = [Told(project, teller, permit="") for _ in range(3)]
    refresh = RemoteRun.refresh

    def fail(run: RemoteRun) -> None:
        if run.id == runs[0].id:
            raise ValueError("never seen before")
        refresh(run)

    monkeypatch.setattr(RemoteRun, "refresh", fail)
    async with relay(project, teller):
        await until(lambda: all(read_place(str(run.dir)) for run in runs[1:]), "the others to be taken up")
        assert f"{runs[0].id}: an unexpected error (ValueError)" in log(project)


async def test_another_host_with_the_same_spool(project: Project, teller: Teller) -> None:
    """A copied spool gets no second start."""
    run = Told(project, teller)
    (run.dir / paths.ENVIRONMENT).write_bytes(b"{}")
    async with relay(project, teller):
        teller.pulls = lambda **others: replace(Teller.pulls(teller, **others), host="h2")  # type: ignore[method-assign]
        await until(lambda: "its spool moved from h1 to h2" in log(project), "the log to say so")


def test_a_log_of_a_relay_stays_small(project: Project) -> None:
    """A relay's log keeps the newest lines, and never repeats a line."""
    journal = Journal(project.relay_log)
    for number in range(3000):
        journal.note(f"line {number} {'x' * 200}")
        journal.note(f"line {number} {'x' * 200}")
    lines = log(project).splitlines()
    assert os.path.getsize(project.relay_log) <= MOST_BYTES + 1000
    assert len(set(lines)) == len(lines)
    assert "line 2999 " in lines[-1]


def test_the_id_of_a_relay_is_the_projects(project: Project) -> None:
    """A restarted relay keeps its id; another project or another key has another id."""
    first = relay_id(project)
    assert first == relay_id(Project(project.root))
    assert first != relay_id(Project(f"{project.root}2"))
    Path(paths.key_file()).write_bytes(b"k" * KEY_BYTES)  # as in another container of the same image
    assert first != relay_id(project)


def test_a_relay_without_a_key_has_no_id(project: Project) -> None:
    """A relay without a usable key takes no other id, because hosts would then know none of its runs."""
    relay_id(project)
    Path(paths.key_file()).chmod(0o644)
    with pytest.raises(SubdeckError, match="other users can access it"):
        relay_id(project)
