"""Runs that need attention: their order, counted in the header, kept on disk, and cleared only by viewing."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from subdeck.core.paths import project_key, state_file
from subdeck.core.project.read_marks import SEEN, SINCE, WAITED_SINCE, line, mark_read, marks_file
from subdeck.core.project.registry import finished_snapshot
from subdeck.core.run.events import Request
from subdeck.core.run.model import Group, RequestKind, RunReason, RunResult, RunStatus
from subdeck.core.run.need import Need
from subdeck.core.run.snapshot import Counts, RunSnapshot, ends_with_question
from subdeck.core.system.files import write_state
from subdeck.tui.runs.seen import LARGEST
from subdeck.tui.terminal.escapes import title

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened


def over(number: int, status: str = "completed", **fields: object) -> RunSnapshot:
    """A run that ended while the deck was open."""
    later = datetime.now(UTC) + timedelta(hours=1)
    ended_at = later.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return a_run(number, status, ended_at=ended_at, **fields)


ENDS = (over(1), over(2, asks=True), over(3, "failed"), over(4, "failed"))


def an_engine(*ends: RunSnapshot) -> FakeEngine:
    return FakeEngine(*ends, a_run(5))


async def some_ends(deck: Deck, engine: FakeEngine) -> None:
    engine.tell(*ENDS)
    await deck.until_text("✗ 2 failed  ? 1 question")


async def began(deck: Deck) -> None:
    await deck.until(lambda: deck.main.run_store.marks._since, "the marks to be read")


def four_running() -> FakeEngine:
    return an_engine(*(a_run(number) for number in range(1, 5)))


async def test_the_most_urgent_first() -> None:
    """`]` goes to failures, then to questions, in turn; the header and the edge of the list count just these."""
    engine = four_running()
    async with opened(engine) as deck:
        await began(deck)
        await some_ends(deck, engine)
        visited: list[str | None] = []
        for _ in range(5):
            await deck.press("]")
            visited.append(deck.main.runs.selected)
        assert visited == [run_id(number) for number in (4, 3, 2, 4, 3)]
        assert "3 need you  ] next" in deck.screen_text
        assert "• 1 unread" in deck.screen_text.splitlines()[0]


async def test_unread_results_come_last() -> None:
    """If no run needs you, `]` goes to the unread results, which no place counts among those that need you."""
    engine = four_running()
    async with opened(engine) as deck:
        await began(deck)
        engine.tell(over(1), over(2))
        await deck.until_text("• 2 unread")
        assert "need you" not in deck.screen_text and "needs you" not in deck.screen_text
        visited: list[str | None] = []
        for _ in range(3):
            await deck.press("]")
            visited.append(deck.main.runs.selected)
        assert visited == [run_id(number) for number in (2, 1, 2)]


async def test_an_answer_that_asks_is_marked() -> None:
    """The row of a run whose answer is a question begins with its sign until it is read."""
    engine = four_running()
    async with opened(engine) as deck:
        await began(deck)
        await some_ends(deck, engine)
        assert ["!", "!", "?", "•"] == [line[1] for line in deck.rows(deck.main.runs)[2:6]]


@pytest.mark.parametrize(
    "keys", [("]", "j", "k"), ("]", "d", "escape"), ("]", "X", "escape"), ("]", ":save_run", "escape")]
)
async def test_looking_by_the_way_is_no_look(keys: tuple[str, ...]) -> None:
    """Passing a run, or opening and leaving a dialog for it, does not mark it as read."""
    engine = four_running()
    async with opened(engine) as deck:
        await began(deck)
        await some_ends(deck, engine)
        await deck.press(*keys)
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert "✗ 2 failed  ? 1 question" in deck.screen_text


@pytest.mark.parametrize("keys", [("]", "m"), ("]", "enter"), ("]", "i"), ("]", "r"), ("]", "d", "y")])
async def test_opening_and_acting_is_a_look(keys: tuple[str, ...]) -> None:
    """Opening, acting on or ticking off a run marks it as read."""
    engine = four_running()
    async with opened(engine) as deck:
        await began(deck)
        await some_ends(deck, engine)
        await deck.press(*keys)
        await deck.until(lambda: 1 == list(deck.main.run_store.needs.values()).count(Need.FAILED), "one fewer")


async def test_the_next_start_knows() -> None:
    """After a restart unread runs are unread again, and read ones are not."""
    first = four_running()
    async with opened(first) as deck:
        await began(deck)
        await some_ends(deck, first)
        await deck.press("]", "m")
        file = Path(state_file("seen", project_key("/src/shop")))
        await deck.until(lambda: f"seen {run_id(4)}" in file.read_text(), "the mark on the disk")
    async with opened(an_engine(*ENDS)) as deck:
        await deck.until_text("✗ 1 failed  ? 1 question")
        assert not deck.main.run_store.is_unseen(run_id(4))


async def test_a_failed_command_needs_you_in_every_app() -> None:
    """An unprinted failure that a shell waited for is counted by open apps and later ones."""
    failed = over(1, "failed", meta_background=False)
    engine = an_engine(a_run(1, meta_background=False))
    async with opened(engine) as deck:
        await began(deck)
        engine.tell(failed)
        await deck.until_text("1 failed")
    async with opened(an_engine(failed)) as deck:
        await deck.until_text("1 failed")


async def test_a_command_that_printed_a_result_takes_it_off() -> None:
    """An open app follows a mark that a command made in the file."""
    engine = an_engine(a_run(1, meta_background=False))
    async with opened(engine) as deck:
        await began(deck)
        engine.tell(over(1, "failed", meta_background=False))
        await deck.until_text("1 failed")
        mark_read("/src/shop", [run_id(1)])
        await deck.until(lambda: "1 failed" not in deck.screen_text, "the count to go")


async def test_a_large_file_of_marks_loses_no_unread_result() -> None:
    """An app that shortens a large file of marks drops only marks of deleted runs."""
    file = Path(marks_file("/src/shop"))
    since = [line(word, "2020-01-01T00:00:00.000Z") for word in (SINCE, WAITED_SINCE)]
    gone = (line(SEEN, run_id(number)) for number in range(10, LARGEST // len(line(SEEN, run_id(1))) + 20))
    write_state(str(file), b"".join([*since, *gone, line(SEEN, run_id(2))]))
    ends = (a_run(1, "failed"), a_run(2, "failed"))
    async with opened(an_engine(*ends)) as deck:
        await deck.until_text("1 failed")
        await deck.until(lambda: file.stat().st_size < 200, "the file to be shortened")
    async with opened(an_engine(*ends)) as deck:
        await deck.until_text("1 failed")


async def test_windows_share_what_was_seen() -> None:
    """A run read in one window is read in the other ones."""
    engine, other = four_running(), four_running()
    async with opened(engine) as deck:
        await began(deck)
        await some_ends(deck, engine)
        async with opened(other) as beside:
            await began(beside)
            await some_ends(beside, other)
            await beside.press("]", "m")
        await deck.until_text("✗ 1 failed  ? 1 question")


async def test_a_first_start_has_no_backlog() -> None:
    """Runs that ended before the file of marks existed are not unread."""
    async with opened(FakeEngine(a_run(1, "failed"), a_run(2, "completed"))) as deck:
        await began(deck)
        assert not deck.main.run_store.needs


@pytest.mark.parametrize(
    ("answer", "asks"),
    [("Done. Which port shall it use?", True), ("**Shall I go on?**\n\n", True), ("Why? Because.", False), ("", False)],
)
def test_an_answer_that_asks(answer: str, asks: bool) -> None:
    """An answer that ends with a question differs from one that only contains a question."""
    assert asks == ends_with_question(answer)
    result = RunResult(
        run_id=run_id(1), status=RunStatus.COMPLETED, reason=RunReason.DONE, written_by="", final_text=answer
    )
    end = finished_snapshot(a_run(1).meta, result).end
    assert end and asks == end.asks


def asking(number: int, *asked: str, **fields: object) -> RunSnapshot:
    """Return a run whose agent has these requests."""
    requests = tuple(
        Request(
            id=f"q{place}",
            kind=RequestKind.PERMISSION,
            title="wants to run a command",
            tool_name="bash",
            command=command,
        )
        for place, command in enumerate(asked, 1)
    )
    return a_run(number, requests=requests, meta_talk=True, **fields)


async def test_who_waits_comes_first() -> None:
    """A run that needs input comes first, is counted separately, and `]` goes to it before all others."""
    engine = four_running()
    async with opened(engine, (200, 50)) as deck:
        await began(deck)
        await some_ends(deck, engine)
        engine.tell(asking(2, "rm -rf build"))
        await deck.until_text("? 1 needs input  ✗ 2 failed")
        first = deck.rows(deck.main.runs)[1]
        assert "?" in first
        assert "rm -rf build" in first
        assert "bg: 2 running / 5 total  " in deck.screen_text
        await deck.press("]")
        assert deck.main.runs.selected == run_id(2)
        assert "3 need you" in deck.screen_text


async def test_a_narrow_row_shows_the_command() -> None:
    """A narrow row shows the command before the words around it."""
    command = "git push origin main --force-with-lease --follow-tags"
    async with opened(FakeEngine(asking(1, command)), (80, 24)) as deck:
        await deck.until(
            lambda: re.search(r" run: git push ori.*… \(\+\d+\) ", deck.rows(deck.main.runs)[1]),
            "the command in the row",
        )


async def test_who_waits_is_not_ticked_off() -> None:
    """Only a reply clears a request, which disappears with the run."""
    engine = four_running()
    async with opened(engine) as deck:
        engine.tell(asking(2, "rm -rf build"))
        await deck.until_text("1 needs input")
        await deck.press("]")
        await deck.pass_time()
        await deck.press("m")
        await deck.until(lambda: any("still needs input" in toast for toast in deck.toasts), "the refusal")
        assert "1 needs input" in deck.screen_text
        engine.tell(a_run(2, meta_talk=True))
        await deck.until(lambda: "1 needs input" not in deck.screen_text, "the count to go")


async def test_a_group_says_that_one_of_it_waits() -> None:
    """The head of a group has the state of its waiting run, and counts it."""
    both = [{"meta_group": Group("g", index, 2, 2)} for index in range(2)]
    engine = FakeEngine(asking(1, "make", **both[0]), a_run(2, **both[1]))
    async with opened(engine) as deck:
        await deck.until_text("1 needs input  2 running")


def test_the_window_says_who_waits() -> None:
    """The window's title begins with the number of waiting runs."""
    assert title(Counts(running=2, waiting=1), "/src/shop") == "subdeck – 1 needs input – 2 running – /src/shop"


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (150, 45)])
async def test_toasts_leave_the_count_of_who_needs_me(size: tuple[int, int]) -> None:
    """Toasts appear above the count at the bottom of the list."""
    engine = four_running()
    async with opened(engine, size) as deck:
        await began(deck)
        engine.tell(*ENDS)
        shown = ("task 4: model_err", "3 need you  ] next")
        await deck.until(lambda: all(text in deck.screen_text for text in shown), "toasts and the count")
