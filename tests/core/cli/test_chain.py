"""The runs of one conversation: found by its ids, and printed as one text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subdeck.core.cli.logs import chain
from subdeck.core.engine import Engine
from subdeck.core.run.model import AgentSession
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.command_line import subdeck
from tests.core.conversing import CONVERSING, parts, run, write_preset
from tests.factories import make_meta, make_snapshot, open_engine

pytestmark = pytest.mark.usefixtures("forked_commands")


def one(number: int, session: str | None, told: str | None = None, **meta: Any) -> RunSnapshot:
    name = f"2026010{number}-120000-00000{number}"
    return make_snapshot(make_meta(name, child_session_id=session, **meta), told_session=told)


def numbers(runs: tuple[RunSnapshot, ...]) -> list[int]:
    return [int(run.run_id[-1]) for run in runs]


def test_runs_of_one_session_are_a_chain() -> None:
    """Any run of the chain gives all of them, in launch order."""
    runs = [one(3, "a"), one(1, "a"), one(2, "b"), one(4, None)]
    for asked in (runs[0], runs[1]):
        assert [1, 3] == numbers(chain(asked, runs))
    assert [4] == numbers(chain(runs[3], runs))


def test_an_id_that_changed_on_the_way_keeps_the_chain() -> None:
    """An agent may give a conversation a new id when it continues."""
    first, second = one(1, "a"), one(2, None, told="b", agent_session=AgentSession(resume="a"))
    third = one(3, None, agent_session=AgentSession(resume="b"))
    for asked in (first, second, third):
        assert [1, 2, 3] == numbers(chain(asked, [third, first, second]))


def test_neither_another_agent_nor_a_foreign_run_joins() -> None:
    """Another agent's run with the same id has another conversation, and an untrusted run may forge the id."""
    ours, other = one(1, "a"), one(2, "a", agent="codex")
    foreign = make_snapshot(make_meta("20260103-120000-000003", child_session_id="a"), foreign=True)
    assert [1] == numbers(chain(ours, [ours, other, foreign]))
    assert [3] == numbers(chain(foreign, [ours, other, foreign]))


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    write_preset(project_dir)
    return open_engine(project_dir, CONVERSING)


@pytest.mark.processes
def test_logs_print_the_whole_session(engine: Engine, project_dir: Path) -> None:
    """Transcripts are printed one after the other, each with its run. As JSON they are a list."""
    first = run(engine, parts("answer the first", "answer the second"))
    second = run(engine, "go on", child_session=first.child_session_id)
    for ref in (first.run_id, second.run_id):
        done = subdeck("logs", "--session", ref, cwd=project_dir)
        assert 0 == done.code
        marks = [f"-- {one.meta.short_id}, {n} of 2, completed --" for n, one in ((1, first), (2, second))]
        places = [done.out.index(text) for text in (marks[0], "\nthe first\n", marks[1], "\nthe second\n")]
        assert sorted(places) == places
    document = subdeck("logs", "--session", first.run_id, "--events", "--json", cwd=project_dir).document
    assert (first.child_session_id, [first.run_id, second.run_id]) == (
        document["session"], [row["runId"] for row in document["runs"]],
    )  # fmt: skip
    alone = subdeck("logs", first.run_id, cwd=project_dir).out
    assert "\nthe second" not in alone and " of 2" not in alone
