"""Keys in the transcript pane: the cursor, following, expanding, the views."""

from __future__ import annotations

import pytest
from subdeck.core import paths
from subdeck.core.run.events import ErrorReported, encode_event
from subdeck.tui.feed.lines import View
from subdeck.tui.transcript._matches import Query, highlighter
from textual.geometry import Offset

from ..deck.test_hostile_text import HOSTILE
from ..open_deck import text_at_cursor
from ..transcript_app import Pane, call, reading, result, text, thought

LINES = [text(n, f"line {n}") for n in range(1, 61)]
MANY = [text(n, f"line {n} " + "word " * (n % 30)) for n in range(1, 12_000)]


async def test_the_cursor_moves_row_by_row() -> None:
    """Up stops following and draws a cursor, and the view stays until the cursor would leave it."""
    async with reading(*LINES) as pane:
        assert pane.pointed == ["line 60"]
        assert pane.rows[0] == "line 39"
        await pane.press("up", "up")
        assert not pane.transcript.following
        assert pane.pointed == ["line 58"]
        assert pane.rows[0] == "line 39"
        await pane.press(*["up"] * 20)
        assert pane.pointed == ["line 38"]
        assert pane.rows[0] == "line 38"
        await pane.press(*["down"] * 22)
        assert pane.transcript.following
        assert pane.rows[-1] == "line 60"


async def test_pages_take_the_cursor_along() -> None:
    """A page key moves view and cursor; g goes to the first row, G follows again."""
    async with reading(*LINES) as pane:
        await pane.press("page_up")
        assert (pane.rows[0], pane.pointed) == ("line 18", ["line 39"])
        await pane.press("first")
        assert (pane.rows[0], pane.pointed) == ("line 1", ["line 1"])
        await pane.press("page_down")
        assert (pane.rows[0], pane.pointed) == ("line 22", ["line 22"])
        await pane.press("last")
        assert pane.transcript.following


async def test_the_wheel_keeps_the_cursor_in_view() -> None:
    """Scrolling up stops following and moves the cursor along; scrolling to the end follows again."""
    async with reading(*LINES) as pane:
        for _ in range(12):
            pane.transcript._scroll_up_for_pointer(animate=False)
        await pane.pilot.pause()
        assert not pane.transcript.following
        assert len(pane.pointed) == 1
        for _ in range(12):
            pane.transcript._scroll_down_for_pointer(animate=False)
        await pane.pilot.pause()
        assert pane.transcript.following


async def test_a_click_puts_the_cursor_and_a_second_one_opens() -> None:
    """A click moves the cursor, and a second one expands the line."""
    async with reading(call(1, path="src/a.py"), *LINES[1:5]) as pane:
        await pane.pilot.click(pane.transcript, offset=Offset(20, 1))
        assert pane.pointed == ["Reading src/a.py"]
        await pane.pilot.click(pane.transcript, offset=Offset(20, 1), times=2)
        assert pane.rows[1] == "│ path: src/a.py"


async def test_nothing_jumps_while_rows_above_are_laid_out() -> None:
    """Going up through unseen rows, each step shows the rows right above."""
    async with reading(*MANY) as pane:
        assert len(pane.transcript.document.table) > 10
        await pane.press("up")
        for _ in range(60):
            before = pane.rows
            await pane.press("page_up")
            assert pane.rows[-1] == before[0]
        await pane.press(*["up"] * 30)
        assert pane.pointed[0] == pane.rows[0]


async def test_the_beginning_of_a_big_run_is_one_key_away() -> None:
    """g goes to the first line, as soon as the lines are counted."""
    async with reading(*MANY, pieces=1) as pane:
        assert "reading…" in pane.edge
        await pane.press("first")
        assert "line 1 " not in pane.rows[0] + " "
        pane.app.read_on()
        await pane.pilot.pause()
        assert pane.rows[0].startswith("line 1 word")
        assert pane.pointed == [pane.rows[0]]
        await pane.press("last")
        assert pane.said[-1].startswith("word") or "11999" in pane.said[-1]


