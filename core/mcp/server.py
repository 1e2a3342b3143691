"""A server for one client over stdin and stdout, until the client exits: the four tools, and presets as prompts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from ..errors import SubdeckError
from ..text.plain import one_line, plain
from ._connection import LINE_LIMIT, Call, Calls, Inbox, Outbox
from ._protocol import (
    BATCH_VERSIONS,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    CallParams,
    CancelledParams,
    Fields,
    InitializeParams,
    ListenParams,
    ListParams,
    Malformed,
    Message,
    PromptParams,
    ProtocolError,
    Wanted,
    answer,
    decoded,
    discovery,
    enveloped,
    fresh,
    handshake,
    message,
    notification,
    subscription,
)

if TYPE_CHECKING:
    from ..delegation.results import CallResult
    from ..engine import Engine
    from ._lists import Lists


class Canceller(Protocol):
    """Ends the server from outside, and calls `read` when there is input."""

    def listen(self, read: Callable[[], bool], descriptor: int) -> None: ...
    def wait(self) -> None: ...


class Batch:
    """Requests from one line, answered in one line."""

    def __init__(self, size: int, send: Callable[[list[Fields]], None]) -> None:
        self._open = size
        self._send = send
        self._answers: list[Fields] = []
        self._change = threading.Lock()

    def take(self, frame: Fields | None) -> None:
        """Handle the answer to one of its messages, None for a message without an answer."""
        with self._change:
            self._open -= 1
            if frame is not None:
                self._answers.append(frame)
            is_whole = not self._open and bool(self._answers)
        if is_whole:
            self._send(self._answers)


def serve(session: str, stdin: int, stdout: int, canceller: Canceller) -> None:
    """Serve one client until its input ends or `canceller` is set; then cancel the running calls.

    Remaining output is still written while the client reads.
    """
    outbox = Outbox(stdout)
    server = Server(session, outbox)
    inbox = Inbox(stdin)

    def take() -> bool:
        for line in inbox.read():
            server.take(line)
        return not inbox.has_ended

    canceller.listen(take, stdin)
    canceller.wait()
    server.close()
    outbox.flush()


def open_engine(session: str, cwd: str | None = None) -> Engine:
    """Open a directory's project, by default the current one. Raises SubdeckError."""
    from ..engine import Engine
    from ..run.model import LauncherKind

    return Engine.open(cwd, session=session, kind=LauncherKind.MCP)


