"""A hostile peer at the other end of ssh loses its connection; other hosts and the terminal are unaffected."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from subdeck.core.hosts._carrier import OutOfReach
from subdeck.core.hosts.protocol import Answer, Said, Verb, encode
from subdeck.core.hosts.ssh._connection import AgentHello
from subdeck.core.hosts.ssh._frames import ALIVE, ANSWER, HELLO, MAGIC, Frame, packed
from subdeck.core.hosts.ssh._line import HostLine
from subdeck.core.system import processes
from subdeck.core.text.plain import one_line

from tests.core.hosts.hosting import until

pytestmark = pytest.mark.processes

GREETING = MAGIC + packed(Frame(0, HELLO, encode(AgentHello(host="h1", slots=2))))
ANSWERED = packed(Frame(1, ANSWER, encode(Answer(Said.TOLD))))
NOBODYS = packed(Frame(99, ANSWER, encode(Answer(Said.TOLD))))

FLOODS = {
    "words that say nothing": packed(Frame(0, ALIVE)) * 5000,
    "answers that nobody asked for": NOBODYS * 5000,
    "an answer again and again": ANSWERED * 5000,
    "requests of its own": packed(Frame(7, Verb.START, b"x")) * 5000,
    "pieces with nothing in them": packed(Frame(5, ANSWER, b"", is_last=False)) * 5000,
    "hellos": packed(Frame(0, HELLO, b"x")) * 5000,
    "taking back": packed(Frame(3, "cancel")) * 5000,
    "messages that never end": b"".join(packed(Frame(id_, ANSWER, b"x", is_last=False)) for id_ in range(20_000)),
}


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with the output of the fake ssh, which then waits until stdin ends.

    With a file `stays` beside it, the fake ssh ignores the end of stdin.
    """
    said = tmp_path / "said"
    said.write_bytes(GREETING)
    words = (
        "import sys, os, time; c = open(sys.argv[1], 'rb').read()\nwhile c: c = c[os.write(1, c):]\n"
        "sys.stdin.read()\nif os.path.exists(sys.argv[2]): time.sleep(600)"
    )

    def command(_: str) -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", "-c", words, str(said), str(tmp_path / "stays"))

    monkeypatch.setattr("subdeck.core.hosts.ssh._line.command", command)
    for name in ("FIRST_WAIT_S", "LONGEST_WAIT_S"):
        monkeypatch.setattr(f"subdeck.core.hosts.ssh._line.{name}", 600.0)
    return said


@asynccontextmanager
async def lined() -> AsyncIterator[HostLine]:
    line = HostLine("h1", 2, lambda: None)
    running = asyncio.create_task(line.run())
    try:
        yield line
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_ends_its_line(peer: Path, kind: str) -> None:
    """A flood of unrequested messages ends the connection with a reason, and never blocks the event loop."""
    peer.write_bytes(GREETING + FLOODS[kind])
    longest, before = 0.0, time.monotonic()
    async with lined() as line:
        while "cannot read its answer" not in line.fault:
            await asyncio.sleep(0)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
            assert longest < 2
        assert line.link is None


async def test_a_late_answer_is_no_flood(peer: Path) -> None:
    """Late answers to abandoned requests are dropped, and the connection stays."""
    peer.write_bytes(GREETING + NOBODYS * 100)
    async with lined() as line:
        await until(lambda: line.link, "the host to be reached")
        with pytest.raises(OutOfReach, match="no answer within"):
            await line.ask(Verb.STOP, b"", 0.3)
        assert line.link


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\0\0\0\x01\xc1",
        b"\0\0\0\x06\x94\xff\xa1a\xc4\0\xc3",
        packed(Frame(0, HELLO, b"x" * 100)),
        packed(Frame(1, "x" * 16, b"")) * 2000,
    ],
    ids=["huge", "empty", "no value", "a negative id", "a hello that is none", "no word of ours"],
)
@pytest.mark.parametrize("first", [MAGIC, GREETING], ids=["at first", "later"])
async def test_what_is_no_frame_ends_its_line(peer: Path, first: bytes, frame: bytes) -> None:
    """A malformed frame ends the connection with a reason, and the connection is made again."""
    peer.write_bytes(first + (frame if frame != packed(Frame(0, HELLO, b"x" * 100)) else frame * 2000))
    async with lined() as line:
        await until(lambda: "cannot read its answer" in line.fault, f"its end; {line.fault}")


@pytest.mark.parametrize(
    "said",
    [
        b"\x1b]0;owned\x07\x1b[31mred\x1b[0m [bold]markup[/] \xe2\x80\xaeesrever \xc2\x9b31m\n",
        b"subdeck: \x1b[2J\nwhere: \x1b]8;;http://x\x07link\nhint: \x00\x7f\xff\n",
        b"x" * 100_000,
        b"\n" * 100_000,
        b"\r" * 1000 + b"ssh: fine",
    ],
)
async def test_what_it_says_when_it_ends_is_plain(peer: Path, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer's last words are reported as one line of bounded length, without a control character."""
    peer.write_bytes(b"no greeting")
    (peer.parent / "err").write_bytes(said)
    words = (
        f"import sys,os; c=open({str(peer.parent / 'err')!r},'rb').read()\nwhile c: c=c[os.write(2,c):]\nsys.exit(255)"
    )
    monkeypatch.setattr("subdeck.core.hosts.ssh._line.command", lambda _: (sys.executable, "-I", "-c", words))
    async with lined() as line:
        await until(lambda: line.fault and "not connected yet" not in line.fault, "its fault")
        assert line.fault == one_line(line.fault, 400)


@pytest.mark.parametrize(
    "said", [b"banner " * 20_000, b"\0" * 200_000, (MAGIC[:-1] + b" ") * 10_000], ids=["text", "nulls", "near"]
)
async def test_a_login_without_end(peer: Path, said: bytes) -> None:
    """The output of a login before the agent's greeting is bounded."""
    peer.write_bytes(said)
    async with lined() as line:
        await until(lambda: "its login printed more than 64 kB" in line.fault, f"its end; {line.fault}")


async def test_nothing_of_a_peer_is_left(peer: Path) -> None:
    """The peer's process ends with the connection, however it behaved."""
    peer.write_bytes(GREETING + FLOODS["messages that never end"])
    (peer.parent / "stays").touch()
    before = processes.children()
    async with lined() as line:
        await until(lambda: "cannot read its answer" in line.fault, "its end")
    assert before == processes.children()
