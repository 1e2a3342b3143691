"""How messages share one stream: cut into frames, each with the id of its request, a word and a piece of the message.

A frame is four bytes, its length, and a value of msgpack. Before the first one the host's end writes `MAGIC`: what a
login writes ahead of it is no concern of ours.
Annotations are evaluated here, as in `run.model`.
"""

import struct
from collections import deque
from typing import Annotated

from msgspec import Meta, Struct

from ..protocol import MOST_MESSAGE, BadMessage, decoded, encode

MAGIC = b"\n-- subdeck hosts agent --\n"
"""Also ends a line that a login left open."""
MOST_BANNER = 64 * 1024
"""Bytes of what a login may write ahead of it."""
PIECE = 32 * 1024
"""Bytes of a message that travel in one frame: for no longer does a large message hold up a small one."""
MOST_FRAME = PIECE + 64
MOST_OPEN = 10_000
"""Requests at the same time on one connection."""

HELLO = "hello"
ANSWER = "answer"
CANCEL = "cancel"
"""Nobody waits for the answer to this request any more."""
ALIVE = "alive"
"""Says nothing but that there is somebody."""

_LENGTH = struct.Struct(">I")
HEAD = _LENGTH.size
"""Bytes before a frame."""


class Frame(Struct, frozen=True, array_like=True):
    """A piece of a message."""

    id: Annotated[int, Meta(ge=0, le=2**32 - 1)]
    """Of the request, which its answer has too; 0 for what is neither."""
    word: Annotated[str, Meta(max_length=16)]
    """A verb, or one of the words above."""
    content: Annotated[bytes, Meta(max_length=PIECE)] = b""
    is_last: bool = True


class BadFrame(Exception):
    """What came is no frame; nothing that follows on the same connection can be read."""


def packed(frame: Frame) -> bytes:
    """Return a frame as it travels, with its length."""
    content = encode(frame)
    return _LENGTH.pack(len(content)) + content


def length(head: bytes) -> int:
    """Return how many bytes the frame has that follows `HEAD` bytes. Raises BadFrame."""
    (size,) = _LENGTH.unpack(head)
    if not 0 < size <= MOST_FRAME:
        raise BadFrame(f"a frame of {size:,} bytes")
    return size


def unpacked(content: bytes) -> Frame:
    """Return the frame that has this content, without its length. Raises BadFrame."""
    try:
        return decoded(content, Frame)
    except BadMessage as error:
        raise BadFrame(str(error)) from error


class Message(Struct, frozen=True):
    """What one side said: all pieces of it."""

    id: int
    word: str
    content: bytes = b""


class Incoming:
    """The messages of which pieces have come."""

    def __init__(self) -> None:
        self._parts: dict[int, tuple[str, bytearray]] = {}
        self._size = 0

    def add(self, frame: Frame) -> Message | None:
        """Take the next piece; return its message once that is whole. Raises BadFrame for what is too much."""
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
    """The messages that wait to be sent; each gets its turn for one frame."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, str, memoryview]] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, message: Message) -> None:
        if message.word == CANCEL:  # what is left of the request itself is not sent any more
            self._waiting = deque(waiting for waiting in self._waiting if waiting[0] != message.id)
        self._waiting.append((message.id, message.word, memoryview(message.content)))

    def take(self) -> Frame:
        """Return the next frame to be sent; there is one."""
        number, word, rest = self._waiting.popleft()
        piece, rest = rest[:PIECE], rest[PIECE:]
        if rest:
            self._waiting.append((number, word, rest))
        return Frame(number, word, bytes(piece), not rest)
