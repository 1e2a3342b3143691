"""The transcript pane follows new lines and reads no more than necessary."""

from __future__ import annotations

from msgspec.structs import replace
from subdeck.core.run.events import AssistantText, Notice, ToolCall, UnknownEvent
from subdeck.core.run.model import RunReason
from subdeck.core.run.progress import ProgressFormatter
from subdeck.tui.feed.lines import Kind, entry_of
from subdeck.tui.transcript._rows import Rows

from ..fake_engine import FakeEngine, a_run, ended, run_id, some_events, stamp
from ..open_deck import Deck, opened


def text(seq: int, said: str) -> AssistantText:
    return AssistantText(seq=seq, ts=stamp(seq), text=said)


def laid_text(deck: Deck) -> str:
    """Return all laid out entries, and the text below them."""
    transcript = deck.main.transcript
    laid = [entry.text for rows in transcript.document._laid.values() for entry in rows.entries]
    return "\n".join([*laid, *transcript.live_rows])


def test_events_become_lines_of_a_kind() -> None:
    """Each event shows its progress text, and is left out without one."""
    formatter = ProgressFormatter()
    events = [*some_events(files=1), Notice(seq=5, level="warning", text="careful"), text(6, "  \n ")]
    entries = [entry for event in events if (entry := entry_of(event, formatter))]
    assert [(entry.kind, entry.text) for entry in entries] == [
        (Kind.NOTE, "started"),
        (Kind.TEXT, "I look at src/file_0.py now."),
        (Kind.TOOL, "Reading src/file_0.py"),
        (Kind.RESULT, "  Finished reading src/file_0.py"),
        (Kind.WARNING, "Warning: careful"),
    ]
    unknown = entry_of(UnknownEvent(type="new\x1b[2J", seq=7), formatter)
    assert unknown is not None and unknown.text == "(new)"


def test_rows_map_back_to_lines() -> None:
    """Every row belongs to one line, at each width and without wrapping."""
    formatter = ProgressFormatter()
    entries = [entry for n in range(30) if (entry := entry_of(text(n + 1, "word " * n + "end\nx"), formatter))]
    for width in (12, 40, 0):
        rows = Rows(width, entries)
        cut = [len(rows.cut(entry)) for entry in rows.entries]
        assert rows.height == sum(cut)
        assert [rows.at(row)[1:] for row in range(rows.height)] == [
            (entry, part) for entry, count in zip(rows.entries, cut, strict=True) for part in range(count)
        ]


async def test_live_sentence_has_a_cursor() -> None:
    """The unfinished sentence grows at the end, and is replaced by a line when it is finished."""
    engine = FakeEngine(a_run(1, last_seq=10, sentence="The middle"))
    engine.write(run_id(1), *some_events())
    async with opened(engine) as deck:
        await deck.until_text("The middle▋")
        engine.tell(a_run(1, last_seq=10, sentence="The middleware checks"))
        await deck.until_text("The middleware checks▋")
        engine.write(run_id(1), text(11, "The middleware checks the token."))
        engine.tell(a_run(1, last_seq=11))
        await deck.until_text("The middleware checks the token.")
        assert "▋" not in deck.screen_text
        assert deck.screen_text.count("The middleware checks") == 1


async def test_follow_lets_go_and_catches_again() -> None:
    """Scrolling up stops following, new lines are counted, `f` and the end follow again."""
    engine = FakeEngine(a_run(1))
    engine.write(run_id(1), *some_events(files=40))
    async with opened(engine) as deck:
        transcript = deck.main.transcript
        await deck.until_text("Finished reading src/file_39.py")
        await deck.press("3", "pageup")
        await deck.until(lambda: not transcript.following, "the end to be let go")
        top = transcript.scroll_offset.y
        engine.write(run_id(1), text(200, "news one"), text(201, "news two"))
        engine.tell(a_run(1, last_seq=201))
        await deck.until_text("+2 new")
        assert transcript.scroll_offset.y == top
        await deck.press("f")
        await deck.until_text("news two")
        assert transcript.following
        await deck.press("k", "k")
        await deck.until(lambda: not transcript.following, "the end to be let go")
        await deck.press("G")
        await deck.until(lambda: transcript.following, "the end to be caught")
        engine.write(run_id(1), text(202, "news three"))
        engine.tell(a_run(1, last_seq=202))
        await deck.until_text("news three")


async def test_reaching_the_end_by_scrolling_follows() -> None:
    """Scrolling down to the end follows it again."""
    engine = FakeEngine(a_run(1))
    engine.write(run_id(1), *some_events(files=40))
    async with opened(engine) as deck:
        await deck.until_text("Finished reading src/file_39.py")
        await deck.press("3", "k", "k")
        await deck.until(lambda: not deck.main.transcript.following, "the end to be let go")
        await deck.press("j", "j")
        await deck.until(lambda: deck.main.transcript.following, "the end to be caught")


