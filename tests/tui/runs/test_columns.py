"""The rows of the run list as text, at every width and with every choice of columns."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st
from msgspec.structs import replace
from rich.cells import cell_len
from subdeck.core.config.settings import Settings
from subdeck.core.run.changes import Changes, WorktreePlan
from subdeck.core.run.columns import (
    COLUMNS,
    COST,
    NOW as NOW_COLUMN,
    PRESET,
    STATE,
    TASK,
    RunColumn,
    column_names,
    sort_titled,
)
from subdeck.core.run.model import Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.runs._extent import FULL, NO_RUNS, Extent
from subdeck.tui.runs._listing import Listing
from subdeck.tui.runs._rows import RowFlags, RunRow, head_cells
from subdeck.tui.runs.column_layout import DEFAULT, LEAD, chosen_columns, headings, layout
from subdeck.tui.runs.filter import parse_filter
from subdeck.tui.runs.order import common_beginning, summarize
from subdeck.tui.runs.store import RunStore

from ..deck.test_hostile_text import HOSTILE
from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened
from ..sample_runs import a_group, a_mate, an_update

NOW = datetime.now(UTC)
BY_COST = sort_titled("by cost")
WIDTHS = (18, 30, 59, 60, 74, 80, 90, 115, 164, 250)


def text_of(cells: list[tuple[str, str]]) -> str:
    return "".join(text for text, _ in cells)


def row_of(run: RunSnapshot, width: int, flags: RowFlags | None = None, wanted: tuple[RunColumn, ...] = DEFAULT) -> str:
    return text_of(RunRow(run, flags or RowFlags(), layout(width, wanted)).cells(NOW))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("text", HOSTILE)
def test_rows_are_as_wide_as_the_list(width: int, text: str) -> None:
    """A run's texts neither move its columns nor control the terminal."""
    run = a_run(1, "failed", message=text, meta_task=text, meta_preset=text, meta_agent=text, usage=Usage(cost=1.5))
    group = summarize(a_group("running", "failed", meta_task=text, meta_preset=text), known=2)
    for words in (False, True):
        shown = layout(width, words=words)
        for row in (
            text_of(RunRow(run, RowFlags(), shown).cells(NOW)),
            text_of(head_cells(group, RowFlags(), shown, NOW)),
        ):
            assert cell_len(row) == width
            assert not [char for char in row if ord(char) < 32 or 0x7F <= ord(char) < 0xA0]


@given(
    width=st.integers(12, 260), wanted=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True), words=st.booleans()
)
def test_gutters_never_shrink(width: int, wanted: list[RunColumn], words: bool) -> None:
    """Every column except a leading state has a blank before it, however full the row is."""
    much = "x" * 300
    fields = {"meta_preset": much, "meta_task": much, "meta_agent": much, "meta_resolved_model": much}
    usage = Usage(input=10**15, cost=1e9)
    runs = [a_mate(n, "failed", size=2, message=much, usage=usage, duration_ms=10**12, **fields) for n in (1, 2)]
    shown = layout(width, tuple(wanted), words=words)
    lines = [
        text_of(RunRow(runs[0], RowFlags(), shown).cells(NOW)),
        text_of(head_cells(summarize(runs, known=200), RowFlags(), shown, NOW)),
        headings(shown, BY_COST, backwards=False),
    ]
    assert sum(place.width for place in shown.spans) <= width - LEAD
    for line in lines:
        assert cell_len(line) == LEAD + sum(place.width for place in shown.spans)
        assert all(line[place.start] == " " for place in shown.spans if place.start > LEAD or place.column is not STATE)


def names_at(width: int, extent: Extent = FULL, *, words: bool = False) -> list[str]:
    return [place.column.name for place in layout(width, extent=extent, words=words).spans]


def test_columns_come_with_the_room() -> None:
    """Narrow lists keep state, preset, task, elapsed; then come changes, activity, age, tokens, cost, agent."""
    few = ["state", "preset", "task", "elapsed"]
    assert names_at(50) == few
    assert names_at(65) == ["state", "preset", "task", "now", "elapsed", "changes"]
    assert names_at(75) == ["state", "preset", "task", "now", "age", "elapsed", "changes"]
    assert names_at(93) == ["state", "preset", "task", "now", "age", "elapsed", "tokens", "changes"]
    assert names_at(115) == ["state", "preset", "task", "now", "age", "elapsed", "tokens", "cost", "changes"]
    assert names_at(160) == [*names_at(115), "agent"]
    run = a_run(1, usage=Usage(input=3200, cost=0.31), meta_agent="pi", meta_runner="tmux")
    assert re.search(r"29m   29:5\d|3\dm   3\d:", row_of(run, 75))
    assert row_of(run, 160).rstrip().endswith("  3.2k   $0.31            pi tmux")


