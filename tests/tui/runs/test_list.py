"""The list of runs in use: groups, filter, sort, marks, and unread runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from subdeck.core.run.columns import CYCLE
from subdeck.core.run.model import Usage
from subdeck.tui.keys.command import KeyContext
from subdeck.tui.runs.filter import KEYS
from subdeck.tui.runs.order import ListLayout, list_layout_file

from ...factories import make_state
from ..deck.test_hostile_text import HOSTILE, raw_controls
from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened
from ..sample_runs import a_group

GROUP = a_group("running", "failed", "running", "completed", first=10, usage=Usage(input=1000, cost=0.1))
SINGLES = (
    a_run(1, "completed", meta_preset="docs-writer", meta_task="write the guide"),
    a_run(2, "failed", meta_task="check the error paths"),
    a_run(3, "completed", meta_task="list the functions"),
)


def numbers(deck: Deck) -> list[int]:
    """Return the numbers of the runs with their own rows, from the top."""
    listing = deck.main.runs.listing
    rows = (listing.row(place) for place in range(len(listing)))
    return [int(row.run_id[-6:], 16) for row in rows if row.run_id]


def targets(deck: Deck) -> list[int]:
    return [int(run.run_id[-6:], 16) for run in deck.main.runs.targets]


def title(deck: Deck) -> str:
    return str(deck.main.runs.border_title)


async def write(deck: Deck, text: str) -> None:
    """Open the filter and type into it."""
    await deck.press("/")
    await deck.until(lambda: deck.main.action_context.key_context is KeyContext.FILTER, "the line of the filter")
    await deck.type(text)


# --- groups ----------------------------------------------------------------------------------------------------------
async def test_a_group_folds_and_unfolds() -> None:
    """Left folds the cursor's group under its head, right unfolds it, enter and a double click toggle."""
    async with opened(FakeEngine(*GROUP, *SINGLES)) as deck:
        runs = deck.main.runs
        await deck.until_text("▾● repo-scout")
        assert "×4" in deck.screen_text and "2 running  1 ✗  1 ✓" in deck.screen_text
        await deck.press("j", "j")
        await deck.act("fold")
        assert numbers(deck) == [3, 2, 1]
        assert "▸● repo-scout" in deck.screen_text
        assert runs.cursor == 0
        await deck.act("unfold")
        assert numbers(deck) == [10, 11, 12, 13, 3, 2, 1]
        await deck.press("enter")
        assert numbers(deck) == [3, 2, 1]
        await deck.pilot.click(runs, offset=(10, 2), times=2)
        assert numbers(deck) == [10, 11, 12, 13, 3, 2, 1]
        assert runs.has_focus


async def test_a_head_stands_for_its_runs() -> None:
    """The head shows its first running run's transcript, even after that ends; actions apply to the whole group."""
    engine = FakeEngine(*a_group("completed", "running", "running", first=10))
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.transcript.run_id == run_id(11), "the first running run")
        assert targets(deck) == [10, 11, 12]
        engine.tell(replace(engine.runs[run_id(11)], state=make_state("completed")))
        await deck.until_text("1 running  2 ✓")
        assert deck.main.runs.selected == run_id(11)
        await deck.press("j", "k")
        assert deck.main.runs.selected == run_id(12)


async def test_going_to_a_run_unfolds_its_group() -> None:
    """Going to a run unfolds its group."""
    async with opened(FakeEngine(*GROUP, *SINGLES)) as deck:
        await deck.act("fold")
        deck.main.runs.select(run_id(12))
        await deck.until(lambda: deck.main.run.run_id == run_id(12), "the run")
        assert targets(deck) == [12]


# --- the filter ------------------------------------------------------------------------------------------------------
async def test_the_list_is_filtered_while_one_writes() -> None:
    """The filter applies on each letter; enter keeps it, the title shows it, escape on the list removes it."""
    async with opened(FakeEngine(*SINGLES)) as deck:
        await write(deck, "preset:docs")
        assert numbers(deck) == [1]
        assert "1 of 3" in title(deck) and "preset:docs" in title(deck)
        await deck.press("enter")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        assert numbers(deck) == [1]
        await deck.press("escape")
        assert numbers(deck) == [3, 2, 1]
        assert title(deck) == "Runs"


