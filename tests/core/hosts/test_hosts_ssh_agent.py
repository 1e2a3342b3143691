"""The host's end of a connection by ssh, over pipes and in this process."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from socket import socket
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.errors import SubdeckError
from subdeck.core.hosts.protocol import PROTOCOL, Answer, Examine, Examined, Hold, Said, Verb, decode_answer, encode
from subdeck.core.hosts.ssh import _connection as connections, _spool_socket, server, stdio
from subdeck.core.hosts.ssh._connection import AgentHello, CarrierHello, Connection
from subdeck.core.hosts.ssh._frames import ANSWER, MAGIC, PIECE, Message
from subdeck.core.hosts.ssh.server import AgentServer
from subdeck.core.system import processes

from tests.core.command_line import SUBDECK
from tests.core.hosts.hosting import RELAY, AskingThere, until
from tests.factories import write_settings

pytestmark = pytest.mark.processes


class OverConnection:
    """Calls over one connection for `Asking`."""

    spool_id = ""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._number = 0

    async def answer(self, verb: Verb, message: bytes) -> bytes:
        self._number += 1
        self._connection.send(Message(self._number, verb, message))
        return (await self._connection.receive()).content


@pytest.fixture
def spool(home: Path) -> Path:
    return home / "spool"


@pytest.fixture
def agents(spool: Path) -> Iterator[set[int]]:
    """Pids of agents that a test has started as separate processes; they end with the test."""
    pids: set[int] = set()
    yield pids
    for pid in pids:
        if (started := processes.start_time(pid)) is not None:
            processes.send(pid, signal.SIGTERM, started)


# --- the host's end, without ssh ---


@asynccontextmanager
async def joined(spool: Path, *words: str, **variables: str) -> AsyncIterator[Connection]:
    """Play ssh for `subdeck hosts agent`."""
    process = await asyncio.create_subprocess_exec(
        *(*SUBDECK, "hosts", "agent", "--spool", str(spool), *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | variables,
    )
    assert process.stdin and process.stdout
    await process.stdout.readuntil(MAGIC)
    connection = Connection(process.stdout, process.stdin)
    writing = asyncio.create_task(connection.write())
    try:
        yield connection
    finally:
        writing.cancel()
        connection.close()
        assert await process.wait() == 0


def test_the_socket_is_private_without_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The socket is private without changing the umask, which all threads share."""

    def refuse(mask: int) -> int:
        raise AssertionError(f"the umask was set to {mask:o}")

    monkeypatch.setattr(os, "umask", refuse)
    with _spool_socket.listening(str(tmp_path)):
        assert 0o600 == stat.S_IMODE((tmp_path / _spool_socket.SOCKET).stat().st_mode)


def agent_pid(spool: Path) -> int:
    agent = _spool_socket.connected(str(spool))
    assert agent
    with agent:
        return _spool_socket.peer_pid(agent)


async def greet(connection: Connection, slots: int = 3) -> AgentHello:
    hello = await connection.receive_hello(AgentHello)
    connection.say_hello(CarrierHello(slots=slots))
    return hello


async def ask(connection: Connection, verb: Verb, asked: Any, number: int = 1) -> Any:
    connection.send(Message(number, verb, encode(asked)))
    message = await connection.receive()
    assert (number, ANSWER) == (message.id, message.word)
    return decode_answer(verb, message.content)


async def test_the_agent_outlives_who_started_it(spool: Path, agents: set[int]) -> None:
    """The first connection starts an agent that serves only this user, and the next one finds it."""
    async with joined(spool) as connection:
        agents.add(pid := agent_pid(spool))
        assert pid == os.getsid(pid)
        hello = await greet(connection)
        assert (PROTOCOL, 0, {}) == (hello.protocol, hello.slots, hello.labels)
        assert isinstance(await ask(connection, Verb.EXAMINE, Examine()), Examined)
        assert 0o600 == stat.S_IMODE((spool / "agent.sock").stat().st_mode)
        assert 0 == stat.S_IMODE(spool.stat().st_mode) & 0o077
    async with joined(spool) as connection, joined(spool) as another:
        assert await greet(connection) == await greet(another) == hello
        agents.add(agent_pid(spool))
    assert 1 == len(agents)


async def test_the_host_says_what_it_has(spool: Path, agents: set[int]) -> None:
    """The host's command line sets slots and labels; without it the carrier sets the slots."""
    async with joined(spool, "--slots", "7", "--label", "gpu=2") as connection:
        agents.add(agent_pid(spool))
        hello = await greet(connection)
        assert (7, {"gpu": 2}) == (hello.slots, hello.labels)
        assert 7 == (await ask(connection, Verb.EXAMINE, Examine())).facts.slots


