"""Sizes: the visible panes, borders moved by key and mouse, and tiny terminals."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from msgspec import to_builtins
from subdeck.core.paths import state_file
from subdeck.tui.deck._shape import (
    BESIDE,
    LEAST_ABOVE,
    LEAST_BESIDE,
    LEAST_PRESETS,
    LEAST_RUNS,
    LEAST_TRANSCRIPT,
    Room,
    Shape,
    above_height,
    left_width,
    presets_width,
    shape_file,
    visible_panes,
    with_above,
    with_presets,
)
from subdeck.tui.feed.messages import PresetsRead
from subdeck.tui.keys.command import PANES, KeyContext
from subdeck.tui.layout_file import LayoutFile
from subdeck.tui.runs.column_layout import GUTTER, TASK, WITH_AGENT, layout

from ..fake_engine import FakeEngine, a_preset, a_run, run_id, some_events
from ..open_deck import Deck, opened

STATE = "layout.json"
ROOMY = (160, 40)
"""Room for presets, runs and transcript."""
TINY = [(1, 1), (2, 2), (20, 5), (10, 40), (300, 3), (5, 80)]


def an_engine() -> FakeEngine:
    engine = FakeEngine(a_run(1, "failed", message="401"), a_run(2), presets=[a_preset(), a_preset("reviewer")])
    engine.write(run_id(2), *some_events())
    return engine


def sizes(deck: Deck) -> tuple[int, int]:
    """Return the columns of the presets and the rows above the transcript."""
    return deck.main.presets.outer_size.width, deck.main.query_one("#above").outer_size.height


def remembered() -> dict[str, float | None]:
    file = Path(state_file(), STATE)
    return json.loads(file.read_text()) if file.exists() else {}


# --- pure --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [100, 120, 200, 300])
@pytest.mark.parametrize("share", [None, 0.001, 0.3, 0.999])
def test_no_pane_beside_another_gets_too_narrow(width: int, share: float | None) -> None:
    """Presets and runs keep their minimum width for any stored share."""
    columns = presets_width(Shape(presets=share), Room(width, 30))
    assert LEAST_PRESETS <= columns <= width - LEAST_RUNS


def test_a_task_is_readable_beside_a_transcript() -> None:
    """With all three panes in 200 columns, a task has 30 characters, and the transcript 70 columns."""
    room = Room(200, 50)
    left = left_width(Shape(), room)
    frame = 2
    shown = layout(left - presets_width(Shape(), room) - frame, WITH_AGENT)
    (task,) = [place.width for place in shown.spans if place.column is TASK]
    assert (30, 70) == (task - GUTTER, room.width - left)


@pytest.mark.parametrize("height", [12, 24, 50, 80])
@pytest.mark.parametrize("share", [None, 0.001, 0.3, 0.999])
def test_no_pane_above_another_gets_too_low(height: int, share: float | None) -> None:
    """The transcript and the panes above it keep their minimum height for any stored share."""
    room = Room(120, height)
    rows = above_height(Shape(above=share), room)
    assert LEAST_ABOVE <= rows <= room.deck_height - LEAST_TRANSCRIPT


@pytest.mark.parametrize("height", [12, 24, 36, 60])
@pytest.mark.parametrize("request_rows", [0, 3, 12, 400])
def test_a_request_takes_rows_from_the_runs(height: int, request_rows: int) -> None:
    """A request gets up to 60 % of the rows if the panes above it and the transcript keep their minimum."""
    room = Room(120, height)
    above = above_height(Shape(), room, request_rows)
    assert LEAST_ABOVE <= above <= above_height(Shape(), room)
    below = room.deck_height - above - LEAST_TRANSCRIPT
    assert above == LEAST_ABOVE or below >= min(request_rows, round(0.6 * room.deck_height))


def test_a_wish_is_a_share() -> None:
    """A chosen share scales with the terminal: twice as large makes each pane twice as large, and back again."""
    small, large = Room(120, 32), Room(240, 62)
    shape = with_above(with_presets(Shape(), small, 40), small, 20)
    assert (40, 20) == (presets_width(shape, small), above_height(shape, small))
    assert (80, 40) == (presets_width(shape, large), above_height(shape, large))


def test_a_wish_beyond_the_bound_is_the_bound() -> None:
    """Keys pressed at the bound do not have to be pressed as often to come back from it."""
    room = Room(120, 30)
    shape = with_presets(Shape(), room, 500)
    assert 120 - LEAST_RUNS == presets_width(shape, room)
    assert 120 - LEAST_RUNS - 4 == presets_width(with_presets(shape, room, presets_width(shape, room) - 4), room)


def test_little_room_is_for_the_pane_with_the_keys() -> None:
    """Below 40 columns or 12 rows only the focused pane is visible."""
    for room in (Room(39, 50), Room(200, 11)):
        assert visible_panes(room, KeyContext.TRANSCRIPT, None, Shape()) == {KeyContext.TRANSCRIPT}
    assert len(visible_panes(Room(40, 12), KeyContext.TRANSCRIPT, None, Shape())) == 2


@pytest.mark.parametrize(
    ("width", "place", "shape", "panes"),
    [
        (99, KeyContext.PRESETS, Shape(), {KeyContext.PRESETS, KeyContext.TRANSCRIPT}),
        (100, KeyContext.PRESETS, Shape(), set(PANES)),
        (139, KeyContext.RUNS, Shape(), {KeyContext.RUNS, KeyContext.TRANSCRIPT}),
        (139, KeyContext.TRANSCRIPT, Shape(), {KeyContext.RUNS, KeyContext.TRANSCRIPT}),
        (139, KeyContext.RUNS, Shape(presets=0.2), set(PANES)),
        (140, KeyContext.TRANSCRIPT, Shape(), set(PANES)),
    ],
)
def test_presets_are_folded_where_runs_need_the_room(
    width: int, place: KeyContext, shape: Shape, panes: set[KeyContext]
) -> None:
    """Below 140 columns presets are shown while focused, or if the user gave them a width."""
    assert visible_panes(Room(width, 30), place, None, shape) == panes


@pytest.mark.parametrize(
    ("width", "place", "empty", "panes"),
    [
        (160, KeyContext.RUNS, {KeyContext.PRESETS}, {KeyContext.RUNS, KeyContext.TRANSCRIPT}),
        (160, KeyContext.PRESETS, {KeyContext.PRESETS}, set(PANES)),
        (160, KeyContext.PRESETS, {KeyContext.RUNS}, {KeyContext.PRESETS, KeyContext.RUNS}),
        (160, KeyContext.TRANSCRIPT, {KeyContext.RUNS}, set(PANES)),
        (120, KeyContext.PRESETS, set(PANES), {KeyContext.PRESETS, KeyContext.RUNS}),
        (80, KeyContext.PRESETS, {KeyContext.RUNS}, {KeyContext.PRESETS}),
        (80, KeyContext.RUNS, {KeyContext.RUNS}, {KeyContext.RUNS}),
    ],
)
def test_an_empty_pane_gives_its_room_away(
    width: int, place: KeyContext, empty: set[KeyContext], panes: set[KeyContext]
) -> None:
    """Without presets, or without runs and so without a transcript, the other panes get the room; the focus stays."""
    assert visible_panes(Room(width, 30), place, None, Shape(), frozenset(empty)) == panes


@pytest.mark.parametrize("width", [100, 120, 200])
def test_presets_get_the_room_of_missing_runs(width: int) -> None:
    """Without runs only the columns for the keys beside the presets are left to them, unless you chose a width."""
    assert presets_width(Shape(), Room(width, 30), has_transcript=False) == width - LEAST_RUNS
    chosen = Shape(presets=0.25)
    assert presets_width(chosen, Room(width, 30), has_transcript=False) == max(LEAST_PRESETS, width // 4)


@pytest.mark.parametrize("share", [None, 0.001, 0.999])
@pytest.mark.parametrize("width", [BESIDE, 200, 300])
def test_no_pane_of_three_gets_too_narrow(width: int, share: float | None) -> None:
    """Beside the transcript, presets and runs keep their minimum width, and so does the transcript."""
    room = Room(width, 50)
    left = left_width(Shape(left=share), room)
    presets = presets_width(Shape(presets=share, left=share), room)
    assert left <= width - LEAST_BESIDE
    assert presets >= LEAST_PRESETS
    assert left - presets >= LEAST_RUNS


@pytest.mark.parametrize("text", ["", "[]", "{", '{"presets": "x"}', '{"presets": -3, "above": 7}', "\x00"])
def test_a_state_file_without_sense(text: str) -> None:
    """A damaged state file is ignored without an error."""
    file = Path(state_file(), STATE)
    file.parent.mkdir(parents=True)
    file.write_text(text)
    assert shape_file().read() == Shape()


def test_a_shape_is_read_as_it_was_written() -> None:
    """A shape is read back unchanged, and no other file is left."""
    shape_file().write(Shape(0.25, None))
    assert shape_file().read() == Shape(0.25, None)
    assert [file.name for file in Path(state_file()).iterdir()] == [STATE]


async def test_what_was_remembered_last_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file has the shape of the last key, even if an earlier write is slower, and no error is shown."""
    written: list[Shape] = []
    begun, go_on = threading.Event(), threading.Event()

    def write_slowly_at_first(_: LayoutFile[Shape], shape: Shape) -> None:
        if not begun.is_set():
            begun.set()
            go_on.wait(20)
        written.append(shape)

    monkeypatch.setattr(LayoutFile, "write", write_slowly_at_first)
    async with opened(an_engine(), (160, 40)) as deck:
        await deck.act("wider")
        await deck.until(begun.is_set, "the first write")
        await deck.act("wider", "wider")
        go_on.set()
        await deck.until(lambda: len(written) == 3, "the writes")
        first, second, last = (shape.presets or 0 for shape in written)
        assert first < second == last


