"""The overview of one run: what comes first, sections that fold, and the size that they may have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.config.settings import Settings
from subdeck.core.paths import Project
from subdeck.core.run.changes import ChangedFile, Changes, ChangesSource, CheckResult, FileStatus, WorktreePlan
from subdeck.core.run.events import AssistantText, UsageReported
from subdeck.core.run.model import Limits, RunReason, Tools, Usage
from subdeck.core.run.snapshot import Checking, RunSnapshot
from subdeck.tui.changes._screen import ChangesScreen
from subdeck.tui.detail import _files, _screen as run_detail
from subdeck.tui.detail._facts import facts_rows
from subdeck.tui.detail._overview import Overview
from subdeck.tui.detail._screen import RunDetailScreen
from subdeck.tui.detail.page import Page, Section, Tab, plain_text

from tests.factories import make_finished, make_meta, make_result

from ..deck.test_hostile_text import raw_controls
from ..fake_engine import FakeEngine, a_run, run_id, stamp
from ..open_deck import Deck, opened
from .test_detail import Scene, detail_of, overview_text, shown_sections, tab, unfolded

NOW = datetime(2026, 1, 3, tzinfo=UTC)
CHANGES = Changes(files=1, added=12, removed=3, named=(ChangedFile("src/auth.py", FileStatus.MODIFIED, 12, 3),))
WORKTREE = WorktreePlan(branch="subdeck/fixer-1", root="/src/shop")


@pytest.fixture
def over(project_dir: Path) -> Scene:
    scene = Scene(project_dir, a_run(1, "completed"))
    scene.end("It is in auth.py.", exit_code=0)
    return scene


def first_lines(run: RunSnapshot, **fields: object) -> list[str]:
    """Return the first lines of the overview, with single spaces."""
    changes = fields.pop("known", run.changes)
    assert changes is None or isinstance(changes, Changes)
    reason = RunReason(fields.pop("reason", RunReason.DONE))
    result = make_result(run.run_id, reason, **fields) if run.has_ended else None
    above, _ = facts_rows(run, run.meta, result, None, NOW, 120, changes)
    return [" ".join(line.split()) for line in plain_text(above).split("\n")[:5]]


def test_what_comes_first_of_a_finished_run() -> None:
    """The first lines are status, check, cost, changes and model."""
    run = a_run(
        1, "completed", changes=CHANGES, meta_worktree=WORKTREE, meta_resolved_model="a/b", meta_thinking="high"
    )
    usage = Usage(input=1200, output=34, cost=0.5, turns=2, tool_uses=1)
    assert first_lines(run, check=CheckResult("tests", 2, 14.0, "2 failed"), usage=usage) == [
        "status ✓ completed: done · the agent finished its answer",
        "check tests ✗ exit code 2 after 0:14",
        "cost $0.5000 · 1,234 tokens in 2 turns, 1 tool call",
        "changes 1 file +12 −3 · on branch subdeck/fixer-1",
        "model a/b · thinking high",
    ]


def test_what_comes_first_of_other_runs() -> None:
    """A failed run shows its reason, a running one its activity; nothing is claimed that is unknown."""
    failed = a_run(1, "failed", message="401 Invalid API key", changes=CHANGES, meta_cwd="/src/shop")
    status, check, cost, changes, _ = first_lines(
        failed, reason=RunReason.MODEL_ERROR, usage=Usage(input=9, unpriced=9)
    )
    assert status == "status ✗ failed: model_error · the model answered with an error: 401 Invalid API key"
    assert (check, changes) == ("check none", "changes 1 file +12 −3 · in /src/shop")
    assert cost == "cost unknown: the agent reported no price · 9 tokens in 0 turns, 0 tool calls"
    running = a_run(2, activity="Reading a", usage=Usage(cost=0.25), meta_check="tests", meta_limits=Limits(budget=1.0))
    status, check, cost, changes, _ = first_lines(running)
    assert status == "status ● running · Reading a"
    assert check == "check tests: runs when the agent has finished"
    assert cost.startswith("cost $0.2500 of $1.00 · 0 tokens")
    assert changes == "changes not known yet"
    assert first_lines(running, known=Changes())[3] == "changes nothing so far"
    noted = Changes(files=2, source=ChangesSource.TOOLS, note="only those of its tools are known")
    assert first_lines(running, known=noted)[3].startswith("changes 2 files so far · in /")
    assert first_lines(running, known=noted)[3].endswith("; only those of its tools are known")
    unknown = Changes(note="not recorded: git is not on PATH")
    assert first_lines(failed, known=unknown)[3] == "changes not recorded: git is not on PATH"
    checked = a_run(2, checking=Checking("tests", stamp(3)))
    assert first_lines(checked)[1].startswith("check checking: tests ")


async def test_the_order_of_the_overview(project_dir: Path) -> None:
    """Launch and settings follow the summary, then the sections, and ids, processes and paths are last."""
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
        decided_by={"model": "call", "tools": "preset"},
    )
    make_finished(project, meta, exit_code=0, usage=Usage(input=1200, output=34, cost=0.5, turns=2, tool_uses=1))
    engine = FakeEngine(a_run(1, "completed"))
    engine.project = project
    async with opened(engine, (120, 60)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "4", Tab.OVERVIEW)
        shown = [" ".join(line.split()) for line in overview_text(screen).split("\n")]
        lines = (
            "model a/b · thinking high", "Launch", "preset reviewer (adhoc)", "set by call: model · preset: tools",
            "Agent", "model requested @smart", "Tools and limits", "tools all except the denied tools",
            "tools available read", "tools dropped write is not offered", "warnings timeout was lowered", "Times",
            "▾ Prompt prompt.md 9 B", "▾ Usage 1,234 tokens in 2 turns, 1 tool call", "▾ Files ",
            "▸ Events 0 B", "Ids", "Process", "exit code 0", "Paths", "preset file /p/reviewer.md",
        )  # fmt: skip
        places = [next((y for y, row in enumerate(shown) if line in row), -1) for line in lines]
        assert -1 not in places, overview_text(screen)
        assert places == sorted(places)


async def test_sections_fold_and_unfold(over: Scene) -> None:
    """Enter on a heading unfolds and folds its section; the choice applies to all runs."""
    (over.run_dir / paths.PROMPT).write_text("the task\n" * 1000)
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "4", Tab.OVERVIEW)
        assert Section.PROMPT not in shown_sections(screen)
        await to_row(deck, screen, "▸ Prompt")
        await deck.press("y")
        await deck.until(lambda: "Unfold this section to copy it." in deck.toasts, "the refusal")
        await deck.press("enter")
        await deck.until_text("▾ Prompt  prompt.md 8.8 KB")
        await deck.until_text("   the task")
        screen.show_run(a_run(2, "completed"))
        await deck.until(lambda: screen._shown and Section.PROMPT in shown_sections(screen), "the other run's prompt")
        screen.show_run(over.run)
        await deck.until(lambda: screen._shown and "the task" in overview_text(screen), "the first run again")
        await to_row(deck, screen, "▾ Prompt")
        await deck.press("enter")
        await deck.until(lambda: Section.PROMPT not in shown_sections(screen), "the fold")
        assert "▸ Prompt  prompt.md 8.8 KB" in row_text(screen)


async def to_row(deck: Deck, screen: RunDetailScreen, text: str) -> None:
    """Move down to a row of the overview."""
    await deck.press("g")
    while text not in row_text(screen):
        before = screen.query_one(Overview).cursor
        await deck.press("j")
        assert screen.query_one(Overview).cursor > before, f"no row with {text!r}"


def row_text(screen: RunDetailScreen) -> str:
    """Return the row under the cursor."""
    overview = screen.query_one(Overview)
    return "".join(text for text, _ in overview.row_segments(overview.cursor, 200))


async def test_a_huge_run_is_read_when_unfolded(over: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long sections begin folded, their files are opened only when unfolded, and the page stays short."""
    read: list[str] = []
    original = _files.open_regular
    monkeypatch.setattr(_files, "open_regular", lambda path: (read.append(Path(path).name), original(path))[1])
    messages: list[str] = []
    monkeypatch.setattr("subdeck.tui.detail._sections.UsageReader.read", lambda _: messages.append("") or False)
    (over.run_dir / paths.PROMPT).write_text("word " * 40_000)
    over.write(*(used(number) for number in range(1, 9001)))
    over.write(*(AssistantText(seq=number, ts=stamp(1), text="word " * 200) for number in range(9001, 12_001)))
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "4", Tab.OVERVIEW)
        assert shown_sections(screen) <= {Section.FILES}
        assert screen.query_one(Overview).row_count < 70
        assert "▸ Prompt  prompt.md 195 KB" in overview_text(screen)
        assert re.search(r"▸ Events  \d\.\d MB", overview_text(screen))
        assert (read, messages) == ([], [])
        await unfolded(deck, screen, Section.PROMPT)
        assert read == [paths.PROMPT]
        assert screen.query_one(Overview).row_count > 2500
        await unfolded(deck, screen, Section.EVENTS)
        assert (read, messages) == ([paths.PROMPT, paths.EVENTS], [])
        assert "last part of" in overview_text(screen)
        await unfolded(deck, screen, Section.USAGE)
        assert messages


