"""The part of a tool call's arguments that is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.run.events import ARGS_LIMIT, CUT, ToolCall, encode_event, kept_args


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": "here"}
    for _ in range(levels):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"path": "a.py", "limit": 20, "offset": None, "all": True, "rate": 0.5},
        {"edits": [{"old": "a", "new": "b"}, {"old": "c", "new": "d"}], "": ""},
        {"content": "x" * 60_000},
        deep(20),
    ],
)
def test_usual_arguments_stay_as_they_are(args: dict[str, Any]) -> None:
    """Arguments of any types within the limit are kept unchanged."""
    assert args == kept_args(args, ARGS_LIMIT)


def test_a_long_text_keeps_its_beginning() -> None:
    """A text that is too long is cut and marked, and the text before it stays."""
    kept = kept_args({"path": "a.py", "content": "x" * 1000}, 100)

    assert {"path": "a.py", "content": "x" * 77 + CUT} == kept


def test_what_comes_after_a_cut_is_left_out() -> None:
    """Once the limit is reached, one mark replaces the rest."""
    assert {"a": "x" * 91 + CUT, "…": CUT} == kept_args({"a": "x" * 1000, "b": "y", "c": [1]}, 100)


@pytest.mark.parametrize(
    "args",
    [
        {"content": "x" * 2_000_000},
        {"parts": ["x" * 1000] * 2000},
        {"numbers": list(range(500_000))},
        {f"key{number}": number for number in range(200_000)},
        {"k" * 1_000_000: 1},
        {"parts": [{"text": "x" * 3000, "empty": [], "more": {}} for _ in range(500)]},
        {"empty": [[] for _ in range(200_000)]},
        deep(300),
    ],
)
def test_no_arguments_are_absurd(args: dict[str, Any]) -> None:
    """However an agent fills its arguments, the event's line stays short."""
    line = json.dumps({"type": "tool_execution_start", "toolCallId": "c", "toolName": "write", "args": args}).encode()
    (event,) = PiStream().feed(line)

    assert isinstance(event, ToolCall)
    assert len(encode_event(event)) < 2 * ARGS_LIMIT
    assert CUT in str(event.args)