# --- by key ------------------------------------------------------------------------------------------------------


async def test_keys_move_the_borders() -> None:
    """Actions resize the presets and the transcript and reset both; the next app has the same sizes."""
    async with opened(an_engine(), ROOMY) as deck:
        columns, rows = sizes(deck)
        await deck.act("wider", "wider", "narrower", "wider", "lower")
        await deck.until(lambda: sizes(deck) == (columns + 8, rows + 2), "the borders to be elsewhere")
        await deck.act("higher", "higher")
        await deck.until(lambda: sizes(deck) == (columns + 8, rows - 2), "a higher transcript")
        assert deck.main.panes.key_context is KeyContext.RUNS
        shape = to_builtins(deck.main.panes._shape)  # pyright: ignore[reportPrivateUsage]
        await deck.until(lambda: remembered() == shape, "the file")
    async with opened(an_engine(), ROOMY) as deck:
        await deck.until(lambda: sizes(deck) == (columns + 8, rows - 2), "the same borders")
        await deck.act("reset_layout")
        await deck.until(lambda: sizes(deck) == (columns, rows), "the first borders")
        await deck.until(lambda: remembered() == {"presets": None, "above": None, "left": None}, "the file")


async def test_another_terminal_size_and_back() -> None:
    """After a terminal is made small and large again the borders are in their old places."""
    async with opened(an_engine(), ROOMY) as deck:
        await deck.act("wider", "wider", "wider", "lower", "lower")
        before = sizes(deck)
        for size in ((100, 24), (200, 50), (80, 24), (20, 5), (1, 1), ROOMY):
            await deck.pilot.resize_terminal(*size)
            await deck.pilot.pause()
        await deck.until(lambda: sizes(deck) == before, "the borders where they were")