async def test_escape_restores_what_stood() -> None:
    """Escape from editing restores the former filter and the run under the cursor."""
    async with opened(FakeEngine(*SINGLES)) as deck:
        await write(deck, "-preset:docs")
        await deck.press("enter")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        await deck.press("j")
        await write(deck, "functions")  # a further term, not a part of the last one
        assert numbers(deck) == [3]
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        assert numbers(deck) == [3, 2]
        assert deck.main.run.run_id == run_id(2)


async def test_a_mistake_is_said_and_not_kept() -> None:
    """An unknown key changes nothing, is named below the field, and must be fixed before enter accepts the filter."""
    async with opened(FakeEngine(*SINGLES), (80, 24)) as deck:
        await write(deck, "stauts:failed")
        await deck.until_text('! unknown key "stauts:"; did you mean status? (quote it to search for it)')
        assert numbers(deck) == [3, 2, 1]
        await deck.press("enter")
        assert deck.main.action_context.key_context is KeyContext.FILTER
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")


async def test_an_unknown_key_that_is_like_none() -> None:
    """If no key is similar, all keys are listed below the field, until the mistake is fixed."""
    async with opened(FakeEngine(*SINGLES), (80, 24)) as deck:
        await write(deck, "foo:bar")
        await deck.until(lambda: all(f" {key}" in deck.screen_text for key in KEYS), "the keys")
        await deck.press(*["backspace"] * 7)
        await deck.until(lambda: "unknown key" not in deck.screen_text, "the mistake to go")


async def test_nothing_matches() -> None:
    """An empty list names the filter as the reason, and how to end it."""
    async with opened(FakeEngine(*SINGLES)) as deck:
        await write(deck, "elephant")
        await deck.until_text("No runs match the filter.")
        assert "esc  clears the filter" in deck.screen_text
        assert deck.main.run is None
        await deck.press("escape")
        await deck.until(lambda: deck.main.run is not None, "a run to be selected")


async def test_the_filter_is_remembered() -> None:
    """The next app on the project starts with the filter and shows it; a cleared one is forgotten."""
    async with opened(FakeEngine(*SINGLES)) as deck:
        await write(deck, "status:failed")
        await deck.press("enter")
        await deck.until(lambda: list_layout_file("/src/shop").read().filter == "status:failed", "the file")
    async with opened(FakeEngine(*SINGLES)) as deck:
        await deck.until(lambda: "status:failed" in title(deck), "the filter")
        assert numbers(deck) == [2]
        await deck.press("2", "escape")
        await deck.until(lambda: list_layout_file("/src/shop").read().filter == "", "the file to be empty")


async def test_a_filter_that_cannot_be_written_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter that cannot be stored stays until the app ends."""
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/nowhere")
    async with opened(FakeEngine(*SINGLES)) as deck:
        await write(deck, "status:failed")
        await deck.press("enter")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        assert numbers(deck) == [2]
        assert list_layout_file("/src/shop").read().filter == ""


def test_each_project_has_its_filter() -> None:
    """A project does not get another one's filter, and a read-only app stores none."""
    list_layout_file("/a").write(ListLayout("one"))
    list_layout_file("/b", readonly=True).write(ListLayout("two"))
    assert [list_layout_file(root).read().filter for root in ("/a", "/b")] == ["one", ""]


async def test_a_run_that_stops_matching_stays_under_the_cursor() -> None:
    """A run that stops matching stays while the cursor is on it."""
    engine = FakeEngine(a_run(1), a_run(2), a_run(3))
    async with opened(engine) as deck:
        await write(deck, "status:running")
        await deck.press("enter")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        engine.tell(a_run(3, "completed"))
        await deck.until(lambda: deck.main.run.has_ended, "the end")
        assert numbers(deck) == [2, 1, 3]
        await deck.press("k")
        assert numbers(deck) == [2, 1]
        assert deck.main.run.run_id == run_id(1)


async def test_a_launched_run_is_shown_whatever_the_filter() -> None:
    """A run just launched is shown even if the filter excludes it."""
    engine = FakeEngine(*SINGLES)
    async with opened(engine) as deck:
        await write(deck, "status:failed")
        await deck.press("enter")
        deck.main.show_launched(run_id(9))
        engine.tell(a_run(9))
        await deck.until(lambda: deck.main.run.run_id == run_id(9), "the new run")
        assert numbers(deck) == [9, 2]


