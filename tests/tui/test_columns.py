"""The rows of the run list as text, at every width."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from subdeck.core.run.model import Usage
from subdeck.tui.runs.columns import AGENT_FROM, COST_FROM, LEAD, RowFlags, RunRow, columns, head_cells
from subdeck.tui.runs.order import summarize

from .fake_engine import a_run
from .some_runs import a_group
from .test_hostile import HOSTILE

NOW = datetime.now(UTC)
WIDTHS = (18, 30, 59, 60, 74, COST_FROM, 90, AGENT_FROM, 164, 250)


def text_of(cells: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in cells)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("text", HOSTILE)
def test_rows_are_as_wide_as_the_list(width: int, text: str) -> None:
    """Whatever a run holds, its columns stay where they are and nothing of it commands the terminal."""
    run = a_run(1, "failed", message=text, meta_task=text, meta_preset=text, meta_agent=text, usage=Usage(cost=1.5))
    group = summarize(a_group("running", "failed", meta_task=text, meta_preset=text), known=2)
    for row in (text_of(RunRow(run, RowFlags(), width).cells(NOW)), text_of(head_cells(group, RowFlags(), width, NOW))):
        assert cell_len(row) == max(width, LEAD + sum(columns(width)))
        assert not [char for char in row if ord(char) < 32 or 0x7F <= ord(char) < 0xA0]


def test_cost_and_agent_come_with_the_room() -> None:
    """Narrow lists keep state, preset, task, elapsed and tokens; wide ones have cost, then agent and runner."""
    run = a_run(1, usage=Usage(input=3200, cost=0.31), meta_agent="pi", meta_runner="tmux")
    narrow, middle, wide = (text_of(RunRow(run, RowFlags(), width).cells(NOW)) for width in (74, COST_FROM, AGENT_FROM))
    assert narrow.endswith("  3.2k")
    assert middle.endswith("  3.2k   $0.31")
    assert wide.rstrip().endswith("  3.2k   $0.31 pi tmux")


def test_no_cost_is_a_dash() -> None:
    """What was not charged is not told as an amount."""
    assert text_of(RunRow(a_run(1), RowFlags(), COST_FROM).cells(NOW)).endswith("–       –")


def test_a_cost_that_nobody_knows_is_no_dash() -> None:
    """It is a question mark, in a sum a plus behind what is known."""
    untold = Usage(input=3200, unpriced=3200)
    assert text_of(RunRow(a_run(1, usage=untold), RowFlags(), COST_FROM).cells(NOW)).endswith("  3.2k       ?")
    runs = [a_run(1, usage=untold), a_run(2, usage=Usage(input=800, cost=0.31))]
    assert text_of(head_cells(summarize(runs, known=2), RowFlags(), COST_FROM, NOW)).endswith("  4.0k  $0.31+")


def test_figures_line_up_at_the_right() -> None:
    """Figures of one column end in one cell."""
    few = RunRow(a_run(1, "completed", usage=Usage(input=5, cost=0.02)), RowFlags(), 120).cells(NOW)
    many = RunRow(a_run(1, "completed", usage=Usage(input=1_200_000, cost=123.4)), RowFlags(), 120).cells(NOW)
    assert text_of(few).index("$0.02") + 5 == text_of(many).index("$123.40") + 7
    assert text_of(few).index(" 5 ") + 2 == text_of(many).index("1.2M") + 4


def test_signs_are_glyphs() -> None:
    """Who needs a look, what is marked and what belongs to a group is told without colour."""
    run = a_run(1, "failed")
    rows = [
        text_of(RunRow(run, signs, 80).cells(NOW))[:2]
        for signs in (RowFlags(), RowFlags(needs_you=True), RowFlags(unread=True, marked=True), RowFlags(tree="│"))
    ]
    assert rows == ["  ", "! ", "•◆", " │"]


def test_a_head_says_how_its_runs_stand() -> None:
    """State of the whole, how many, the tally whole also where there is little room, sums."""
    group = summarize(a_group("running", "running", "failed", "completed", usage=Usage(input=1000)), known=4)
    row = text_of(head_cells(group, RowFlags(tree="▾"), 74, NOW))
    assert row.startswith(" ▾● running   4 runs")
    assert "2 running  1 ✗  1 ✓" in row
    assert row.endswith("  4.0k")


def test_a_second_attempt_is_told() -> None:
    """Where there is no column for what a run does, its attempt stands before the task."""
    again = a_run(1, attempt=2, meta_max_attempts=3)
    assert "try 2/3 · task 1" in text_of(RunRow(again, RowFlags(), 59).cells(NOW))
    assert "try 2/3 · starting" in text_of(RunRow(again, RowFlags(), 100).cells(NOW))


def test_a_group_does_not_count_unknown_ends_as_failed() -> None:
    """Of a run that a newer subdeck recorded it is not known how it ended."""
    completed, failed = a_group("completed", "failed")
    unknown = replace(failed, newer_schema=2)
    assert summarize([completed, unknown], known=2).tally == "1 ✓  1 newer"
    assert summarize([completed, unknown], known=2).state == "✓ completed"
    assert summarize([unknown, unknown], known=2).state == "? newer"