def test_an_empty_column_is_left_out() -> None:
    """A column that is empty for every shown run has no room; the task gets it first, and state words come with it."""
    empty = NO_RUNS.including(a_run(1, meta_task="x" * 80))
    assert names_at(75, empty) == ["state", "preset", "task", "now", "age", "elapsed"]
    assert width_of(TASK, 93, empty) - width_of(TASK, 93) >= 6
    assert not layout(93, words=True).has_word
    assert layout(93, extent=empty, words=True).has_word
    some = empty.including(a_run(2, usage=Usage(input=5)))
    assert names_at(75, some) == ["state", "preset", "task", "now", "age", "elapsed", "tokens"]
    none_of_them = layout(75, chosen_columns(["cost"]), empty)
    assert [span.column for span in none_of_them.spans] == [COST]


@pytest.mark.parametrize(
    ("run", "filled"),
    [
        (a_run(1), set[str]()),
        (a_run(1, usage=Usage(input=3)), {"tokens"}),
        (a_run(1, usage=Usage(unpriced=3)), {"cost"}),
        (a_run(1, "completed", changes=Changes()), set[str]()),
        (a_run(1, "completed", changes=Changes(note="no git")), {"changes"}),
        (a_run(1, "completed", changes=Changes(files=1, added=2)), {"changes"}),
        (a_run(1, meta_resolved_model="fake/test"), {"model"}),
    ],
)
def test_a_column_has_a_text(run: RunSnapshot, filled: set[str]) -> None:
    """A column is empty if a run has a blank or a dash there: the row shows no more than that."""
    usual = NO_RUNS.including(a_run(1, meta_resolved_model="", meta_requested_model=""))
    shown = {column.name for column in usual.empty - usual.including(run).empty}
    assert filled == shown - {"model"} if "model" not in filled else filled <= shown


def test_tasks_get_the_room_first() -> None:
    """Tasks have most of the room for texts up to the longest one; what they do not need is for the activity."""
    long, short = (NO_RUNS.including(a_run(1, meta_task=task)) for task in ("x" * 80, "port the parser"))
    for width in (75, 93, 115, 164):
        assert width_of(TASK, width, long) > width_of(NOW_COLUMN, width, long) >= 16
        assert width_of(TASK, width, short) == len("port the parser") + 1
    assert width_of(TASK, 250, long) == 73


def test_a_preset_has_no_more_room_than_the_longest_name() -> None:
    """Short names of presets leave their room to the tasks."""
    short = NO_RUNS.including(a_run(1, meta_preset="scout"))
    assert width_of(PRESET, 115, short) == 7
    group = short.including(a_mate(1, size=12, meta_preset="reviewer"))
    assert width_of(PRESET, 115, group) == len(" reviewer ×12")


def width_of(column: RunColumn, width: int, extent: Extent = FULL) -> int:
    place = layout(width, extent=extent).span_of(column)
    return place.width if place else 0


def test_a_column_stays_once_it_was_shown() -> None:
    """A column appears with the first shown run that has a text in it, and stays: columns do not come and go."""
    store = RunStore()
    listing = Listing(store)

    def tell(*runs: RunSnapshot, removed: tuple[str, ...] = ()) -> None:
        update = an_update(*runs, removed=removed)
        store.apply(update)
        listing.take(update)

    tell(a_run(1))
    assert COST in listing.extent.empty
    listing.filter_by(parse_filter("preset:repo"))
    tell(a_run(2, usage=Usage(cost=0.31), meta_preset="other"))
    assert COST in listing.extent.empty
    before = listing.order
    listing.filter_by(parse_filter(""))
    assert COST not in listing.extent.empty
    assert listing.order > before
    tell(removed=(run_id(2),))
    assert COST not in listing.extent.empty


def test_a_run_in_a_worktree_is_marked() -> None:
    """A worktree is marked by a sign and a word after the agent."""
    run = a_run(1, meta_agent="pi", meta_worktree=WorktreePlan("subdeck/fixer-000001", "/src/shop"))
    assert row_of(run, 160).rstrip().endswith(" pi ⎇ worktree")


def test_a_state_is_a_glyph_unless_there_is_room_for_its_word() -> None:
    """A state has its word only in a wide terminal, and then the texts keep their width."""
    run = a_run(1)
    assert "●" in row_of(run, 200)
    assert "running" not in row_of(run, 200)
    assert "● running " in text_of(RunRow(run, RowFlags(), layout(120, words=True)).cells(NOW))
    assert "running" not in text_of(RunRow(run, RowFlags(), layout(75, words=True)).cells(NOW))


