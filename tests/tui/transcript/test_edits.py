"""Edits in the transcript: they expand to diffs, and keys go from one to the next."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.run.events import AssistantText, Event, ToolCall, encode_event
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.system.line_file import LineFile
from subdeck.tui.feed import lines as feed_lines
from subdeck.tui.transcript import _document as documents
from subdeck.tui.transcript._matches import Match, Query, edit_matcher, find, scan, searched_text

from ..fake_engine import FakeEngine, a_run
from ..open_deck import Deck, opened
from ..transcript_app import Pane, call, reading, result, text
from .test_find import offsets, written

EDIT = call(1, "edit", path="src/app.py", edits=[{"oldText": "a\nold", "newText": "a\nnew"}])
PATCH = "--- src/app.py\n+++ src/app.py\n@@ -9,2 +9,2 @@\n a\n-old\n+new\n"


def styles(pane: Pane, sign: str) -> set[str]:
    """Return the colours of a diff's signs and texts."""
    found: set[str] = set()
    for y in range(pane.transcript.size.height):
        strip = pane.transcript.render_line(y)
        if f" {sign} " in strip.text and "│" in strip.text:
            found |= {str(part.style.color) for part in list(strip)[-3:] if part.style and part.text.strip(f" {sign}")}
    return found


async def test_an_opened_edit_is_a_diff() -> None:
    """An edit's call expands to a diff with signs and colours, with its path above."""
    async with reading(EDIT) as pane:
        pane.transcript.toggle_at_cursor()
        assert pane.said == ["Editing src/app.py", "│ src/app.py", "│   a", "│ - old", "│ + new"]


async def test_line_numbers_come_from_the_result() -> None:
    """If the result has line numbers, call and result show them."""
    async with reading(EDIT, result(2, 1, "Replaced 1 block.", "edit", diff=PATCH), text(3, "Done.")) as pane:
        pane.transcript.toggle_all()
        diff = ["│ src/app.py", "│  9   a", "│ 10 - old", "│ 10 + new"]
        assert pane.said == [
            "Editing src/app.py",
            *diff,
            "  Finished editing src/app.py",
            "│ Replaced 1 block.",
            *diff,
            "Done.",
        ]
        added, removed = styles(pane, "+"), styles(pane, "-")
        assert len(added) == len(removed) == 1
        assert added != removed


async def test_a_wrapped_line_keeps_its_sign() -> None:
    """A long line of a diff has its number once, and its sign in every row."""
    patch = "@@ -1 +1 @@\n-x\n+" + "word " * 30
    async with reading(EDIT, result(2, 1, "", "edit", diff=patch), size=(50, 24)) as pane:
        await pane.press("up")
        pane.transcript.toggle_at_cursor()
        rows = [row for row in pane.said if "word" in row]
        assert len(rows) > 3
        assert rows[0].startswith("│ 1 + word")
        assert all(row.startswith("│   + word") for row in rows[1:])


async def test_hostile_text_in_an_edit_is_neutralised() -> None:
    """Escape sequences, carriage returns and direction marks in old and new text never reach the screen."""
    hostile = "a\x1b[2J\r\x9b31m\u202eb\x00"
    events = [
        call(1, "edit", path=hostile, oldText=hostile, newText=hostile + "\nx"),
        result(2, 1, "", diff=f"+{hostile}\n+x"),
    ]
    async with reading(*events) as pane:
        pane.transcript.toggle_all()
        drawn = "".join(pane.transcript.render_line(y).text for y in range(pane.transcript.size.height))
        assert "+ x" in drawn
        assert drawn.isprintable()


def a_long_edit() -> ToolCall:
    old, new = ("\n".join(f"{word} {number % 7} {number}" for number in range(300)) for word in ("old", "new"))
    return call(1, "edit", path="big.py", oldText=old, newText=new)


async def test_a_long_comparison_leaves_the_event_loop_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow comparisons run in a thread; until then the line shows that."""
    threads: list[str] = []
    begun, let_go = threading.Event(), threading.Event()
    make = documents.body_at

    def slow(*args: object) -> object:
        threads.append(threading.current_thread().name)
        begun.set()
        assert let_go.wait(20)
        return make(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(documents, "body_at", slow)
    async with reading(a_long_edit(), text(2, "Next.")) as pane:
        await pane.press("up")
        pane.transcript.toggle_at_cursor()
        assert pane.said == ["Editing big.py", "│ comparing…", "Next."]
        await asyncio.to_thread(begun.wait, 20)
        let_go.set()
        while "│ - old 0 0" not in pane.said:
            await pane.pilot.pause(0.01)
    assert threads
    assert threading.main_thread().name not in threads


async def test_what_is_opened_comes_into_view() -> None:
    """An edit on the screen's last row shows its diff when it is expanded, and stays visible."""
    diff = "@@ -1,0 +1,9 @@\n" + "\n".join(f"+line {number}" for number in range(1, 10))
    events = [*(text(number, f"said {number}") for number in range(10, 60)), EDIT, result(2, 1, "", "edit", diff=diff)]
    async with reading(*events, *(text(number, f"more {number}") for number in range(60, 90)), size=(60, 14)) as pane:
        await pane.press("first", *["down"] * 50)
        pane.transcript.toggle_at_cursor()
        await pane.pilot.pause()
        assert "Editing src/app.py" in pane.said
        assert "│ 9 + line 9" in pane.said


