"""Usage, message by message."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.run import fold
from subdeck.core.run.events import AssistantText, Event, ToolCall, UsageReported, encode_event
from subdeck.core.run.fold import UsageReader
from subdeck.core.run.model import Usage


def used(number: int, stop_reason: str = "stop") -> UsageReported:
    return UsageReported(
        seq=number,
        ts="2026-01-01T00:00:00.000Z",
        input=number,
        output=10,
        cache_read=100,
        cache_write=1,
        cost=0.25,
        model="a/b",
        stop_reason=stop_reason,
    )


def write(path: Path, *events: Event) -> None:
    with (path / "events.jsonl").open("ab") as file:
        for event in events:
            file.write(encode_event(event))


def test_rows_and_sums(tmp_path: Path) -> None:
    """Each message is a row; the sums count turns and calls like the run itself, and grow with the file."""
    reader = UsageReader(str(tmp_path))
    assert (reader.read(), reader.messages, reader.progress) == (False, 0, 1.0)
    write(tmp_path, used(1), ToolCall(tool_call_id="1", tool_name="read", args={}), used(2, "error"))
    assert reader.read() is False
    assert [(used.input, used.stop_reason) for used in reader.newest] == [(1, "stop"), (2, "error")]
    write(tmp_path, used(3))
    reader.read()
    assert reader.total == Usage(input=6, output=30, cache_read=300, cache_write=3, cost=0.75, turns=2, tool_uses=1)


def test_words_about_usage_are_no_usage(tmp_path: Path) -> None:
    """An agent's text cannot add a row, nor can a broken line."""
    write(tmp_path, AssistantText(text='{"type":"usage","input":5}'))
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(b'{"type":"usage"}\n{"type":"usage","input":"x"\n')
    reader = UsageReader(str(tmp_path))
    reader.read()
    assert (reader.messages, reader.total) == (0, Usage())


def test_a_big_file_comes_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file loads in pieces with its progress; rows beyond the newest count only in the sums."""
    monkeypatch.setattr(fold, "PIECE", 300_000)
    write(tmp_path, *(used(number) for number in range(1, 8001)))
    reader = UsageReader(str(tmp_path))
    assert reader.read() is True
    assert 0 < reader.progress < 1
    while reader.read():
        pass
    assert (reader.messages, len(reader.newest), reader.newest[0].seq) == (8000, fold.KEPT, 3001)
    assert reader.total.output == 80_000
