"""The patterns for lines of growing messages, compared to older patterns and to a JSON decoder."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, strategies
from subdeck.core.agents._stream import AgentStream
from subdeck.core.agents.claude._stream import ClaudeStream
from subdeck.core.agents.claude.program import UPDATES as CLAUDE
from subdeck.core.agents.codex._app_stream import UPDATES as CODEX, AppStream
from subdeck.core.agents.pi.stream import UPDATES as PI, PiStream
from subdeck.core.agents.updates import UPDATE_HEAD, Updates
from subdeck.core.wrapper._intake import LineSplitter

THREAD = "01a2019b"


def claude(text: str, whose: str | None = None) -> bytes:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return dense({"type": "stream_event", "event": event, "session_id": "467db980", "parent_tool_use_id": whose})


def codex(text: str, whose: str | None = None) -> bytes:
    params = {"threadId": whose or THREAD, "turnId": "t", "itemId": "i", "delta": text}
    return dense({"method": "item/agentMessage/delta", "params": params})


def pi(text: str, whose: str | None = None) -> bytes:
    event = {"type": "text_delta" if whose is None else "thinking_delta", "contentIndex": 0, "delta": text}
    return dense({"type": "message_update", "assistantMessageEvent": event, "message": {"content": text * 3}})


def dense(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def codex_stream() -> AppStream:
    stream = AppStream()
    stream.feed(b'{"method":"thread/started","params":{"thread":{"id":"%s"}}}' % THREAD.encode())
    return stream


KINDS: dict[str, tuple[Updates, Callable[[str, str | None], bytes], Callable[[], AgentStream]]] = {
    "claude": (CLAUDE, claude, ClaudeStream),
    "codex": (CODEX, codex, codex_stream),
    "pi": (PI, pi, PiStream),
}

CHARACTERS = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
OLD_DELTAS = {
    "claude": rb'\{"type":"text_delta","text":"('
    + CHARACTERS
    + rb')"\}\},"session_id":"[^"]*+","parent_tool_use_id":null',
    "codex": rb'"delta":"(' + CHARACTERS + rb')"',
}
_CLAUDE_LINE = (
    rb'(?:\{"type":"stream_event","event":\{"type":"content_block_delta"|\{"type":"system","subtype":"thinking_tokens")'
)
_CODEX_LINE = rb'\{"method":"item/agentMessage/delta","params":\{"threadId":"'
OLD_SEVERAL = {
    "claude": rb"(?:" + _CLAUDE_LINE + rb"[^\n]*+\n)++",
    "codex": _CODEX_LINE + rb'(?P<thread>[^"\n]*+)"[^\n]*+\n(?:' + _CODEX_LINE + rb'(?P=thread)"[^\n]*+\n)*+',
}
OLD_DELTA = {
    "claude": rb'\{"type":"text_delta","text":"(?P<text>' + CHARACTERS + rb")",
    "codex": rb'"delta":"(?P<text>' + CHARACTERS + rb")",
    "pi": rb'"assistantMessageEvent":\{"type":"text_(?:(?P<start>start)"|delta","contentIndex":\d{1,9},"delta":"'
    rb"(?P<text>" + CHARACTERS + rb"))",
}
"""The patterns with possessive quantifiers, which Python 3.11.0 to 3.11.4 get wrong."""

TEXTS = strategies.text(alphabet='ab"\\\n\t{}:,ué€𝄞', max_size=40) | strategies.sampled_from(
    ['","parent_tool_use_id":null', '{"type":"text_delta","text":"', "\\" * 2001, '"' * 1500, "x" * UPDATE_HEAD]
)
PARTS = strategies.lists(strategies.tuples(TEXTS, strategies.booleans()), max_size=30)
"""Texts, and whether each belongs to the message."""
PIECES = [
    b"\\", b'"', b"\n", b"a", b"\\\\", b'\\"', b"\\u00e9", b'"}},', b'"session_id":"s",', b'"parent_tool_use_id":null',
    b'"delta":"', b'{"type":"text_delta","text":"', b'{"method":"item/agentMessage/delta","params":{"threadId":"t"',
    b'{"type":"stream_event","event":{"type":"content_block_delta"', b'{"type":"system","subtype":"thinking_tokens"',
    b'"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"',
]  # fmt: skip
"""Pieces of damaged output."""
DAMAGED = strategies.lists(strategies.sampled_from(PIECES), max_size=40).map(b"".join)


def lines_of(kind: str, parts: Sequence[tuple[str, bool]]) -> list[bytes]:
    make = KINDS[kind][1]
    return [make(text, None if ours else "other") for text, ours in parts]


@pytest.mark.skipif(sys.version_info < (3, 11, 5), reason="possessive quantifiers are wrong here")
@pytest.mark.parametrize("kind", OLD_SEVERAL)
@given(parts=PARTS, damaged=DAMAGED)
def test_patterns_find_what_possessive_ones_found(kind: str, parts: list[tuple[str, bool]], damaged: bytes) -> None:
    """Without possessive quantifiers, the same lines and texts are found, in complete and damaged lines."""
    updates = KINDS[kind][0]
    assert updates.several is not None and updates.deltas is not None
    whole = b"".join(lines_of(kind, parts))
    for data in (whole, damaged, whole + damaged, whole[: len(whole) // 2] + damaged):
        old = re.match(OLD_SEVERAL[kind], data)
        assert (old.end() if old else 0) == updates.run_end(data, 0)
        assert re.findall(OLD_DELTAS[kind], data, re.DOTALL) == updates.deltas.findall(data)


@pytest.mark.skipif(sys.version_info < (3, 11, 5), reason="possessive quantifiers are wrong here")
@pytest.mark.parametrize("kind", OLD_DELTA)
@given(text=TEXTS, damaged=DAMAGED, share=strategies.floats(0, 1))
def test_a_cut_line_brings_what_possessive_patterns_read(kind: str, text: str, damaged: bytes, share: float) -> None:
    """Wherever a line is cut, its text is the same as with possessive quantifiers, except half an escape at the end."""
    updates, make, _ = KINDS[kind]
    line = make(text, None).removesuffix(b"\n")
    for data in (line[: int(len(line) * share)], (line[: int(len(line) * share)] + damaged).replace(b"\n", b"")):
        position = data.find(updates.marker)
        old = re.compile(OLD_DELTA[kind], re.DOTALL).match(data, position) if 0 <= position < 1024 else None
        if old is None or not data.startswith(updates.prefixes[:1]):
            assert updates.text(data) is None
        elif data[old.end() : old.end() + 1] != b'"':
            assert updates.is_open(data)
            assert old["text"].startswith(updates.text(data) or b"")
        else:
            is_ours = updates.behind is None or updates.behind.match(data, old.end())
            assert ((old["text"] or None) if is_ours else None) == updates.text(data)


@pytest.mark.parametrize("kind", KINDS)
@given(parts=PARTS, size=strategies.integers(1, 3000))
def test_texts_are_those_of_a_json_decoder(kind: str, parts: list[tuple[str, bool]], size: int) -> None:
    """In chunks of any size, the text consists of only the message's own deltas."""
    stream = KINDS[kind][2]()
    splitter, data = LineSplitter(stream.updates), b"".join(lines_of(kind, parts))
    for start in range(0, len(data), size):
        for piece in splitter.split(data[start : start + size]):
            stream.feed(piece)
    assert "".join(text for text, ours in parts if ours) == stream.writing.text()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("filling", ["\\", '"', "x"])
