"""The main screen: its content, which stays true while runs change."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from subdeck.core.presets.catalog import PresetProblem
from subdeck.core.run.events import Request
from subdeck.core.run.model import LaunchedBy, PresetSource, RequestKind, RunReason, RunStatus, Usage
from subdeck.core.run.need import Need
from subdeck.core.run.placement import Place, PlaceState
from subdeck.tui.keys.command import KeyContext

from ..fake_engine import FakeEngine, a_preset, a_run, ended, run_id, some_events
from ..open_deck import opened

pytestmark = pytest.mark.quick

SIZES = [(80, 24), (120, 30), (200, 50)]


def busy_engine() -> FakeEngine:
    engine = FakeEngine(
        a_run(1, "completed", message="31 functions in 6 files", usage=Usage(input=2000)),
        a_run(2, "failed", message="401 Invalid key"),
        a_run(3, "queued", ahead=2),
        a_run(4, activity="Reading src/auth.ts", usage=Usage(input=10_000, output=400, cost=0.31)),
        presets=[a_preset(), a_preset("reviewer", source=PresetSource.GLOBAL)],
        problems=[
            PresetProblem(
                path="/p/broken.md", message="name is missing", line=2, source=PresetSource.PROJECT, name="broken"
            )
        ],
    )
    engine.write(run_id(4), *some_events())
    return engine


@pytest.mark.parametrize("size", SIZES)
async def test_the_footer_counts_background_runs_alone(size: tuple[int, int]) -> None:
    """The footer has one format; with enough room the header adds runs in a shell, in a parent or unreachable."""
    asks = Request(id="q1", kind=RequestKind.PERMISSION, title="wants to run a command", command="make")
    away = Place(state=PlaceState.OUT_OF_REACH, host="h07")
    engine = FakeEngine(
        a_run(1, meta_background=False, meta_launched_by=LaunchedBy("operator", "cli")),
        a_run(2, "queued", meta_background=False, meta_launched_by=LaunchedBy("operator", "cli")),
        a_run(3, meta_background=False, meta_launched_by=LaunchedBy("parent", "mcp")),
        a_run(4, requests=(asks,), meta_talk=True),
        a_run(5, elsewhere=True, place=away, meta_runner="hosts"),
        a_run(6, "completed"),
    )
    async with opened(engine, size) as deck:
        parts = " (1 in a shell, 1 in a parent, 1 unreachable)" if size[0] > 80 else ""
        await deck.until_text(f"4 running{parts}, 1 queued")
        assert "1 needs input" in deck.screen_text.splitlines()[0]
        assert deck.screen_text.splitlines()[-1].startswith(" bg: 2 running / 3 total  ")
        engine.tell(a_run(1, "failed", meta_background=False))
        parts = " (1 in a parent, 1 unreachable)" if size[0] > 80 else ""
        await deck.until_text(f"3 running{parts}, 1 queued")


async def test_the_header_drops_the_least_urgent_needs_first() -> None:
    """At 80 columns the number of running runs stays beside the most urgent needs."""
    async with opened(busy_engine(), SIZES[0]) as deck:
        await deck.until_text("1 running, 1 queued")
        deck.main._header.show_needs(dict.fromkeys(Need, 2))
        await deck.until_text("/src/shop  ? 2 need input  ✗ 2 failed   ")
        assert deck.screen_text.splitlines()[0].rstrip().endswith("   1 running, 1 queued")


@pytest.mark.parametrize("size", SIZES)
async def test_panes_show_what_there_is(size: tuple[int, int]) -> None:
    """At each size runs, transcript, agent, figures and the background count are on the screen."""
    async with opened(busy_engine(), size) as deck:
        await deck.until_text("Finished reading src/file_2.py")
        shown = deck.screen_text
        for text in (" ● ", " ◌ ", " ✓ ", " ✗ ", "2 ahead", "Reading src/", "10k", "offline"):
            assert text in shown
        assert "/src/shop" in shown
        assert "1 running, 1 queued" in shown
        assert "today 12k tok $0.31" in shown
        assert "bg: 2 running / 4 total" in shown
        assert max(len(line) for line in shown.split("\n")) <= size[0]


async def test_presets_show_origin_and_broken_files() -> None:
    """A preset has its origin beside it; an unusable file is listed with its reason."""
    async with opened(busy_engine()) as deck:
        await deck.until(lambda: deck.main.presets.row_count == 3, "three rows")
        await deck.press("1")
        rows = deck.rows(deck.main.presets)
        assert rows[0].split()[-2:] == ["repo-scout", "project"]
        assert rows[1].split() == ["reviewer", "global"]
        assert rows[2].split() == ["!broken", "project"]
        await deck.press("1", "G")
        await deck.until_text("✗ line 2: name is")


async def test_narrow_screens_stack() -> None:
    """At 80 columns key 1 opens presets over the runs, and Escape closes them."""
    async with opened(busy_engine(), (80, 24)) as deck:
        assert "Presets" not in deck.screen_text
        await deck.press("1")
        await deck.until_text("reviewer")
        assert not deck.main.runs.display
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.has_focus, "the runs to have the keys")
        assert not deck.main.presets.display


async def test_empty_state_teaches() -> None:
    """Without presets and runs the screen names the directory of presets and the way to run without one."""
    async with opened(FakeEngine()) as deck:
        await deck.until_text("No presets yet.")
        assert "/src/shop/.pi/subagents" in deck.screen_text
        assert "No runs yet." in deck.screen_text
        assert "n  launch the highlighted preset or a one-off run" in deck.screen_text
        assert deck.main.panes.key_context is KeyContext.PRESETS


async def test_presets_follow_their_files() -> None:
    """When a preset file changes, the list is reloaded and the selection stays on its preset."""
    engine = busy_engine()
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.row_count == 3, "three rows")
        await deck.press("1", "j")
        assert deck.main.presets.preset.name == "reviewer"
        engine.catalog = replace(engine.catalog, presets=(a_preset("aaa"), *engine.catalog.presets))
        engine.tell(presets_changed=True)
        await deck.until(lambda: deck.main.presets.row_count == 4, "the new preset")
        assert deck.main.presets.preset.name == "reviewer"


async def test_selection_stays_on_its_run() -> None:
    """New and finished runs above never move the cursor to another run."""
    engine = FakeEngine(*(a_run(number, "completed") for number in range(40)))
    async with opened(engine, (120, 30)) as deck:
        await deck.press("2", *["j"] * 20)
        chosen = deck.main.run.run_id
        place = deck.main.runs.cursor - deck.main.runs.scroll_offset.y
        engine.tell(*(a_run(number) for number in range(50, 55)))
        await deck.until(lambda: deck.main.runs.row_count == 45, "the new runs")
        assert deck.main.run.run_id == chosen
        assert deck.main.runs.cursor - deck.main.runs.scroll_offset.y == place
        engine.tell(a_run(52, "completed"), removed=[run_id(39)])
        await deck.until(lambda: deck.main.runs.row_count == 44, "the deleted run to go")
        assert deck.main.run.run_id == chosen


async def test_a_deleted_selection_goes_to_its_neighbour() -> None:
    """When the selected run is deleted, the run in its row is selected and shown."""
    engine = FakeEngine(*(a_run(number, "completed") for number in (1, 2, 3)))
    async with opened(engine) as deck:
        await deck.press("2", "j")
        engine.tell(removed=[run_id(2)])
        await deck.until(lambda: deck.main.run.run_id == run_id(1), "the neighbour")
        await deck.until(lambda: deck.main.transcript.run_id == run_id(1), "its transcript")


async def test_counts_follow_at_once() -> None:
    """The footer counts background runs as they start and finish."""
    engine = FakeEngine(a_run(1), a_run(2, meta_background=False))
    async with opened(engine) as deck:
        await deck.until_text("bg: 1 running / 1 total")
        engine.tell(a_run(3))
        await deck.until_text("bg: 2 running / 2 total")
        engine.tell(a_run(1, "completed"))
        await deck.until_text("bg: 1 running / 2 total")


async def test_quit_says_what_goes_on() -> None:
    """Quitting leaves runs running, with a message about them."""
    engine = FakeEngine(a_run(1), a_run(2))
    async with opened(engine) as deck:
        await deck.press("escape", "escape", "ctrl+c")
        assert deck.app.is_running
        assert "q quits. Runs continue in the background." in deck.toasts
        await deck.press("q")
        await deck.until_text("Quit subdeck?")
        await deck.press("y")
    assert deck.app.return_value == "2 runs are still running. subdeck status shows them."
    assert engine.stopped == []


async def test_zoom_gives_the_screen_to_one_pane() -> None:
    """Enter on a run opens its transcript, z zooms it, Escape goes back step by step."""
    async with opened(busy_engine(), (80, 24)) as deck:
        await deck.press("enter")
        await deck.until(lambda: deck.main.transcript.has_focus, "the transcript to have the keys")
        await deck.press("z")
        await deck.until(lambda: not deck.main.runs.display, "the zoom")
        assert deck.main.transcript.size.height >= 18
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.display, "the zoom to end")
        assert deck.main.transcript.has_focus
        await deck.press("escape")
        assert deck.main.runs.has_focus


async def test_tab_goes_round_the_panes() -> None:
    """Tab and Shift+Tab visit presets, runs and transcript, even if presets are hidden."""
    async with opened(busy_engine(), (80, 24)) as deck:
        visited = []
        for key in ("tab", "tab", "tab", "shift+tab"):
            await deck.press(key)
            visited.append(deck.main.panes.key_context)
        assert visited == [KeyContext.TRANSCRIPT, KeyContext.PRESETS, KeyContext.RUNS, KeyContext.PRESETS]


async def test_tiny_terminal_and_back() -> None:
    """A terminal made tiny and large again shows the same deck."""
    async with opened(busy_engine(), (120, 30)) as deck:
        await deck.pilot.resize_terminal(20, 5)
        await deck.pilot.pause()
        await deck.pilot.resize_terminal(120, 30)
        await deck.until_text(" ✓ ")
        await deck.until_text("Finished reading src/file_2.py")


async def test_next_run_that_needs_me() -> None:
    """`]` goes to a run that failed during the session; viewing it clears its marker."""
    engine = FakeEngine(a_run(1), a_run(2), a_run(3))
    async with opened(engine) as deck:
        await deck.press("]")
        assert deck.toasts == ["No run needs you."]
        engine.tell(a_run(1, "failed", message="401"))
        await deck.until_text("1 needs you")
        await deck.press("]")
        await deck.until(lambda: deck.main.run.run_id == run_id(1), "the failed run")
        await deck.press("enter")
        await deck.until(lambda: "1 needs you" not in deck.screen_text, "the note to go")


async def test_a_run_ends_in_its_transcript() -> None:
    """The shown run's outcome is the transcript's last line, and its unfinished sentence is removed."""
    engine = FakeEngine(a_run(1, sentence="I am writ", last_seq=10))
    engine.write(run_id(1), *some_events())
    async with opened(engine) as deck:
        await deck.until_text("I am writ")
        engine.write(run_id(1), ended(11, "failed", "model_error"))
        engine.tell(a_run(1, "failed", message="401", reason=RunReason.MODEL_ERROR))
        await deck.until_text("✗ failed: model_error")
        assert "I am writ" not in deck.screen_text
        assert deck.main.run.status is RunStatus.FAILED


@pytest.mark.parametrize("size", [(80, 24), (130, 34)])
async def test_a_hint_can_be_clicked(size: tuple[int, int]) -> None:
    """A click on a hint of the last line acts like its key, and a click beside it does nothing."""
    async with opened(busy_engine(), size) as deck:
        await deck.until_text("? help")
        last = deck.screen_text.splitlines()[-1]
        await deck.pilot.click(offset=(1, size[1] - 1))
        assert deck.app.screen is deck.main
        await deck.pilot.click(offset=(last.index("? help") + 3, size[1] - 1))
        await deck.until(lambda: len(deck.app.screen_stack) == 2, "the help")