def test_no_cost_is_a_dash() -> None:
    """An uncharged run shows no amount."""
    assert " –       – " in row_of(a_run(1), 115)


def test_a_cost_that_nobody_knows_is_no_dash() -> None:
    """An unknown cost is a question mark, and a sum without it has a plus."""
    untold = Usage(input=3200, unpriced=3200)
    assert "  3.2k       ? " in row_of(a_run(1, usage=untold), 115)
    runs = [a_run(1, usage=untold), a_run(2, usage=Usage(input=800, cost=0.31))]
    assert text_of(head_cells(summarize(runs, known=2), RowFlags(), layout(115), NOW))[:-11].endswith("  4.0k  $0.31+")


def test_figures_line_up_at_the_right() -> None:
    """Figures of one column end in one cell."""
    few = row_of(a_run(1, "completed", usage=Usage(input=5, cost=0.02)), 120)
    many = row_of(a_run(1, "completed", usage=Usage(input=1_200_000, cost=123.4)), 120)
    assert few.index("$0.02") + 5 == many.index("$123.40") + 7
    assert few.index(" 5 ") + 2 == many.index("1.2M") + 4


def test_signs_are_glyphs() -> None:
    """Runs that need attention, marked runs and groups have signs, not only colours."""
    flags = (RowFlags(), RowFlags(needs_you=True), RowFlags(unread=True, marked=True), RowFlags(tree="│"))
    assert [row_of(a_run(1, "failed"), 80, signs)[:2] for signs in flags] == ["  ", "! ", "•◆", " │"]


@pytest.mark.parametrize(("width", "tally"), [(62, "2● 1✗ 1✓"), (130, "2 running  1 ✗  1 ✓"), (30, "2● 1✗ 1✓")])
def test_a_head_says_how_its_runs_stand(width: int, tally: str) -> None:
    """A head shows its state, preset, number of runs, full tally and sums, in the columns of the rows."""
    group = summarize(a_group("running", "running", "failed", "completed", usage=Usage(input=1000)), known=4)
    row = text_of(head_cells(group, RowFlags(tree="▾"), layout(width), NOW))
    assert row.startswith(" ▾● re")
    assert "×4 " in row
    assert tally in row
    assert ("  4.0k" in row) == (width == 130)


def test_tasks_of_a_group_say_their_common_beginning_once() -> None:
    """The head shows the common beginning of all tasks, each run its difference; attempts show their number."""
    tasks = [f"review module src/payments/{name}.py" for name in ("gateway", "grants", "ledger")]
    runs = [a_mate(number, size=3, meta_task=task) for number, task in enumerate(tasks, 1)]
    group = summarize(runs, known=3)
    assert group.about == "review module src/payments/…"
    assert "…grants.py " in row_of(runs[1], 115, RowFlags(common=group.common))
    copies = [a_mate(number, size=3, meta_task="fix the flaky test") for number in (1, 2, 3)]
    group = summarize(copies, known=3)
    assert group.about == "fix the flaky test"
    assert " 2 of 3 " in row_of(copies[1], 115, RowFlags(common=group.common))


@pytest.mark.parametrize(
    ("texts", "common"),
    [
        (("review the parser", "review the tokens"), "review the "),
        (("review the parser", "review the parser again"), "review the "),
        (("fix a", "fix b"), ""),
        (("parser", "tokens"), ""),
        (("aaaaaaaaaaaaaaaaaab", "aaaaaaaaaaaaaaaaaac"), ""),
        (("the same task", "the same task"), "the same task"),
    ],
)
def test_a_common_beginning(texts: tuple[str, ...], common: str) -> None:
    """A common beginning ends at a word, and is long enough to be useful."""
    assert common_beginning(texts) == common


def test_a_second_attempt_is_told() -> None:
    """Without a column for the activity, the attempt is shown before the task."""
    again = a_run(1, attempt=2, meta_max_attempts=3)
    assert "try 2/3 · task 1" in row_of(again, 50)
    assert "try 2/3 · starting" in row_of(again, 115)


def test_a_group_does_not_count_unknown_ends_as_failed() -> None:
    """A run recorded by a newer subdeck does not count as failed."""
    completed, failed = a_group("completed", "failed")
    unknown = replace(failed, newer_schema=2)
    assert summarize([completed, unknown], known=2).tally == "1 ✓  1 newer"
    assert summarize([completed, unknown], known=2).short_tally == "1✓ 1◇"
    assert summarize([completed, unknown], known=2).state == "✓ completed"
    assert summarize([unknown, unknown], known=2).state == "◇ newer"


