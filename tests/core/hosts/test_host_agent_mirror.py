"""A host mirrors the files of runs: in pieces, fairly, soon, and no others."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies
from subdeck.core import paths
from subdeck.core.hosts._mirror import is_mirrored, lacking, shares
from subdeck.core.hosts.protocol import Examine, Have, Verb
from subdeck.core.run.model import CheckState
from subdeck.core.runners import standby

from tests.core.hosts.hosting import Asking, host_meta, hosting, until
from tests.core.hosts.test_lease import CERTAIN_SOON

pytestmark = pytest.mark.usefixtures("soon")

pytestmark = pytest.mark.processes


@given(
    strategies.dictionaries(strategies.text("ab", max_size=4), strategies.integers(0, 10_000)),
    strategies.integers(0, 20_000),
)
def test_a_budget_is_shared(wanted: dict[str, int], budget: int) -> None:
    """No share exceeds its need, the budget or all needs are used up, and smaller needs never get more."""
    given_ = shares(wanted, budget)
    assert given_.keys() == wanted.keys()
    assert all(0 <= given_[name] <= wanted[name] for name in wanted)
    assert min(budget, sum(wanted.values())) - len(wanted) <= sum(given_.values()) <= budget
    for less, more in ((one, other) for one in wanted for other in wanted if wanted[one] < wanted[other]):
        assert given_[less] <= given_[more]


def test_what_is_mirrored() -> None:
    """Mirrored files are listed by name; paths, hidden files and the host's own records are never mirrored."""
    taken = ("events.jsonl", "transcript.log", "stdout.log", "stderr.log", "prompt-2.md", "prompt-17.md", "check.log")
    assert all(map(is_mirrored, taken))
    others = (
        "meta.json",
        "runner.json",
        "lock",
        "environment",
        ".taken",
        "prompt.md",
        "../events.jsonl",
        "prompt-0.md",
        "x",
    )
    assert not any(map(is_mirrored, others))


async def test_a_talkative_run_keeps_no_other_waiting(tmp_path: Path) -> None:
    """A run with much output leaves room for runs with little: these are complete in the first answer."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        loud, quiet = await relay.begin("say-big 3000000", "finish"), await relay.begin("answer 1")
        for run_id in (loud, quiet):
            await until((relay.run_dir(run_id) / paths.RESULT).exists, "a run to end")
        first = await relay.pull(wait=0, budget=200_000)
        assert [quiet] == [end.run for end in first.ends]
        assert 100_000 < sum(len(chunk.content) for chunk in first.chunks if chunk.run == loud) <= 200_000
        await relay.pull_end(loud, budget=200_000)


async def test_news_comes_soon(tmp_path: Path) -> None:
    """A waiting pull is answered soon after a run writes, long before its timeout."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say Working.", f"wait-for {tmp_path}/go", "say Seen.", "hang")
        await relay.pull_until(lambda: "Working" in relay.text(run_id, paths.EVENTS), "its first words")
        while (await relay.pull(wait=1.5)).chunks:
            pass  # until there is no news
        pulling = asyncio.create_task(relay.pull(wait=30))
        await asyncio.sleep(0)
        (tmp_path / "go").touch()
        began = time.monotonic()
        assert (await pulling).chunks
        assert time.monotonic() - began < 5
        assert relay.bells[run_id].startswith(b'{"seq":')
        await relay.stop(run_id)
        await relay.pull_end(run_id)


async def test_a_pull_without_news_takes_its_time(tmp_path: Path) -> None:
    """Without news a pull is answered at its timeout, with the host's overview."""
    async with hosting(tmp_path / "spool", slots=3, labels={"gpu": 2}, carrier="none 1", name="h 7/x") as agent:
        began = time.monotonic()
        pulled = await Asking(agent).pull(wait=0.3)
        assert 0.3 <= time.monotonic() - began < 5
        facts = pulled.facts
        assert ("h-7-x", 3, 0, {"gpu": 2.0}, "none 1") == (
            pulled.host,
            facts.slots,
            facts.used,
            facts.labels,
            facts.carrier,
        )
        assert facts.cores and facts.memory_mb and facts.subdeck and facts.python.startswith("3.")