@pytest.mark.parametrize(
    ("size", "action", "words"),
    [
        ((80, 24), "wider", "not side by side"),
        ((20, 5), "lower", "Only one pane is shown"),
    ],
)
async def test_a_border_that_is_not_there(size: tuple[int, int], action: str, words: str) -> None:
    """An action on an invisible border gives the reason, and stores nothing."""
    async with opened(an_engine(), size) as deck:
        await deck.act(action)
        assert words in deck.toasts[0]
        assert remembered() == {}


async def test_zoomed_panes_have_no_border() -> None:
    """While a pane is zoomed no size changes."""
    async with opened(an_engine(), ROOMY) as deck:
        before = sizes(deck)
        await deck.act("zoom", "lower", "narrower", "zoom")
        await deck.until(lambda: sizes(deck) == before, "the same borders")


async def test_a_readonly_app_remembers_nothing() -> None:
    """A read-only app resizes panes, but writes nothing."""
    async with opened(an_engine(), ROOMY, readonly=True) as deck:
        columns, _ = sizes(deck)
        await deck.act("wider")
        await deck.until(lambda: sizes(deck)[0] == columns + 4, "a wider pane")
        await deck.pilot.pause()
    assert remembered() == {}


# --- by mouse ----------------------------------------------------------------------------------------------------


