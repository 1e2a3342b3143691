"""Stable screens: uncovered dialogs, the state after an action, and the remembered list layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.style import Style
from subdeck.tui.deck._bars import fitting
from subdeck.tui.deck._toasts import ends_text, only_counted, unseen_text
from subdeck.tui.keys.command import ActionContext, KeyContext
from subdeck.tui.keys.keymap import footer_hints, keys_line
from subdeck.tui.runs._rows import RowFlags, RunRow
from subdeck.tui.runs.column_layout import layout
from subdeck.tui.runs.order import ListLayout, list_layout_file
from subdeck.tui.transcript._matches import highlighter
from subdeck.tui.transcript._rows import Painter
from textual.events import MouseDown, MouseUp
from textual.geometry import Offset
from textual.widgets._toast import Toast

from ..fake_engine import FakeEngine, a_preset, a_run
from ..open_deck import Deck, opened
from ..runs.test_columns import NOW
from ..sample_runs import a_group


async def test_a_dialog_is_not_covered() -> None:
    """Toasts close when a dialog opens, and endings during the dialog are reported after it."""
    engine = FakeEngine(a_run(1, "failed"), a_run(2), a_run(3))
    async with opened(engine, (80, 24)) as deck:
        engine.tell(a_run(2, "failed", message="401"))
        await deck.until(lambda: deck.toasts, "the first toast")
        await deck.act("clean_up")
        await deck.until(lambda: len(deck.app.screen_stack) == 2, "the dialog")
        assert deck.toasts == []
        engine.tell(a_run(3, "failed"))
        await deck.until(lambda: deck.main.action_context.unseen == 2, "the end to be known")
        await deck.until(lambda: deck.main._toasts._waiting, "the end to wait")
        assert deck.toasts == []
        await deck.press("escape")
        await deck.until(lambda: deck.toasts == ["✗ failed  repo-scout ▸ task 3"], "the end to be told")


async def test_answers_do_not_pile_up() -> None:
    """At most three toasts are shown, the newest ones; a repeated text appears once."""
    async with opened(FakeEngine(a_run(1))) as deck:
        for text in ("one", "two", "three", "three", "four"):
            deck.main.notify(text)
        await deck.until(lambda: "four" in deck.toasts, "the last")
        assert deck.toasts == ["two", "three", "four"]


def test_ends_alike_are_told_in_one_line() -> None:
    """Attempts failing for one reason are one line with their number, no longer than the limit."""
    words = "the agent exited with code 0"
    copies = [a_run(number, "failed", message=words, meta_task="fix the parser") for number in (1, 2, 3)]
    told = ends_text([*copies, a_run(4, "completed", message="an answer " * 30)], 36).split("\n")
    assert len(told) == 2
    assert told[0].endswith("×3")
    assert all(len(line) <= 36 for line in told)


async def click(deck: Deck, place: Offset) -> None:
    """Press and release as the terminal reports it: Pilot bypasses the app."""
    for kind in (MouseDown, MouseUp):
        deck.app.post_message(kind(None, *place, 0, 0, 1, False, False, False, *place))
    await deck.pilot.pause()


def test_a_toast_names_the_task() -> None:
    """A toast names the task of its run, after the preset if there is room; in a line with others it is shortened."""
    ended = [
        a_run(number, "failed", message="401 no", meta_task=f"{task} the error paths of the parser")
        for number, task in enumerate(("check", "[b]read"))
    ]
    assert "✗ failed  repo-scout ▸ check the error paths of the parser" == ends_text(ended[:1], 60).split("\n")[0]
    assert "✗ failed  repo-scout ▸ check the error paths of…" == ends_text(ended[:1], 49).split("\n")[0]
    assert "✗ failed  check the error paths of…" == ends_text(ended[:1], 36).split("\n")[0]
    assert ["✗ failed  check the e…: model_e…", "✗ failed  [b]read the…: model_e…"] == ends_text(ended, 36).split("\n")
    assert "▸ check the error paths" in unseen_text(ended[:1])
    described = a_run(1, "failed", meta_preset="", meta_description="errors")
    assert "✗ failed  errors" == ends_text([described]).split("\n")[0]


def test_many_ends_alike_are_told_by_their_preset() -> None:
    """Runs of one preset that fail for one reason need one line if their tasks need too many."""
    many = [a_run(number, "failed", message="401 no", meta_task=f"{number} is to do") for number in range(1, 9)]
    assert ends_text(many).split("\n") == ["✗ failed  repo-scout: model_error: 401 no ×8"]
    assert only_counted(many, 56) == []
    several = [a_run(number, "completed", message=f"{number}", meta_task=f"see {number}") for number in range(1, 9)]
    told = ends_text(several).split("\n")
    assert told[0] == "✓ completed  see 1: 1"
    assert told[-1] == "and 4 runs more"
    assert only_counted(several, 56) == several[4:]


async def test_a_click_on_a_toast_closes_it_alone() -> None:
    """A click on a toast only closes it, even as the second press of a double click."""
    async with opened(FakeEngine(*(a_run(number) for number in range(1, 9))), (80, 24)) as deck:
        deck.app.notify("done", markup=False)
        await deck.until(lambda: deck.app.screen.query(Toast), "the toast")
        place = deck.app.screen.query_one(Toast).region.offset
        assert deck.main.runs.region.contains_point(place)
        await deck.press("3")
        await deck.until(lambda: deck.main.transcript.has_focus, "the keys in the transcript")
        for _ in range(3):
            await click(deck, place)
        await deck.until(lambda: not deck.toasts, "the toast to go")
        assert (deck.main.runs.cursor, deck.main.transcript.has_focus) == (0, True)
        deck.clock.now += 1
        await click(deck, place)
        await deck.until(lambda: deck.main.runs.cursor, "the click on the row")


async def test_a_press_where_a_toast_has_just_gone() -> None:
    """A press where a toast has just disappeared does nothing; a press beside it acts."""
    async with opened(FakeEngine(*(a_run(number) for number in range(1, 9))), (80, 24)) as deck:
        deck.app.notify("done", markup=False, timeout=3600)
        await deck.until(lambda: deck.app.screen.query(Toast), "the toast")
        toast = deck.app.screen.query_one(Toast)
        await deck.until(lambda: toast.region.area, "its place")
        place = toast.region.offset
        toast._expire()
        await deck.until(lambda: not deck.app.screen.query(Toast), "the toast to go")
        await click(deck, place)
        assert deck.main.runs.cursor == 0
        await click(deck, Offset(place.x - 20, place.y))
        await deck.until(lambda: deck.main.runs.cursor, "the click on the row")


async def test_acting_on_a_run_looks_at_it() -> None:
    """A failed run that is opened or stopped is marked as read."""
    engine = FakeEngine(a_run(1), a_run(2))
    async with opened(engine) as deck:
        engine.tell(a_run(2, "failed"))
        await deck.until(lambda: deck.main.action_context.unseen == 1, "the marker")
        await deck.press("]")
        await deck.until(lambda: deck.main.run and deck.main.run.status == "failed", "the failed one")
        deck.main.runs.mark_unseen([a_run(2, "failed")])
        assert deck.main.action_context.unseen == 1
        await deck.press("i")
        await deck.until(lambda: len(deck.app.screen_stack) == 2, "the detail")
        assert deck.main.action_context.unseen == 0


async def test_sort_and_folds_are_remembered() -> None:
    """The next app on the project has the last one's sorting and folds."""
    runs = (*a_group("completed", "completed"), a_run(9, "completed"))
    async with opened(FakeEngine(*runs)) as deck:
        await deck.press("2", "g", "o")
        await deck.until(lambda: list_layout_file("/src/shop").read().sort == "by cost", "the sort in the file")
        await deck.until(lambda: len(deck.main.runs.listing) == 4, "the rows")
        unit = next(iter(deck.main.runs.listing._groups))
        deck.main.runs.select(deck.main.runs.listing.group(unit).members[0])  # type: ignore[union-attr]
        await deck.act("fold")
        await deck.until(lambda: list_layout_file("/src/shop").read().folded == (unit,), "the fold in the file")
    async with opened(FakeEngine(*runs)) as deck:
        await deck.until(lambda: "by cost" in str(deck.main.runs.border_title), "the sort")
        await deck.until(lambda: len(deck.main.runs.listing) == 2, "the group to be folded")