async def test_each_section_has_an_action(over: Scene) -> None:
    """The actions of the earlier tabs unfold their section: by your own key, and on the deck by the palette."""
    (over.run_dir / paths.PROMPT).write_text("the task\n" * 1000)
    over.engine.settings = Settings(keys={"tab_prompt": "p", "tab_usage": "y", "tab_facts": "o"})
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await deck.press("p")
        await deck.until_text("[o Overview]")
        await deck.until(lambda: Section.PROMPT in shown_sections(screen), "the prompt")
        await deck.until(lambda: deck.screen_text.split("\n")[5].startswith(" ▌▾ Prompt"), "its heading above")
        await deck.press("y")
        await deck.until(lambda: "▾ Usage" in row_text(screen), "the usage")
        assert not deck.toasts
        await deck.press("escape", ":tab_files")
        await deck.until(lambda: isinstance(deck.app.screen, RunDetailScreen), "the details")
        await deck.until_text("▾ Files   2 files")
        await deck.press("escape", "colon", *"events", "enter")
        await deck.until_text("▾ Events")


async def test_c_goes_to_the_changes(over: Scene) -> None:
    """`c` shows the changes with the check, and from there opens them for review."""
    over.engine.tell(a_run(1, "completed", changes=CHANGES))
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "c", Tab.CHANGES)
        assert "[3 Changes]" in deck.screen_text
        await deck.until_text("src/auth.py")
        await deck.press("c")
        await deck.until(lambda: isinstance(deck.app.screen, ChangesScreen), "the changes")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is screen, "the details again")


