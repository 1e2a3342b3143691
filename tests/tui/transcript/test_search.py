"""Searching, jumping and copying in the transcript, by keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.run.events import AssistantText, ErrorReported, Event, ToolCall, ToolResult
from subdeck.core.run.model import RunReason, RunResult, RunStatus
from subdeck.tui.feed.lines import UNREADABLE
from subdeck.tui.keys.command import KeyContext
from subdeck.tui.terminal import handover
from textual.events import Paste
from textual.widgets import Input

from ..deck.test_hostile_text import HOSTILE, raw_controls
from ..fake_engine import FakeEngine, a_preset, a_run, run_id, stamp
from ..open_deck import Deck, opened, text_at_cursor


def text(seq: int, said: str) -> AssistantText:
    return AssistantText(seq=seq, ts=stamp(seq), text=said)


def an_engine(*events: Event, status: str = "completed", **fields: Any) -> FakeEngine:
    engine = FakeEngine(a_run(1, status, last_seq=len(events), **fields), presets=[a_preset()])
    engine.write(run_id(1), *events)
    return engine


def haystack(lines: int = 100, every: int = 10) -> list[Event]:
    """Return lines with needles in 10, 20, …"""
    return [text(n, f"line {n} {'needle' if n % every == 0 else 'hay'}") for n in range(1, lines + 1)]


def subtitle(deck: Deck) -> str:
    return str(deck.main.transcript.border_subtitle)


async def say(deck: Deck, words: str) -> None:
    await deck.until(lambda: words in subtitle(deck), f"{words!r} at the pane's edge")


async def search(deck: Deck, words: str) -> None:
    await deck.press("3", "slash")
    await deck.until(lambda: deck.main.search.is_open, "the field")
    await deck.type(words)


def line_at_cursor(deck: Deck) -> str:
    return text_at_cursor(deck.main.transcript)


async def test_search_goes_from_match_to_match() -> None:
    """Typing goes to a match, Enter keeps the search, n and N continue around the end, Escape ends it."""
    async with opened(an_engine(*haystack())) as deck:
        await deck.until_text("line 100")
        await search(deck, "needle")
        await say(deck, "match 10/10")
        await deck.press("enter", "n")
        await say(deck, "match 1/10, from the beginning")
        assert line_at_cursor(deck) == "line 10 needle"
        await deck.press("n")
        await say(deck, "match 2/10")
        await deck.press("N", "N")
        await say(deck, "match 10/10, from the end")
        await deck.until_text("line 100 needle")
        await deck.press("escape")
        await deck.until(lambda: "match" not in subtitle(deck), "the end of the search")
        assert deck.main.panes.key_context is KeyContext.TRANSCRIPT


async def test_the_search_is_a_mode() -> None:
    """n launches except during a search in the transcript, as the footer shows."""
    async with opened(an_engine(*haystack())) as deck:
        await search(deck, "needle")
        await deck.until_text("⏎ keep")
        await deck.press("enter")
        await deck.until_text("n next  N previous")
        assert "n launch" not in deck.screen_text
        await deck.press("2")
        await deck.until_text("n launch")
        await deck.press("3", "escape")
        await deck.until_text("n launch")
        await deck.press("n")
        await deck.until(lambda: deck.app.screen is not deck.main, "the launch dialog")


async def test_searching_begins_at_the_cursor_and_escape_goes_back() -> None:
    """While typing, the first match from the cursor on is shown; Escape restores the place."""
    async with opened(an_engine(*haystack())) as deck:
        await deck.until_text("line 100")
        await deck.press("3", "g", "j", "j")
        await deck.until(lambda: line_at_cursor(deck) == "line 3 hay", "the third line")
        await search(deck, "needle")
        await say(deck, "match 1/10")
        await deck.type("x")
        await say(deck, 'no match for "needlex"')
        await deck.press("escape")
        await deck.until(lambda: line_at_cursor(deck) == "line 3 hay", "the third line again")
        assert not deck.main.search.is_active
        assert deck.main.transcript.has_focus


async def test_what_was_folded_is_opened() -> None:
    """A match within a result expands it and is on the screen."""
    inside = "\n".join(f"row {n} {'needle' if n == 40 else ''}" for n in range(60))
    call = ToolCall(seq=1, ts=stamp(1), tool_call_id="1", tool_name="read", args={"path": "a.py"})
    result = ToolResult(seq=2, ts=stamp(2), tool_call_id="1", tool_name="read", is_error=False, content=inside)
    async with opened(an_engine(call, result, *(text(n, "hay") for n in range(3, 60)))) as deck:
        await search(deck, "needle")
        await say(deck, "match 1/1")
        await deck.until_text("row 40 needle")


def a_result(seq: int, content: str) -> ToolResult:
    return ToolResult(seq=seq, ts=stamp(seq), tool_call_id=str(seq), tool_name="read", is_error=False, content=content)


async def test_only_the_match_is_opened() -> None:
    """A line expanded for earlier letters or matches is folded again when the search leaves it."""
    events = [a_result(1, "first\nneed this"), a_result(2, "second\nneedle one"), a_result(3, "third\nneedle two")]
    async with opened(an_engine(*events), (120, 50)) as deck:
        await deck.press("3", "g")
        await search(deck, "need")
        await deck.until_text("need this")
        await deck.type("le")
        await deck.until_text("needle one")
        await deck.until(lambda: "need this" not in deck.screen_text, "the first to be folded again")
        await deck.press("enter", "n")
        await deck.until_text("needle two")
        await deck.until(lambda: "needle one" not in deck.screen_text, "the second to be folded again")


async def test_a_growing_run_is_counted() -> None:
    """Matches written during a search are counted too."""
    engine = an_engine(*haystack(20), status="running")
    async with opened(engine) as deck:
        await search(deck, "needle")
        await say(deck, "match 2/2")
        await deck.press("enter")
        engine.write(run_id(1), text(21, "another needle"))
        engine.tell(a_run(1, last_seq=21))
        await say(deck, "match 2/3")
        await deck.press("n")
        await say(deck, "match 3/3")


async def test_another_run_ends_the_search() -> None:
    """The highlights and the mode belong to the searched run."""
    engine = FakeEngine(a_run(1, "completed"), a_run(2, "completed"))
    for number in (1, 2):
        engine.write(run_id(number), *haystack(30))
    async with opened(engine) as deck:
        await search(deck, "needle")
        await say(deck, "match 3/3")
        await deck.press("enter", "2", "j")
        await deck.until_text("▸ task 1")
        assert not deck.main.search.is_active
        await deck.until(lambda: deck.main.transcript._painter._words is None, "the marks to go")


async def test_the_last_words_are_there_again() -> None:
    """The reopened field has the last query, and Enter searches it."""
    async with opened(an_engine(*haystack())) as deck:
        await search(deck, "needle")
        await deck.press("enter", "escape", "slash")
        await deck.until(lambda: deck.main.search.query_one(Input).value == "needle", "the words from before")
        await deck.press("enter")
        await say(deck, "/10")


@pytest.mark.parametrize("hostile", [text.replace("\ud800", "") for text in HOSTILE])
async def test_hostile_text_is_searched(hostile: str) -> None:
    """The searched text and the query may contain any text."""
    async with opened(an_engine(text(1, hostile), text(2, f"{hostile} needle"), text(3, "end")), (80, 24)) as deck:
        await search(deck, "needle")
        await say(deck, "match 1/1")
        deck.main.search.query_one(Input).post_message(Paste(hostile[:50]))
        await deck.pilot.pause()
        assert raw_controls(deck) == []
        await deck.press("enter", "y", "escape")
        assert raw_controls(deck) == []


async def test_errors_are_gone_to() -> None:
    """Errors are gone to, forwards and backwards, and around the end with a note; without errors a message appears."""
    events = [*haystack(40), ErrorReported(seq=41, ts=stamp(41), message="boom"), text(42, "on"), *haystack(40)]
    events.insert(5, ErrorReported(seq=6, ts=stamp(6), message="first"))
    async with opened(an_engine(*events)) as deck:
        await deck.press("3", "(")
        await deck.until(lambda: "boom" in line_at_cursor(deck), "the last error")
        await deck.press("(")
        await deck.until(lambda: "first" in line_at_cursor(deck), "the first error")
        await deck.press("(")
        await deck.until(lambda: "boom" in line_at_cursor(deck), "the last error again")
        assert deck.toasts == ["No error before this one. Continued from the bottom."]
    async with opened(an_engine(*haystack())) as deck:
        await deck.press("3", ")")
        await deck.until(lambda: deck.toasts == ["No error in this transcript."], "the word")


async def test_a_time_is_gone_to() -> None:
    """An invalid time is reported in the dialog, which keeps it; a valid one moves the cursor."""
    async with opened(an_engine(*haystack())) as deck:
        await deck.press("3", ":go_to_time")
        await deck.until_text("Go to a time")
        await deck.type("soon")
        await deck.press("enter")
        await deck.until_text("not a time")
        field = deck.app.screen.query_one(Input)
        assert field.value == "soon"
        field.value = "+49s"
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the dialog to close")
        assert line_at_cursor(deck) == "line 50 needle"


async def test_the_entry_is_copied() -> None:
    """y copies the whole text under the cursor, without control characters, and reports its length."""
    async with opened(an_engine(*haystack(), text(101, "one\ntwo \x1b]0;title\x07three"))) as deck:
        await deck.until_text("three")
        await deck.press("3", "y")
        assert deck.app.clipboard == "one\ntwo three"
        assert deck.toasts == ["Copied 2 lines, 13 B."]


async def test_the_answer_is_copied() -> None:
    """Y copies the answer from anywhere on the deck, or reports that there is none yet."""
    engine = an_engine(*haystack(), status="running")
    results: dict[str, RunResult] = {}
    engine.result = results.get  # type: ignore[attr-defined]
    async with opened(engine) as deck:
        await deck.act("copy_answer")
        await deck.until(lambda: deck.toasts, "the word")
        assert "no answer yet. It is running" in deck.toasts[0]
        results[run_id(1)] = RunResult(
            run_id=run_id(1), status=RunStatus.COMPLETED, reason=RunReason.DONE, written_by="wrapper", final_text="42"
        )
        await deck.act("copy_answer")
        await deck.until(lambda: deck.app.clipboard == "42", "the answer")


async def test_the_transcript_is_paged(monkeypatch: pytest.MonkeyPatch) -> None:
    """v gives the pager a private file with the whole text, unfolded and plain, and removes it afterwards."""
    seen: list[tuple[Path, str, int]] = []

    def read(app: object, path: str) -> str:
        seen.append((Path(path), Path(path).read_text(), Path(path).stat().st_mode & 0o077))
        return ""

    monkeypatch.setattr(handover, "page_file", read)
    call = ToolCall(seq=1, ts=stamp(1), tool_call_id="1", tool_name="bash", args={"command": "cat \x1b[2Jx"})
    result = ToolResult(seq=2, ts=stamp(2), tool_call_id="1", tool_name="bash", is_error=True, content="in\x1b[31mside")
    engine = an_engine(call, result, text(3, "a\nb"))
    engine.write_lines(run_id(1), paths.EVENTS, b"garbage\n")
    async with opened(engine) as deck:
        await deck.until_text("a")
        await deck.act("page_transcript")
        await deck.until(lambda: seen, "the pager")
        ((path, shown, others),) = seen
        assert "inside" in shown and "command: cat x" in shown and "\x1b" not in shown
        assert shown.splitlines()[-2:] == ["          b", f"          {UNREADABLE.text}"]
        assert others == 0
        await deck.until(lambda: not path.exists(), "the file to go")


async def test_the_run_is_saved(tmp_path: Path) -> None:
    """Saving asks for a path, reports obstacles, asks before it overwrites, and saves a markdown file."""
    engine = an_engine(*haystack(3), meta_preset="repo/scout")
    engine.cwd = str(tmp_path)
    engine.result = {}.get  # type: ignore[attr-defined]
    name = f"repo-scout-{run_id(1)[-6:]}.md"
    async with opened(engine, (80, 24)) as deck:
        await deck.act("save_run")
        await deck.until_text(name)
        field = deck.app.screen.query_one(Input)
        field.value = "nowhere/x.md"
        await deck.press("enter")
        await deck.until_text("exist")  # the sentence may be wrapped, as the path is long
        field.value = name
        await deck.press("enter")
        await deck.until(lambda: deck.toasts, "the word")
        saved = (tmp_path / name).read_text()
        assert "line 3 hay" in saved and saved.startswith("# repo/scout")
        (tmp_path / name).write_text("mine")
        await deck.act("save_run")
        await deck.until_text(name)
        await deck.press("enter")
        await deck.until_text("Overwrite this file?")
        await deck.press("escape")
        await deck.until_text("as markdown")
        assert (tmp_path / name).read_text() == "mine"
        await deck.press("enter")
        await deck.until_text("Overwrite this file?")
        await deck.press("y")
        await deck.until(lambda: (tmp_path / name).read_text() == saved, "the file")
        assert [path.name for path in tmp_path.iterdir()] == [name]