async def test_what_comes_before_does_not_move_the_view() -> None:
    """Counting lines before the view does not move the text being read."""
    async with reading(*MANY, pieces=1) as pane:
        await pane.press("page_up")
        before = pane.rows
        pane.app.read_on()
        await pane.pilot.pause()
        assert pane.rows == before
        assert pane.transcript.scroll_offset.y > 10_000


async def test_news_do_not_move_what_is_read() -> None:
    """Away from the end new lines are counted at the edge, and the view stays."""
    async with reading(*LINES) as pane:
        await pane.press("page_up")
        before = pane.rows
        await pane.write(text(61, "one"), text(62, "two"))
        assert pane.rows == before
        assert "+2 new" in pane.edge
        pane.transcript.follow(True)
        await pane.pilot.pause()
        assert pane.rows[-1] == "two"
        assert "new" not in pane.edge


@pytest.mark.parametrize("width", [40, 120])
async def test_another_width_keeps_the_cursor_where_it_is(width: int) -> None:
    """At another width the line under the cursor stays in its row of the view."""
    async with reading(*MANY) as pane:
        await pane.press(*["page_up"] * 30, *["up"] * 5)
        cursor = pane.cursor
        y = [line.startswith("▌") for line in all_lines(pane)].index(True)
        await pane.pilot.resize_terminal(width, 24)
        await pane.pilot.pause()
        assert pane.cursor is not None and cursor is not None
        assert pane.cursor.offset == cursor.offset
        assert [line.startswith("▌") for line in all_lines(pane)].index(True) == y
        pane.transcript.set_wrap(False)
        await pane.pilot.pause()
        assert pane.cursor.offset == cursor.offset
        assert any(line.startswith("▌") for line in all_lines(pane))


def all_lines(pane: Pane) -> list[str]:
    return [pane.transcript.render_line(y).text for y in range(pane.transcript.scrollable_content_region.height)]


# --- expanding -------------------------------------------------------------------------------------------------------


async def test_a_call_opens_to_its_arguments() -> None:
    """An expanded call shows each argument on a line, several lines below its name; the same key folds it."""
    edit = call(1, "edit", path="a.py", old="one\n  two", count=3, deep={"a": [1, None]})
    async with reading(edit, text(2, "then")) as pane:
        await pane.press("up")
        pane.transcript.toggle_at_cursor()
        await pane.pilot.pause()
        assert pane.said == [
            "Editing a.py",
            "│ path: a.py",
            "│ old:",
            "│   one",
            "│     two",
            "│ count: 3",
            '│ deep: {"a":[1,null]}',
            "then",
        ]
        assert pane.pointed == ["Editing a.py"]
        pane.transcript.toggle_at_cursor()
        assert pane.said == ["Editing a.py", "then"]


async def test_a_result_opens_to_its_content() -> None:
    """An expanded result shows its whole content, its outcome, and whether a part was not kept."""
    bash = call(1, "bash", command="ls")
    came = result(2, 1, "a\nb\n", "bash", is_error=True, exit_code=2, duration_ms=31, truncated=True)
    async with reading(bash, came) as pane:
        assert pane.said == ["ls", "  ✗ Command failed: ls"]
        pane.transcript.toggle_at_cursor()
        assert pane.said[2:] == ["│ exit code 2 · 31 ms", "│ a", "│ b", "│ [the rest was not saved]"]


async def test_a_long_content_is_cut_with_a_note() -> None:
    """Content beyond the limit is cut with a note, and its whole text can still be copied."""
    content = "0123456789" * 4000
    async with reading(call(1, path="x"), result(2, 1, content)) as pane:
        pane.transcript.toggle_at_cursor()
        await pane.press("last")
        assert pane.said[-1] == "│ [… 20000 more characters, not shown here]"
        assert text_at_cursor(pane.transcript) == f"Finished reading x\n{content}"


async def test_thinking_is_folded() -> None:
    """Thinking is one line until it is expanded."""
    async with reading(thought(1, "I wonder.\nShould I?\n\nYes."), thought(2, "Short.")) as pane:
        assert pane.said == ["▸ thinking (4 lines)  I wonder.", "▸ thinking (1 line)  Short."]
        await pane.press("up")
        pane.transcript.toggle_at_cursor()
        assert pane.said[:5] == ["▾ thinking (4 lines)", "│ I wonder.", "│ Should I?", "│", "│ Yes."]


