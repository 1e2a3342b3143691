"""What is said to an agent while it works: lines on stdin, each with a prompt, a cancellation, or a reply."""

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
    """A client that has every question of the agent answered by whoever writes the lines."""

    def __init__(self) -> None:
        self._came: list[tuple[str, str]] = []
        """Questions that came and are not being answered yet: their ids, and what tells one from another."""
        self._open: dict[str, Future[Any]] = {}
        self._is_alone = False
        """Whether nobody is there any more who could answer."""

    def note(self, event: StreamEvent) -> None:
        """Take a message as it came: who answers is not told by which id he was asked."""
        message = event.message
        if event.direction is StreamDirection.INCOMING and message.get("method") in ASKS:
            params: Any = message.get("params") or {}
            call: Any = params.get("toolCall") or {}
            about: Any = call.get("toolCallId") or params.get("message")
            self._came.append((json.dumps(message.get("id")), about))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        """Nothing: the line went to stdout as it came."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        """Wait for the option that is chosen; None stands for none of them."""
        option = await self._answered(tool_call.tool_call_id)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> dict[str, Any]:
        """Wait for what is filled into a form."""
        content = await self._answered(message)
        return {"action": "decline"} if content is None else {"action": "accept", "content": content}

    async def _answered(self, about: str) -> Any:
        asked = next(asked for asked in self._came if asked[1] == about)
        self._came.remove(asked)
        if self._is_alone:
            return None
        self._open[asked[0]] = chosen = asyncio.get_running_loop().create_future()
        return await chosen

    def answer(self, number: object, answer: Any) -> None:
        """Answer a question by its id: with an option, or what is filled in; None refuses."""
        chosen = self._open.pop(json.dumps(number), None)
        if chosen and not chosen.done():
            chosen.set_result(answer)

    def leave(self) -> None:
        """Answer nothing any more: whoever did so is gone."""
        self._is_alone = True
        self.withdraw()

    def withdraw(self) -> None:
        """Answer all that is open as the protocol wants it when a turn is cancelled."""
        for chosen in self._open.values():
            if not chosen.done():
                chosen.set_result(None)
        self._open.clear()


class Dialogue:
    """One session, prompt after prompt, until stdin is closed."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._prompting: asyncio.Task[None] | None = None
        self._sent = asyncio.Event()
        """Whether the agent has the prompt, so that it can be told to cancel it."""
        self._fault: Exception | None = None
        self._leaving = asyncio.Event()
        self._cancelling: asyncio.Task[None] | None = None
        """Held, or it would be collected before it has run."""

    def note(self, event: StreamEvent) -> None:
        if event.direction is StreamDirection.OUTGOING and event.message.get("method") == "session/prompt":
            self._sent.set()

    async def hold(self, connection: ClientSideConnection, session_id: str, gone: Future[None], begins: bytes) -> None:
        """Say what stdin says until that is closed, and wait for the last answer. It `begins` so.

        Raises what the last prompt raised, and ConnectionError when the agent is `gone`.
        """
        said = StreamReader(limit=LARGEST_LINE)
        said.feed_data(begins)
        await asyncio.get_running_loop().connect_read_pipe(lambda: StreamReaderProtocol(said), sys.stdin)
        leaving = asyncio.create_task(self._leaving.wait())
        try:
            while True:
                reading = asyncio.create_task(said.readline())
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
        """End the turn, and then the session, because somebody wants this program to end."""
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
