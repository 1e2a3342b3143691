"""Changes of runs in the list and in the detail."""

from __future__ import annotations

import re
from time import monotonic

import pytest
from msgspec.structs import replace
from subdeck.core.run.changes import ChangedFile, Changes, ChangesSource, CheckResult, FileStatus
from subdeck.core.run.columns import sort_titled
from subdeck.core.run.model import RunStatus, Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.changes._screen import ChangesScreen
from subdeck.tui.detail._changed import changed_rows
from subdeck.tui.detail._screen import RunDetailScreen
from subdeck.tui.detail.page import plain_text
from subdeck.tui.runs.filter import Flags, parse_filter
from subdeck.tui.runs.order import sort_key

from ..fake_engine import FakeEngine, a_run
from ..open_deck import opened

FILES = (
    ChangedFile("src/auth.py", FileStatus.MODIFIED, 12, 3),
    ChangedFile("new.bin", FileStatus.ADDED, note="binary"),
)
SOME = Changes(files=2, added=12, removed=3, named=FILES)


@pytest.mark.parametrize(
    ("changes", "figure"),
    [
        (SOME, "+12 −3"),
        (Changes(), "–"),
        (Changes(files=2, source=ChangesSource.TOOLS), "2 files"),
        (Changes(files=1, added=123_456, removed=2_000_000, shared="also there: x"), "shared"),
        (Changes(files=1, added=123_456, removed=2_000_000), "+123k −2M"),
        (Changes(note="not recorded: git is not on PATH"), "?"),
    ],
)
def test_figures(changes: Changes, figure: str) -> None:
    """A figure is short, claims nothing in a shared directory, and is a dash only for known absence of changes."""
    assert figure == changes.figure


def test_filters() -> None:
    """Runs are found by the presence of changes, and by the changed files."""
    run, none, unknown = (a_run(1, "completed", changes=changes) for changes in (SOME, Changes(), None))
    flags = Flags(unseen=False, marked=False)

    def found(text: str) -> list[int]:
        wanted = parse_filter(text)
        assert wanted.error is None
        return [number for number, one in enumerate((run, none, unknown), 1) if wanted.passes(one, flags)]

    assert [1] == found("changed:yes")
    assert [2] == found("changed:no")
    assert [] == found("changed:shared")
    assert [1] == found("file:SRC/auth.py")
    assert [2, 3] == found("-file:auth")


def test_sort() -> None:
    """The run that changed most lines comes first."""
    much, little = a_run(1, "completed", changes=SOME), a_run(2, "completed", changes=Changes(files=1, added=1))
    order = sort_titled("by changes")
    assert sort_key([much], RunStatus.COMPLETED, order) < sort_key([little], RunStatus.COMPLETED, order)


def test_detail() -> None:
    """The detail lists each file with its lines, or why they are not counted, and other runs there and the check."""
    run = a_run(1, "completed", changes=SOME)
    check = CheckResult("tests", 2, 14.0, "2 failed")
    changes = replace(SOME, shared="also at work there: x", files=5)
    text = plain_text(changed_rows(run, changes, check, 60))
    assert text.startswith("Changes  5 files +12 −3\nshared directory: also at work there: x")
    assert re.search(r"^  src/auth.py +\+12 +−3$", text, re.MULTILINE)
    assert re.search(r"^  new.bin +added, binary$", text, re.MULTILINE)
    assert "and 3 more" in text
    assert "tests ✗ exit code 2 after 0:14\n2 failed" in text
    assert max(map(len, text.splitlines())) <= 60


@pytest.mark.parametrize(
    ("run", "changes", "said"),
    [
        (a_run(1, "completed"), None, "This run's changes are unknown."),
        (a_run(1), None, "No information yet."),
        (a_run(1), Changes(files=1, added=7), "Changes so far  1 file +7 −0"),
        (a_run(1, "completed"), Changes(), "Changes  none"),
        (a_run(1, "completed"), Changes(note="git took too long"), "Changes\ngit took too long"),
    ],
)
def test_detail_says_what_is_not_known(run: RunSnapshot, changes: Changes | None, said: str) -> None:
    """Without recorded changes the detail claims nothing."""
    assert plain_text(changed_rows(run, changes, None, 60)).startswith(said)


async def test_detail_opens_the_differences() -> None:
    """The tab opens the view of the changes, and Escape returns."""
    async with opened(FakeEngine(a_run(1, "completed", changes=SOME)), (80, 24)) as deck:
        await deck.press("i")
        await deck.until(lambda: isinstance(deck.app.screen, RunDetailScreen), "the detail screen")
        await deck.press("3")
        await deck.until_text("Changes  2 files +12 −3")
        assert " 1 Transcript  2 Answer [3 Changes] 4 Overview" in deck.screen_text
        await deck.press("enter")
        await deck.until(lambda: isinstance(deck.app.screen, ChangesScreen), "the changes")
        await deck.press("escape")
        await deck.until(lambda: isinstance(deck.app.screen, RunDetailScreen), "the detail screen again")


async def test_the_column_is_live() -> None:
    """A thread computes a visible run's changes so far, once until the run does something."""
    running = a_run(1, usage=Usage(tool_uses=2), patience=60.0, heard_at=monotonic())
    engine = FakeEngine(running, a_run(2, "completed", changes=SOME))
    engine.work.known[running.run_id] = Changes(files=1, added=7)
    async with opened(engine, size=(160, 30)) as deck:
        await deck.until(lambda: any("+7 −0" in row for row in deck.rows(deck.main.runs)), "the live figure")
        assert any("+12 −3" in row for row in deck.rows(deck.main.runs))
        assert [running.run_id] == engine.work.looks
        deck.main._changing._due_at = 0.0
        deck.main._changing.tick()
        assert not deck.main._changing._looking.is_busy


async def test_nothing_is_looked_at_where_the_column_is_not_shown() -> None:
    """A narrow list without the column computes no changes."""
    engine = FakeEngine(a_run(1, usage=Usage(tool_uses=2), patience=60.0, heard_at=monotonic()))
    async with opened(engine, size=(64, 24)) as deck:
        deck.main._changing.tick()
        assert [] == engine.work.looks


async def test_the_first_changes_bring_the_column() -> None:
    """Without any changes there is no column; it appears when a running run has some."""
    running = a_run(1, usage=Usage(tool_uses=2), patience=60.0, heard_at=monotonic())
    engine = FakeEngine(running)
    async with opened(engine, size=(80, 24)) as deck:
        await deck.until(lambda: engine.work.looks, "the first look at the changes")
        await deck.until(lambda: not deck.main._changing._looking.is_busy, "the end of the look")
        assert "changes" not in deck.rows(deck.main.runs)[0]
        engine.work.known[running.run_id] = Changes(files=1, added=7)
        engine.tell(a_run(1, usage=Usage(tool_uses=3), patience=60.0, heard_at=monotonic()))
        deck.main._changing._due_at = 0.0
        await deck.until(lambda: "+7 −0" in deck.screen_text, "the live figure")
        assert "changes" in deck.rows(deck.main.runs)[0]
