"""One run in detail: why it is not done, and its tabs."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.events import AssistantText, Event, RunStarted, ToolCall, encode_event
from subdeck.core.run.model import RunReason
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.detail._screen import RunDetailScreen
from subdeck.tui.detail.page import PageView, Section, Tab, plain_text

from tests.factories import make_result

from ..deck.test_hostile_text import HOSTILE, raw_controls
from ..fake_engine import FakeEngine, a_run, stamp
from ..open_deck import Deck, opened


class Scene:
    """A fake engine with one run, whose files are on the disk."""

    def __init__(self, project_dir: Path, run: RunSnapshot) -> None:
        self.engine = FakeEngine(run)
        self.engine.project = Project(str(project_dir))
        self.run = run
        self.run_dir = Path(self.engine.project.run_dir(run.run_id))
        self.run_dir.mkdir(parents=True)

    def write(self, *events: Event) -> None:
        with (self.run_dir / paths.EVENTS).open("ab") as file:
            for event in events:
                file.write(encode_event(event))

    def end(self, answer: str | None, reason: RunReason = RunReason.DONE, **fields: object) -> None:
        result = make_result(self.run.run_id, reason, final_text=answer, **fields)
        artifacts.write_result(str(self.run_dir), result)


@pytest.fixture
def going(project_dir: Path) -> Scene:
    return Scene(project_dir, a_run(1, activity="Reading a", last_event_at=stamp(1)))


@pytest.fixture
def over(project_dir: Path) -> Scene:
    scene = Scene(project_dir, a_run(1, "completed"))
    scene.end("# Found\n\n- **auth.py** is the place, see [it](https://example.org)\n\n```\ncode\n```\n", exit_code=0)
    return scene


async def detail_of(deck: Deck) -> RunDetailScreen:
    await deck.press("i")
    await deck.until(lambda: isinstance(deck.app.screen, RunDetailScreen), "the detail screen")
    screen = deck.app.screen
    assert isinstance(screen, RunDetailScreen)
    await deck.until(lambda: screen._shown, "the first look")
    return screen


async def tab(deck: Deck, screen: RunDetailScreen, key: str, name: Tab) -> None:
    await deck.press(key)
    await deck.until(lambda: screen._shown and screen._shown[0] is name, f"the tab {name}")
    await deck.pilot.pause()


async def unfolded(deck: Deck, screen: RunDetailScreen, section: Section) -> None:
    """Go to a section of the overview, unfolded and read."""
    screen.action_act(f"tab_{section}")
    await deck.until(lambda: section in shown_sections(screen) and screen._shown, f"the section {section}")
    await deck.pilot.pause()


def shown_sections(screen: RunDetailScreen) -> set[Section | None]:
    """Return the sections of the overview that are unfolded."""
    return {block.section for block in screen._page.blocks if block.is_unfolded}


def overview_text(screen: RunDetailScreen) -> str:
    """Return the whole overview, including what is not on the screen."""
    return plain_text(row for block in screen._page.blocks for row in block.rows)


async def test_why_a_run_is_not_done(going: Scene) -> None:
    """The line at the top follows the run: the reason for waiting, then the outcome."""
    going.write(
        RunStarted(seq=1, ts=stamp(1), pid=1, child_pid=2, attempt=1, max_attempts=1),
        ToolCall(seq=2, ts=stamp(2), tool_call_id="1", tool_name="bash", args={"command": "pytest -q tests/parser"}),
    )
    async with opened(going.engine, (80, 24)) as deck:
        await detail_of(deck)
        await deck.until_text("waiting for bash: pytest -q ")
        assert re.search(r" running [\d:]+:\d\d · last event ", deck.screen_text)
        going.end("done", exit_code=0)
        going.engine.tell(a_run(1, "completed"))
        await deck.until_text("completed after 0:31 · the agent finished its answer · exit code 0")
        assert "✓ completed" in deck.screen_text


async def test_keys_go_through_the_tabs(over: Scene) -> None:
    """1 to 4 open the tabs, left, right and tab go round, escape goes back to the deck."""
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        assert "[2 Answer]" in deck.screen_text
        for number, name in enumerate(Tab, start=1):
            await tab(deck, screen, str(number), name) if name is not Tab.ANSWER else await deck.press("2")
            assert f"[{number} {name.label.capitalize()}]" in deck.screen_text
        await tab(deck, screen, "right", Tab.TRANSCRIPT)
        await tab(deck, screen, "left", Tab.OVERVIEW)
        await tab(deck, screen, "tab", Tab.TRANSCRIPT)
        await tab(deck, screen, "shift+tab", Tab.OVERVIEW)
        await deck.pilot.click("TabBar", offset=(3, 0))
        await deck.until(lambda: screen._tab is Tab.TRANSCRIPT, "the clicked tab")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")


async def test_the_answer_is_rendered(over: Scene) -> None:
    """Markdown is laid out, a link is only its text, and y copies the answer unchanged."""
    async with opened(over.engine, (80, 24)) as deck:
        await detail_of(deck)
        await deck.until_text("• auth.py is the place, see it (https://example.org)")
        assert "# Found" not in deck.screen_text
        assert not [segment for strip in deck.strips for segment in strip if segment.style and segment.style.link]
        await deck.press("y")
        assert deck.app.clipboard.startswith("# Found\n\n- **auth.py**")


async def test_a_partial_answer_says_so(going: Scene) -> None:
    """While a run is running the tab shows its partial answer, marked as partial."""
    going.write(AssistantText(seq=1, ts=stamp(1), text="I look at the doors."))
    async with opened(going.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "2", Tab.ANSWER)
        assert "Not finished yet. Latest text:" in deck.screen_text
        assert "I look at the doors." in deck.screen_text
        going.engine.tell(a_run(1, sentence="Now the windows"))
        await deck.until_text("Now the windows")


async def test_an_error_stands_above_what_was_found(project_dir: Path) -> None:
    """A failed run shows its error above its findings."""
    scene = Scene(project_dir, a_run(1, "failed", message="401"))
    scene.end("half of it", RunReason.MODEL_ERROR, error_message="401 [bold]no key[/")
    async with opened(scene.engine, (80, 24)) as deck:
        await detail_of(deck)
        await deck.until_text("✗ 401 [bold]no key[/")
        assert "half of it" in deck.screen_text


async def test_a_huge_answer_is_shown_as_it_is(project_dir: Path) -> None:
    """Above the limit the text is not rendered, so that it appears at once."""
    scene = Scene(project_dir, a_run(1, "completed"))
    scene.end("**bold** words\n" * 20_000)
    async with opened(scene.engine, (80, 24)) as deck:
        await detail_of(deck)
        await deck.until_text("**bold** words")
        await deck.press("G")
        await deck.until(lambda: deck.app.screen.query_one("#page").scroll_offset.y > 19_000, "the end")


async def test_the_transcript_opens_on_the_deck(over: Scene) -> None:
    """Tab 1 shows the end of the transcript; Enter opens the deck's own, zoomed."""
    (over.run_dir / paths.TRANSCRIPT).write_text("".join(f"line {number}\n" for number in range(40_000)))
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "1", Tab.TRANSCRIPT)
        await deck.until_text("line 39999")
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        await deck.until(lambda: deck.main.transcript.has_focus, "the transcript to have the keys")
        assert deck.main.panes.zoomed