async def test_everything_opens_and_closes() -> None:
    """One key expands all, and again folds all, including lines expanded before."""
    events = [event for n in range(1, 9, 2) for event in (call(n, path=f"f{n}"), result(n + 1, n, "content"))]
    async with reading(*events) as pane:
        await pane.press("first")
        pane.transcript.toggle_all()
        assert len(pane.said) == 16
        assert pane.pointed == ["Reading f1"]
        pane.transcript.toggle_at_cursor()
        assert len(pane.said) == 15
        pane.transcript.toggle_all()
        assert len(pane.said) == 8


async def test_what_is_open_stays_open() -> None:
    """Growth, another width and going far away do not change which lines are expanded."""
    async with reading(call(1, path="a.py"), *MANY[1:]) as pane:
        await pane.press("first")
        pane.transcript.toggle_at_cursor()
        await pane.press("last", *["page_up"] * 40)
        await pane.write(text(13_000, "more"))
        await pane.pilot.resize_terminal(60, 20)
        await pane.press("first")
        assert pane.rows[:2] == ["Reading a.py", "│ path: a.py"]


async def test_what_has_no_more_does_not_open() -> None:
    """A plain text does not expand, and following continues."""
    async with reading(*LINES) as pane:
        pane.transcript.toggle_at_cursor()
        assert pane.transcript.following


# --- views -----------------------------------------------------------------------------------------------------------


async def test_raw_view_shows_the_lines_of_the_file() -> None:
    """The raw view has one event a line as in the file; expanded, its fields are below each other."""
    event = text(1, "hello \x1b[31mworld")
    async with reading(event) as pane:
        pane.transcript.set_view("raw")
        await pane.pilot.pause()
        assert pane.transcript.view == "raw"
        assert "raw view" in pane.edge
        assert "".join(pane.rows).startswith(encode_event(event).decode().split("\\u")[0])
        pane.transcript.toggle_at_cursor()
        assert '│   "seq": 1,' in pane.rows
        pane.transcript.set_view("readable")
        await pane.pilot.pause()
        assert pane.said == ["hello world"]
        assert "view" not in pane.edge


async def test_stderr_view() -> None:
    """The agent's stderr is followed, including its unfinished line."""
    async with reading(text(1, "hello")) as pane:
        pane.transcript.set_view("stderr")
        await pane.pilot.pause()
        assert pane.transcript.render_line(0).text.startswith("No stderr output.")
        await pane.write_bytes(paths.STDERR, b"warning: \x1b[33mold\x1b[0m\n10%\r20%")
        assert pane.said == ["warning: old", "20%▋"]
        await pane.write_bytes(paths.STDERR, b"\r100%\ndone\n")
        assert pane.said == ["warning: old", "100%", "done"]
        assert "3 lines · stderr view" in pane.edge


# --- for searching ---------------------------------------------------------------------------------------------------


async def test_a_byte_can_be_shown() -> None:
    """An offset moves the cursor and the view to its line, and stops following."""
    offset = sum(len(encode_event(event)) for event in MANY[:5000])
    async with reading(*MANY) as pane:
        assert pane.transcript.cursor_offset == sum(len(encode_event(event)) for event in MANY[:-1])
        pane.transcript.show_offset(offset)
        await pane.pilot.pause()
        assert not pane.transcript.following
        assert pane.transcript.cursor_offset == offset
        assert pane.pointed[0].startswith("line 5001 ")
        assert text_at_cursor(pane.transcript) == MANY[5000].text
        assert pane.transcript.source_path == f"{pane.app.directory}/events.jsonl"


async def test_a_byte_that_is_not_counted_yet_is_shown_when_it_is() -> None:
    """While a big file is still being counted, the target is remembered."""
    offset = sum(len(encode_event(event)) for event in MANY[:50])
    async with reading(*MANY, pieces=1) as pane:
        pane.transcript.show_offset(offset)
        pane.app.read_on()
        await pane.pilot.pause()
        assert pane.transcript.cursor_offset == offset
        assert pane.pointed[0].startswith("line 51 ")


