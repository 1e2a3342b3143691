"""Input for a working agent: lines on stdin, each with a prompt, a cancellation, or a reply."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import Future, StreamReader, StreamReaderProtocol
from typing import Any

from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, TextContentBlock

LARGEST_LINE = 64 * 1024 * 1024
ASKS = frozenset({"session/request_permission", "elicitation/create"})


class Asking:
    """A client that answers the agent's requests with lines from stdin."""

    def __init__(self) -> None:
        self._came: list[tuple[str, str]] = []
        """Requests received but not yet handled: their ids, and a key that identifies each."""
        self._open: dict[str, Future[Any]] = {}
        self._is_alone = False
        """Whether stdin has closed, so that no answers are possible."""

    def note(self, event: StreamEvent) -> None:
        """Record a raw message with its id, which the SDK does not pass to the handlers."""
        message = event.message
        if event.direction is StreamDirection.INCOMING and message.get("method") in ASKS:
            params: Any = message.get("params") or {}
            call: Any = params.get("toolCall") or {}
            subject: Any = call.get("toolCallId") or params.get("message")
            self._came.append((json.dumps(message.get("id")), subject))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Do nothing: the line already went to stdout."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Wait for the chosen option; None cancels the request."""
        option = await self._answered(tool_call.tool_call_id)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> dict[str, Any]:
        """Wait for a form's content."""
        content = await self._answered(message)
        return {"action": "decline"} if content is None else {"action": "accept", "content": content}

    async def _answered(self, subject: str) -> Any:
        asked = next(asked for asked in self._came if asked[1] == subject)
        self._came.remove(asked)
        if self._is_alone:
            return None
        self._open[asked[0]] = chosen = asyncio.get_running_loop().create_future()
        return await chosen

    def answer(self, number: object, answer: Any) -> None:
        """Answer a request by its id: with an option or a form's content; None refuses."""
        chosen = self._open.pop(json.dumps(number), None)
        if chosen and not chosen.done():
            chosen.set_result(answer)

    def leave(self) -> None:
        """Refuse open and future requests: stdin has closed."""
        self._is_alone = True
        self.withdraw()

    def withdraw(self) -> None:
        """Refuse all open requests, as the protocol requires when a turn is cancelled."""
        for chosen in self._open.values():
            if not chosen.done():
                chosen.set_result(None)
        self._open.clear()


class Dialogue:
    """One session, prompt after prompt, until stdin closes."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._prompting: asyncio.Task[None] | None = None
        self._sent = asyncio.Event()
        """Set once the agent has the prompt, so that it can be cancelled."""
        self._fault: Exception | None = None
        self._leaving = asyncio.Event()
        self._cancelling: asyncio.Task[None] | None = None
        """A reference, so that the task is not collected early."""

    def note(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.OUTGOING and event.message.get("method") == "session/prompt":
            self._sent.set()

    async def hold(self, connection: ClientSideConnection, session_id: str, gone: Future[None], begins: bytes) -> None:
        """Process stdin until it closes, and wait for the last answer; `begins` is input already read.

        Raises the last prompt's error, and ConnectionError if the agent is `gone`.
        """
        reader = StreamReader(limit=LARGEST_LINE)
        reader.feed_data(begins)
        await asyncio.get_running_loop().connect_read_pipe(lambda: StreamReaderProtocol(reader), sys.stdin)
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            while True:
                reading = asyncio.create_task(reader.readline())
                await asyncio.wait({reading, leaving, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    reading.cancel()
                    break
                if not (line := reading.result()):
                    break
                await self._take(json.loads(line), connection, session_id)
        finally:
            leaving.cancel()
        self._asking.leave()
        if self._prompting:
            await self._prompting
        if self._fault:
            raise self._fault
        if gone.done():
            raise ConnectionError

    def leave(self, connection: ClientSideConnection, session_id: str) -> None:
        """End the turn and then the session, because of a signal to this program."""
        self._leaving.set()
        self._cancelling = asyncio.create_task(self._cancel(connection, session_id))

    async def _take(self, line: dict[str, Any], connection: ClientSideConnection, session_id: str) -> None:
        match line:
            case {"prompt": [*texts]}:
                if self._prompting:
                    await self._prompting
                self._sent.clear()
                self._prompting = asyncio.create_task(self._prompt(connection, session_id, texts))
            case {"cancel": _}:
                await self._cancel(connection, session_id)
            case {"reply": {"id": number, "answer": answer}}:
                self._asking.answer(number, answer)
            case _:
                print("unknown line on stdin", file=sys.stderr)

    async def _prompt(self, connection: ClientSideConnection, session_id: str, texts: list[str]) -> None:
        self._fault = None
        try:
            await connection.prompt(session_id, [TextContentBlock(type="text", text=text) for text in texts])
        except Exception as error:
            self._fault = error
        finally:
            self._sent.set()

    async def _cancel(self, connection: ClientSideConnection, session_id: str) -> None:
        if self._prompting and not self._prompting.done():
            await self._sent.wait()
            await connection.cancel(session_id)
            self._asking.withdraw()