async def test_prompt_and_system_prompt(over: Scene) -> None:
    """Each attempt's prompt is shown, and the system prompt with the way it was combined; y copies the text."""
    for name, text in (
        ("prompt.md", "the task\n" * 3),
        ("prompt-2.md", "once more"),
        ("system-prompt.md", "Be brief."),
    ):
        (over.run_dir / name).write_text(text)
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await unfolded(deck, screen, Section.PROMPT)
        for text in (
            "▾ Prompt  prompt.md 27 B, prompt-2.md 9 B",
            "the task",
            "once more",
            "appended to the agent's own, 9 B",
            "Be brief.",
        ):
            assert text in deck.screen_text
        await deck.press("y")
        assert deck.app.clipboard == "the task\n" * 3
        await to_row(deck, screen, "Be brief.")
        await deck.press("y")
        assert deck.app.clipboard == "Be brief."


def used(number: int) -> UsageReported:
    return UsageReported(
        seq=number, ts=stamp(number), input=1000 * number, output=number, cache_read=0, cache_write=7, cost=0.01,
        model="a/b", stop_reason="stop",
    )  # fmt: skip


async def test_usage_by_turn(over: Scene) -> None:
    """A row for each message, figures at the right, the sums above."""
    async with opened(over.engine, (120, 30)) as deck:
        screen = await detail_of(deck)
        await unfolded(deck, screen, Section.USAGE)
        assert "No usage has been reported yet." in deck.screen_text
        over.write(used(1), used(2))
        await unfolded(deck, screen, Section.USAGE)
        await deck.until(lambda: "$0.0100" in overview_text(screen), "the messages")
        rows = [line for line in overview_text(screen).split("\n") if "$0.0" in line and "cost" not in line]
        assert [row.split()[:3] for row in rows] == [["all", "3,000", "3"], ["1", *row_of(1)], ["2", *row_of(2)]]
        assert len({line.index("$0.0") for line in rows}) == 1
        await deck.press("y")
        assert "3,000" in deck.app.clipboard


def row_of(number: int) -> Sequence[str]:
    return (f"{datetime.fromisoformat(stamp(number)).astimezone():%H:%M:%S}", f"{number},000")


