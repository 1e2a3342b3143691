"""One run in detail: why it is not done, and its tabs."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.events import AssistantText, Event, RunStarted, ToolCall, UsageReported, encode_event
from subdeck.core.run.model import RunReason, Tools, Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.detail import _screen as run_detail
from subdeck.tui.detail._screen import RunDetailScreen
from subdeck.tui.detail.page import Page, PageView, Tab

from tests.factories import make_finished, make_meta, make_result

from ..deck.test_hostile_text import HOSTILE, raw_controls
from ..fake_engine import FakeEngine, a_run, run_id, stamp
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
    """1 to 8 open the tabs, left, right and tab go round, escape goes back to the deck."""
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        assert "[2 Answer]" in deck.screen_text
        for number, name in enumerate(Tab, start=1):
            await tab(deck, screen, str(number), name) if name is not Tab.ANSWER else await deck.press("2")
            assert f"[{number} {name.label.capitalize()}]" in deck.screen_text
        await tab(deck, screen, "right", Tab.TRANSCRIPT)
        await tab(deck, screen, "left", Tab.CHANGES)
        await tab(deck, screen, "tab", Tab.TRANSCRIPT)
        await tab(deck, screen, "shift+tab", Tab.CHANGES)
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


async def test_prompt_and_system_prompt(over: Scene) -> None:
    """Each attempt's prompt is shown, and the system prompt with the way it was combined."""
    for name, text in (
        ("prompt.md", "the task\n" * 3),
        ("prompt-2.md", "once more"),
        ("system-prompt.md", "Be brief."),
    ):
        (over.run_dir / name).write_text(text)
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "3", Tab.PROMPT)
        for text in (
            "prompt.md, 27 B",
            "the task",
            "prompt-2.md",
            "once more",
            "appended to the agent's own",
            "Be brief.",
        ):
            assert text in deck.screen_text
        await deck.press("y")
        assert deck.app.clipboard == "the task\n" * 3


async def test_facts_in_two_columns(project_dir: Path) -> None:
    """Launch settings and outcome are shown in words."""
    project = Project(str(project_dir))
    meta = make_meta(
        run_id(1),
        preset="reviewer",
        preset_path="/p/reviewer.md",
        requested_model="@smart",
        resolved_model="a/b",
        thinking="high",
        tools=Tools("deny", ("read",), warnings=("write is not offered",)),
        warnings=("timeout was lowered",),
    )
    make_finished(project, meta, exit_code=0, usage=Usage(input=1200, output=34, cost=0.5, turns=2, tool_uses=1))
    engine = FakeEngine(a_run(1, "completed"))
    engine.project = project
    async with opened(engine, (120, 60)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "4", Tab.FACTS)
        shown = [" ".join(line.split()) for line in deck.screen_text.split("\n")]
        for line in (
            "preset reviewer (adhoc)", "preset file /p/reviewer.md", "model requested @smart", "model used a/b",
            "thinking high", "tools all except the denied tools", "tools available read",
            "tools dropped write is not offered",
            "warnings timeout was lowered", "status completed: done", "exit code 0",
            "usage 1,234 tokens in 2 turns, 1 tool call, $0.5000",
        ):  # fmt: skip
            assert line in shown


def used(number: int) -> UsageReported:
    return UsageReported(
        seq=number, ts=stamp(number), input=1000 * number, output=number, cache_read=0, cache_write=7, cost=0.01,
        model="a/b", stop_reason="stop",
    )  # fmt: skip


async def test_usage_by_turn(over: Scene) -> None:
    """A row for each message, figures at the right, the sums above."""
    async with opened(over.engine, (120, 30)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "5", Tab.USAGE)
        assert "No usage has been reported yet." in deck.screen_text
        over.write(used(1), used(2))
        await tab(deck, screen, "4", Tab.FACTS)
        await tab(deck, screen, "5", Tab.USAGE)
        rows = [line for line in deck.screen_text.split("\n") if "$" in line]
        assert [row.split()[:3] for row in rows] == [["all", "3,000", "3"], ["1", *row_of(1)], ["2", *row_of(2)]]
        assert len({line.index("$0.0") for line in rows}) == 1


