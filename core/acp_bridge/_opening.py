"""The first words to an agent, by hand: what it is told before the SDK is loaded.

Its answers go to stdout as all that it says; what answers nothing that was asked here is then given to the SDK.
"""

from __future__ import annotations

import json
import os
from subprocess import TimeoutExpired

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from subprocess import Popen
    from typing import Any

PROTOCOL = 1
CLIENT = {"name": "subdeck", "version": "1"}
LOADS = "loadSession"
"""The capability of an agent to go on with an earlier session."""
REOPENED = b'{"bridge":"reopened"}\n'
CHUNK = 64 * 1024
PROMPT = "session/prompt"
PROMPT_ID = 0
"""What the SDK, which takes the answer, gives its first request."""
_FIRST_ID = 1_000_000
"""Of the requests that are answered here."""
PATIENCE_S = 3.0
"""How long an agent gets to end by itself when its stdin is closed, and then when it is told to."""


class Refused(Exception):
    """The agent answered with an error; the message is the agent's."""


def write_out(data: bytes) -> None:
    """Write to stdout, all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


class Opening:
    """Begins a session, or goes on with one, and its first turn."""

    def __init__(self, agent: Popen[bytes]) -> None:
        """Talk to an agent that was just started."""
        stdin: Any = agent.stdin
        stdout: Any = agent.stdout
        self._stdin, self._stdout = stdin.fileno(), stdout.fileno()
        self._asked = 0
        self._said = b""
        """What is read and not looked at yet."""
        self._others = b""
        self.session: dict[str, Any] = {}
        """What the agent answered, with the id of the session."""
        self.is_prompted = False
        """Whether its first turn has begun."""
        self.is_reopened = False
        """Whether a new session stands for the one that goes on."""

    @property
    def others(self) -> bytes:
        """Lines that answered nothing that was asked here, and what followed the last answer."""
        return self._others + self._said

    def begin(self, servers: list[Any], resume: str, *, fills_forms: bool, reopens: bool = False) -> None:
        """Open a session. `servers` are MCP servers, as in the protocol; `resume` is the id of the session that goes
        on, empty for a new one; `fills_forms` says whether there is somebody to do so; `reopens` whether a new session
        is to stand for the one that goes on.

        Raises Refused, ConnectionError where the agent has gone.
        """
        capabilities: dict[str, Any] = {"elicitation": {"form": {}}} if fills_forms else {}
        about = self.ask("initialize", protocolVersion=PROTOCOL, clientCapabilities=capabilities, clientInfo=CLIENT)
        place = {"cwd": os.getcwd(), "mcpServers": servers}
        self.is_reopened = bool(resume) and reopens
        if self.is_reopened:
            write_out(REOPENED)
        if not resume or self.is_reopened:
            self.session = self.ask("session/new", **place)
        elif members(about.get("agentCapabilities")).get(LOADS) is True:
            known = {"sessionId": resume}
            self.session = self.ask("session/load", **known, **place) | known
        if not isinstance(self.session.get("sessionId"), str):
            raise Refused(
                "this agent cannot continue an earlier session" if resume else "the agent returned no session"
            )

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the answer of the agent. Raises Refused, ConnectionError where it has gone."""
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
        """Begin a turn, and leave it to the SDK to wait for its end."""
        session = {"sessionId": self.session["sessionId"]}
        content = [{"type": "text", "text": text} for text in texts]
        # Without the text of the task, which has a file of its own.
        self._tell(PROMPT_ID, PROMPT, {**session, "prompt": content}, session)
        self.is_prompted = True

    def _tell(self, number: int, method: str, params: dict[str, Any], shown: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        write_out(b'{"sent":%b}\n' % _encoded({**message, "params": shown}))
        view = memoryview(_encoded({**message, "params": params}) + b"\n")
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


def words_of(error: dict[str, Any]) -> str:
    """Return the message of an error with the details that some agents put beside it."""
    message, data = error.get("message"), error.get("data")
    details = members(data).get("details") or members(data).get("message") or data
    words = [text for text in (message, details) if isinstance(text, str) and text.strip()]
    return words[0] if len(words) == 2 and words[1] in words[0] else ": ".join(words)


def _mapping(line: bytes) -> dict[str, Any]:
    """Read a message; an empty one where the line is none."""
    try:
        return members(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def members(value: Any) -> dict[str, Any]:
    """Return an object; an empty one where the value is none."""
    return {**value} if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """Return a list; an empty one where the value is none."""
    return [*value] if isinstance(value, list) else []


def _encoded(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def end(agent: Popen[bytes]) -> None:
    """Close the agent's stdin, and end it where that is not enough."""
    if agent.stdin:
        try:
            agent.stdin.close()
        except OSError:
            pass  # the event loop has closed it
    for force in (agent.terminate, agent.kill):
        try:
            agent.wait(PATIENCE_S)
        except TimeoutExpired:
            force()
        else:
            return
    agent.wait()