async def test_a_conversation_goes_on(tmp_path: Path) -> None:
    """The session that the user sends is the agent's, and later additions are mirrored from its end on."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        meta = host_meta(
            agent="offline", agent_kind="offline", session_path="/operator/child-session.jsonl", child_session_id="x"
        )
        session = b'{"type":"session","version":3,"id":"x","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}\n'
        run_id = await relay.begin("What is here?", meta=meta, session=session)
        relay.files[run_id][paths.CHILD_SESSION] = session
        result = await relay.pull_end(run_id)
        assert "completed" == result.status
        assert relay.files[run_id][paths.CHILD_SESSION] == (relay.run_dir(run_id) / paths.CHILD_SESSION).read_bytes()
        assert relay.files[run_id][paths.CHILD_SESSION].startswith(session)


async def test_a_check_is_run_there(tmp_path: Path) -> None:
    """The user's check runs on the host, and its output arrives with the result."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        check = msgspec.json.encode({"argv": ["sh", "-c", "echo looked; exit 3"], "timeout": 30})
        run_id = await relay.begin("answer 1", meta=host_meta(check="tests"), check=check)
        result = await relay.pull_end(run_id)
        assert (3, "looked") == (result.check.exit_code, result.check.output)
        assert "looked\n" == relay.text(run_id, paths.CHECK_LOG)
        assert CheckState.ENDED in relay.text(run_id, paths.EVENTS)


async def test_the_lease_is_kept_and_told(tmp_path: Path) -> None:
    """Each pull renews the user's lease and reports the time that was left; an agent renews its own lease."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("hang", lease_agent=60.0, lease_operator=500.0)
        lease = relay.agent_project / "lease"
        first = lease.read_text()
        await until(lambda: lease.read_text() != first, "the lease to be renewed")
        assert 0 < ((await relay.pull(wait=0)).lease_left or 0) <= 500
        await relay.stop(run_id)
        await relay.pull_end(run_id)


async def test_a_lease_that_is_over_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no relay pulls for longer than its lease, the run ends, and its result waits for the relay."""
    monkeypatch.setattr(standby, "loading", lambda: ("-c", f"{CERTAIN_SOON}; {standby._PROGRAM}"))
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say Working.", "hang", lease_operator=1.0)
        await until((relay.run_dir(run_id) / paths.RESULT).exists, "the run to end")
        result = await relay.pull_end(run_id)
        assert ("lease", "Working.") == (result.reason, result.final_text)
        assert "its host had no contact with you for 1 s" in (result.error_message or "")


async def test_what_the_doctor_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host reports its agents, its missing variables, whether the spool supports locks, and git's version."""
    monkeypatch.setenv("THERE", "secret")
    async with hosting(tmp_path / "spool") as agent:
        said = await Asking(agent).ask(
            Verb.EXAMINE, Examine(("THERE", "NOT_THERE"), ("puppet", "offline", "codex", "x"))
        )
        assert (("NOT_THERE",), str(tmp_path / "spool")) == (said.missing_variables, said.spool)
        assert ["puppet", "offline", "codex", "x"] == [found.name for found in said.agents]
        assert [True, True, False, False] == [not found.problem for found in said.agents]
        assert said.git.startswith("2.") and abs(said.clock - time.time()) < 60
        assert () == said.problems
        monkeypatch.setattr("subdeck.core.system.files.try_lock", lambda *_, **__: True)
        monkeypatch.setattr("subdeck.core.system.files.is_local", lambda path: False)
        said = await Asking(agent).ask(Verb.EXAMINE, Examine())
        assert ["file locks do not work", "may not be on a local disk"] == [
            next(words for words in ("file locks do not work", "may not be on a local disk") if words in problem)
            for problem in said.problems
        ]
        assert {"pi", "claude", "codex", "acp", "offline", "puppet"} <= {found.name for found in said.agents}


def test_a_project_that_is_not_there(tmp_path: Path) -> None:
    """A host without the project has nothing left to mirror."""
    assert not lacking(paths.Project(str(tmp_path)), {paths.new_run_id(): Have()}, 1000)
