"""MCP without its transport: messages, versions, and answers.

Two generations are served, chosen per request: up to 2025-11-25, a handshake chooses one version for the connection;
from 2026-07-28, each request names its version, without a handshake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from .. import __version__
from ..text.decoder import UNDECODABLE, decode, fit, why
from ..text.visible import escaped_json

T = TypeVar("T")

RequestId = int | str
Fields = dict[str, Any]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
VERSIONS = ("2026-07-28",)
"""Versions without a handshake."""
BATCH_VERSIONS = ("2024-11-05", "2025-03-26")
"""Versions in which a message may be a list of messages; 2025-06-18 removed that."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022

_META = "io.modelcontextprotocol/"
_VERSION = f"{_META}protocolVersion"
_CAPABILITIES = f"{_META}clientCapabilities"
_CLIENT = f"{_META}clientInfo"
_SUBSCRIPTION = f"{_META}subscriptionId"

CLAUDE_CODE = "claude-code"
"""Claude Code's client name."""

SERVER = {"name": "subdeck", "version": __version__}

INSTRUCTIONS = (
    "subdeck runs coding subagents from presets. Call subagent to delegate and wait, "
    "background_agent to delegate and continue, background_agent_status to check those runs, "
    "background_agent_send to send one a message. The user sees every run in subdeck and can "
    "stop it."
)

_ABOUT: Fields = {
    "capabilities": {"tools": {"listChanged": True}, "prompts": {"listChanged": True}},
    "instructions": INSTRUCTIONS,
}


class ProtocolError(Exception):
    """An error that answers a request."""

    def __init__(self, code: int, message: str, data: Fields | None = None) -> None:
        super().__init__(message)
        self.error: Fields = {"code": code, "message": message} | ({"data": data} if data else {})


class Malformed(ProtocolError):
    """The input is not a valid message; `id` is the request's id, None if unknown."""

    def __init__(self, code: int, message: str, id: RequestId | None = None) -> None:  # noqa: A002 - its name there
        super().__init__(code, message)
        self.id = id


class Message(Struct, frozen=True):
    """A request, or a notification if it has no id."""

    id: RequestId | None
    method: str
    params: Fields

    @property
    def is_enveloped(self) -> bool:
        """Whether it names its version itself, as all requests from 2026-07-28 do."""
        meta = self.params.get("_meta")
        return self.method != "initialize" and isinstance(meta, dict) and _VERSION in meta

    @property
    def progress_token(self) -> RequestId | None:
        """The client's token for progress of this request; None if it wants no progress."""
        meta = self.params.get("_meta")
        token = cast("Fields", meta).get("progressToken") if isinstance(meta, dict) else None
        return cast("RequestId", token) if _is_id(token) else None

    @property
    def client(self) -> str:
        """The client's name, if the request has it: in the handshake, or in its envelope."""
        meta = self.params.get("_meta")
        client_info = self.params.get("clientInfo") or (
            cast("Fields", meta).get(_CLIENT) if isinstance(meta, dict) else None
        )
        name = cast("Fields", client_info).get("name") if isinstance(client_info, dict) else None
        return name if isinstance(name, str) else ""

    def of(self, kind: type[T]) -> T:
        """Return the parameters as a type. Raises ProtocolError if they do not fit."""
        try:
            return fit(self.params, kind)
        except UNDECODABLE as error:
            raise ProtocolError(INVALID_PARAMS, f"invalid parameters for {self.method}: {why(error)}") from error

    def check_envelope(self) -> None:
        """Raise ProtocolError if its version is not supported, or the envelope is incomplete."""
        meta: Fields = self.params["_meta"]
        if _CAPABILITIES not in meta:
            raise ProtocolError(INVALID_PARAMS, f"_meta lacks {_CAPABILITIES}")
        version = meta[_VERSION]
        if not isinstance(version, str):
            raise ProtocolError(INVALID_PARAMS, f"{_VERSION} is not a string")
        if version not in VERSIONS:
            data: Fields = {"supported": [*VERSIONS, *HANDSHAKE_VERSIONS[::-1]], "requested": version}
            raise ProtocolError(UNSUPPORTED_VERSION, "this version of the protocol is not supported", data)