def test_a_list_file_that_is_no_such_thing_remembers_nothing() -> None:
    """A damaged list file is ignored, and the list begins in its usual order."""
    memory = list_layout_file("/a")
    memory.write(ListLayout("x", "by cost"))
    for text in ("status:failed", "[]", '{"sort": "by luck"}', '{"folded": [1]}', '"\\ud800"'):
        Path(memory._path).write_text(text)
        assert memory.read() == ListLayout()


@pytest.mark.parametrize(("words", "marked"), [("auth", ["Auth", "auth"]), ("Auth", ["Auth"])])
def test_marks_mind_case_as_the_search_does(words: str, marked: list[str]) -> None:
    """Only a match, by the search's rules for upper and lower case, is highlighted."""
    painter = Painter(lambda _: Style.null())
    painter.highlight(highlighter(words))
    assert painter._words is not None
    assert painter._words.findall("Auth auth") == marked


@pytest.mark.parametrize(("width", "shown"), [(20, False), (80, True)])
async def test_hardly_any_screen_has_no_column_of_times(width: int, shown: bool) -> None:
    """At 20 columns the transcript has no column of times."""
    async with opened(FakeEngine(a_run(1)), (width, 24)) as deck:
        deck.main.transcript.focus()
        await deck.until(lambda: deck.main.transcript.display, "the transcript")
        await deck.pilot.pause()
        assert (deck.main.transcript.document.width < deck.main.transcript.size.width - 6) == shown


