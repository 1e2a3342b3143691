"""The parts of the MCP server that need no client."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.mcp import _connection as outboxes, _lists
from subdeck.core.mcp._connection import Call, Calls, Inbox, Outbox, Relay
from subdeck.core.mcp._protocol import Fields, ProtocolError, encode
from subdeck.core.mcp.server import Server
from subdeck.core.project import follower

from tests.core.command_line import write_preset
from tests.factories import open_engine
from tests.waiting import wait_until


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """A pipe whose ends a test may close itself."""
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            pass


def frames(descriptor: int, count: int) -> list[Any]:
    """Read this many lines."""
    with open(descriptor, "rb", closefd=False, buffering=0) as file:
        return [json.loads(file.readline()) for _ in range(count)]


def fill(ends: tuple[int, int]) -> int:
    """Fill a pipe, so that writing blocks until a read; return the number of bytes."""
    os.set_blocking(ends[1], False)
    filled = 0
    try:
        while True:
            filled += os.write(ends[1], b"\n" * 4096)
    except BlockingIOError:
        os.set_blocking(ends[1], True)
        return filled


def test_the_last_word_comes_before_the_answer(ends: tuple[int, int]) -> None:
    """A slow client gets the latest progress, and the last of it before the answer; numbers only grow."""
    outbox = Outbox(ends[1])
    with outbox.progress("token") as relay:
        assert relay
        relay.report("step 0")
        first = frames(ends[0], 1)
        filled = fill(ends)
        outbox.send({"number": 0})  # keeps the thread busy
        for number in range(1, 100):
            relay.report(f"step {number}")
    outbox.send({"number": 1})
    os.read(ends[0], filled)
    assert [(1, "step 0")] == [(frame["params"]["progress"], frame["params"]["message"]) for frame in first]
    before, *told, last = frames(ends[0], 3)
    assert [{"number": 0}, {"number": 1}] == [before, last]
    assert [("token", 2, "step 99")] == [tuple(frame["params"].values()) for frame in told]


def test_silence_is_no_reason_to_give_up(ends: tuple[int, int]) -> None:
    """While a call has no news, its last progress is repeated, so that no client times out."""
    outbox = Outbox(ends[1], keep_alive=0.001)
    with outbox.progress(7) as relay:
        assert relay
        relay.report("thinking")
        assert ["thinking"] * 3 == [frame["params"]["message"] for frame in frames(ends[0], 3)]


def test_progress_is_only_for_who_asked(ends: tuple[int, int]) -> None:
    """Without a token there is no progress."""
    with Outbox(ends[1]).progress(None) as relay:
        assert relay is None


def test_nothing_is_told_of_a_dropped_call(ends: tuple[int, int]) -> None:
    """No progress of a cancelled call is sent, not even if it was already queued."""
    outbox = Outbox(ends[1])
    with outbox.progress(7) as relay:
        assert relay
        filled = fill(ends)
        outbox.send({"number": 0})
        relay.report("under way")
        relay.drop()
        relay.report("still under way")
    outbox.send({"number": 1})
    os.read(ends[0], filled)
    assert [{"number": 0}, {"number": 1}] == frames(ends[0], 2)


def test_progress_that_cannot_be_written_ends_nothing(ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A progress message that cannot be made is dropped; later answers are written."""
    monkeypatch.setattr(Relay, "line", lambda _: {}["token"])
    outbox = Outbox(ends[1])
    with outbox.progress(7) as relay:
        assert relay
        relay.report("thinking")
    outbox.send({"number": 1})
    assert [{"number": 1}] == frames(ends[0], 1)


