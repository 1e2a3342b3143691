"""Comparing: two to six runs side by side, live, and the differences between two."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace
from subdeck.core.config.settings import Settings
from subdeck.core.errors import SubdeckError
from subdeck.core.run.changes import ChangedFile, Changes, CheckResult, FileStatus
from subdeck.core.run.comparison import Side
from subdeck.core.run.model import Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work.choose import ChoicePlan
from subdeck.core.work.operation import CHOOSE
from subdeck.core.work.source import Difference
from subdeck.tui.compare._columns import lines, shown_columns
from subdeck.tui.compare.screen import CompareScreen
from subdeck.tui.detail._screen import RunDetailScreen
from subdeck.tui.dialogs.pick import PickScreen
from textual.content import Content

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened
from ..sample_runs import a_mate

TASK = "fix the flaky test"
FILES = (ChangedFile("src/a/very/long/path/to/the/tokens_of_the_lexer.py", FileStatus.MODIFIED, 14, 3),)
CHANGES = Changes(files=1, added=14, removed=3, named=FILES)


def mates(*statuses: str, first: int = 1) -> list[RunSnapshot]:
    """Return attempts of one task."""
    checks = (CheckResult("tests", 0, 14.0), CheckResult("tests", 2, 9.0), CheckResult("tests", 0, 20.0))
    return [
        a_mate(
            number,
            status,
            first=first,
            size=len(statuses),
            meta_task=TASK,
            meta_preset="fixer",
            usage=Usage(cost=0.1 * number, turns=number + 3, output=1000 * number),
            **({"changes": CHANGES, "check": checks[number % 3]} if status == "completed" else {}),
        )
        for number, status in enumerate(statuses, first)
    ]


def an_engine(*statuses: str) -> FakeEngine:
    engine = FakeEngine(*mates(*statuses))
    engine.work.answers = {run_id(number): f"Answer of {number}.\n\nIt waits on the event." for number in range(1, 9)}
    return engine


async def comparison_of(deck: Deck) -> CompareScreen:
    await deck.press("V")
    await deck.until(lambda: isinstance(deck.app.screen, CompareScreen), "the comparison")
    screen = deck.app.screen
    assert isinstance(screen, CompareScreen)
    return screen


async def test_a_group_is_compared() -> None:
    """Runs launched together are shown side by side, with all facts of each."""
    async with opened(an_engine("completed", "completed", "running"), (120, 30)) as deck:
        screen = await comparison_of(deck)
        assert [run_id(number) for number in (1, 2, 3)] == list(screen.run_ids)
        await deck.until_text("Answer of 2.")
        text = deck.screen_text
        assert f"{TASK} ×3" in text
        for said in ("✓ completed", "● running", "tests ✗ exit code 2", "tests ✓ passed", "$0.20", "1 file +14 −3"):
            assert said in text
        row = next(line for line in text.split("\n") if line.strip().startswith("files"))
        assert row.count("+14 −3") == 2


async def test_two_columns_at_a_time() -> None:
    """On 80 columns two runs have room; keys show the others, and a line tells which are shown."""
    async with opened(an_engine("completed", "completed", "completed"), (80, 24)) as deck:
        screen = await comparison_of(deck)
        await deck.until_text("1–2 of 3")
        assert "1 fixer" in deck.screen_text and "3 fixer" not in deck.screen_text
        await deck.press("l", "l")
        await deck.until_text("2–3 of 3")
        assert screen.run.run_id == run_id(3)
        await deck.press("1")
        await deck.until_text("1–2 of 3")
        await deck.press("h")
        assert screen.run.run_id == run_id(3)


async def test_it_is_live() -> None:
    """The comparison updates a run's progress, changes, outcome and deletion."""
    engine = an_engine("running", "running")
    async with opened(engine) as deck:
        await comparison_of(deck)
        engine.work.known[run_id(1)] = CHANGES
        (first, _) = mates("completed", "running")
        engine.tell(first)
        await deck.until_text("tests ✗ exit code 2")
        await deck.until_text("Answer of 1.")
        assert [] == deck.toasts
        engine.tell(removed=[run_id(2)])
        await deck.until_text("was deleted")


