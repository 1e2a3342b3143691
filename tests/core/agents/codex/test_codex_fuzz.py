"""Reading any output of Codex, in either stream, neither raises nor yields an event that cannot be stored."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core.agents.child import Stream
from subdeck.core.agents.codex._app_stream import _DECLINED, AppStream
from subdeck.core.agents.codex._conversation import CodexConversation
from subdeck.core.agents.codex._exec_run import ExecStream
from subdeck.core.agents.codex._recorded import RecordedStream
from subdeck.core.agents.codex._talk import Talk
from subdeck.core.run.events import decode_event, encode_event
from subdeck.core.run.outcome import decide
from subdeck.core.run.progress import ProgressFormatter

from ..pi.test_pi_stream_fuzz import ODD
from .codex_lines import OPENED, TURN_STARTED, line, start
from .test_codex_recordings import EXPECTED, lines_of

pytestmark = pytest.mark.fuzz

METHODS = [
    *("item/started", "item/completed", "turn/started", "turn/completed", "thread/started", "error", "warning"),
    *("thread/tokenUsage/updated", "configWarning", "model/rerouted", "mcpServer/startupStatus/updated"),
    *("item/tool/call", "item/agentMessage/delta", "serverRequest/resolved", "x", *_DECLINED),
]
ITEMS = [
    *(
        "userMessage",
        "agentMessage",
        "reasoning",
        "commandExecution",
        "fileChange",
        "mcpToolCall",
        "dynamicToolCall",
        "webSearch",
    ),
    *("collabAgentToolCall", "imageView", "error", "contextCompaction", "x"),
]
FIELDS = [
    *("id", "text", "summary", "content", "command", "commandActions", "aggregatedOutput", "exitCode", "durationMs"),
    *(
        "status",
        "changes",
        "path",
        "kind",
        "diff",
        "server",
        "tool",
        "arguments",
        "result",
        "error",
        "message",
        "success",
    ),
    *("questions", "options", "permissions", "requestedSchema", "properties", "mode", "clientId", "requestId"),
    *("contentItems", "query", "prompt", "codexErrorInfo", "additionalDetails", "willRetry", "total", "last", "params"),
]
EXEC = ["thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.completed", "error"]


def survive(stream: Stream, written: bytes) -> None:
    """Feed a line and use all its events."""
    formatter = ProgressFormatter()
    for event in stream.feed(written):
        assert decode_event(encode_event(event)) is not None
        formatter.text(event)
    stream.replies()
    assert stream.running_tools <= 1000
    assert len(stream.writing.tail.encode()) <= 2048
    assert decide(stream.facts).reason
    assert msgspec.json.encode(stream.facts)


def odd(chance: random.Random, depth: int = 3) -> Any:
    if depth and chance.random() < 0.6:
        return {key: odd(chance, depth - 1) for key in chance.sample(FIELDS, 6)}
    return chance.choice(ODD)


def messages(chance: random.Random) -> dict[str, Any]:
    """A message of either stream with any value in any field."""
    item = {"type": chance.choice(ITEMS), **{key: odd(chance, 2) for key in chance.sample(FIELDS, 8)}}
    if chance.random() < 0.3:
        return {
            "type": chance.choice(EXEC),
            "item": item,
            "usage": odd(chance),
            "error": odd(chance),
            "message": odd(chance),
        }
    if chance.random() < 0.2:
        return {"id": chance.choice([5, odd(chance)]), chance.choice(["result", "error"]): odd(chance)}
    turn = {"id": "u-1", "status": chance.choice(["completed", "failed", "interrupted", 5]), "error": odd(chance)}
    asked = {"id": odd(chance)} if chance.random() < 0.3 else {}
    usage = {"total": odd(chance), "last": {"inputTokens": chance.choice(ODD)}}
    params = {"threadId": "t-1", "turnId": "u-1", "item": item, "turn": turn, "error": odd(chance), "tokenUsage": usage}
    return {"method": chance.choice(METHODS), **asked, "params": {**params, **{key: odd(chance) for key in FIELDS[:6]}}}


def test_wrong_types(tmp_path: Path) -> None:
    chance = random.Random(1)
    talk = Talk(start(tmp_path, talk=True))
    for _ in range(1000):
        written = json.dumps(messages(chance)).encode()
        talking = CodexConversation(talk)
        talking.feed(line(OPENED))
        talking.feed(line(TURN_STARTED))
        talking.tell("m", "Go on.")
        survive(talking, written)
        stream = AppStream()
        stream.feed(line(OPENED))
        stream.feed(line(TURN_STARTED))
        for reader in (stream, ExecStream(), RecordedStream()):
            survive(reader, written)


@pytest.mark.parametrize("case", EXPECTED)
def test_cut_and_changed_lines(case: str) -> None:
    """A recording with a changed byte or a cut line is read to its end."""
    chance = random.Random(2)
    for _ in range(3):
        stream = RecordedStream()
        for written in lines_of(case):
            place = chance.randrange(len(written) or 1)
            how = chance.randrange(3)
            changed = written[:place] + bytes([chance.randrange(256)]) + written[place + 1 :]
            survive(stream, (written, written[:place], changed)[how])
        for event in stream.end():
            assert decode_event(encode_event(event)) is not None