async def test_wrap_can_be_turned_off() -> None:
    """A long line is wrapped, or one row that scrolls to its end."""
    engine = FakeEngine(a_run(1))
    engine.write(run_id(1), text(1, "begin " + "x" * 300 + " finish"))
    async with opened(engine, (80, 24)) as deck:
        await deck.until_text("finish")
        await deck.press("w")
        await deck.until(lambda: "finish" not in deck.screen_text, "one row")
        assert "begin" in deck.screen_text
        await deck.press("3", *["right"] * 40)
        await deck.until_text("finish")
        await deck.press("w")
        await deck.until_text("begin")


async def test_a_resize_keeps_the_end_in_sight() -> None:
    """Rows are wrapped again at another width, and the end is still followed."""
    engine = FakeEngine(a_run(1))
    engine.write(run_id(1), *(text(n, f"line {n} " + "word " * 30) for n in range(1, 80)), text(80, "the very last"))
    async with opened(engine) as deck:
        await deck.until_text("the very last")
        for width in (60, 200, 100):
            await deck.pilot.resize_terminal(width, 30)
            await deck.until_text("the very last")


async def test_only_the_shown_run_is_read() -> None:
    """Runs that are not shown are not read, however much they change."""
    engine = FakeEngine(*(a_run(number) for number in range(1, 6)))
    async with opened(engine) as deck:
        for seq in range(1, 4):
            engine.tell(*(a_run(number, last_seq=seq) for number in range(1, 6)))
        await deck.until(lambda: all(run.last_seq == 3 for run in deck.main.run_store._runs.values()), "all updates")
        assert engine.read_runs == [run_id(5)]


async def test_late_pieces_of_another_run_are_dropped() -> None:
    """Late pieces of another run never get into the shown run's transcript."""
    engine = FakeEngine(*(a_run(number, "completed") for number in (1, 2)))
    for number in (1, 2):
        engine.write(run_id(number), *(text(n, f"of run {number} line {n}") for n in range(1, 9000)))
    engine.disk.clear()
    async with opened(engine) as deck:
        await deck.until_text("of run 2")
        await deck.press("2", "j")
        await deck.until_text("▸ task 1")
        engine.disk.set()
        await deck.until_text("of run 1 line 8999")
        await deck.until_text("8999 events")
        assert {line[:8] for line in laid_text(deck).splitlines()} == {"of run 1"}


async def test_a_stale_sentence_is_not_shown() -> None:
    """If the file is ahead of the snapshot, its sentence is already finished and not shown."""
    engine = FakeEngine(a_run(1, last_seq=10, sentence="The middle"))
    engine.write(run_id(1), *some_events(), text(11, "The middleware checks the token."))
    async with opened(engine) as deck:
        await deck.until_text("The middleware checks the token.")
        await deck.until_text("11 events")
        assert "▋" not in deck.screen_text


async def test_a_hundred_thousand_events_leave_the_keys_alive() -> None:
    """While a huge transcript is read in pieces, keys are answered, and in the end it is complete."""
    engine = FakeEngine(a_run(2), a_run(1))
    call = ToolCall(seq=1, ts=stamp(1), tool_call_id="1", tool_name="read", args={"path": "src/a.py"})
    engine.write(run_id(2), *(replace(call, seq=seq) for seq in range(1, 100_000)), text(100_000, "at last"))
    engine.disk.clear()
    async with opened(engine) as deck:
        await deck.until_text("reading…")
        await deck.press("k", "?")
        await deck.until_text("Launch the highlighted preset")
        await deck.press("escape")
        engine.disk.set()
        await deck.until_text("at last")
        await deck.until_text("100000 events")


async def test_why_a_run_failed_stands_below_its_last_line() -> None:
    """The last line has the reason of a failure, and its explanation is below, without the sign of writing."""
    engine = FakeEngine(a_run(1, "failed", reason=RunReason.AGENT_EXIT, message="The agent ended with exit code 3."))
    engine.write(run_id(1), ended(1, "failed", "agent_exit"))
    async with opened(engine) as deck:
        await deck.until_text("✗ failed: agent_exit")
        await deck.until_text("The agent ended with exit code 3.")
        rows = deck.rows(deck.main.transcript)
        assert not any("▋" in row for row in rows)


async def test_what_the_file_says_itself_is_not_said_twice() -> None:
    """A model's error is not repeated below the file's own words, and an answer needs no reason."""
    failed = a_run(1, "failed", reason=RunReason.MODEL_ERROR, message="401 Invalid key")
    engine = FakeEngine(failed, a_run(2, "completed", message="The answer"))
    for number, status, reason in ((1, "failed", "model_error"), (2, "completed", "done")):
        engine.write(run_id(number), ended(1, status, reason))
    async with opened(engine) as deck:
        await deck.until_text("✓ completed: done")
        assert "The answer" not in laid_text(deck)
        await deck.press("j")
        await deck.until_text("✗ failed: model_error")
        assert "401" not in laid_text(deck)