class Server:
    """Answers the client's messages, all passed in by one thread."""

    def __init__(self, session: str, outbox: Outbox, cwd: str | None = None) -> None:
        self._session = session
        self._outbox = outbox
        self._cwd = cwd
        self._opening = threading.RLock()
        """Held while the engine is opened and the lists are created."""
        self._opened: Engine | None = None
        self._calls = Calls()
        self._made_lists: Lists | None = None
        self._client = ""
        """The client's name from the handshake."""
        self._version: str | None = None
        """The version that the handshake chose; None before a handshake."""
        self._listening: dict[Call, Wanted] = {}
        """Open subscriptions, which replace unrequested notifications in the later versions."""
        self._telling = threading.Lock()
        """Held while subscriptions change or are notified."""

    def take(self, line: bytes | None) -> None:
        """Handle a line; longer work runs elsewhere."""
        try:
            if line is None:
                raise Malformed(PARSE_ERROR, f"a line has more than {LINE_LIMIT} bytes")
            if not line.strip():
                return
            frame = decoded(line)
            if isinstance(frame, list):
                self._take_batch(cast("list[object]", frame))
            else:
                self._take_frame(frame, self._send)
        except Malformed as error:
            self._outbox.send(answer(error.id, error=error.error))

    def close(self) -> None:
        """Cancel the running calls, and end the subscriptions properly."""
        self._calls.cancel_all()
        if self._made_lists:
            self._made_lists.close()
        with self._telling:
            for call in self._listening:
                call.settle(result=subscription(call.id))

    def _engine(self) -> Engine:
        """Open the engine on first use, because it would delay the answer to the handshake.

        Raises SubdeckError while it cannot be opened, for example because of the settings.
        """
        with self._opening:
            self._opened = self._opened or open_engine(self._session, self._cwd)
            return self._opened

    def _lists(self) -> Lists:
        """Return the lists. Raises SubdeckError if the engine cannot open."""
        from ._lists import Lists

        with self._opening:
            self._made_lists = self._made_lists or Lists(self._engine(), self._tell)
            return self._made_lists

    def _send(self, frame: Fields | None) -> None:
        if frame is not None:
            self._outbox.send(frame)

    def _take_batch(self, frames: Sequence[object]) -> None:
        """Handle each message of a batch. Raises Malformed if it is empty or unsupported."""
        if self._version not in BATCH_VERSIONS:
            raise Malformed(INVALID_REQUEST, "a line holds one message; this version of the protocol has no batches")
        if not frames:
            raise Malformed(INVALID_REQUEST, "the batch is empty")
        batch = Batch(len(frames), self._outbox.send)
        for frame in frames:
            try:
                self._take_frame(frame, batch.take)
            except Malformed as error:
                batch.take(answer(error.id, error=error.error))

    def _take_frame(self, frame: object, send: Callable[[Fields | None], None]) -> None:
        """Handle one message; `send` gets its answer, None if there is none. Raises Malformed."""
        asked = message(frame)
        if asked is None or asked.id is None:
            if asked is not None and asked.method == "notifications/cancelled":
                self._cancel(asked)
            send(None)
            return
        request_id, is_enveloped = asked.id, asked.is_enveloped

        def reply(result: Fields | None, error: Fields | None) -> None:
            if result is None and error is None:
                send(None)
            else:
                shaped = enveloped(result) if result is not None and is_enveloped else result
                send(answer(request_id, result=shaped, error=error))

        call = Call(request_id, reply)
        try:
            self._answer(asked, call)
        except ProtocolError as error:
            call.settle(error=error.error)
        except Exception as error:  # later requests still have to be read
            call.fail(error)

    def _answer(self, asked: Message, call: Call) -> None:
        """Answer a request, or start its work. Raises ProtocolError."""
        if asked.is_enveloped:
            asked.check_envelope()
        elif asked.method == "initialize":
            self._version, result = handshake(asked.of(InitializeParams).protocol_version)
            self._client = asked.client
            return call.settle(result=result)
        elif asked.method == "ping":
            return call.settle(result={})
        match asked.method:
            case "server/discover" if asked.is_enveloped:
                call.settle(result=discovery())
            case "subscriptions/listen" if asked.is_enveloped:
                self._listen(call, asked.of(ListenParams).notifications)
            case "tools/list" | "prompts/list" | "prompts/get" | "tools/call":
                if not asked.is_enveloped and self._version is None:
                    hint = "begin with initialize, or set the protocol version in _meta"
                    raise ProtocolError(INVALID_PARAMS, f"no handshake: {hint}")
                self._calls.start(call, lambda call: self._work(asked, call))
            case _:
                raise ProtocolError(METHOD_NOT_FOUND, f"unknown method {one_line(asked.method, 80)}")
        return None

    def _cancel(self, asked: Message) -> None:
        try:
            request_id = asked.of(CancelledParams).request_id
        except ProtocolError:
            return  # a notification gets no answer
        self._calls.drop(request_id)
        with self._telling:
            self._listening = {call: wanted for call, wanted in self._listening.items() if call.id != request_id}

    def _listen(self, call: Call, wanted: Wanted) -> None:
        with self._telling:
            acknowledged = {"notifications": msgspec.to_builtins(wanted), **subscription(call.id)}
            self._outbox.send(notification("notifications/subscriptions/acknowledged", acknowledged))
            self._listening[call] = wanted

    def _tell(self, name: str) -> None:
        """Notify the client that a list has changed."""
        method = f"notifications/{name}/list_changed"
        if self._version is not None:
            self._outbox.send(notification(method))
        with self._telling:
            for call, wanted in self._listening.items():
                if wanted.tools_list_changed if name == "tools" else wanted.prompts_list_changed:
                    self._outbox.send(notification(method, subscription(call.id)))

    def _work(self, asked: Message, call: Call) -> Fields:
        """Return the result of a request. Raises ProtocolError."""
        match asked.method:
            case "tools/call":
                return self._call_tool(asked, call)
            case "prompts/get":
                params = asked.of(PromptParams)
                try:
                    return self._lists().prompt(params.name, params.arguments or {}, asked.client or self._client)
                except SubdeckError as error:
                    raise ProtocolError(INVALID_PARAMS, str(error)) from error
            case _:
                if asked.of(ListParams).cursor:
                    raise ProtocolError(INVALID_PARAMS, "unknown page: the list has only one")
                name = asked.method.partition("/")[0]
                try:
                    content = self._lists().tools() if name == "tools" else self._lists().prompts()
                except SubdeckError as error:
                    raise ProtocolError(INTERNAL_ERROR, str(error)) from error
                return fresh({name: content}) if asked.is_enveloped else {name: content}

    def _call_tool(self, asked: Message, call: Call) -> Fields:
        """Call a tool and send progress, the last one before the result. Raises ProtocolError."""
        from ..delegation.call import call_tool
        from ..delegation.parent import Parent
        from ..delegation.results import rejection, tool_error
        from ..delegation.schema import BACKGROUND, NAMES, STATUS
        from ..paths import is_child
        from ..run.model import LauncherKind
        from ._results import brief, cut_alike, limit_of

        params = asked.of(CallParams)
        if params.name not in NAMES or is_child():
            raise ProtocolError(INVALID_PARAMS, f"unknown tool {one_line(params.name, 80)}")

        def write_whole(run_id: str, answer: str) -> str:
            return self._engine().write_answer(run_id, answer)

        def shown(result: CallResult) -> Fields:
            """Return text for users, and structured content, which Claude Code and Codex show to the model."""
            limit, with_handles = limit_of(asked.client or self._client), params.name in (BACKGROUND, STATUS)
            structured = brief(result.structured, limit, write_whole, with_handles=with_handles)
            return {
                "content": [{"type": "text", "text": plain(cut_alike(result.text, result.structured, structured))}],
                "structuredContent": structured,
                "isError": result.is_error,
            }

        try:
            engine = self._engine()
        except SubdeckError as error:
            return shown(rejection([tool_error(error)]))
        with self._outbox.progress(asked.progress_token) as relay:
            if relay:
                call.on_drop = relay.drop
            result = call_tool(
                engine,
                params.name,
                params.arguments or {},
                parent=Parent(self._session, LauncherKind.MCP),
                progress=relay and (lambda progress: relay.report(plain(progress.text))),
                cancelled=call.cancelled,
            )
        return shown(result)