def test_a_search_says_how_it_ends() -> None:
    """At 80 columns the footer shows how to end a search."""
    hints = footer_hints(ActionContext(key_context=KeyContext.SEARCH, preset=a_preset(), run=a_run(1)))
    shown = {hint.key for hint in fitting(hints, 80 - len(" bg: 12 running / 50 total "))}
    assert {"n", "N", "esc", "?"} <= shown


def test_what_is_only_read_is_closed() -> None:
    """A detail, a list and the help are closed, not cancelled."""
    assert [
        "esc close" in keys_line(place).split("   ")
        for place in (KeyContext.DETAIL, KeyContext.READING, KeyContext.HELP)
    ] == [True] * 3
    assert "esc cancel" in keys_line(KeyContext.LAUNCH)


def test_hardly_any_list_says_the_state_by_its_sign() -> None:
    """At 20 columns a row has preset and time, and the sign before them shows the state."""
    row = "".join(text for text, _ in RunRow(a_run(1, "failed"), RowFlags(needs_you=True), layout(20)).cells(NOW))
    assert row.startswith("! ✗ repo-")
    assert row.endswith("0:31")
    assert len(row) == 20


async def test_a_launch_beside_a_run_tells_of_its_answer() -> None:
    """The launch dialog mentions `{previous}` where it can be used."""
    engine = FakeEngine(a_run(1, "completed"))
    async with opened(engine, (80, 24)) as deck:
        await deck.press("N")
        await deck.until_text("What should the agent do?  ({previous} is the answer of 000001)")


def test_a_zoomed_transcript_says_the_way_back() -> None:
    """A zoomed transcript does not offer zooming, but shows the key to go back."""
    run = a_run(1)
    zoomed = footer_hints(ActionContext(key_context=KeyContext.TRANSCRIPT, run=run, zoomed=True))
    usual = footer_hints(ActionContext(key_context=KeyContext.TRANSCRIPT, run=run))
    assert "zoom" in [hint.name for hint in usual]
    assert "back" not in [hint.name for hint in usual]
    assert "zoom" not in [hint.name for hint in zoomed]
    assert ("esc", "back") in [hint[1:3] for hint in fitting(zoomed, 53)]