async def test_many_come_at_once(spool: Path, agents: set[int]) -> None:
    """If several connections find no agent, one starts it, and all are answered."""

    async def come() -> None:
        async with joined(spool) as connection:
            await greet(connection)
            assert isinstance(await ask(connection, Verb.EXAMINE, Examine()), Examined)
            agents.add(agent_pid(spool))

    await asyncio.gather(*(come() for _ in range(4)))
    assert 1 == len(agents)


async def test_an_agent_that_was_killed_is_replaced(spool: Path, agents: set[int]) -> None:
    """The socket of a dead agent does not prevent starting another."""
    async with joined(spool):
        first = agent_pid(spool)
        os.kill(first, signal.SIGKILL)
    async with joined(spool) as connection:
        agents.add(agent_pid(spool))
        await greet(connection)
    assert {first} != agents


async def test_an_agent_that_ends_before_it_answers_is_replaced(spool: Path, agents: set[int]) -> None:
    """A connection that was not yet accepted is reset; the next agent takes the spool."""
    ending = (
        "import os, select, sys; from subdeck.core.hosts.ssh import _spool_socket as s; "
        "listener = s.listening(sys.argv[1]); print(flush=True); select.select([listener], [], []); os._exit(0)"
    )
    spool.mkdir(mode=0o700)
    with subprocess.Popen([sys.executable, "-c", ending, spool], stdout=subprocess.PIPE) as process:
        assert process.stdout and b"\n" == process.stdout.readline()
        async with joined(spool) as connection:
            agents.add(agent_pid(spool))
            await greet(connection)
    assert process.pid not in agents


async def test_an_older_agent_makes_way(spool: Path, agents: set[int]) -> None:
    """After an update the old version's agent ends, and one of the new version uses the spool."""
    old = "import subdeck.core as c; c.__version__ = '0.1'; from subdeck.core.hosts.ssh import server as s; s.main()"
    spool.mkdir(mode=0o700)
    nobody, ready = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", old, spool, str(ready), "0"], pass_fds=[ready])
    os.close(ready)
    try:
        assert b"" == os.read(nobody, 1000)
        async with joined(spool) as connection:
            agents.add(agent_pid(spool))
            await greet(connection)
        assert 0 == process.wait(10)
    finally:
        os.close(nobody)
        process.kill()
        process.wait()
    assert process.pid not in agents


async def test_a_spool_in_use_is_said(spool: Path) -> None:
    """If another carrier's agent has the spool, that is the error, and stdout stays empty."""
    spool.mkdir(mode=0o700)
    from subdeck.core.hosts._host_agent import HostAgent

    other = HostAgent(str(spool), slots=1)
    try:
        command = (*SUBDECK, "hosts", "agent", "--spool", str(spool))
        tries = [
            asyncio.to_thread(subprocess.run, (*command, *words), input=b"", capture_output=True)
            for words in ((), ("--json",))
        ]
        each = await asyncio.gather(*tries)
    finally:
        other.close()
    for done in each:
        assert (2, b"") == (done.returncode, done.stdout)
        assert b"another process uses this spool" in done.stderr