class InitializeParams(Struct, frozen=True, rename="camel"):
    protocol_version: str


class ListParams(Struct, frozen=True):
    cursor: str | None = None


class CallParams(Struct, frozen=True):
    name: str
    arguments: Fields | None = None


class PromptParams(Struct, frozen=True):
    name: str
    arguments: dict[str, str] | None = None


class Wanted(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The changes that a subscription reports; only the supported ones."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None


class ListenParams(Struct, frozen=True):
    notifications: Wanted


class CancelledParams(Struct, frozen=True, rename="camel"):
    request_id: RequestId


def decoded(line: bytes) -> Any:
    """Decode a line. Raises Malformed."""
    try:
        return decode(line)
    except UNDECODABLE as error:
        raise Malformed(PARSE_ERROR, why(error)) from error


def message(frame: object) -> Message | None:
    """Return a decoded line as a message; None for an answer, as the server sends no requests. Raises Malformed."""
    if not isinstance(frame, dict):
        raise Malformed(INVALID_REQUEST, "a message is a JSON object")
    fields = cast("Fields", frame)
    request_id = fields.get("id")
    valid_id = cast("RequestId", request_id) if _is_id(request_id) else None
    if fields.get("jsonrpc") != "2.0":
        raise Malformed(INVALID_REQUEST, 'a message has "jsonrpc": "2.0"', valid_id)
    if "method" not in fields and ("result" in fields or "error" in fields):
        return None
    method, params = fields.get("method"), fields.get("params")
    if not isinstance(method, str):
        raise Malformed(INVALID_REQUEST, "the method is not a string", valid_id)
    if "id" in fields and valid_id is None:
        raise Malformed(INVALID_REQUEST, "the id is not a string or a 64-bit integer")
    if params is not None and not isinstance(params, dict):
        raise Malformed(INVALID_PARAMS, "the parameters are not a JSON object", valid_id)
    return Message(valid_id, method, cast("Fields", params or {}))


def _is_id(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


def handshake(asked: str) -> tuple[str, Fields]:
    """Return the version that a handshake chooses, and its result."""
    version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return version, {"protocolVersion": version, **_ABOUT, "serverInfo": SERVER}


def discovery() -> Fields:
    """Return the result of `server/discover`."""
    return fresh({"supportedVersions": [*VERSIONS, *HANDSHAKE_VERSIONS[::-1]], **_ABOUT})


def fresh(result: Fields) -> Fields:
    """Return a result in the form of the later versions, marked as possibly outdated at once."""
    return {**result, "ttlMs": 0, "cacheScope": "private"}


def enveloped(result: Fields) -> Fields:
    """Return a result in the form of the versions without a handshake."""
    meta = {**cast("Fields", result.get("_meta", {})), f"{_META}serverInfo": SERVER}
    return {**result, "resultType": "complete", "_meta": meta}


def subscription(request_id: RequestId) -> Fields:
    """Return the field that names a message's subscription."""
    return {"_meta": {_SUBSCRIPTION: request_id}}


def answer(request_id: RequestId | None, *, result: Fields | None = None, error: Fields | None = None) -> Fields:
    outcome: Fields = {"result": result} if error is None else {"error": error}
    return {"jsonrpc": "2.0", "id": request_id, **outcome}


def notification(method: str, params: Mapping[str, Any] | None = None) -> Fields:
    return {"jsonrpc": "2.0", "method": method} | ({"params": dict(params)} if params else {})


def encode(frame: Fields | list[Fields]) -> bytes:
    """Write a message as one line, with escapes for characters that a log should not show raw."""
    try:
        return escaped_json(msgspec.json.encode(frame).decode("utf-8", "replace")).encode() + b"\n"
    except UnicodeEncodeError:  # for a path that is not UTF-8; its escape would be invalid JSON to many clients
        import json

        return json.dumps(frame, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
