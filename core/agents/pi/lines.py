"""How single lines of pi's JSON mode are read; nothing in a line can make these functions raise."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from ...text.decoding import UNDECODABLE, decoder
from ..json_lines import mapping, string
from ..updates import BEGUN, Updates

_KIND = re.compile(rb'\{"type":"(\w{1,40})"(?:,"message":\{"role":"(\w{1,20})")?')
_UPDATE = b'"assistantMessageEvent":{"type":"'
"""Before it stands at most the usage of the message, some 300 bytes."""

UPDATES = Updates(
    (b'{"type":"message_update"', b'{"type":"tool_execution_update"'),
    _UPDATE,
    re.compile(
        _UPDATE + rb'text_(?:(?P<start>start)"|delta","contentIndex":\d{1,9},"delta":"' + BEGUN + rb")", re.DOTALL
    ),
)


class _Kind(Struct):
    type: Any = None
    message: Any = None


class _AgentEnd(Struct, rename="camel"):
    will_retry: Any = None


_decode_kind = decoder(_Kind)
_decode_end = decoder(_AgentEnd)


def kind(line: bytes) -> tuple[str, str] | None:
    """Return event type and message role of a line, both maybe empty; None when the line is no JSON object.

    pi writes the keys in a fixed order, so the first bytes tell; only a line that begins otherwise is parsed.
    """
    found = _KIND.match(line)
    if found is not None:
        return found[1].decode(), (found[2] or b"").decode()
    try:
        header = _decode_kind(line)
    except UNDECODABLE:
        return None
    return string(header.type), string(mapping(header.message).get("role"))


def will_retry(line: bytes) -> bool | None:
    """Return what an `agent_end` announces; None before pi 0.75.4, which announces nothing. Messages are skipped."""
    try:
        value = _decode_end(line).will_retry
    except UNDECODABLE:
        value = True if line.endswith(b'"willRetry":true}') else None
    return value if isinstance(value, bool) else None