async def drag(deck: Deck, start: tuple[int, int], end: tuple[int, int]) -> None:
    await deck.pilot.mouse_down(offset=start)
    await deck.pilot.hover(offset=((start[0] + end[0]) // 2, (start[1] + end[1]) // 2))
    await deck.pilot.hover(offset=end)
    await deck.pilot.mouse_up(offset=end)


async def test_the_border_beside_is_dragged() -> None:
    """Either frame line can be dragged, and the focus stays on its pane."""
    async with opened(an_engine(), ROOMY) as deck:
        await deck.press("3")
        columns, rows = sizes(deck)
        for held in (columns - 1, columns + 5):
            await drag(deck, (held, 4), (held + 5, 6))
        await deck.until(lambda: sizes(deck) == (columns + 10, rows), "the border to be elsewhere")
        assert deck.main.panes.key_context is KeyContext.TRANSCRIPT
        assert deck.app.mouse_captured is None
        await deck.until(lambda: remembered().get("presets"), "the file")


@pytest.mark.parametrize("size", [(120, 30), (80, 24)])
async def test_the_border_below_is_dragged(size: tuple[int, int]) -> None:
    """Dragging works with stacked panes too, and stops at the minimum height."""
    async with opened(an_engine(), size) as deck:
        rows = sizes(deck)[1]
        await drag(deck, (40, rows), (40, rows + 3))
        await deck.until(lambda: sizes(deck)[1] == rows + 3, "the border to be elsewhere")
        await drag(deck, (40, rows + 3), (40, size[1] - 1))
        await deck.until(
            lambda: deck.main.transcript.outer_size.height == LEAST_TRANSCRIPT, "the transcript at its least"
        )
        assert deck.main.panes.key_context is KeyContext.RUNS


async def test_the_transcript_stands_beside_the_runs() -> None:
    """From 180 columns on the transcript is beside the runs; its border moves by key and mouse, and is remembered."""
    async with opened(an_engine(), (200, 50)) as deck:
        runs, transcript = deck.main.runs, deck.main.transcript
        assert (runs.region.y, runs.region.bottom) == (transcript.region.y, transcript.region.bottom)
        before = transcript.outer_size.width
        await deck.act("lower", "lower", "higher")
        await deck.until(lambda: transcript.outer_size.width == before - 4, "a narrower transcript")
        x = transcript.region.x
        await drag(deck, (x, 10), (x + 10, 12))
        await deck.until(lambda: transcript.region.x == x + 10, "the border to be elsewhere")
        await deck.press("/", *"rev")
        await deck.until_text("/ rev")
        await deck.press("escape", "3", "/", *"file")
        await deck.until_text("/ file")
        await deck.press("escape")
        await deck.until(lambda: remembered().get("left"), "the file")
        await deck.pilot.resize_terminal(179, 50)
        await deck.until(lambda: transcript.region.y > runs.region.y, "the transcript below the runs")
        await deck.pilot.resize_terminal(200, 50)
        await deck.until(lambda: transcript.region.x == x + 10, "the transcript where it was")


async def test_folded_presets_come_with_the_keys() -> None:
    """At 120 columns presets are hidden unless focused, which gives the runs more room; a chosen width keeps them."""
    async with opened(an_engine(), (120, 30)) as deck:
        assert not deck.main.presets.display
        await deck.press("1")
        await deck.until_text("reviewer")
        assert deck.main.runs.display
        await deck.press("2")
        await deck.until(lambda: not deck.main.presets.display, "the presets to be folded")
        await deck.act("presets", "wider", "runs")
        await deck.until(lambda: deck.main.presets.display and deck.main.runs.has_focus, "the presets beside the runs")


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (200, 50)])
async def test_the_first_run_brings_its_panes(size: tuple[int, int]) -> None:
    """Without runs presets have the whole height; the first run brings the transcript, the last one takes it along."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine, size) as deck:
        await deck.until(lambda: deck.main.presets.outer_size.height == size[1] - 2, "the whole height")
        assert not deck.main.transcript.display
        engine.tell(a_run(1))
        await deck.until(lambda: deck.main.transcript.display, "the transcript")
        assert deck.main.panes.key_context is KeyContext.PRESETS
        await deck.press("2")
        await deck.until_text("task 1")
        engine.tell(removed=[run_id(1)])
        await deck.until(lambda: not deck.main.transcript.display, "the room of the transcript again")
        await deck.press("3")
        await deck.until_text("transcript appears here")


async def test_without_presets_runs_have_the_width() -> None:
    """In a wide terminal without presets the runs begin at the left edge; the first preset brings its pane."""
    engine = FakeEngine(a_run(1))
    async with opened(engine, ROOMY) as deck:
        await deck.until(lambda: not deck.main.presets.display, "the presets to be folded")
        assert deck.main.runs.outer_size.width == ROOMY[0]
        await deck.press("1")
        await deck.until_text("No presets yet.")
        await deck.press("2")
        await deck.until(lambda: not deck.main.presets.display, "the presets to be folded again")
        deck.main.show_presets(PresetsRead(FakeEngine(presets=[a_preset()]).catalog))
        await deck.until(lambda: deck.main.presets.display, "the pane of the preset")


async def test_a_click_beside_a_border_is_a_click() -> None:
    """A click beside a border focuses the pane and moves nothing."""
    async with opened(an_engine(), ROOMY) as deck:
        before = sizes(deck)
        await deck.pilot.click(offset=(5, 3))
        await deck.until(lambda: deck.main.panes.key_context is KeyContext.PRESETS, "the presets to have the keys")
        assert sizes(deck) == before
        assert remembered() == {}


# --- terminals of any size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [*TINY, (80, 24), (100, 30), (120, 30), (200, 50), (300, 80)])
async def test_any_size_and_back(size: tuple[int, int]) -> None:
    """At any size nothing raises, every pane, the help and a dialog open, and nothing is wider than the terminal."""
    async with opened(an_engine(), ROOMY) as deck:
        await deck.pilot.resize_terminal(*size)
        await deck.press("1", "2", "3", "z", "j", "escape", "escape", "?", "escape", "n", "escape")
        lines = deck.screen_text.split("\n")
        assert (size[1], size[0]) == (len(lines), max(map(len, lines)))
        await deck.pilot.resize_terminal(*ROOMY)
        for text in ("─ Presets ─", "─ Runs ─", "✗ failed", "src/file_2.py", "bg: 1 running / 2 total"):
            await deck.until_text(text)


@pytest.mark.parametrize(("key", "text"), [("2", "✗"), ("3", "reading"), ("1", "reviewer")])
async def test_a_tiny_terminal_shows_the_pane_with_the_keys(key: str, text: str) -> None:
    """At 20x5 the focused pane has the screen without a frame, and the counts are below it."""
    async with opened(an_engine(), (20, 5)) as deck:
        await deck.press(key)
        await deck.until_text(text)
        assert not set("╭╮╰╯│─") & set(deck.screen_text)
        assert "●1/2" in deck.screen_text.split("\n")[-1]


async def test_narrow_and_low_goes_without_the_header_only_when_it_must() -> None:
    """At 80x10 the single pane keeps its frame and the header is shown; at 80x7 both are hidden."""
    async with opened(an_engine(), (80, 10)) as deck:
        await deck.until_text("─ Runs ─")
        assert "subdeck" in deck.screen_text
        await deck.pilot.resize_terminal(80, 7)
        await deck.until(lambda: "─ Runs ─" not in deck.screen_text, "the frame to go")
        assert "subdeck" not in deck.screen_text