async def test_a_text_that_grows_is_followed(going: Scene) -> None:
    """At the end of a growing text the view follows; scrolled up it stays."""
    log = going.run_dir / paths.TRANSCRIPT
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    async with opened(going.engine, (80, 24)) as deck:
        await detail_of(deck)
        await deck.until_text("line 99")
        with log.open("a") as file:
            file.write("line 100\n")
        await deck.until_text("line 100")
        await deck.press("g")
        await deck.until_text("line 0 ")
        with log.open("a") as file:
            file.write("line 101\n")
        page = deck.app.screen.query_one("#page", PageView)
        await deck.until(lambda: len(page._page.rows) == 102, "the new line to be read")
        assert page.scroll_offset.y == 0


async def test_a_deleted_run_is_told(going: Scene) -> None:
    """If the run is deleted the screen reports it and shows what is left; it continues when the run is restored."""
    async with opened(going.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        going.engine.tell(removed=[going.run.run_id])
        await deck.until_text("This run was deleted")
        going.engine.tell(going.run)
        await deck.until(lambda: "This run was deleted" not in deck.screen_text, "the run to come back")
        going.engine.tell(removed=[going.run.run_id])
        await deck.until_text("This run was deleted")
        await tab(deck, screen, "4", Tab.OVERVIEW)
        assert "This run was deleted" in deck.screen_text and "reading…" not in deck.screen_text
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")


async def test_a_run_without_files(project_dir: Path) -> None:
    """Missing files are reported, and nothing raises."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.project = Project(str(project_dir))
    async with opened(engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        assert "No answer." in deck.screen_text
        for key, name, text in (
            ("1", Tab.TRANSCRIPT, "No transcript yet."),
            ("3", Tab.CHANGES, "This run's changes are unknown."),
            ("4", Tab.OVERVIEW, "unknown"),
        ):
            await tab(deck, screen, key, name)
            assert text in deck.screen_text
        assert "▸ Events  0 B" in overview_text(screen)
        for section in Section:
            await unfolded(deck, screen, section)
        for text in ("prompt.md is missing", "No usage has been reported yet.", "No files.", "No events yet."):
            assert text in overview_text(screen)
        await deck.press("j", "y")
        await deck.until(lambda: "Nothing to copy." in deck.toasts, "the refusal")


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_texts(project_dir: Path, text: str) -> None:
    """Return, prompt, transcript, events and overview may contain any text."""
    scene = Scene(project_dir, a_run(1, "failed", message=text, meta_task=text, meta_preset=text))
    body = text.encode("utf-8", "surrogatepass")
    for name in (paths.PROMPT, paths.SYSTEM_PROMPT, paths.TRANSCRIPT, paths.EVENTS):
        (scene.run_dir / name).write_bytes(body * 3 + b"\n" + body)
    safe = text.encode("utf-8", "replace").decode()
    scene.end(safe * 2, RunReason.MODEL_ERROR, error_message=safe, written_by=safe, stop_reason=safe)
    async with opened(scene.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        assert raw_controls(deck) == []
        for key, name in zip("1234", Tab, strict=True):
            await tab(deck, screen, key, name) if name is not screen._tab else None
            assert raw_controls(deck) == []
        for section in Section:
            await unfolded(deck, screen, section)
            assert raw_controls(deck) == []
        assert deck.app.is_running


async def test_it_fits_a_tiny_terminal(over: Scene) -> None:
    """The detail survives a terminal made 20x5 and large again."""
    async with opened(over.engine, (80, 24)) as deck:
        await detail_of(deck)
        await deck.pilot.resize_terminal(20, 5)
        await deck.pilot.pause()
        await deck.press("4", "enter", "j", "2")
        await deck.pilot.resize_terminal(80, 24)
        await deck.until_text("auth.py is the place")


def test_nothing_is_started_by_looking(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Viewing a run starts no process."""
    from subdeck.tui.detail._reader import DetailReader

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    for name in ("fork", "posix_spawn", "system"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr("subprocess.Popen.__init__", refuse)
    scene = Scene(project_dir, a_run(1))
    scene.write(RunStarted(seq=1, ts=stamp(1), pid=1, child_pid=2, attempt=1, max_attempts=1))
    reader = DetailReader(scene.engine.project, scene.run.run_id)
    for tab in Tab:
        why, _ = reader.read(scene.run, tab, 80, dict.fromkeys(Section, True))
        assert why
