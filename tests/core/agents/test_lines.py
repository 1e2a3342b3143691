"""Splitting an agent's output into lines."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from subdeck.core.agents._json_lines import error_words, unescaped
from subdeck.core.agents.pi.stream import UPDATES
from subdeck.core.agents.updates import UPDATE_HEAD, UPDATE_MOST, Updates
from subdeck.core.wrapper import _intake as module
from subdeck.core.wrapper._intake import LineSplitter

UPDATE = b'{"type":"message_update"'
OTHER_UPDATE = b'{"type":"tool_execution_update"'
PREFIXES = UPDATES.prefixes

DELTA = UPDATE + b',"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"'

MATERIAL = [
    b"",
    b"x",
    b'{"type":"message_end"}',
    b'{"type":"message_updat',
    UPDATE,
    UPDATE + b',"delta":"' + b"y" * 100 + b'"}',
    UPDATE + b"z" * (3 * UPDATE_HEAD),
    DELTA + b"z" * (3 * UPDATE_HEAD) + b'","partial":{}}}',
    DELTA + b'short","partial":"' + b"z" * (3 * UPDATE_HEAD) + b'"}}',
    OTHER_UPDATE + b"}",
    "one\u2028two\x85three\x0c".encode(),
    b"\r",
    b"\x00\xff",
    b"w" * 10_000,
]


def pieces(chunks: Iterable[bytes]) -> list[bytes]:
    splitter = LineSplitter(UPDATES)
    found = [piece for chunk in chunks for piece in splitter.split(chunk)]
    return [*found, *splitter.rest()]


def cut(content: bytes, chance: random.Random, largest: int) -> list[bytes]:
    chunks: list[bytes] = []
    while content:
        size = chance.randint(1, largest)
        chunks.append(content[:size])
        content = content[size:]
    return chunks


def expected(content: bytes) -> list[bytes]:
    """Return the lines of `content`, computed in the simplest way."""
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line[: UPDATES.end(line, 0, len(line))] if line.startswith(PREFIXES) else line for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_chunks_do_not_matter(seed: int) -> None:
    """In chunks of any size, the lines are the same, with or without a newline at the end."""
    chance = random.Random(seed)
    content = b"\n".join(chance.choices(MATERIAL, k=30)) + chance.choice((b"", b"\n"))
    assert expected(content) == pieces(cut(content, chance, chance.choice((1, 7, 40, 5000))))


def test_only_newlines_end_lines() -> None:
    """Carriage returns, form feeds and Unicode's line separators are part of a line."""
    content = "a\r\x0b\x0c\x1c\x85\u2028\u2029b".encode()
    assert [content] == pieces([content + b"\n"])


def test_update_lines_are_not_held() -> None:
    """At most one chunk of an update line is held, however long the line gets."""
    splitter = LineSplitter(UPDATES)
    chunk = b"y" * 65536
    assert [] == list(splitter.split(UPDATE))
    for _ in range(200):
        assert [] == list(splitter.split(chunk))
    assert splitter.held <= UPDATE_HEAD
    (piece,) = splitter.split(b"\n")
    assert (UPDATE + chunk)[:UPDATE_HEAD] == piece


def test_a_long_update_in_one_chunk_is_not_held() -> None:
    """An update line that is long in its first chunk is held only up to its head."""
    splitter = LineSplitter(UPDATES)
    assert [] == list(splitter.split(UPDATE + b"y" * 200_000))
    assert splitter.held <= UPDATE_HEAD


def test_endless_lines_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line without an end uses no more memory than the limit, and the next line is complete."""
    monkeypatch.setattr(module, "LINE_LIMIT", 1000)
    splitter = LineSplitter(UPDATES)
    for _ in range(100):
        assert [] == list(splitter.split(b"x" * 999))
        assert splitter.held <= 1000
    assert [b"x" * 1000, b"next"] == list(splitter.split(b"\nnext\n"))


def test_nothing_is_nothing() -> None:
    """Without output there are no lines, and an empty line is a line."""
    assert [] == pieces([])
    assert [b"", b""] == pieces([b"\n", b"\n"])


def test_without_prefixes() -> None:
    """An agent without update lines gets every line complete."""
    splitter = LineSplitter(Updates())
    assert [UPDATE + b"}"] == [*splitter.split(UPDATE), *splitter.split(b"}\n")]


@pytest.mark.slow
@pytest.mark.parametrize("size", [100, UPDATE_HEAD, 10 * UPDATE_HEAD, UPDATE_MOST // 2])
@pytest.mark.parametrize("largest", [997, 65536, 10**7])
def test_a_long_delta_is_whole(size: int, largest: int) -> None:
    """An update line is held to the end of its delta, and no further."""
    line = DELTA + b"\\n" * (size // 2) + b'","partial":"' + b"y" * (2 * UPDATE_MOST) + b'"}}'
    (piece,) = pieces(cut(line + b"\n", random.Random(1), largest))
    delta = UPDATES.text(piece)
    assert delta is not None
    assert ("\n" * (size // 2), True) == (unescaped(delta), len(piece) <= len(DELTA) + max(size, UPDATE_HEAD) + 2)


def test_an_endless_delta_is_cut() -> None:
    """A delta without an end uses no more memory than the limit."""
    splitter = LineSplitter(UPDATES)
    assert [] == list(splitter.split(DELTA))
    for _ in range(100):
        assert [] == list(splitter.split(b"y" * 65536))
    assert splitter.held <= UPDATE_MOST + 1


@pytest.mark.parametrize(("end", "expected"), [
    (rb"\u00", ""), (rb"\\", "\\"), (rb"\\u00", "\\u00"), (rb"\\\u00e", "\\"),
])  # fmt: skip
def test_a_cut_escape(end: bytes, expected: str) -> None:
    """A delta cut within an escape keeps the text before it, and an escaped backslash starts no escape."""
    delta = UPDATES.text(DELTA + b"a" + end)
    assert delta is not None
    assert "a" + expected == unescaped(delta)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('401: {"message":"Invalid API key","type":"err","code":401}', "401 Invalid API key"),
        ('429: {"type":"error","error":{"type":"rate_limit_error","message":"Rate limit"}}', "429 Rate limit"),
        ('{"error":"quota is used up"}', "quota is used up"),
        ('500 [{"error":{"code":500,"message":"Internal"}}]', "500 Internal"),
        ('400: {"error":{"message":"{\\"error\\":{\\"message\\":\\"Bad model\\"}}"}}', "400 Bad model"),
        ('{"detail":[{"msg":"x"}]}', '{"detail":[{"msg":"x"}]}'),
        ("401 Invalid API key", "401 Invalid API key"),
        ('unexpected "}" in {x}', 'unexpected "}" in {x}'),
        ('503: {"message":"  "}', '503: {"message":"  "}'),
        ('503: {"message":"cut o', '503: {"message":"cut o'),
        ("[" * 5000, "[" * 5000),
        ("\ud800{}", "\ud800{}"),
        ("", ""),
    ],
)
def test_the_words_of_a_provider(text: str, expected: str) -> None:
    """An error that pi passes on as JSON becomes its message after the number, and other texts stay unchanged."""
    assert expected == error_words(text)
