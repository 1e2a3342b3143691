"""A connection between a carrier and an agent: many messages at once, and proof that the other side is alive.

Annotations are evaluated here, as in `run.model`.
"""

import asyncio
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from ...run.enumerations import Cost, Whole
from ..protocol import PROTOCOL, BadMessage, HostName, decoded, encode
from ._frames import ALIVE, HEAD, HELLO, BadFrame, Incoming, Message, Outgoing, length, packed, unpacked

ALIVE_S = 5.0
"""Seconds of silence after which each side sends `ALIVE`."""
SILENCE_S = 20.0
"""Seconds of silence after which the other side counts as gone."""


MOST_UNASKED = 1000
"""Most messages in a row that are `ALIVE` or that were not requested."""
TURN = 64
"""Frames after which the loop's other tasks get a turn: reading frames that have already arrived does not yield."""


class AgentHello(Struct, frozen=True, kw_only=True):
    """The agent's first message."""

    protocol: Whole = PROTOCOL
    subdeck: Annotated[str, Meta(max_length=40)] = ""
    host: HostName
    slots: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Most runs at the same time; 0 if not set on the host."""
    labels: Annotated[dict[Annotated[str, Meta(max_length=64)], Cost], Meta(max_length=64)] = {}


class CarrierHello(Struct, frozen=True, kw_only=True):
    """The carrier's reply."""

    protocol: Whole = PROTOCOL
    slots: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Slots to use if the host does not set them."""


_H = TypeVar("_H", AgentHello, CarrierHello)


class OtherProtocol(Exception):
    """The other side uses another version of the protocol."""

    def __init__(self, protocol: int, subdeck: str = "") -> None:
        super().__init__(f"it uses protocol version {protocol} instead of {PROTOCOL}")
        self.protocol = protocol
        self.subdeck = subdeck


class _AnyHello(Struct, frozen=True):
    """The fields in hellos of all versions."""

    protocol: Whole
    subdeck: str = ""


class Connection:
    """One end of the connection; used in one event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming = Incoming()
        self._outgoing = Outgoing()
        self._news = asyncio.Event()
        self._frames = 0
        self._unasked = 0

    def send(self, message: Message) -> None:
        """Queue a message for sending."""
        self._outgoing.put(message)
        self._news.set()

    def say_hello(self, hello: AgentHello | CarrierHello) -> None:
        self.send(Message(0, HELLO, encode(hello)))

    async def receive(self) -> Message:
        """Return the next message. Raises BadFrame, TimeoutError if the other side is silent, OSError or EOFError if
        the connection has ended.
        """
        while True:
            async with asyncio.timeout(SILENCE_S):
                size = length(await self._reader.readexactly(HEAD))
                frame = unpacked(await self._reader.readexactly(size))
            self._frames += 1
            if not self._frames % TURN:
                await asyncio.sleep(0)
            message = self._incoming.add(frame)
            if message is not None and message.word != ALIVE:
                return message
            if message is not None:
                self.note_unasked()

    def note_unasked(self) -> None:
        """Note that the last message was useless. Raises BadFrame after too many in a row."""
        self._unasked += 1
        if self._unasked > MOST_UNASKED:
            raise BadFrame("it keeps sending messages that were not requested")

    def note_use(self) -> None:
        """Note that the last message was useful."""
        self._unasked = 0

    async def receive_hello(self, kind: type[_H]) -> _H:
        """Return the other side's hello. Raises what `receive` does, OtherProtocol."""
        message = await self.receive()
        if message.word != HELLO:
            raise BadFrame("no hello")
        try:
            hello = decoded(message.content, _AnyHello)
            if hello.protocol != PROTOCOL:
                raise OtherProtocol(hello.protocol, hello.subdeck)
            return decoded(message.content, kind)
        except BadMessage as error:
            raise BadFrame(str(error)) from error

    async def write(self) -> None:
        """Send queued messages until cancelled. Raises OSError if the connection has ended."""
        while True:
            while self._outgoing:
                self._writer.write(packed(self._outgoing.take()))
                await self._writer.drain()
            self._news.clear()
            try:
                async with asyncio.timeout(ALIVE_S):
                    await self._news.wait()
            except TimeoutError:
                self.send(Message(0, ALIVE))

    def close(self) -> None:
        self._writer.close()