@pytest.mark.parametrize(
    ("ago", "age"),
    [
        (timedelta(seconds=-5), "<1m"),
        (timedelta(seconds=59), "<1m"),
        (timedelta(minutes=119), "119m"),
        (timedelta(hours=2), "2h"),
        (timedelta(hours=48), "2d"),
        (timedelta(days=99), "99d"),
        (timedelta(days=100), "14w"),
        (timedelta(days=20000), "999w"),
    ],
)
def test_ages(ago: timedelta, age: str) -> None:
    """An age has one unit and never more than four cells."""
    created = (NOW - ago).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert f" {age.rjust(4)} " in row_of(a_run(1, meta_created_at=created), 115)


# --- chosen in the settings ------------------------------------------------------------------------------------------


def test_chosen_columns_stand_in_their_order() -> None:
    """The columns in the settings are shown in their order, with any room for them."""
    wanted = chosen_columns(["id", "cost", "state", "model", "task"])
    run = a_run(0xABC, usage=Usage(cost=0.31), meta_resolved_model="fake/test", meta_task="look around")
    assert row_of(run, 90, wanted=wanted).split() == ["000abc", "$0.31", "●", "fake/test", "look", "around"]
    line = headings(layout(90, wanted), BY_COST, backwards=False)
    assert line.split() == ["id", "cost↓", "model", "task"]


def test_no_choice_is_the_usual_one() -> None:
    """Without the setting the default columns are shown, and its text names every column."""
    assert chosen_columns(Settings().columns) == DEFAULT
    note = str(Settings.__annotations__["columns"].__metadata__[-1].meaning)
    assert ", ".join(column_names()) in note


# --- headings --------------------------------------------------------------------------------------------------------


async def test_a_click_on_a_heading_sorts() -> None:
    """A click on a heading sorts by it, another one reverses, with a mark beside it; `O` reverses too."""
    runs = [a_run(number, "completed", message="done", usage=Usage(cost=number / 4 % 1)) for number in range(1, 5)]
    async with opened(FakeEngine(*runs)) as deck:
        list_, listing = deck.main.runs, deck.main.runs.listing

        def shown() -> list[str]:
            return [listing.row(index).run_id for index in range(len(listing))]

        line = deck.rows(list_)[0]
        assert line.split() == ["preset", "task", "now", "age↑", "time", "cost"]
        await deck.pilot.click(list_, offset=(line.index("cost") + 2, 1))
        await deck.until(lambda: listing.sort is BY_COST, "the sort by cost")
        assert shown() == [run_id(number) for number in (3, 2, 1, 4)]
        assert "cost↓" in deck.rows(list_)[0]
        await deck.pilot.click(list_, offset=(line.index("cost") + 2, 1))
        await deck.until(lambda: listing.backwards, "the order to be reversed")
        assert shown() == [run_id(number) for number in (4, 1, 2, 3)]
        assert "cost↑" in deck.rows(list_)[0]
        assert "by cost, reversed" in deck.screen_text
        await deck.act("reverse_sort")
        assert shown() == [run_id(number) for number in (3, 2, 1, 4)]
        list_.order_by(sort_titled("by preset"), backwards=True)
        await deck.pilot.click(list_, offset=(line.index("age") + 1, 1))
        assert shown() == [run_id(number) for number in (4, 3, 2, 1)]


async def test_the_order_is_remembered_as_it_was_reversed() -> None:
    """The next start sorts like the last one, in the same direction."""
    runs = [a_run(number, "completed") for number in range(1, 4)]
    async with opened(FakeEngine(*runs)) as deck:
        await deck.act("reverse_sort")
        await deck.until(lambda: deck.main.runs._file.read().backwards, "the file")
    async with opened(FakeEngine(*runs)) as deck:
        await deck.until(lambda: deck.main.runs.listing.backwards, "the order of before")
        assert deck.main.runs.listing.row(0).run_id == run_id(1)


async def test_headings_take_no_row_from_a_low_list() -> None:
    """In a tiny list every line is a run; the cursor stays in view with and without headings."""
    runs = [a_run(number, "completed") for number in range(1, 31)]
    async with opened(FakeEngine(*runs), (80, 24)) as deck:
        assert "preset" in deck.rows(deck.main.runs)[0]
        await deck.press("G")
        assert deck.rows(deck.main.runs)[deck.main.runs.rows_height].startswith("▌")
        await deck.pilot.resize_terminal(80, 14)
        await deck.until(lambda: deck.main.runs.head_height == 0, "the headings to go")
        assert [line[0] for line in deck.rows(deck.main.runs)].count("▌") == 1
