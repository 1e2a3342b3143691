"""One task, put to one agent: start, session, options, prompt, end."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from asyncio.streams import FlowControlMixin
from collections.abc import Callable
from dataclasses import dataclass
from subprocess import Popen, TimeoutExpired
from typing import Any

from acp import RequestError
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    NewSessionResponse,
    PermissionOption,
    RequestPermissionResponse,
    TextContentBlock,
)

from .dialogue import Asking, Dialogue
from .opening import CHUNK, Opening, Refused, write_out
from .options import OptionError, Options

LARGEST_LINE = 64 * 1024 * 1024
PATIENCE_S = 3.0
"""How long an agent gets to end by itself when its stdin is closed, and then when it is told to."""


@dataclass(frozen=True)
class Task:
    """What is asked of an agent. Empty texts stand for what the agent does by itself."""

    prompt: str | None
    """None to end once the session has begun."""
    before: str
    """A file whose text goes before the prompt: the protocol knows no other place for it."""
    model: str
    thinking: str
    mode: str
    allowed: frozenset[str]
    """The kinds of tool calls that are allowed when the agent asks."""
    allowed_tools: frozenset[str]
    """The names of tools of MCP servers that are allowed likewise, each as an agent may call it."""
    talks: bool = False
    """Whether what is to be done, and what is allowed, comes in lines on stdin; the prompt is None then."""

    async def run(self, agent: Popen[bytes], opening: Opening) -> int:
        """Return the exit code: 0 when the agent has answered, be it with an error that stands in its messages.

        Raises OptionError for what the agent does not offer.
        """
        try:
            await asyncio.to_thread(opening.wait)
            return await self._put(agent, opening)
        except (Refused, RequestError) as error:
            print(f"Error: {error}", file=sys.stderr)
        except ConnectionError:
            await asyncio.to_thread(agent.wait)
            print(f"Error: {_program_of(agent)} ended with exit code {agent.returncode}", file=sys.stderr)
        finally:
            await _end(agent)
        return 1

    async def _put(self, agent: Popen[bytes], opening: Opening) -> int:
        reader = StreamReader(limit=LARGEST_LINE)
        reader.feed_data(opening.others)
        passing = asyncio.create_task(_pass_on(agent, reader))
        writer = await _writer_to(agent)
        # It lacks what no agent may ask of it: files and terminals.
        client: Any = Client(self.allowed, self.allowed_tools)
        observers: list[Callable[[StreamEvent], None]] = [_note_sent]
        dialogue: Dialogue | None = None
        if self.talks:
            client = Asking()
            dialogue = Dialogue(client, self._text)
            observers += [client.note, dialogue.note]
        connection = ClientSideConnection(client, writer, reader, use_unstable_protocol=self.talks, observers=observers)
        try:
            session_id = await self._choose(connection, opening)
            _on_signals(dialogue.leave if dialogue else _cancel, connection, session_id)
            if dialogue:
                await dialogue.hold(connection, session_id, asyncio.shield(passing), write_out)
            elif self.prompt is not None:
                await connection.prompt(session_id, [TextContentBlock(type="text", text=self._text(self.prompt))])
        finally:
            writer.close()
            await _end(agent)
            await passing
            await connection.close()
        return 0

    async def _choose(self, connection: ClientSideConnection, opening: Opening) -> str:
        """Choose what is wanted of the options of the session; return its id."""
        if not opening.session:
            raise OptionError("this agent cannot go on with an earlier session")
        session = NewSessionResponse.model_validate(opening.session)
        options, session_id = Options(session), session.session_id
        for category, wanted in (("mode", self.mode), ("model", self.model), ("thought_level", self.thinking)):
            if wanted:
                await options.choose(connection, session_id, category, wanted)
        return session_id

    def _text(self, prompt: str) -> str:
        if not self.before:
            return prompt
        with open(self.before, encoding="utf-8", errors="replace") as file:
            return f"{file.read().strip()}\n\n{prompt}"


class Client:
    """What an agent may ask of its client: leave, and nothing else. It works on the disk itself."""

    def __init__(self, allowed: frozenset[str], allowed_tools: frozenset[str] = frozenset()) -> None:
        self._allowed = allowed
        self._allowed_tools = allowed_tools

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Nothing: the line went to stdout as it came."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Allow a call of an allowed kind or tool once, refuse any other once; nothing is decided for longer."""
        is_allowed = tool_call.kind in self._allowed or called_tool(tool_call) in self._allowed_tools
        wanted = "allow_once" if is_allowed else "reject_once"
        for option in options:
            if option.kind == wanted:
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


def called_tool(call: Any) -> str:
    """Return the name of a called tool of an MCP server, as the agent tells it; empty for any other call.

    Commands have titles, too, which the model writes: a call with a kind of its own, or with other arguments than a
    server's, is not taken for one by its title.
    """
    arguments: dict[str, Any] = {**call.raw_input} if isinstance(call.raw_input, dict) else {}
    if arguments.keys() == {"server", "tool", "arguments"}:
        return f"mcp.{arguments['server']}.{arguments['tool']}"
    return call.title or "" if call.kind in (None, "other") and "command" not in arguments else ""


def _program_of(agent: Popen[bytes]) -> str:
    command: Any = agent.args
    return str(command[0])


async def _writer_to(agent: Popen[bytes]) -> StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(FlowControlMixin, agent.stdin)
    return StreamWriter(transport, protocol, None, loop)


async def _pass_on(agent: Popen[bytes], reader: StreamReader) -> None:
    """Write what the agent says to stdout, and give it to the connection."""
    said = StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: StreamReaderProtocol(said), agent.stdout)
    while data := await said.read(CHUNK):
        write_out(data)
        reader.feed_data(data)
    reader.feed_eof()


def _note_sent(event: StreamEvent) -> None:
    """Write down what the agent is asked and answered, without the text of the task, which has a file of its own."""
    if event.direction is StreamDirection.OUTGOING:
        message = event.message
        if message.get("method") == "session/prompt":
            message = {**message, "params": {"sessionId": message["params"]["sessionId"]}}
        write_out(json.dumps({"sent": message}, separators=(",", ":")).encode() + b"\n")


def _on_signals(
    end: Callable[[ClientSideConnection, str], None], connection: ClientSideConnection, session_id: str
) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end, connection, session_id)


def _cancel(connection: ClientSideConnection, session_id: str) -> None:
    """Ask the agent to end its turn; it says so in the answer to the prompt."""
    _cancelling.add(asyncio.ensure_future(connection.cancel(session_id)))


_cancelling: set[asyncio.Future[None]] = set()
"""Held, or they would be collected before they have run."""


async def _end(agent: Popen[bytes]) -> None:
    """Close the agent's stdin, and end it where that is not enough."""
    if agent.stdin:
        agent.stdin.close()
    for end in (agent.terminate, agent.kill):
        try:
            await asyncio.to_thread(agent.wait, PATIENCE_S)
        except TimeoutExpired:
            end()
        else:
            return
    await asyncio.to_thread(agent.wait)