@pytest.mark.parametrize("text", HOSTILE)
async def test_a_hostile_filter(text: str) -> None:
    """Text pasted into the filter is plain there and in the title."""
    from textual.events import Paste

    async with opened(FakeEngine(*a_group("running", "failed", meta_task=text, meta_preset=text)), (80, 24)) as deck:
        await write(deck, "")
        deck.app.post_message(Paste(text))
        await deck.pilot.pause()
        await deck.press("enter")
        await deck.pilot.pause()
        assert raw_controls(deck) == []
        assert deck.app.is_running


# --- sort and place --------------------------------------------------------------------------------------------------
async def test_sorts_in_turn() -> None:
    """`o` goes through the sorts in turn, and the title names the current one."""
    engine = FakeEngine(a_run(1, "completed", usage=Usage(input=9, cost=0.1)), a_run(2, "completed"), a_run(3))
    async with opened(engine) as deck:
        seen: list[tuple[str, list[int]]] = []
        for _ in CYCLE:
            seen.append((title(deck), numbers(deck)))
            await deck.press("o")
        assert seen[0] == ("Runs", [3, 2, 1])
        assert seen[1] == ("Runs · by cost", [3, 1, 2])
        assert [name for name, _ in seen[2:]] == [f"Runs · {sort.title}" for sort in CYCLE[2:]]
        assert title(deck) == "Runs"


async def test_the_cursor_keeps_its_line_on_the_screen() -> None:
    """The highlighted run stays on its screen line, in any sort, while other rows move."""
    engine = FakeEngine(*(a_run(number, "completed", usage=Usage(input=number)) for number in range(60)))
    async with opened(engine) as deck:
        runs = deck.main.runs
        await deck.press("o", "o", *["j"] * 30)
        chosen, line = deck.main.run.run_id, runs.cursor - runs.scroll_offset.y
        engine.tell(*(a_run(number, "completed", usage=Usage(input=500 - number)) for number in range(10)))
        await deck.until(lambda: runs.listing.row(0).run_id == run_id(0), "the new order")
        assert (deck.main.run.run_id, runs.cursor - runs.scroll_offset.y) == (chosen, line)


async def test_what_is_read_while_the_cursor_is_elsewhere_stays() -> None:
    """If the list is scrolled away from the cursor, the first line on the screen keeps its place."""
    engine = FakeEngine(*(a_run(number, "completed") for number in range(60)))
    async with opened(engine) as deck:
        runs = deck.main.runs
        runs.scroll_to(y=30, animate=False)
        await deck.until(lambda: runs.scroll_offset.y == 30, "the scroll")
        first = runs.listing.row(30)
        engine.tell(a_run(70), a_run(71))
        await deck.until(lambda: runs.row_count == 62, "the new runs")
        assert runs.listing.row(runs.scroll_offset.y) == first


async def test_a_run_that_ends_far_below_stays_in_sight() -> None:
    """The cursor follows its run to the finished ones, and the screen follows the cursor."""
    engine = FakeEngine(*(a_run(number) for number in range(40)))
    async with opened(engine) as deck:
        runs = deck.main.runs
        engine.tell(a_run(39, "completed"))
        await deck.until(lambda: deck.main.run.has_ended, "the end")
        assert runs.cursor == 39
        height = runs.scrollable_content_region.height
        assert runs.scroll_offset.y <= runs.cursor < runs.scroll_offset.y + height


# --- marks -----------------------------------------------------------------------------------------------------------
async def test_marks() -> None:
    """Space marks and moves down, or unmarks; actions apply to the marked runs."""
    async with opened(FakeEngine(*SINGLES)) as deck:
        assert targets(deck) == [3]
        await deck.press("space", "space")
        assert targets(deck) == [3, 2]
        assert (deck.main.action_context.marked, deck.main.run.run_id) == (2, run_id(1))
        assert deck.screen_text.count("◆") == 2
        await deck.until_text("2 selected")
        await deck.press("k", "space")
        assert targets(deck) == [3]