async def test_marked_runs_of_different_tasks() -> None:
    """Marked runs are compared first, with a note if their tasks differ."""
    engine = FakeEngine(a_run(1, "completed"), a_run(2, "failed"), a_run(3, "completed"))
    async with opened(engine) as deck:
        deck.main.runs.mark([run_id(1), run_id(2)], True)
        await comparison_of(deck)
        await deck.until_text("2 runs with different tasks")
        assert "task 1" in deck.screen_text and "task 2" in deck.screen_text


async def test_a_single_run_is_not_compared() -> None:
    """Comparing a single run explains what to mark."""
    async with opened(FakeEngine(a_run(1, "completed"))) as deck:
        await deck.press("V")
        await deck.until(lambda: deck.toasts, "the word")
        assert "Select two to six runs (space) to compare them" in deck.toasts[0]


async def test_the_answer_is_opened() -> None:
    """Enter shows the run in detail, and returns to the comparison afterwards; V closes it."""
    async with opened(an_engine("completed", "completed")) as deck:
        screen = await comparison_of(deck)
        await deck.press("l", "enter")
        await deck.until(lambda: isinstance(deck.app.screen, RunDetailScreen), "the detail")
        detail = deck.app.screen
        assert isinstance(detail, RunDetailScreen) and detail.run.run_id == run_id(2)
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is screen, "the comparison again")
        await deck.press("V")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")


async def test_difference_of_two() -> None:
    """The difference of two runs is shown at once, of more after a choice; a refusal gives the reason."""
    engine = an_engine("completed", "completed", "completed")
    patch = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-\x1b[31mone\n+two\n"
    found = Difference(run="fixer 1", other="fixer 3", changes=CHANGES, patch=patch, notes=("a note",))
    engine.work.differences = {
        (run_id(1), run_id(3)): found,
        (run_id(1), run_id(2)): SubdeckError("fixer 2 worked outside git"),
    }
    async with opened(engine) as deck:
        screen = await comparison_of(deck)
        await deck.press("c")
        await deck.until(lambda: isinstance(deck.app.screen, PickScreen), "the question")
        await deck.press("down", "enter")
        await deck.until_text("1+ two")
        assert f"Difference from fixer {run_id(1)[-6:]} to fixer {run_id(3)[-6:]}" in deck.screen_text
        assert "a note" in deck.screen_text and "\x1b" not in deck.screen_text
        assert "apply" not in deck.screen_text and "next hunk" in deck.screen_text
        for key, said in (("P", "Not possible between two runs"), ("space", "Hunks cannot be selected here")):
            await deck.press(key)
            await deck.until(lambda said=said: any(said in toast for toast in deck.toasts), said)
        assert [] == engine.work.asked
        await deck.press("}", "y")
        await deck.until(lambda: "+two" in deck.app.clipboard, "the copied hunk")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is screen, "the comparison")
        await deck.press("c")
        await deck.until(lambda: isinstance(deck.app.screen, PickScreen), "the question")
        await deck.press("enter")
        await deck.until_text("fixer 2 worked outside git")
        assert "reading" not in deck.screen_text
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is screen, "the comparison again")


@pytest.mark.parametrize("width", [20, 40, 78, 118, 198])
@pytest.mark.parametrize("count", [2, 6])
def test_columns_have_room(width: int, count: int) -> None:
    """No line is wider than the screen, and the current column is always visible."""
    hostile = "列\x1b[2J🙂" * 40
    sides = [
        Side(run=a_run(number, "completed", meta_task=f"{hostile}{number}"), changes=CHANGES, answer=hostile)
        for number in range(1, count + 1)
    ]
    for current in range(count):
        assert current in shown_columns(count, current, width)
        drawn = lines(sides, current, width, datetime.now(UTC))
        assert max(line.cell_length for line in drawn) <= width
        assert not any("\x1b" in line.plain for line in drawn)


def styled(drawn: list[Content], label: str) -> dict[str, str]:
    """Return the texts of a row that have a colour of their own, each with its style."""
    line = next(line for line in drawn if line.plain.startswith(label))
    spans = [span for span in line.spans if span.start >= 9]
    return {line.plain[span.start : span.end].strip(): str(span.style) for span in spans}