async def test_an_agent_that_was_stopped_is_said(
    spool: Path, agents: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that is alive but does not answer is waited for only briefly; the error tells how to end it."""
    async with joined(spool):
        agents.add(pid := agent_pid(spool))
        os.kill(pid, signal.SIGSTOP)
        waiting: list[socket] = []
        try:
            monkeypatch.setattr(stdio, "START_S", 0.2)
            with pytest.raises(SubdeckError, match=rf"the subdeck process there \({pid}\) does not answer"):
                await asyncio.to_thread(stdio._agent, str(spool), 0, {})
            with suppress(BlockingIOError):
                while another := _spool_socket.connected(str(spool)):
                    waiting.append(another)
            with pytest.raises(SubdeckError, match="accepts no connections"):
                await asyncio.to_thread(stdio._agent, str(spool), 0, {})
        finally:
            os.kill(pid, signal.SIGCONT)
            for another in waiting:
                another.close()


def test_a_terminal_is_no_program(spool: Path) -> None:
    """If a person types the command, it explains its purpose and starts nothing."""
    terminal, typed = os.openpty()
    done = subprocess.run(
        [*SUBDECK, "hosts", "agent", "--spool", spool], stdin=typed, capture_output=True, text=True, timeout=30
    )
    os.close(terminal)
    os.close(typed)
    assert 2 == done.returncode
    assert "only programs use it, through ssh" in done.stderr
    assert not spool.exists()


# --- the agent's server, in this process ---


@asynccontextmanager
async def serving(spool: Path, **idle: float) -> AsyncIterator[asyncio.Task[None]]:
    running = asyncio.create_task(AgentServer(str(spool)).run(**idle))
    try:
        yield running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def connected(spool: Path) -> AsyncIterator[Connection]:
    found = _spool_socket.connected(str(spool))
    assert found
    reader, writer = await asyncio.open_unix_connection(sock=found)
    assert server.version_line() == await reader.readline()
    connection = Connection(reader, writer)
    writing = asyncio.create_task(connection.write())
    try:
        yield connection
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        connection.close()


async def test_an_idle_agent_ends(spool: Path) -> None:
    """An agent without connections and open runs ends, and releases the spool."""
    async with serving(spool, idle_s=0.5, look_s=0.01) as running:
        async with connected(spool) as connection:
            await greet(connection)
            await asyncio.wait((running,), timeout=1.0)
            assert not running.done()
        await asyncio.wait_for(running, 10)
        assert _spool_socket.connected(str(spool)) is None


async def test_an_agent_stays_while_a_run_is_open(spool: Path) -> None:
    """A running run keeps its agent, which renews the run's lease even without a connection."""
    write_settings()
    async with serving(spool, idle_s=0.5, look_s=0.01) as running:
        async with connected(spool) as connection:
            await greet(connection)
            asking = AskingThere(OverConnection(connection))
            await asking.learn()
            run_id = await asking.begin("wait-for go", "answer 42")
        lease = spool / RELAY / "lease"
        before = await until(lambda: lease.exists() and lease.read_text(), "a lease")
        await until(lambda: lease.read_text() != before, "the lease to be renewed")
        assert not running.done()
        Path("go").touch()
        await asyncio.wait_for(running, 20)
        assert (spool / RELAY / ".pi/subagents/runs" / run_id / paths.RESULT).exists()


async def test_what_is_no_frame_ends_its_connection_alone(spool: Path) -> None:
    """Garbage, unknown verbs and duplicate ids end only their own connection."""
    async with serving(spool), connected(spool) as good:
        await greet(good)
        for rubbish in (
            [Message(1, "rubbish", b"x")],
            [Message(1, Verb.HOLD, encode(Hold(RELAY, paths.new_run_id())))] * 2,
        ):
            async with connected(spool) as bad:
                await greet(bad)
                for message in rubbish:
                    bad.send(message)
                with pytest.raises((EOFError, ConnectionError)):
                    await asyncio.wait_for(bad.receive(), 10)
        async with connected(spool) as bad:
            await bad.receive_hello(AgentHello)
            bad._writer.write(b"\xff" * 100)
            with pytest.raises((EOFError, ConnectionError)):
                await asyncio.wait_for(bad.receive(), 10)
        refused = await asyncio.wait_for(_refusal(good), 10)
        assert Said.REFUSED == refused.said


async def _refusal(connection: Connection) -> Answer:
    connection.send(Message(9, Verb.HOLD, b"rubbish"))
    return decode_answer(Verb.HOLD, (await connection.receive()).content)


async def test_a_stranger_is_not_answered(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user gets no byte from the agent, and connecting to another user's agent is refused."""
    async with serving(spool):
        found = _spool_socket.connected(str(spool))
        assert found
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        reader, writer = await asyncio.open_unix_connection(sock=found)
        assert b"" == await asyncio.wait_for(reader.read(), 10)
        writer.close()
        with pytest.raises(PermissionError):
            _spool_socket.connected(str(spool))
        monkeypatch.undo()


async def test_another_version_is_not_talked_to(spool: Path) -> None:
    """A carrier with another protocol version learns it from the greeting, and is not answered."""
    async with serving(spool), connected(spool) as connection:
        await connection.receive_hello(AgentHello)
        connection.say_hello(CarrierHello(protocol=PROTOCOL + 1))
        with pytest.raises((EOFError, ConnectionError)):
            await asyncio.wait_for(connection.receive(), 10)


class Deaf:
    """A writer that discards everything."""

    def write(self, content: bytes) -> None:
        pass

    async def drain(self) -> None:
        pass


async def test_who_says_nothing_is_gone(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ends send signs of life; a silent connection is ended."""
    monkeypatch.setattr(connections, "SILENCE_S", 1.0)
    monkeypatch.setattr(connections, "ALIVE_S", 0.2)
    async with serving(spool), connected(spool) as connection:
        await greet(connection)
        with pytest.raises(TimeoutError):  # the timeout of this test, not of the connection
            await asyncio.wait_for(connection.receive(), 1.5)
    async with serving(spool), connected(spool) as connection:
        await greet(connection)
        with monkeypatch.context() as patch:
            patch.setattr(connection, "_writer", Deaf())
            with pytest.raises(EOFError):
                await asyncio.wait_for(connection.receive(), 10)


async def test_a_small_answer_overtakes_a_large_one(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large answer, requested first, does not delay a small one."""
    large = bytes(64 * PIECE)

    async def answer(_: object, verb: Verb, message: bytes) -> bytes:
        return large if verb == Verb.PULL else message

    monkeypatch.setattr(server.HostAgent, "answer", answer)
    async with serving(spool), connected(spool) as connection:
        await greet(connection)
        connection.send(Message(1, Verb.PULL))
        connection.send(Message(2, Verb.STOP, b"small"))
        assert Message(2, ANSWER, b"small") == await connection.receive()
        assert Message(1, ANSWER, large) == await connection.receive()