async def test_marking_all_that_are_shown() -> None:
    """`*` marks all shown runs, or unmarks them; marks outlive the filter, with a note if they are hidden."""
    async with opened(FakeEngine(*SINGLES, *GROUP)) as deck:
        await write(deck, "status:failed")
        await deck.press("enter")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        await deck.act("mark_all")
        assert targets(deck) == [11, 2]
        await deck.press("escape")
        assert targets(deck) == [11, 2]
        await write(deck, "functions")
        await deck.until_text("2 selected, 2 hidden")
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        await deck.act("mark_all")
        assert len(targets(deck)) == 7
        await deck.act("mark_all")
        assert deck.main.run_store.marked == set()


async def test_marking_a_head_marks_its_runs() -> None:
    """Space on the head marks each of its runs."""
    async with opened(FakeEngine(*GROUP, *SINGLES)) as deck:
        await deck.press("space")
        assert targets(deck) == [10, 11, 12, 13]
        await deck.press("k", "space")
        assert deck.main.action_context.marked == 0


async def test_a_run_that_vanished_is_not_marked() -> None:
    """A deleted run is not marked any more."""
    engine = FakeEngine(*SINGLES)
    async with opened(engine) as deck:
        await deck.act("mark_all")
        engine.tell(removed=[run_id(2)])
        await deck.until(lambda: targets(deck) == [3, 1], "the mark to go")


# --- unread ----------------------------------------------------------------------------------------------------------
async def unseen_deck(deck: Deck, engine: FakeEngine) -> None:
    engine.tell(a_run(1, "failed"), a_run(2, "completed"), a_run(3, "failed"))
    await deck.until_text("2 need you")


async def test_passing_by_is_not_looking() -> None:
    """Endings stay unread as the cursor passes, failures with an urgent sign, others with a calm one."""
    engine = FakeEngine(*(a_run(number) for number in range(1, 5)))
    async with opened(engine) as deck:
        await unseen_deck(deck, engine)
        await deck.press("j", "j", "j", "k", "k")
        lines = deck.rows(deck.main.runs)
        assert [line[1] for line in lines[1:5]] == [" ", "!", "•", "!"]
        assert len(deck.main.run_store.unseen) == 2


async def test_an_end_under_a_cursor_at_rest_was_not_looked_at() -> None:
    """A run that ends under a resting cursor is unread until it is opened."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        engine.tell(a_run(1, "failed"))
        await deck.until_text("1 needs you")
        await deck.pilot.pause(0.1)
        assert deck.main.run_store.unseen == {run_id(1)}
        await deck.press("enter")
        await deck.until(lambda: not deck.main.run_store.unseen, "the mark to go")


async def test_next_and_previous_that_need_me() -> None:
    """`]` and `[` go round the runs that need you, through a filter, and report if there are none. Without such runs
    they go to unread results.
    """
    engine = FakeEngine(*(a_run(number) for number in range(1, 5)))
    async with opened(engine) as deck:
        for key in ("]", "["):
            deck.app.clear_notifications()
            await deck.press(key)
            await deck.until(lambda: deck.toasts == ["No run needs you."], "the answer")
        await unseen_deck(deck, engine)
        visited: list[str] = []
        for key in ("]", "]", "]", "]", "["):
            await deck.press(key)
            visited.append(deck.main.run.run_id)
        assert visited == [run_id(3), run_id(1), run_id(3), run_id(1), run_id(3)]
        await write(deck, "status:running")
        await deck.press("enter")
        await deck.until(lambda: deck.main.runs.has_focus, "the list to have the keys")
        await deck.press("]")
        assert deck.main.run.run_id == run_id(3)
        assert numbers(deck) == [4, 3]
        await deck.press("m", "]", "m")
        await deck.until(lambda: not deck.main.run_store.needs_you, "the failures to be read")
        await deck.press("]")
        assert deck.main.run.run_id == run_id(2)


async def test_what_ended_before_the_start_is_unseen() -> None:
    """Runs that ended without an app are unread like others."""
    failed, over = a_run(1, "failed"), a_run(2, "completed")
    engine = FakeEngine(failed, over, a_run(3))
    engine.untold = (failed, over)
    async with opened(engine) as deck:
        await deck.until_text("1 needs you")
        assert [line[1] for line in deck.rows(deck.main.runs)[1:4]] == [" ", "•", "!"]
