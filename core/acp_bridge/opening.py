"""The first words to an agent, by hand: what it is asked before it has a session.

The SDK takes as long to load as an agent to start. Said here, in a thread and before that, an agent opens its session
meanwhile; its answers, and whatever else it said, are then given to the SDK.
"""

from __future__ import annotations

import json
import os
from _thread import allocate_lock, start_new_thread
from typing import Any

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from _thread import LockType
    from subprocess import Popen

PROTOCOL = 1
CLIENT = {"name": "subdeck", "version": "1"}
LOADS = "loadSession"
"""The capability of an agent to go on with an earlier session."""
CHUNK = 64 * 1024
_FIRST_ID = 1_000_000
"""Of the requests here; those of the SDK are counted from 0."""


class Refused(Exception):
    """The agent answered with an error; the message is the agent's."""


def write_out(data: bytes) -> None:
    """Write to stdout, all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


class Opening:
    """Begins a session, or goes on with one; `wait` returns what the agent answered."""

    def __init__(self, agent: Popen[bytes], servers: list[Any], resume: str, *, fills_forms: bool) -> None:
        """Begin to talk to an agent that was just started. `servers` are MCP servers, as in the protocol; `resume` is
        the id of the session that goes on, empty for a new one; `fills_forms` says whether there is somebody to do so.
        """
        stdin: Any = agent.stdin
        stdout: Any = agent.stdout
        self._stdin, self._stdout = stdin.fileno(), stdout.fileno()
        self._servers = servers
        self._resume = resume
        self._capabilities = {"elicitation": {"form": {}}} if fills_forms else {}
        self._asked = 0
        self._said = b""
        """What is read and not looked at yet."""
        self.others = b""
        """Lines that answer nothing that was asked here, and what followed the last answer."""
        self.session: dict[str, Any] = {}
        """What the agent answered, with the id of the session; empty where it cannot go on with one."""
        self._failure: BaseException | None = None
        self._is_open: LockType = allocate_lock()
        self._is_open.acquire()
        start_new_thread(self._open, ())

    def wait(self) -> None:
        """Wait until the session is open. Raises Refused, ConnectionError where the agent has gone."""
        with self._is_open:
            pass
        if self._failure:
            raise self._failure

    def _open(self) -> None:
        try:
            about = self._ask(
                "initialize", protocolVersion=PROTOCOL, clientCapabilities=self._capabilities, clientInfo=CLIENT
            )
            place = {"cwd": os.getcwd(), "mcpServers": self._servers}
            if not self._resume:
                self.session = self._ask("session/new", **place)
            elif _members(about.get("agentCapabilities")).get(LOADS) is True:
                known = {"sessionId": self._resume}
                self.session = self._ask("session/load", **known, **place) | known
            self.others += self._said
        except BaseException as error:
            self._failure = error
        finally:
            self._is_open.release()

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._asked += 1
        number = _FIRST_ID + self._asked
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._tell(message)
        while True:
            line = self._line()
            answer = _mapping(line)
            if answer.get("id") != number or "method" in answer:
                self.others += line
            elif "error" in answer:
                raise Refused(_members(answer["error"]).get("message") or method)
            else:
                return _members(answer.get("result"))

    def _tell(self, message: dict[str, Any]) -> None:
        encoded = json.dumps(message, separators=(",", ":")).encode()
        write_out(b'{"sent":%b}\n' % encoded)
        view = memoryview(encoded + b"\n")
        while view:
            view = view[os.write(self._stdin, view) :]

    def _line(self) -> bytes:
        while (end := self._said.find(b"\n")) < 0:
            data = os.read(self._stdout, CHUNK)
            if not data:
                raise ConnectionError
            write_out(data)
            self._said += data
        line, self._said = self._said[: end + 1], self._said[end + 1 :]
        return line


def _mapping(line: bytes) -> dict[str, Any]:
    """Read a message; an empty one where the line is none."""
    try:
        return _members(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _members(value: Any) -> dict[str, Any]:
    return {**value} if isinstance(value, dict) else {}
