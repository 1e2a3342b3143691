"""Several messages share one stream: they are cut into frames with a request id, a word and a piece of the message.

A frame is its length in four bytes and a msgpack value. The host's end writes `MAGIC` before the first frame, and all
output of the login before it is skipped. Annotations are evaluated here, as in `run.model`.
"""

import struct
from collections import deque
from typing import Annotated

from msgspec import Meta, Struct

from ..protocol import MOST_MESSAGE, BadMessage, decoded, encode

MAGIC = b"\n-- subdeck hosts agent --\n"
"""Also ends a line that the login left open."""
MOST_BANNER = 64 * 1024
"""Most bytes of login output before `MAGIC`."""
PIECE = 32 * 1024
"""Bytes of a message in one frame, so that large messages delay small ones little."""
MOST_FRAME = PIECE + 64
MOST_OPEN = 10_000
"""Most open requests on one connection."""

HELLO = "hello"
ANSWER = "answer"
CANCEL = "cancel"
"""The answer to this request is no longer wanted."""
ALIVE = "alive"
"""Keeps the connection alive; carries no content."""

_LENGTH = struct.Struct(">I")
HEAD = _LENGTH.size
"""Bytes of a frame's length."""


class Frame(Struct, frozen=True, array_like=True):
    """A piece of a message."""

    id: Annotated[int, Meta(ge=0, le=2**32 - 1)]
    """Request id, shared by request and answer; 0 for other messages."""
    word: Annotated[str, Meta(max_length=16)]
    """A verb or one of the words above."""
    content: Annotated[bytes, Meta(max_length=PIECE)] = b""
    is_last: bool = True


class BadFrame(Exception):
    """The content is not a valid frame; the rest of the connection cannot be read."""


def packed(frame: Frame) -> bytes:
    """Return a frame encoded for sending, with its length."""
    content = encode(frame)
    return _LENGTH.pack(len(content)) + content


def length(head: bytes) -> int:
    """Return the frame length encoded in `HEAD` bytes. Raises BadFrame."""
    (size,) = _LENGTH.unpack(head)
    if not 0 < size <= MOST_FRAME:
        raise BadFrame(f"a frame of {size:,} bytes")
    return size


def unpacked(content: bytes) -> Frame:
    """Decode a frame's content. Raises BadFrame."""
    try:
        return decoded(content, Frame)
    except BadMessage as error:
        raise BadFrame(str(error)) from error


class Message(Struct, frozen=True):
    """A whole message."""

    id: int
    word: str
    content: bytes = b""


class Incoming:
    """Messages that have arrived in part."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[str, bytearray]] = {}
        self._size = 0

    def add(self, frame: Frame) -> Message | None:
        """Add a piece; return its message once complete. Raises BadFrame for invalid or oversized pieces."""
        if frame.word == CANCEL:
            self._forget(frame.id)
            return Message(frame.id, CANCEL)
        word, part = self._parts.get(frame.id) or (frame.word, bytearray())
        if word != frame.word:
            raise BadFrame("pieces of two messages with one id")
        if not frame.content and not frame.is_last:
            raise BadFrame("a piece of a message with nothing in it")
        if not part and frame.is_last:
            return Message(frame.id, word, frame.content)
        if self._size + len(frame.content) > 2 * MOST_MESSAGE or len(part) + len(frame.content) > MOST_MESSAGE:
            raise BadFrame("a message that is too large")
        if frame.id not in self._parts and len(self._parts) >= MOST_OPEN:
            raise BadFrame("too many messages at the same time")
        part += frame.content
        self._size += len(frame.content)
        self._parts[frame.id] = word, part
        if not frame.is_last:
            return None
        self._forget(frame.id)
        return Message(frame.id, word, bytes(part))

    def _forget(self, number: int) -> None:
        self._size -= len(self._parts.pop(number, ("", b""))[1])


class Outgoing:
    """Messages waiting to be sent; they take turns frame by frame."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, str, memoryview]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, message: Message) -> None:
        if message.word == CANCEL:  # the rest of the request is not sent
            self._waiting = deque(waiting for waiting in self._waiting if waiting[0] != message.id)
        self._waiting.append((message.id, message.word, memoryview(message.content)))

    def take(self) -> Frame:
        """Return the next frame to send; there must be one."""
        number, word, unsent = self._waiting.popleft()
        piece, unsent = unsent[:PIECE], unsent[PIECE:]
        if unsent:
            self._waiting.append((number, word, unsent))
        return Frame(number, word, bytes(piece), not unsent)