def test_a_text_without_an_end_is_read_in_one_go(kind: str, filling: str) -> None:
    """Megabytes of backslashes, quotes or half a delta are scanned once, not once for each byte."""
    updates, make, _ = KINDS[kind]
    line = make(filling * 2_000_000, None)
    text = json.dumps(filling).encode()[1:-1] * 2_000_000
    begun = line[: line.index(text) + len(text)]
    assert text == updates.text(line.removesuffix(b"\n"))
    assert (text, True) == (updates.text(begun), updates.is_open(begun))
    assert 0 == updates.run_end(begun, 0)
    if updates.deltas:
        assert [] == updates.deltas.findall(begun)


def test_a_nested_agent_is_never_taken_for_the_message() -> None:
    """Even in a line longer than the part usually read, the text's owner is known."""
    stream, splitter = ClaudeStream(), LineSplitter(CLAUDE)
    for words, whose in (("ours ", None), ("x" * 3 * UPDATE_HEAD, "toolu_1"), ("again", None)):
        for piece in splitter.split(claude(words, whose)):
            stream.feed(piece)
    assert "ours again" == stream.writing.text()


def test_an_empty_delta_is_no_new_block() -> None:
    """A delta without text changes nothing, alone or among others."""
    streams = [PiStream(), PiStream()]
    for words in ("one ", "", "text"):
        streams[0].feed(pi(words).removesuffix(b"\n"))
        streams[1].feed(pi(words).removesuffix(b"\n")) if words else None
    assert streams[1].writing.text() == streams[0].writing.text() == "one text"