async def test_a_big_record_is_read_in_pieces(over: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """While usage is being read the section shows its progress, and then all rows."""
    monkeypatch.setattr("subdeck.core.run.fold.PIECE", 300_000)
    over.write(*(used(number) for number in range(1, 9001)))
    shown: list[str] = []
    said: list[str] = []
    show = RunDetailScreen._show

    def watch(screen: RunDetailScreen, tab: Tab, why: str, page: Page, run: RunSnapshot) -> None:
        show(screen, tab, why, page, run)
        if page.more and tab is Tab.OVERVIEW:
            shown.append(overview_text(screen))
            screen.query_one(Overview).go_to(Section.USAGE)
            screen.action_copy_shown()

    monkeypatch.setattr(RunDetailScreen, "_show", watch)
    monkeypatch.setattr(RunDetailScreen, "_say", lambda _, text: said.append(text))
    async with opened(over.engine, (120, 30)) as deck:
        screen = await detail_of(deck)
        await unfolded(deck, screen, Section.USAGE)
        assert any("reading… " in text for text in shown)
        assert "(the newest 5,000 of 9,000 messages)" in overview_text(screen)
        assert set(said) == {"Still reading the usage."}


async def test_files(over: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file has name, size and time; y copies the path, Enter shows the file in the pager."""
    (over.run_dir / "a [bold]odd\x1b[2J name").write_text("x" * 5000)
    (over.run_dir / "pipe").mkdir()
    opened_paths: list[str] = []
    monkeypatch.setattr(run_detail, "page_file", lambda app, path: opened_paths.append(path) or "")
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await unfolded(deck, screen, Section.FILES)
        assert re.search(r"a \[bold\]odd name +4\.9 KB  20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", deck.screen_text)
        assert "pipe" not in overview_text(screen)
        await to_row(deck, screen, "result.json")
        (over.run_dir / "b").write_text("")
        await unfolded(deck, screen, Section.EVENTS)
        await to_row(deck, screen, "result.json")
        await deck.press("y", "enter")
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
        await unfolded(deck, screen, Section.FILES)
        await deck.press("j", "enter")
        await deck.until(lambda: "No pager found" in deck.toasts, "the problem")


@pytest.mark.parametrize("section", [Section.FILES, Section.EVENTS])
async def test_a_section_is_on_the_screen_at_once(over: Scene, section: Section) -> None:
    """A section is scrolled into sight although the empty view has no scrollbar yet."""
    over.write(*texts(1, 40))
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        _, page = screen._reader.read(over.run, Tab.OVERVIEW, 76, {section: True})
        overview = screen.query_one(Overview)
        screen._tab = Tab.OVERVIEW
        screen._show_views()
        await deck.until(lambda: overview.rows_height > 0, "the layout")
        overview.show_blocks(page.blocks)
        overview.go_to(section, at_end=True)
        await deck.pilot.pause()
        assert 0 <= overview.cursor - overview.scroll_offset.y < overview.rows_height


async def test_a_page_scrolls(over: Scene) -> None:
    """Page Down shows the next page at once, with the cursor in it."""
    async with opened(over.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "4", Tab.OVERVIEW)
        overview = screen.query_one(Overview)
        await deck.press("pagedown")
        assert overview.scroll_offset.y == min(overview.rows_height - 1, overview.max_scroll_y) > 0
        assert overview.cursor >= overview.scroll_offset.y
        await deck.press("pageup")
        assert (overview.cursor, overview.scroll_offset.y) == (0, 0)


async def test_the_end_of_the_events_is_followed(project_dir: Path) -> None:
    """Unfolded events show their end and follow it; after moving up the cursor stays on its row."""
    scene = Scene(project_dir, a_run(1))
    scene.write(*texts(1, 40))
    async with opened(scene.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await unfolded(deck, screen, Section.EVENTS)
        await deck.until(lambda: "text 40" in row_text(screen), "the last event")
        scene.write(*texts(41, 60))
        await deck.until(lambda: "text 60" in row_text(screen), "the new last event")
        await deck.until_text("text 60")
        await deck.press("k")
        before = row_text(screen)
        scene.write(*texts(61, 80))
        await deck.until(lambda: "text 80" in overview_text(screen), "more events")
        assert row_text(screen) == before
        await deck.press("4")
        assert row_text(screen).startswith("▾ Events")
        await deck.press("4")
        assert row_text(screen).split()[0] == "status"


def texts(first: int, last: int) -> Iterator[AssistantText]:
    for number in range(first, last + 1):
        yield AssistantText(seq=number, ts=stamp(1), text=f"text {number}")


async def test_the_cursor_stays_while_a_run_goes_ahead(project_dir: Path) -> None:
    """When rows appear above it, the cursor stays on its row and the row on its line of the screen."""
    scene = Scene(project_dir, a_run(1))
    async with opened(scene.engine, (80, 24)) as deck:
        screen = await detail_of(deck)
        await tab(deck, screen, "4", Tab.OVERVIEW)
        await deck.press("G")
        overview = screen.query_one(Overview)
        row, y = row_text(screen), overview.cursor - overview.scroll_offset.y
        scene.engine.tell(a_run(1, warnings=("one", "two", "three")))
        await deck.until(lambda: "later warnings" in overview_text(screen), "the warnings")
        assert (row, y) == (row_text(screen), overview.cursor - overview.scroll_offset.y)
