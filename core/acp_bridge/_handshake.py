"""The first requests to an agent, without the SDK, before that is loaded.

All output goes to stdout; lines that don't answer a request made here are passed to the SDK later.
"""

from __future__ import annotations

import json
import os
from subprocess import TimeoutExpired

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from subprocess import Popen
    from typing import Any

PROTOCOL = 1
CLIENT = {"name": "subdeck", "version": "1"}
LOADS = "loadSession"
"""The agent's capability to continue an earlier session."""
REOPENED = b'{"bridge":"reopened"}\n'
CHUNK = 64 * 1024
PROMPT = "session/prompt"
PROMPT_ID = 0
"""The SDK's id for its first request; the SDK handles the answer."""
_FIRST_ID = 1_000_000
"""For requests that are answered here."""
PATIENCE_S = 3.0
"""Seconds an agent may take to exit after its stdin closes, and again after SIGTERM."""


class Refused(Exception):
    """The agent answered with an error, whose text is the message."""


def write_out(data: bytes) -> None:
    """Write all data to stdout."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


class Handshake:
    """Opens or continues a session, and begins its first turn."""

    def __init__(self, agent: Popen[bytes]) -> None:
        """Connect to an agent that was just started."""
        stdin: Any = agent.stdin
        stdout: Any = agent.stdout
        self._stdin, self._stdout = stdin.fileno(), stdout.fileno()
        self._asked = 0
        self._output = b""
        """Output read but not processed."""
        self._others = b""
        self.session: dict[str, Any] = {}
        """The agent's answer, with the id of the session."""
        self.is_prompted = False
        """Whether the first turn has begun."""
        self.is_reopened = False
        """Whether a new session replaces the continued one."""

    @property
    def others(self) -> bytes:
        """Lines that answered no request made here, and the output after the last answer."""
        return self._others + self._output

    def begin(self, servers: list[Any], resume: str, *, fills_forms: bool, reopens: bool = False) -> None:
        """Open a session. `servers` are MCP servers, as in the protocol; `resume` is the id of the session to continue,
        empty for a new one; `fills_forms`: a user can fill in forms; `reopens`: replace the continued session by a new
        one.

        Raises Refused, and ConnectionError if the agent has exited.
        """
        capabilities: dict[str, Any] = {"elicitation": {"form": {}}} if fills_forms else {}
        initialized = self.ask(
            "initialize", protocolVersion=PROTOCOL, clientCapabilities=capabilities, clientInfo=CLIENT
        )
        params = {"cwd": os.getcwd(), "mcpServers": servers}
        self.is_reopened = bool(resume) and reopens
        if self.is_reopened:
            write_out(REOPENED)
        if not resume or self.is_reopened:
            self.session = self.ask("session/new", **params)
        elif members(initialized.get("agentCapabilities")).get(LOADS) is True:
            continued = {"sessionId": resume}
            self.session = self.ask("session/load", **continued, **params) | continued
        if not isinstance(self.session.get("sessionId"), str):
            raise Refused(
                "this agent cannot continue an earlier session" if resume else "the agent returned no session"
            )

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the agent's answer. Raises Refused, and ConnectionError if the agent has exited."""
        self._asked += 1
        number = _FIRST_ID + self._asked
        self._tell(number, method, params, params)
        while True:
            line = self._line()
            answer = _mapping(line)
            if answer.get("id") != number or "method" in answer:
                self._others += line
            elif "error" in answer:
                raise Refused(words_of(members(answer["error"])) or method)
            else:
                return members(answer.get("result"))

    def prompt(self, texts: list[str]) -> None:
        """Begin a turn; the SDK waits for its end."""
        session = {"sessionId": self.session["sessionId"]}
        content = [{"type": "text", "text": text} for text in texts]
        # Shown without the task's text, which is in a separate file.
        self._tell(PROMPT_ID, PROMPT, {**session, "prompt": content}, session)
        self.is_prompted = True

    def _tell(self, number: int, method: str, params: dict[str, Any], shown: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        write_out(b'{"sent":%b}\n' % _encoded({**message, "params": shown}))
        view = memoryview(_encoded({**message, "params": params}) + b"\n")
        while view:
            view = view[os.write(self._stdin, view) :]

    def _line(self) -> bytes:
        while (end := self._output.find(b"\n")) < 0:
            data = os.read(self._stdout, CHUNK)
            if not data:
                raise ConnectionError
            write_out(data)
            self._output += data
        line, self._output = self._output[: end + 1], self._output[end + 1 :]
        return line


def words_of(error: dict[str, Any]) -> str:
    """Return an error's message with the details that some agents add."""
    message, data = error.get("message"), error.get("data")
    details = members(data).get("details") or members(data).get("message") or data
    words = [text for text in (message, details) if isinstance(text, str) and text.strip()]
    return words[0] if len(words) == 2 and words[1] in words[0] else ": ".join(words)


def _mapping(line: bytes) -> dict[str, Any]:
    """Parse a message; empty if the line is not one."""
    try:
        return members(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def members(value: Any) -> dict[str, Any]:
    """Return an object; empty for any other value."""
    return {**value} if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a list; empty for any other value."""
    return [*value] if isinstance(value, list) else []


def _encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def end(agent: Popen[bytes]) -> None:
    """Close the agent's stdin; end the agent if it does not exit."""
    if agent.stdin:
        try:
            agent.stdin.close()
        except OSError:
            pass  # already closed by the event loop
    for force in (agent.terminate, agent.kill):
        try:
            agent.wait(PATIENCE_S)
        except TimeoutExpired:
            force()
        else:
            return
    agent.wait()
