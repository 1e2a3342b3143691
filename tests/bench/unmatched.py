"""The cost of output that looks like text being written but is not, against as much real text."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from subdeck.core.agents._stream import AgentStream
from subdeck.core.agents.claude._stream import ClaudeStream
from subdeck.core.agents.codex._app_stream import AppStream
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.wrapper._intake import LineSplitter

from .figures import REPEATS, Figure, usually

SIZE = usually(10_000_000, smoke=1_000_000)
LINE = SIZE // 50
"""Bytes of the shorter lines; several come in a chunk."""
CHUNK = 256 * 1024

KINDS: dict[str, tuple[Callable[[], AgentStream], bytes, bytes]] = {
    "claude": (
        ClaudeStream,
        b'{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"',
        b'"}},"session_id":"467db980","parent_tool_use_id":null}',
    ),
    "codex": (
        AppStream,
        b'{"method":"item/agentMessage/delta","params":{"threadId":"t-1","turnId":"u-1","itemId":"m-1","delta":"',
        b'"}}',
    ),
    "pi": (
        PiStream,
        b'{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"',
        b'"}}',
    ),
}
FILLINGS = {"backslashes": rb"\\", "quotes": rb"\"", "half a delta": b"xx"}


def measure() -> Iterator[Figure]:
    for kind, (stream, opening, closing) in KINDS.items():
        for name, filling in FILLINGS.items():
            worst, text_ms = max(
                _ratio(stream, [opening + filling * (size // 2)] * (SIZE // size), closing) for size in (LINE, SIZE)
            )
            yield Figure(
                f"{SIZE // 10**6} MB of {name} without an end, {kind}",
                f"{worst:.2f}x",
                f"{SIZE // 10**6} MB that end: {text_ms:.0f} ms",
                "2x",
                worst <= 2,
            )


def _ratio(stream: Callable[[], AgentStream], lines: list[bytes], closing: bytes) -> tuple[float, float]:
    """Return how many times longer the lines take if none is closed, and the milliseconds for closed ones."""
    ways = [b"\n".join(lines), b"".join(line + closing + b"\n" for line in lines)]
    times: list[list[float]] = [[], []]
    for _ in range(REPEATS):
        for data, taken in zip(ways, times, strict=True):
            taken.append(_read(stream(), data))
    unmatched, matched = map(min, times)
    return unmatched / matched, matched * 1000


def _read(stream: AgentStream, data: bytes) -> float:
    splitter = LineSplitter(stream.updates)
    begun = time.process_time()
    for start in range(0, len(data), CHUNK):
        for line in splitter.split(data[start : start + CHUNK]):
            stream.updates.text(line)
    for line in splitter.rest():
        stream.updates.is_open(line)
    return time.process_time() - begun
