"""Reading any output neither raises nor yields an event that cannot be stored."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core.agents.child import Start
from subdeck.core.agents.pi._dialogs import PERMISSION
from subdeck.core.agents.pi.conversation import PiConversation
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.run.events import Event, Request, decode_event, encode_event
from subdeck.core.run.model import Verdict
from subdeck.core.run.outcome import decide
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.text.plain import UNSAFE, one_line

from tests.factories import make_meta
from tests.replay import cases, lines

pytestmark = pytest.mark.fuzz

TYPES = [
    *("session", "agent_start", "agent_end", "agent_settled", "turn_end", "x"),
    *("message_start", "message_end", "message_update"),
    *("tool_execution_start", "tool_execution_update", "tool_execution_end"),
    *("auto_retry_start", "auto_retry_end", "compaction_start", "compaction_end"),
    *("response", "extension_ui_request", "extension_error"),
]
FIELDS = [
    *("id", "message", "messages", "willRetry", "aborted", "errorMessage", "reason", "assistantMessageEvent"),
    *("toolCallId", "toolName", "args", "result", "isError", "durationMs", "attempt", "maxAttempts", "delayMs"),
    *("command", "success", "data", "error", "method", "title", "options", "placeholder", "timeout"),
]
INNER = [
    *("role", "content", "provider", "model", "stopReason", "errorMessage", "usage"),
    *("details", "structuredContent", "exit_code", "type", "text"),
    *("sessionId", "isStreaming", "disposition", "steering"),
]
WORDS = {
    "command": ("prompt", "steer", "get_state", "clear_queue", "abort"),
    "method": ("select", "confirm", "input", "editor", "notify"),
    "title": (PERMISSION,),
    "id": ("prompt-", "prompt-m1", "steer-m2", "queue", "ending-1", "unsaid-1"),
    "placeholder": ('{"tool":"bash","args":{"command":"x"}}', '{"tool":"edit","args":{"edits":[{},5]}}', "["),
}
"""Fields and values that lines of the rpc mode are recognized by."""
ODD: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1.5,
        -1e300,
        1e300,
        2**70,
        -(2**70),
        "",
        "x",
        "\ud83d",
        "\u2028\x00\x1b[31m",
        "9" * 300,
    ),
    *([], {}, [None], {"": None}, [[]], {"type": "text"}, [{"type": "text", "text": 5}], {"role": "assistant"}),
    *([{"type": "thinking", "thinking": []}], {"total": "x"}, {"input": 1e300, "output": -5, "cost": {"total": 2**70}}),
]


@pytest.fixture(params=["one-way", "talking"])
def begin(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], PiStream]:
    if request.param == "one-way":
        return PiStream
    (tmp_path / "prompt.md").write_text("Look.")
    return lambda: PiConversation(Start(make_meta(talk=True), str(tmp_path)))


@pytest.fixture
def stream(begin: Callable[[], PiStream]) -> PiStream:
    return begin()


def talk(stream: PiStream, events: list[Event]) -> None:
    """Send a message and answer the requests. All commands to pi are JSON."""
    for event in events:
        if isinstance(event, Request):
            stream.reply(event.id, (Verdict.ALLOW, Verdict.DENY, Verdict.REPLY)[len(event.text) % 3], "Yes")
    if stream.talks and not stream.is_stdin_done:
        stream.tell("m1", "Faster.")
    for command in stream.replies().splitlines():
        assert json.loads(command)["type"]


def survive(stream: PiStream, line: bytes) -> None:
    """Feed a line both ways and use all its events."""
    formatter = ProgressFormatter()
    if line.startswith(stream.updates.prefixes):
        stream.feed(line[:4096])
    events = stream.feed(line)
    talk(stream, events)
    for event in events:
        assert decode_event(encode_event(event)) is not None
        assert not re.search(UNSAFE, one_line(formatter.text(event) or ""))
    assert len(stream.sentence.encode()) <= 2048
    assert stream.running_tools <= 1000
    assert decide(stream.facts).reason
    assert msgspec.json.encode(stream.facts)


def odd(chance: random.Random, depth: int = 2) -> Any:
    if depth and chance.random() < 0.5:
        return {key: odd(chance, depth - 1) for key in chance.sample(INNER, 5)}
    return chance.choice(ODD)


def test_wrong_types(begin: Callable[[], PiStream]) -> None:
    """Any field may have any value."""
    chance = random.Random(1)
    stream = begin()
    for number in range(3000):
        if number % 30 == 0:
            stream = begin()  # one with messages has soon finished
        fields = {key: odd(chance) for key in chance.sample(FIELDS, 9)}
        fields |= {key: chance.choice(words) for key, words in WORDS.items() if chance.random() < 0.5}
        survive(stream, json.dumps({"type": chance.choice(TYPES), **fields}).encode())


def test_types_of_wrong_type(stream: PiStream) -> None:
    """Even the type may have any value, and a line may be something other than an object."""
    for value in ODD:
        survive(stream, json.dumps({"type": value}).encode())
        survive(stream, json.dumps(value).encode())


def test_random_bytes(stream: PiStream) -> None:
    """Random bytes, alone or after a valid start."""
    chance = random.Random(2)
    for _ in range(1500):
        noise = chance.randbytes(chance.randrange(200)).replace(b"\n", b"")
        survive(stream, noise)
        survive(stream, b'{"type":"' + chance.choice(TYPES).encode() + b'",' + noise)
        survive(
            stream,
            b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"' + noise,
        )


@pytest.mark.parametrize("case", [case for case in cases() if "5mb" not in case])
def test_torn_recordings(stream: PiStream, case: str) -> None:
    """Lines of real runs, cut and damaged anywhere, are read."""
    chance = random.Random(case)
    for line in lines(case):
        damaged = bytearray(line)
        for _ in range(3):
            damaged[chance.randrange(len(damaged))] = chance.choice(b'"\\{}[],:0\x00\xff')
        survive(stream, bytes(damaged).replace(b"\n", b" "))
        survive(stream, line[: chance.randrange(len(line))])


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"type":"message_end","message":'])
def test_nesting(stream: PiStream, opening: bytes) -> None:
    """Deeply nested JSON is unreadable, not fatal."""
    for kind in TYPES:
        survive(stream, b'{"type":"' + kind.encode() + b'","result":' + opening * 50_000)
        survive(stream, opening * 50_000)
    survive(stream, b'{"type":"agent_end","messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}")


def test_long_lines(stream: PiStream) -> None:
    """Lines of two megabytes are read, valid or not."""
    survive(stream, b"x" * 2_000_000)
    survive(stream, b"\\" * 2_000_000)
    survive(stream, b'{"type":"message_end","message":{"role":"assistant","content":"' + b"\\u2028" * 300_000 + b'"}}')
    assert "\u2028" * 300_000 != stream.facts.final_text
    survive(
        stream, b'{"type":"message_end","message":{"role":"assistant","content":"' + b"\xe2\x82\xac" * 700_000 + b'"}}'
    )
    assert "€" * 700_000 == stream.facts.final_text