def test_a_request_that_fails_unexpectedly_is_answered(ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """After an unexpected failure the client gets a readable error, and the server reads the next request."""
    server = Server("mcp-1", Outbox(ends[1]))
    monkeypatch.setattr("subdeck.core.mcp.server.handshake", lambda _: {}["secret"])
    for number, method in enumerate(("initialize", "ping")):
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        server.take(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode())
    first, second = frames(ends[0], 2)
    assert first["error"]["message"].startswith("an unexpected error (KeyError)")
    assert (1, {}) == (second["id"], second["result"])


def test_a_watch_of_the_lists_that_fails_begins_again(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failed watch of the lists restarts, its error goes to stderr, and the client is notified of changes."""
    engine, changed, left = open_engine(project_dir, agent="offline"), queue.Queue[str](), [KeyError(13)]
    watch = follower.watch

    def failing(*args: Any) -> Iterator[follower.Changes]:
        if left:
            raise left.pop()
        return watch(*args)

    monkeypatch.setattr(_lists, "watch", failing)
    monkeypatch.setattr(_lists, "AGAIN_S", 0.0)
    given = _lists.Lists(engine, changed.put)
    try:
        given.prompts()
        write_preset(project_dir)
        assert "prompts" == changed.get(timeout=20)
    finally:
        given.close()
    assert "subdeck mcp: an unexpected error (KeyError)" in capsys.readouterr().err


def test_flush_waits_for_a_reader_who_reads(ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything sent reaches a slow reader; a reader that takes nothing is not waited for."""
    outbox = Outbox(ends[1])
    text = "x" * 1_000_000
    outbox.send({"text": text})
    with monkeypatch.context() as hasty:
        hasty.setattr(outboxes, "PATIENCE_S", 0.1)
        assert not outbox.flush()
    read: list[Any] = []
    reading = threading.Thread(target=lambda: read.extend(frames(ends[0], 1)))
    reading.start()
    assert outbox.flush()
    reading.join(30)
    assert [{"text": text}] == read


def lines_of(chunks: list[bytes], ends: tuple[int, int], limit: int = 100) -> list[bytes | None]:
    inbox, lines = Inbox(ends[0], limit), []
    for chunk in chunks:
        os.write(ends[1], chunk)
        lines += inbox.read()
    os.close(ends[1])
    lines += inbox.read()
    assert inbox.has_ended
    return lines


def test_lines_are_put_together(ends: tuple[int, int]) -> None:
    """A line may come in pieces, several may come in one, and the last may lack its newline."""
    assert [b"one", b"two", b"", b"three"] == lines_of([b"on", b"e\ntwo\n", b"\nth", b"ree"], ends)


def test_a_line_without_an_end_is_not_held(ends: tuple[int, int]) -> None:
    """A line above the limit is dropped and reported; the next one is read as usual."""
    chunks = [b"x" * 60, b"x" * 60, b"x" * 60 + b"\nnext\n", b"y" * 100 + b"\n"]
    assert [None, b"next", b"y" * 100, b""] == lines_of(chunks, ends)


class Answers:
    """Collects the answers to a call."""

    def __init__(self) -> None:
        self.taken: list[tuple[Fields | None, Fields | None]] = []

    def take(self, result: Fields | None, error: Fields | None) -> None:
        self.taken.append((result, error))


def test_a_dropped_call_is_not_answered() -> None:
    """A cancelled call gets a request to end, and is never answered."""
    begun, answers, calls = threading.Event(), Answers(), Calls()

    def work(call: Call) -> Fields:
        begun.set()
        call.cancelled.wait()
        return {"done": True}

    calls.start(Call("7", answers.take), work)
    begun.wait()
    calls.drop(7)
    calls.cancel_all()
    assert [(None, None)] == answers.taken


def test_failing_work_is_answered() -> None:
    """A failure becomes an answer: a protocol error unchanged, any other as an internal error."""
    answers, calls = Answers(), Calls()

    def refuse(call: Call) -> Fields:
        raise ProtocolError(-32602, "not like this")

    def fail(call: Call) -> Fields:
        raise LookupError("not there")

    for work in (refuse, fail):
        calls.start(Call(1, answers.take), work)
        calls.cancel_all()
    refused, failed = (error or {} for _, error in answers.taken)
    assert {"code": -32602, "message": "not like this"} == refused
    assert (-32603, "an unexpected error (LookupError)") == (failed["code"], failed["message"].split("\n")[0])


def test_all_calls_can_be_cancelled() -> None:
    """Cancelling all calls returns once every call is answered."""
    answers, calls = Answers(), Calls()
    begun = [threading.Event() for _ in range(3)]

    def work(call: Call) -> Fields:
        begun[int(call.id)].set()
        call.cancelled.wait()
        return {"number": call.id}

    for number in range(3):
        calls.start(Call(number, answers.take), work)
    for event in begun:
        wait_until(event.is_set, "the call to begin")
    calls.cancel_all()
    assert [0, 1, 2] == sorted((result or {})["number"] for result, _ in answers.taken)


def test_a_path_that_is_no_text_breaks_no_line() -> None:
    """A path that is not UTF-8 has its bytes replaced, so that the message stays readable."""
    assert {"cwd": "/tmp/?"} == json.loads(encode({"cwd": os.fsdecode(b"/tmp/\xff")}).decode())