async def test_a_long_diff_is_cut_with_a_note() -> None:
    """A diff is laid out up to the limit of any expanded line."""
    content = "\n".join("0123456789" for _ in range(4000))
    async with reading(call(1, "write", path="x", content=content), text(2, "Next.")) as pane:
        await pane.press("up")
        pane.transcript.toggle_at_cursor()
        await pane.press("last", "up")
        assert any("more characters, not shown here]" in row for row in pane.said)
        assert pane.transcript.document.height < feed_lines.BODY_LIMIT / 8


def test_edits_are_found(tmp_path: Path) -> None:
    """Calls that edit are found, and results with an edit if their call has none."""
    events: list[Event] = [
        text(1, 'I edit with "oldText" and a "diff":"x".'),
        EDIT,
        result(3, 1, "", "edit", diff=PATCH),
        call(4, "bash", command='diff "oldText"'),
        result(5, 9, "", "apply", diff=PATCH),
        call(6, "write", path="a", content="x"),
    ]
    file = written(tmp_path / "events.jsonl", events)
    starts = offsets(Path(file.path).read_bytes())
    found = [hit for hits, _ in scan(file, 0, 1 << 60, edit_matcher(), lambda: False) for hit in hits]
    assert found == [starts[1], starts[4], starts[5]]


def test_both_texts_of_an_edit_are_searched() -> None:
    """The removed and the added text of an edit are found, without comparing them."""
    line = encode_event(a_long_edit())
    searched = searched_text("readable", line, ProgressFormatter())
    assert all(word in searched for word in ("old 0 0", "new 5 299", "Editing big.py"))
    assert Query("new 5 299", "readable").matcher()(0, line) == [0]


def an_engine(*events: Event) -> FakeEngine:
    engine = FakeEngine(a_run(1, "completed", last_seq=len(events)))
    engine.write(a_run(1).run_id, *events)
    return engine


async def test_braces_go_from_edit_to_edit() -> None:
    """} and { go over folded lines to the next and previous edit, around the end, and Enter expands it."""
    edits = [call(number, "edit", path=f"file-{number}.py", oldText="a", newText="b") for number in (10, 200, 390)]
    events = [
        next((edit for edit in edits if edit.seq == number), text(number, f"line {number}")) for number in range(1, 400)
    ]
    async with opened(an_engine(*events)) as deck:
        await deck.until_text("line 399")
        await deck.press("3", "{")
        await under_cursor(deck, "Editing file-390.py")
        await deck.press("{")
        await under_cursor(deck, "Editing file-200.py")
        await deck.press("}")
        await under_cursor(deck, "Editing file-390.py")
        await deck.press("}")
        await under_cursor(deck, "Editing file-10.py")
        await deck.until_text("No edit after this one. Continued from the top.")
        await deck.press("enter")
        await deck.until_text("│ + b")


async def test_enter_typed_at_once_opens_the_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Enter applies to the edit that is still being searched for, not to the line before."""
    edit = call(2, "edit", path="file.py", oldText="a", newText="b")
    other = call(1, "edit", path="first.py", oldText="c", newText="d")
    typed = threading.Event()

    def found_later(*args: Any) -> Match:
        typed.wait(10)
        return find(*args)

    monkeypatch.setattr("subdeck.tui.transcript._matches.find", found_later)
    async with opened(an_engine(other, *(text(number, f"line {number}") for number in range(3, 200)), edit)) as deck:
        await deck.until_text("line 199")
        await deck.press("3", "g", "}", "enter")
        typed.set()
        await deck.until_text("│ + b")
        assert deck.main.transcript.row_text_at_cursor() == "Editing file.py"


async def test_without_an_edit_it_says_so() -> None:
    """Without an edit the keys report that, and do not move the cursor."""
    async with opened(an_engine(AssistantText(seq=1, text="Nothing to do."))) as deck:
        await deck.until_text("Nothing to do.")
        await deck.press("3", "}")
        await deck.until_text("No edit in this transcript.")


async def under_cursor(deck: Deck, words: str) -> None:
    await deck.until(lambda: deck.main.transcript.row_text_at_cursor() == words, f"{words!r} under the cursor")


def test_a_file_is_read_for_the_result_only_near_its_call(tmp_path: Path) -> None:
    """The result of an edit is searched for in a limited part of the file."""
    path = tmp_path / "events.jsonl"
    line = encode_event(EDIT)
    path.write_bytes(line + encode_event(text(2, "x" * 400_000)) + encode_event(result(3, 1, "", "edit", diff=PATCH)))
    file = LineFile(str(path))
    body = documents.body_at(file, feed_lines.View.READABLE, 0, line.rstrip(b"\n"))
    assert [row.margin + row.text for row in body] == ["src/app.py", "  a", "- old", "+ new"]