def row_of(number: int) -> Sequence[str]:
    return (f"{datetime.fromisoformat(stamp(number)).astimezone():%H:%M:%S}", f"{number},000")


async def test_a_big_record_is_read_in_pieces(over: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """While usage is being read the tab shows its progress, and then all rows."""
    monkeypatch.setattr("subdeck.core.run.fold.PIECE", 300_000)
    over.write(*(used(number) for number in range(1, 9001)))
    shown: list[str] = []
    show = RunDetailScreen._show

    def watch(screen: RunDetailScreen, tab: Tab, why: str, page: Page, run: RunSnapshot) -> None:
        show(screen, tab, why, page, run)
        shown.append(str(page.rows[0]) if page.more else "")
        if page.more and tab is Tab.USAGE:
            screen.action_copy_shown()

    monkeypatch.setattr(RunDetailScreen, "_show", watch)
    async with opened(over.engine, (120, 30)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "5", Tab.USAGE)
        assert any("reading… " in row for row in shown)
        await deck.until_text("(the newest 5,000 of 9,000 messages)")
        assert set(deck.toasts) == {"Still reading the usage."}


async def test_files(over: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file has name, size and age; y copies the path, Enter shows the file in the pager."""
    (over.run_dir / "a [bold]odd\x1b[2J name").write_text("x" * 5000)
    (over.run_dir / "pipe").mkdir()
    opened_paths: list[str] = []
    monkeypatch.setattr(run_detail, "page_file", lambda app, path: opened_paths.append(path) or "")
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "6", Tab.FILES)
        assert "a [bold]odd name" in deck.screen_text
        assert "4.9 KB" in deck.screen_text and "s ago" in deck.screen_text
        assert "pipe" not in deck.screen_text
        await deck.press("j", "y", "enter")
        assert deck.app.clipboard == str(over.run_dir / "result.json")
        assert opened_paths == [str(over.run_dir / "result.json")]
        assert raw_controls(deck) == []


async def test_a_pager_that_is_not_there(over: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file cannot be opened, the reason is shown and the screen stays."""
    monkeypatch.setattr(run_detail, "page_file", lambda app, path: "No pager found")
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await deck.press("enter")
        await deck.until(lambda: "No file to open." in deck.toasts, "the refusal")
        await tab(deck, screen, "6", Tab.FILES)
        await deck.press("enter")
        await deck.until(lambda: "No pager found" in deck.toasts, "the problem")


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
    """If the run is deleted the screen reports it and stays; it continues when the run is restored."""
    async with opened(going.engine, (80, 24)) as deck:
        await detail_of(deck)
        going.engine.tell(removed=[going.run.run_id])
        await deck.until_text("This run was deleted")
        going.engine.tell(going.run)
        await deck.until(lambda: "This run was deleted" not in deck.screen_text, "the run to come back")
        going.engine.tell(removed=[going.run.run_id])
        await deck.until_text("This run was deleted")
        await deck.press("4", "escape")
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
            ("3", Tab.PROMPT, "prompt.md is missing"),
            ("6", Tab.FILES, "No files."),
            ("7", Tab.EVENTS, "No events yet."),
        ):
            await tab(deck, screen, key, name)
            assert text in deck.screen_text
        await deck.press("y")
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
        for key, name in zip("12345678", Tab, strict=True):
            await tab(deck, screen, key, name) if name is not screen._tab else None
            assert raw_controls(deck) == []
        assert deck.app.is_running


async def test_it_fits_a_tiny_terminal(over: Scene) -> None:
    """The detail survives a terminal made 20x5 and large again."""
    async with opened(over.engine, (80, 24)) as deck:
        await detail_of(deck)
        await deck.pilot.resize_terminal(20, 5)
        await deck.pilot.pause()
        await deck.press("4", "6", "2")
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
        why, _ = reader.read(scene.run, tab, 80)
        assert why