def test_the_best_ones_and_failed_checks_stand_out() -> None:
    """The cheapest and the fastest run are green and named, a failed check is red with its sign and exit code."""
    first, second = mates("completed", "completed")
    sides = [Side(run=replace(first, state=replace(first.state, duration_ms=9000))), Side(run=second)]
    drawn = lines(sides, 0, 120, datetime.now(UTC))
    assert styled(drawn, "cost") == {"$0.10  cheapest": "bold $text-success"}
    assert styled(drawn, "time") == {"0:09  fastest": "bold $text-success"}
    assert styled(drawn, "check")["tests ✗ exit code 2 after 0:09"] == "bold $text-error"


@pytest.mark.parametrize("theme", ["subdeck-dark", "subdeck-light", "terminal"])
async def test_the_best_ones_can_be_read_without_colours(monkeypatch: pytest.MonkeyPatch, theme: str) -> None:
    """Words and signs tell the cheapest run and a failed check apart in each theme, and with NO_COLOR."""
    engine = an_engine("completed", "completed")
    engine.settings = Settings(theme=theme)
    for no_color in ("", "1"):
        monkeypatch.setenv("NO_COLOR", no_color)
        async with opened(engine, (120, 30)) as deck:
            await comparison_of(deck)
            await deck.until_text("cheapest")
            assert "tests ✗ exit code 2" in deck.screen_text
            (style,) = [style for strip in deck.strips for text, style, _ in strip if "cheapest" in text and style]
            assert style.bold and bool(style.color) == (not no_color)


async def test_one_is_picked() -> None:
    """Choosing a winner shows one plan, and only a yes executes it."""
    engine = an_engine("completed", "completed")
    note = "nothing is discarded of fixer 1: it has no worktree"
    choice = engine.work.plans[CHOOSE] = ChoicePlan(run_id=run_id(2), run="fixer 2", notes=(note,))
    async with opened(engine) as deck:
        await comparison_of(deck)
        await deck.press("l", "T")
        await deck.until_text("Nothing is discarded of fixer 1: it has no worktree.")
        assert f"Choose fixer {run_id(2)[-6:]} as the winner?" in deck.screen_text
        await deck.press("n")
        assert [] == engine.work.done
        await deck.press("T")
        await deck.until_text("Nothing is discarded of fixer 1")
        await deck.press("y")
        await deck.until(lambda: engine.work.done == [(CHOOSE, choice, "")], "the choice")
        await deck.until(lambda: any("Chose fixer" in toast for toast in deck.toasts), "the word")


async def test_what_cannot_be_picked_is_said() -> None:
    """If no winner can be chosen, the reason is shown without a question; a read-only app refuses."""
    engine = an_engine("completed", "running")
    refusal, advice = "fixer 2 is still running", "wait for its end"
    engine.work.plans[CHOOSE] = ChoicePlan(run_id=run_id(2), run="fixer 2", refusal=refusal, advice=advice)
    async with opened(engine) as deck:
        screen = await comparison_of(deck)
        await deck.press("l", "T")
        await deck.until_text("Fixer 2 is still running.")
        await deck.press("y", "escape")
        await deck.until(lambda: deck.app.screen is screen, "the comparison")
        assert [] == engine.work.done
    async with opened(an_engine("completed", "completed"), readonly=True) as deck:
        await comparison_of(deck)
        await deck.press("T")
        await deck.until(lambda: deck.toasts, "the word")
        assert "--readonly" in deck.toasts[-1]


def test_answers_show_their_markdown() -> None:
    """An answer shows its markdown as styles, and code apart from the text."""
    answer = "## Fixed\n**Two** races in `a.py`.\n```\nx = 1\n```"
    sides = [Side(run=run, answer=answer) for run in mates("completed", "completed")]
    drawn = lines(sides, 0, 120, datetime.now(UTC))
    shown = [line.plain for line in drawn]
    begin = next(number for number, line in enumerate(shown) if line.startswith("answer"))
    assert ["Fixed", "Two races in a.py.", "  x = 1"] == [line[9:60].rstrip() for line in shown[begin : begin + 3]]
    strong = [drawn[begin + 1].plain[span.start : span.end] for span in drawn[begin + 1].spans if span.style == "bold"]
    assert ["Two", "Two"] == strong