async def test_words_are_marked_where_they_are_visible() -> None:
    """A search in small letters highlights its words in visible rows in any case, until it ends."""
    async with reading(text(1, "Token and token, to ken")) as pane:
        pane.transcript.highlight(highlighter("token"))
        pieces = [segment.text for segment in pane.transcript.render_line(0) if segment.style and segment.style.reverse]
        assert pieces == ["Token", "token"]
        pane.transcript.highlight(None)
        assert not any(segment.style and segment.style.reverse for segment in pane.transcript.render_line(0))


async def test_a_state_is_said_at_the_edge() -> None:
    """The state of a search is shown at the pane's edge."""
    async with reading(*LINES) as pane:
        pane.transcript.say_state("match 3/17")
        assert "match 3/17" in pane.edge
        pane.transcript.say_state("")
        assert "match" not in pane.edge


# --- the text --------------------------------------------------------------------------------------------------------


async def test_a_little_markdown() -> None:
    """Markdown marks become styles: headings and strong words are bold, code is coloured; other text is unchanged."""
    said = "# Title\nUse **the token** and `x = 1`.\n- one\n```py\n    if a ** b:\n```\n2 * 3 * 4, a_b_c, **open"
    async with reading(text(1, said)) as pane:
        assert pane.said == [
            "Title",
            "Use the token and x = 1.",
            "• one",
            "      if a ** b:",
            "2 * 3 * 4, a_b_c, **open",
        ]
        lines = [pane.transcript.render_line(y) for y in range(5)]
        bold = [seg.text.strip() for line in lines for seg in line if seg.style and seg.style.bold and seg.text.strip()]
        assert bold == ["Title", "the token"]
        code = next(seg.style.color for seg in lines[1] if seg.text == "x = 1" and seg.style)
        coloured = [seg.text for line in lines for seg in line if seg.style and seg.style.color == code]
        assert coloured == ["x = 1", "    if a ** b:"]


async def test_markdown_is_found_as_written_and_as_shown() -> None:
    """A search matches across marks, as written or as shown, and highlights that; copying takes the source."""
    said = "It is **done** in `src/a.py` now"
    async with reading(text(1, said)) as pane:
        for words in ("is done in src", "is **done** in `src"):
            file = pane.transcript.document.file
            assert file is not None
            line = file.line_at(0)
            assert Query(words, View.READABLE).matcher()(0, line + b"\n") == [0]
            pane.transcript.highlight(highlighter(words))
            strip = pane.transcript.render_line(0)
            assert "".join(seg.text for seg in strip if seg.style and seg.style.reverse) == "is done in src"
            assert pane.transcript.document.part_with(0, words) == 0
        assert pane.transcript.document.full_text(0) == said


async def test_an_error_has_a_sign() -> None:
    """An error has a sign besides its colour."""
    async with reading(ErrorReported(seq=1, ts="", message="no model")) as pane:
        assert pane.said == ["✗ Error: no model"]


@pytest.mark.parametrize("hostile", [*HOSTILE[:7], "\u2028lone\r\nline\ttab", "```" * 500, "**" * 5000, "`a**b" * 999])
async def test_hostile_text_opened(hostile: str) -> None:
    """An agent's text, calls and results are shown plain in every view, expanded, searched and scrolled."""
    events = [
        text(1, hostile),
        thought(2, hostile + "\n" + hostile),
        call(3, "bash", command=hostile, **{hostile or "x": hostile, "list": [hostile]}),
        result(4, 3, hostile, "bash", is_error=True),
        text(5, f"# {hostile}\n- {hostile}\n```{hostile}\n{hostile}"),
    ]
    async with reading(*events, size=(40, 12)) as pane:
        await pane.write_bytes(paths.STDERR, hostile.encode() + b"\n")
        for view in ("readable", "raw", "stderr"):
            pane.transcript.set_view(view)
            await pane.pilot.pause()
            pane.transcript.toggle_all()
            pane.transcript.highlight(highlighter(hostile[:20]))
            for key in ("first", *["page_down"] * 12, *["up"] * 30):
                await pane.press(key)
                for line in all_lines(pane):
                    assert not [char for char in line if ord(char) < 32 or 0x7F <= ord(char) < 0xA0]
            assert text_at_cursor(pane.transcript) is not None
