"""Untrusted text is shown plain: it raises no error and never reaches the terminal raw."""

from __future__ import annotations

import pytest
from subdeck.core.presets.catalog import PresetProblem
from subdeck.core.run.events import AssistantText, ErrorReported, Notice, ToolCall, ToolResult
from subdeck.core.run.model import PresetSource

from ..fake_engine import FakeEngine, a_preset, a_run, run_id, stamp
from ..open_deck import Deck, opened

HOSTILE = [
    "[bold]x[/",
    "[@click=app.quit]x[/]",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J \x9b1m \x00\x08\x7f",
    "שלום \u202e gnirts \u200f עולם",
    "👩‍👩‍👧‍👦 漢字 🦀 é",
    "x" * 10_000,
    "{task} %s $(rm -rf ~) #(touch x) `id`",
    "\ud800 lone \u2028 separator\r\nline\ttab",
    "",
]


def raw_controls(deck: Deck) -> list[str]:
    """Return control characters that the screen would write besides its own sequences."""
    return [char for char in deck.screen_text if char != "\n" and (ord(char) < 32 or 0x7F <= ord(char) < 0xA0)]


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_everywhere(text: str) -> None:
    """Task, preset, message, activity, sentence, events, paths and errors may contain any text."""
    runs = [
        a_run(1, "failed", message=text, meta_task=text, meta_preset=text, meta_resolved_model=text),
        a_run(2, activity=text, sentence=text, meta_task=text, meta_description=text, last_seq=6),
    ]
    engine = FakeEngine(
        *runs,
        presets=[a_preset(text or "x", description=text, model=text, tools=(text,), warnings=(text,))],
        problems=[PresetProblem(path=text, message=text, source=PresetSource.GLOBAL, name=text)],
    )
    engine.write(
        run_id(2),
        AssistantText(seq=1, ts=stamp(1), text=text),
        ToolCall(seq=2, ts="garbage", tool_call_id=text, tool_name=text, args={"path": text}),
        ToolCall(seq=3, ts=stamp(3), tool_call_id="2", tool_name="bash", args={"command": text}),
        ToolResult(seq=4, ts=stamp(4), tool_call_id="2", tool_name="bash", is_error=True, content=text),
        Notice(seq=5, ts=stamp(5), level="warning", text=text),
        ErrorReported(seq=6, ts=stamp(6), message=text),
    )
    async with opened(engine, (80, 24)) as deck:
        await deck.until_text("6 events")
        assert raw_controls(deck) == []
        await deck.press("g", "1", "j", "k")
        assert raw_controls(deck) == []
        await deck.press("n")
        await deck.until_text("esc cancel")
        await deck.pilot.pause(0.2)
        assert raw_controls(deck) == []
        await deck.press("escape", "2", "X")
        await deck.until_text("Kill this run?")
        assert raw_controls(deck) == []
        await deck.press("escape")
        engine.tell(a_run(2, "failed", message=text, meta_task=text, meta_preset=text))
        await deck.until(lambda: deck.toasts, "the toast")
        await deck.pilot.pause()
        assert raw_controls(deck) == []
        assert deck.app.is_running


@pytest.mark.parametrize("text", HOSTILE[:4])
async def test_pasted_text_is_plain(text: str) -> None:
    """Text pasted into a task cannot command the terminal."""
    from textual.events import Paste

    async with opened(FakeEngine(), (80, 24)) as deck:
        await deck.press("N")
        await deck.until_text("One-off run")
        deck.app.screen.focused.post_message(Paste(text))
        await deck.pilot.pause()
        assert raw_controls(deck) == []


@pytest.mark.parametrize("pasted", ["one\rtwo", "one\r\ntwo", "one\ntwo"])
async def test_pasted_lines_stay_lines(pasted: str) -> None:
    """The carriage returns that terminals send for pasted line breaks become line breaks."""
    from textual.events import Paste
    from textual.widgets import TextArea

    async with opened(FakeEngine(), (80, 24)) as deck:
        await deck.press("N")
        await deck.until_text("One-off run")
        task = deck.app.screen.query_one("#task", TextArea)
        deck.app.post_message(Paste(pasted))
        await deck.until(lambda: task.text, "the pasted text")
        assert task.text == "one\ntwo"
