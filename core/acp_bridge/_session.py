"""Continue a session in the SDK after `Handshake` has begun it: its turns, the agent's requests, its end."""

from __future__ import annotations

import asyncio
import json
import signal
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter
from asyncio.streams import FlowControlMixin
from collections.abc import Callable
from functools import partial
from subprocess import Popen
from typing import Any

from acp import RequestError
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse

from ._dialogue import Asking, Dialogue
from ._handshake import CHUNK, PROMPT, PROMPT_ID, Handshake, Refused, end, words_of, write_out
from ._session_options import Wishes

LARGEST_LINE = 64 * 1024 * 1024


async def go_on(wishes: Wishes, agent: Popen[bytes], opening: Handshake, first_input: bytes) -> None:
    """Wait for the end of the running turn, or hold a dialogue if the run is interactive; `first_input` is stdin's
    input so far.

    Raises Refused with the agent's message, and ConnectionError if the agent has exited.
    """
    reader = StreamReader(limit=LARGEST_LINE)
    reader.feed_data(opening.others)
    writer = await _writer_to(agent, is_prompted=opening.is_prompted)
    # It offers no access to files or terminals.
    client: Any = Client(wishes.allowed, wishes.allowed_tools)
    observers: list[Callable[[StreamEvent], None]] = [partial(_note_sent, is_prompted=opening.is_prompted)]
    dialogue: Dialogue | None = None
    if wishes.talks:
        client = Asking()
        dialogue = Dialogue(client)
        observers += [client.note, dialogue.note]
    connection = ClientSideConnection(client, writer, reader, use_unstable_protocol=wishes.talks, observers=observers)
    session_id = opening.session["sessionId"]
    _on_signals(dialogue.leave if dialogue else _cancel, connection, session_id)
    passing = asyncio.create_task(_pass_on(agent, reader, writer.has_prompted))
    try:
        if dialogue:
            await dialogue.hold(connection, session_id, asyncio.shield(passing), first_input)
        else:
            await connection.prompt(session_id, [])
    except RequestError as error:
        raise Refused(words_of({"message": str(error), "data": error.data})) from error
    finally:
        writer.has_prompted.set()
        writer.close()
        await asyncio.to_thread(end, agent)
        await passing
        await connection.close()


class Client:
    """Only answers permission requests; the agent accesses the disk itself."""

    def __init__(self, allowed: frozenset[str], allowed_tools: frozenset[str] = frozenset()) -> None:
        self._allowed = allowed
        self._allowed_tools = allowed_tools

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Do nothing: the line already went to stdout."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Allow a call of an allowed kind or tool once; refuse any other once."""
        is_allowed = tool_call.kind in self._allowed or called_tool(tool_call) in self._allowed_tools
        option_kind = "allow_once" if is_allowed else "reject_once"
        for option in options:
            if option.kind == option_kind:
                return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))


def called_tool(call: Any) -> str:
    """Return the name of a call's MCP tool, as the agent reports it; empty for other calls.

    The model writes the title of a command. So a title counts only if the call has no specific kind and no command
    among its arguments.
    """
    arguments: dict[str, Any] = {**call.raw_input} if isinstance(call.raw_input, dict) else {}
    if arguments.keys() == {"server", "tool", "arguments"}:
        return f"mcp.{arguments['server']}.{arguments['tool']}"
    return call.title or "" if call.kind in (None, "other") and "command" not in arguments else ""


class _Writer(StreamWriter):
    """Writes to an agent that may already have its first prompt: drops the SDK's own prompt, which has the same id."""

    has_prompted: asyncio.Event
    """Set once the SDK waits for the prompt's answer, so that it may get it."""

    def begin(self, *, is_prompted: bool) -> None:
        self.has_prompted = asyncio.Event()
        if not is_prompted:
            self.has_prompted.set()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.has_prompted.is_set():
            super().write(data)
            return
        message = json.loads(bytes(data))
        if message.get("method") != PROMPT or message.get("id") != PROMPT_ID:
            raise RuntimeError("the SDK does not begin with the prompt")
        self.has_prompted.set()


async def _writer_to(agent: Popen[bytes], *, is_prompted: bool) -> _Writer:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(FlowControlMixin, agent.stdin)
    writer = _Writer(transport, protocol, None, loop)
    writer.begin(is_prompted=is_prompted)
    return writer


async def _pass_on(agent: Popen[bytes], reader: StreamReader, may_begin: asyncio.Event) -> None:
    """Copy the agent's output to stdout and to the connection."""
    await may_begin.wait()
    output = StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: StreamReaderProtocol(output), agent.stdout)
    while data := await output.read(CHUNK):
        write_out(data)
        reader.feed_data(data)
    reader.feed_eof()


def _note_sent(event: StreamEvent, *, is_prompted: bool) -> None:
    """Log requests and answers to the agent, without the user's texts, which have separate files, and without the first
    prompt, which is already logged.
    """
    if event.direction is StreamDirection.OUTGOING:
        message = event.message
        if message.get("method") == PROMPT:
            if is_prompted and message.get("id") == PROMPT_ID:
                return
            message = {**message, "params": {"sessionId": message["params"]["sessionId"]}}
        write_out(json.dumps({"sent": message}, separators=(",", ":")).encode() + b"\n")


def _on_signals(
    end: Callable[[ClientSideConnection, str], None], connection: ClientSideConnection, session_id: str
) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end, connection, session_id)


def _cancel(connection: ClientSideConnection, session_id: str) -> None:
    """Request the end of the turn; the agent confirms it in the answer to the prompt."""
    _cancelling.add(asyncio.ensure_future(connection.cancel(session_id)))


_cancelling: set[asyncio.Future[None]] = set()
"""References, so that the tasks are not collected early."""
