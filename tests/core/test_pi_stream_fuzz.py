"""Whatever a child writes, reading it neither raises nor yields an event that cannot be written down."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import msgspec
import pytest
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.run.events import decode_event, encode_event
from subdeck.core.run.outcome import decide
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.text.plain import UNSAFE, one_line

from tests.replay import cases, lines

TYPES = [
    *("session", "agent_start", "agent_end", "agent_settled", "turn_end", "x"),
    *("message_start", "message_end", "message_update"),
    *("tool_execution_start", "tool_execution_update", "tool_execution_end"),
    *("auto_retry_start", "auto_retry_end", "compaction_start", "compaction_end"),
]
FIELDS = [
    *("id", "message", "messages", "willRetry", "aborted", "errorMessage", "reason", "assistantMessageEvent"),
    *("toolCallId", "toolName", "args", "result", "isError", "durationMs", "attempt", "maxAttempts", "delayMs"),
]
INNER = [
    *("role", "content", "provider", "model", "stopReason", "errorMessage", "usage"),
    *("details", "structuredContent", "exit_code", "type", "text"),
]
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


def survive(stream: PiStream, line: bytes) -> None:
    """Feed a line both ways and use everything that comes out of it."""
    formatter = ProgressFormatter()
    if line.startswith(stream.updates.prefixes):
        stream.feed(line[:4096])
    for event in stream.feed(line):
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


def test_wrong_types() -> None:
    """Any field may hold anything."""
    chance = random.Random(1)
    stream = PiStream()
    for _ in range(3000):
        fields = {key: odd(chance) for key in chance.sample(FIELDS, 9)}
        survive(stream, json.dumps({"type": chance.choice(TYPES), **fields}).encode())


def test_types_of_wrong_type() -> None:
    """Even the type may hold anything, and a line need not be an object."""
    stream = PiStream()
    for value in ODD:
        survive(stream, json.dumps({"type": value}).encode())
        survive(stream, json.dumps(value).encode())


def test_random_bytes() -> None:
    """Bytes that mean nothing, also behind a beginning that means something."""
    chance = random.Random(2)
    stream = PiStream()
    for _ in range(1500):
        noise = chance.randbytes(chance.randrange(200)).replace(b"\n", b"")
        survive(stream, noise)
        survive(stream, b'{"type":"' + chance.choice(TYPES).encode() + b'",' + noise)
        survive(
            stream,
            b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"' + noise,
        )


@pytest.mark.parametrize("case", [case for case in cases() if "5mb" not in case])
def test_torn_recordings(case: str) -> None:
    """Lines of real runs, cut and damaged anywhere."""
    chance = random.Random(case)
    stream = PiStream()
    for line in lines(case):
        damaged = bytearray(line)
        for _ in range(3):
            damaged[chance.randrange(len(damaged))] = chance.choice(b'"\\{}[],:0\x00\xff')
        survive(stream, bytes(damaged).replace(b"\n", b" "))
        survive(stream, line[: chance.randrange(len(line))])


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"type":"message_end","message":'])
def test_nesting(opening: bytes) -> None:
    """Absurdly nested JSON is unreadable, not fatal."""
    stream = PiStream()
    for kind in TYPES:
        survive(stream, b'{"type":"' + kind.encode() + b'","result":' + opening * 50_000)
        survive(stream, opening * 50_000)
    survive(stream, b'{"type":"agent_end","messages":' + b"[" * 50_000 + b"]" * 50_000 + b"}")


def test_long_lines() -> None:
    """Lines of two megabytes, readable or not."""
    stream = PiStream()
    survive(stream, b"x" * 2_000_000)
    survive(stream, b"\\" * 2_000_000)
    survive(stream, b'{"type":"message_end","message":{"role":"assistant","content":"' + b"\\u2028" * 300_000 + b'"}}')
    assert "\u2028" * 300_000 != stream.facts.final_text
    survive(
        stream, b'{"type":"message_end","message":{"role":"assistant","content":"' + b"\xe2\x82\xac" * 700_000 + b'"}}'
    )
    assert "€" * 700_000 == stream.facts.final_text
