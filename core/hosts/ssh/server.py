"""The host's end: a process that owns a spool and answers all ssh connections until it is idle.

`python -P -E -m subdeck.core.hosts.ssh.server ROOT READY SLOTS [NAME=NUMBER …]`: READY is a descriptor that gets the
error if the server cannot start, and is closed once it can; SLOTS is 0 if not set.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from ... import __version__
from ...errors import SubdeckError
from .._host_agent import HostAgent
from ..protocol import PROTOCOL, Verb
from . import _spool_socket
from ._connection import AgentHello, CarrierHello, Connection, OtherProtocol
from ._frames import ANSWER, CANCEL, MOST_OPEN, BadFrame, Message

IDLE_S = 600.0
"""Seconds that it stays without connections and open runs."""
LOOK_S = 5.0
SLOTS = 4
"""Default until a carrier sends a number."""
_VERBS = frozenset(Verb)


def version_line(version: str = __version__, protocol: int = PROTOCOL) -> bytes:
    """Return the first line of each connection; the local end reads it and does not pass it on."""
    return f"subdeck {version} {protocol}\n".encode()


class AgentServer:
    """Answers carriers for one spool."""

    def __init__(self, root: str, *, slots: int = 0, labels: Mapping[str, float] | None = None) -> None:
        """Without `slots`, use a carrier's number. Raises SpoolBusy, SubdeckError or OSError."""
        self._agent = HostAgent(root, slots=slots or SLOTS, labels=labels or {}, carrier="ssh")
        self._slots = slots
        self._labels = dict(labels or {})
        self._connections: set[asyncio.Task[None]] = set()
        self._busy_at = time.monotonic()
        try:
            self._socket = _spool_socket.listening(root)
        except BaseException:
            self._agent.close()
            raise

    async def run(self, *, idle_s: float = IDLE_S, look_s: float = LOOK_S) -> None:
        """Serve until idle for `idle_s` seconds or cancelled."""
        timer = asyncio.create_task(self._agent.run())
        server = await asyncio.start_unix_server(self._accept, sock=self._socket)
        try:
            while not timer.done() and not self._is_idle(idle_s):
                await asyncio.wait((timer,), timeout=look_s)
        finally:
            server.close()
            tasks = (timer, *self._connections)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._agent.close()
        if not timer.cancelled() and (fault := timer.exception()):
            raise fault

    def _is_idle(self, idle_s: float) -> bool:
        if self._connections or self._agent.has_open_runs:
            self._busy_at = time.monotonic()
        return time.monotonic() - self._busy_at > idle_s

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task  # noqa: S101 - the loop calls this as a task
        self._connections.add(task)
        try:
            if _spool_socket.is_own(writer.get_extra_info("socket")):
                writer.write(version_line())
                await self._serve(Connection(reader, writer))
        except (OSError, EOFError):
            pass  # the connection has ended
        except (BadFrame, OtherProtocol) as error:
            print(f"a connection ended: {error}", file=sys.stderr, flush=True)
        except asyncio.CancelledError:
            pass  # by `run`, which is ending; no other code holds the task
        finally:
            self._connections.discard(task)
            self._busy_at = time.monotonic()
            writer.close()

    async def _serve(self, connection: Connection) -> None:
        """Answer a carrier until it disconnects. Raises what `Connection.receive` does, OtherProtocol."""
        requests: dict[int, asyncio.Task[None]] = {}
        sending = asyncio.create_task(connection.write())
        try:
            connection.say_hello(
                AgentHello(subdeck=__version__, host=self._agent.name, slots=self._slots, labels=self._labels)
            )
            hello = await connection.receive_hello(CarrierHello)
            if hello.slots and not self._slots:
                self._agent.slots = hello.slots
            while True:
                message = await connection.receive()
                if message.word == CANCEL:
                    if message.id in requests:
                        requests[message.id].cancel()
                    else:
                        connection.note_unasked()  # normal if the answer was on its way
                elif message.word not in _VERBS or message.id in requests or len(requests) >= MOST_OPEN:
                    raise BadFrame("cannot answer a request")
                else:
                    connection.note_use()
                    request = asyncio.create_task(self._answer(connection, message))
                    requests[message.id] = request
                    request.add_done_callback(lambda _, number=message.id: requests.pop(number, None))
        finally:
            tasks = (sending, *requests.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, connection: Connection, request: Message) -> None:
        answer = await self._agent.answer(Verb(request.word), request.content)
        connection.send(Message(request.id, ANSWER, answer))


def main() -> int:
    """Serve the spool in the arguments; return the exit code."""
    root, ready, slots, *labels = sys.argv[1:]
    try:
        asyncio.run(_run(root, int(ready), int(slots), _labels(labels)))
    except (SubdeckError, OSError) as error:
        with suppress(OSError):  # closed: it was ready
            os.write(int(ready), str(error).encode())
        print(error, file=sys.stderr)
        return 1
    return 0


async def _run(root: str, ready: int, slots: int, labels: Mapping[str, float]) -> None:
    server = AgentServer(root, slots=slots, labels=labels)
    os.close(ready)
    serving = asyncio.current_task()
    assert serving  # noqa: S101 - a coroutine of `asyncio.run`
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, serving.cancel)
    with suppress(asyncio.CancelledError):
        await server.run()


def _labels(words: list[str]) -> dict[str, float]:
    return {name: float(value) for name, _, value in (word.partition("=") for word in words)}


if __name__ == "__main__":
    sys.exit(main())
