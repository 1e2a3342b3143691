"""The agent column of the list, shown while several agents are in use."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from subdeck.core.run.columns import AGE, AGENT, CHANGES, COST, TASK, RunColumn
from subdeck.tui.runs._listing import Listing
from subdeck.tui.runs._rows import RowFlags, RunRow, head_cells
from subdeck.tui.runs.column_layout import DEFAULT, WITH_AGENT, WITH_BOTH, for_listed, layout
from subdeck.tui.runs.filter import parse_filter
from subdeck.tui.runs.order import summarize
from subdeck.tui.runs.store import RunStore

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened
from ..sample_runs import a_mate, an_update


def headings(deck: Deck) -> str:
    return deck.rows(deck.main.runs)[0]


@pytest.mark.parametrize("size", [(80, 24), (120, 35)])
async def test_the_column_comes_with_a_second_agent(size: tuple[int, int]) -> None:
    """The agent of each run is named as soon as runs of two agents are listed, in the usual terminal sizes."""
    engine = FakeEngine(a_run(1, meta_agent="claude"))
    async with opened(engine, size) as deck:
        assert "agent" not in headings(deck)
        engine.tell(a_run(2, meta_agent="codex"))
        await deck.until(lambda: "agent" in headings(deck), "the column")
        rows = "\n".join(deck.rows(deck.main.runs))
        assert " claude " in rows
        assert " codex " in rows
        assert " now " in headings(deck)
        engine.tell(removed=(run_id(2),))
        await deck.until(lambda: "agent" not in headings(deck), "the room of the column again")


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (50, set[RunColumn]()),
        (74, {AGENT, CHANGES}),
        (80, {AGENT, CHANGES, AGE}),
        (96, {AGENT, CHANGES, AGE}),
        (110, {AGENT, CHANGES, AGE, COST}),
    ],
)
def test_it_drops_by_importance(width: int, shown: set[RunColumn]) -> None:
    """With several agents in use the agent's name is dropped after cost and age, and before changes."""
    columns = {span.column for span in layout(width, WITH_AGENT).spans}
    assert shown == columns & {AGENT, CHANGES, AGE, COST}


def test_a_wide_list_has_room_for_the_worktree() -> None:
    """With enough room runner and worktree are behind the agent's name; otherwise only the name is shown."""
    run = a_run(1, meta_agent="pi", meta_runner="tmux")
    wide, narrow = (
        "".join(text for text, _ in RunRow(run, RowFlags(), layout(width, WITH_AGENT)).cells(datetime.now(UTC)))
        for width in (160, 90)
    )
    assert " pi tmux " in wide
    assert " pi  " in narrow
    assert "tmux" not in narrow


def test_only_listed_runs_count() -> None:
    """Runs of another agent that the filter hides bring no column."""
    store = RunStore()
    listing = Listing(store)
    update = an_update(a_run(1, meta_agent="claude"), a_run(2, meta_agent="codex"))
    store.apply(update)
    listing.take(update)
    assert listing.has_several_agents
    listing.filter_by(parse_filter("agent:codex"))
    assert not listing.has_several_agents


def test_chosen_columns_stay() -> None:
    """Columns chosen by the user stay, with any number of agents."""
    assert (DEFAULT, WITH_AGENT) == (for_listed(DEFAULT, remote=False), for_listed(DEFAULT, remote=False, agents=True))
    assert WITH_BOTH == for_listed(DEFAULT, remote=True, agents=True)
    assert (TASK,) == for_listed((TASK,), remote=False, agents=True)


def test_a_group_names_its_agent() -> None:
    """The head of a group names the agent of all its runs, or the number of agents."""
    runs = [a_mate(number, size=2, meta_agent=agent) for number, agent in ((1, "claude"), (2, "codex"))]
    for members, expected in ((runs, "2 agents"), (runs[:1] * 2, "claude")):
        cells = head_cells(summarize(members, 2), RowFlags(), layout(116, WITH_AGENT), datetime.now(UTC))
        assert f" {expected} " in "".join(text for text, _ in cells)
