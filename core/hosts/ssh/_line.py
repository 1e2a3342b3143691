"""The line to one host: an ssh process of this program, reconnected until cancelled."""

from __future__ import annotations

import asyncio
import random
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Sequence
from contextlib import suppress

from ...system.log import log_fault
from ...text.plain import one_line
from .._carrier import NOT_YET, Link, OutOfReach
from ..protocol import MOST_MESSAGE, Verb, other_version
from ._connection import AgentHello, CarrierHello, Connection, OtherProtocol
from ._frames import ANSWER, CANCEL, MAGIC, MOST_BANNER, BadFrame, Message

GREETING_S = 45.0
"""Seconds until the agent must answer: ssh connects, and the agent may have to be started."""
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
HELD_S = 20.0
"""Seconds a connection must last for the next one to be made without a long wait."""
ENDING_S = 2.0
MOST_STDERR = 8192


class HostLine:
    """Keeps one host connected and sends it requests."""

    def __init__(self, host: str, slots: int, changed: Callable[[], None]) -> None:
        """`slots` is for a host that sets none; `changed` is called when its link comes or goes."""
        self.host = host
        self.link: Link | None = None
        self.fault = f"{host}: {NOT_YET}"
        """Why it is unreachable, in words for a person; empty if it is not."""
        self._slots = slots
        self._changed = changed
        self._connection: Connection | None = None
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._last_id = 0

    async def run(self) -> None:
        """Keep connected until cancelled."""
        wait = FIRST_WAIT_S
        while True:
            began = time.monotonic()
            try:
                fault = await self._connect_once()
            except Exception as error:  # the next attempt may succeed
                log_fault(f"while connected with {self.host}", error)
                fault = f"{self.host}: {one_line(str(error) or type(error).__name__, 200)}"
            self._let_go(fault)
            if time.monotonic() - began > HELD_S:
                wait = FIRST_WAIT_S
            await asyncio.sleep(wait * random.uniform(0.8, 1.2))  # noqa: S311 - keeps many from coming at once
            wait = min(2 * wait, LONGEST_WAIT_S)

    async def ask(self, verb: Verb, message: bytes, timeout: float | None) -> bytes:
        """Call the host and wait at most `timeout` seconds. Raises OutOfReach."""
        connection = self._connection
        if connection is None:
            raise OutOfReach(self.fault)
        if len(message) > MOST_MESSAGE:
            raise OutOfReach(f"{self.host}: a message of {len(message):,} bytes is too large")
        self._last_id = number = self._last_id % (2**32 - 1) + 1
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        connection.send(Message(number, verb, message))
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError as error:
            raise OutOfReach(f"{self.host}: no answer within {timeout:g} s") from error
        finally:
            self._waiting.pop(number, None)
            if answer.cancelled() and connection is self._connection:
                connection.send(Message(number, CANCEL))

    async def _connect_once(self) -> str:
        """Connect and serve the connection; return why it ended."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command(self.host), stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=MOST_BANNER, start_new_session=True
            )
        except OSError as error:
            return f"cannot start ssh: {error.strerror}"
        output = bytearray()
        stderr = asyncio.create_task(_keep_end(process, output))
        try:
            fault = await self._converse(process)
        finally:
            code = await _end(process)
            await asyncio.wait((stderr,), timeout=ENDING_S)
            stderr.cancel()
        return fault or why_ended(self.host, code, bytes(output))

    async def _converse(self, process: Process) -> str:
        """Return why this side ended the connection; empty if the other side did."""
        assert process.stdin and process.stdout  # noqa: S101 - they are pipes
        try:
            async with asyncio.timeout(GREETING_S):
                await process.stdout.readuntil(MAGIC)
                connection = Connection(process.stdout, process.stdin)
        except TimeoutError:
            return f"{self.host}: subdeck did not answer there within {GREETING_S:g} s"
        except asyncio.LimitOverrunError:
            return f"{self.host}: its login printed more than {MOST_BANNER // 1024} kB, and subdeck did not answer"
        except (asyncio.IncompleteReadError, OSError):
            return ""
        writing = asyncio.create_task(connection.write())
        try:
            hello = await connection.receive_hello(AgentHello)
            connection.say_hello(CarrierHello(slots=self._slots))
            self._join(connection, hello)
            while True:
                message = await connection.receive()
                answer = self._waiting.get(message.id)
                if message.word == ANSWER and answer is not None and not answer.done():
                    answer.set_result(message.content)
                    connection.note_use()
                else:
                    connection.note_unasked()
        except OtherProtocol as error:
            return f"{self.host}: {other_version(error.protocol, error.subdeck)}"
        except BadFrame as error:
            return f"{self.host}: cannot read its answer ({one_line(str(error), 100)})"
        except TimeoutError:
            return f"{self.host}: subdeck does not answer there"
        except (OSError, EOFError):
            return ""
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await writing

    def _join(self, connection: Connection, hello: AgentHello) -> None:
        self._connection = connection
        self.link = Link(self.host, hello.host, hello.slots or self._slots, hello.labels)
        self.fault = ""
        self._changed()

    def _let_go(self, fault: str) -> None:
        was_there = self.link is not None
        self._connection, self.link, self.fault = None, None, fault
        for answer in list(self._waiting.values()):
            if not answer.done():
                answer.set_exception(OutOfReach(fault))
        if was_there:
            self._changed()


async def _keep_end(process: Process, output: bytearray) -> None:
    """Keep the last stderr output of ssh and the agent."""
    assert process.stderr  # noqa: S101 - it is a pipe
    while block := await process.stderr.read(4096):
        output += block
        del output[:-MOST_STDERR]


async def _end(process: Process) -> int:
    """Stop ssh if it is running; return its exit code. asyncio reports an exit only after the pipes are closed, and
    other processes may hold them open.
    """
    assert process.stdin and process.stdout  # noqa: S101 - they are pipes
    process.stdin.close()
    dropping = asyncio.create_task(_drop(process.stdout))
    ended = asyncio.create_task(process.wait())
    try:
        for end in (process.kill, lambda: None):
            # asyncio.timeout has no effect in a task that is being cancelled on early versions of Python 3.11
            await asyncio.wait((ended,), timeout=ENDING_S)
            if ended.done():
                return ended.result()
            with suppress(ProcessLookupError):
                end()
        return process.returncode if process.returncode is not None else -signal.SIGKILL
    finally:
        dropping.cancel()
        ended.cancel()


async def _drop(stream: asyncio.StreamReader) -> None:
    while await stream.read(MOST_BANNER):
        continue


# --- the program ssh -------------------------------------------------------------------------------------------------

REMOTE = ("subdeck", "hosts", "agent")
"""The command that the host's shell runs; nothing else is ever appended."""
OPTIONS = (
    "-T",  # no terminal
    "-a",  # no agent forwarding
    "-x",  # no X11
    *("-o", "BatchMode=yes"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=2"),
    *("-o", "ControlMaster=no"),  # a background master would keep the pipes open
    *("-o", "LogLevel=INFO"),  # quieter levels hide why a connection ended
)
NOT_FOUND = 127
"""Exit code of a shell that cannot find a program."""
OWN_FAILURE = 255
"""Exit code of ssh's own failures."""
_MOST = 300
"""Most characters shown of the other side's output."""


def command(host: str) -> tuple[str, ...]:
    """Return the command that connects to a host, by its name in ssh's configuration."""
    return ("ssh", *OPTIONS, "--", host, *REMOTE)


_TOO_OLD = ('unknown command "hosts"', 'no command is called "hosts"', "No such command")
"""Output of subdeck versions too old to serve as a host."""


def why_ended(host: str, code: int, stderr: bytes) -> str:
    """Return why a connection failed or ended."""
    lines = [one_line(line, _MOST) for line in stderr.decode("utf-8", "replace").splitlines()]
    error_lines = [line for line in lines if line]
    if code == OWN_FAILURE:
        return _of_ssh(host, error_lines[-1] if error_lines else "")
    if code == NOT_FOUND:
        return f"{host}: subdeck is not installed there, or not on the PATH of ssh commands (ssh {host} subdeck)"
    if any(text in line for line in error_lines for text in _TOO_OLD):
        return f"{host}: subdeck is too old there to serve as a host; install the same version on both machines"
    if error_lines:
        return _of_agent(host, error_lines)
    return f"{host}: its subdeck process ended" + (f" with exit code {code}" if code else "")


def _of_ssh(host: str, line: str) -> str:
    name = host.rpartition("@")[2]
    if "Host key verification failed" in line:
        return f"{host}: its host key is unknown or has changed; run `ssh {host}` to check it"
    if not line:
        return f"{host}: ssh lost the connection"
    line = line.removeprefix("ssh: ")
    return line if name in line else f"{host}: {line}"


def _of_agent(host: str, lines: Sequence[str]) -> str:
    """Join a subdeck command's error into one line: what is wrong, then where and what to do."""
    starts = [number for number, line in enumerate(lines) if line.startswith("subdeck: ")]
    words = lines[starts[-1] :] if starts else lines[-1:]
    parts = [line.removeprefix("subdeck: ").removeprefix("where: ").removeprefix("hint: ") for line in words]
    return one_line(f"{host}: {'; '.join(parts)}", _MOST)
