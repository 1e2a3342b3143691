"""Read a cluster's messages as plain msgpack values of bounded size. Nothing that a peer sends is unpickled.

dask itself unpickles the objects in an answer before its caller sees them, so each host and the scheduler could run
programs as the user. A relay needs none of these objects.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
import sys
from typing import Any

import msgpack
from distributed.comm import registry
from distributed.comm.core import CommClosedError
from distributed.comm.tcp import (
    TCP,
    TLS,
    TCPBackend,
    TCPConnector,
    TLSBackend,
    TLSConnector,
    convert_stream_closed_error,  # pyright: ignore[reportUnknownVariableType]
)
from tornado.iostream import IOStream, StreamClosedError

from ..protocol import MOST_MESSAGE

MOST_BYTES = MOST_MESSAGE // 2
"""Bytes of one message: more than any host's answer has."""
MOST_FRAMES = 10_000
MOST_PARTS = 500_000
"""Arrays and maps in one message. An empty map takes one byte in the message and many in memory."""
UNOPENED = "an object that is not opened"
"""Replaces an object. It is a text because dask also uses it as an error message."""
_OBJECTS = ("__Pickled__", "__Serialized__", "__Enum__")
"""The keys with which dask marks an object that msgpack cannot hold."""
_SIZE = struct.Struct("Q")


class BadPeer(Exception):
    """A peer sent something that is not a valid message."""


def install() -> None:
    """Make new connections of this process read plain values only, and make unpickling fail anywhere in it.

    Unpickling stays disabled. No other part of the process needs it.
    """
    registry.backends["tcp"] = _PlainTcpBackend()
    registry.backends["tls"] = _PlainTlsBackend()
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_refuse_to_unpickle)


_hooked: list[bool] = []


def _refuse_to_unpickle(event: str, _: object) -> None:
    """Refuse to look up a class or function by name: every pickle of more than plain values needs that."""
    if event == "pickle.find_class":
        raise BadPeer("this process unpickles nothing")


def decoded(content: bytes) -> Any:
    """Decode a message's values and leave its objects unopened. Raises BadPeer."""
    parts = 0

    def count() -> None:
        nonlocal parts
        parts += 1
        if parts > MOST_PARTS:
            raise ValueError("it has too many parts")

    def of_map(value: dict[Any, Any]) -> object:
        count()
        if any(name in value for name in _OBJECTS):
            return UNOPENED
        return tuple(value.get("as-list", ())) if "__Set__" in value else value

    def of_array(value: list[Any]) -> list[Any]:
        count()
        return value

    try:
        return msgpack.unpackb(  # pyright: ignore[reportUnknownVariableType]
            content,
            object_hook=of_map,
            list_hook=of_array,
            use_list=False,
            strict_map_key=False,
            raw=False,
        )
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException) as error:
        raise BadPeer(f"its message cannot be read: {error}") from error


async def _message(stream: IOStream) -> bytes:
    """Return the encoded values of the next message, without the data of its objects. Raises BadPeer."""
    (size,) = _SIZE.unpack(await stream.read_bytes(_SIZE.size))
    _check(size)
    block: bytes = await stream.read_bytes(size)
    count = _SIZE.unpack_from(block)[0] if size >= _SIZE.size else 0
    start = _SIZE.size * (count + 1)
    if not 0 < count <= MOST_FRAMES or start > size:
        raise BadPeer("its message cannot be read: invalid frames")
    lengths = struct.unpack_from(f"{count}Q", block, _SIZE.size)
    missing = sum(lengths) - (size - start)
    _check(start + sum(lengths))
    if missing < 0:
        raise BadPeer("its message cannot be read: too short")
    if missing:
        block += await stream.read_bytes(missing)
    return block[start : start + lengths[0]]


def _check(size: int) -> None:
    if size > MOST_BYTES:
        raise BadPeer(f"its message is longer than {MOST_BYTES >> 20} MB")


class _Plain(TCP):
    """A connection on which nothing is unpickled."""

    def __init__(self, stream: IOStream, local_addr: str, peer_addr: str, deserialize: bool = True) -> None:
        super().__init__(stream, local_addr, peer_addr, deserialize=False)

    async def read(self, deserializers: object = None) -> Any:
        stream = self.stream
        if stream is None:
            raise CommClosedError("the connection is closed")
        try:
            await asyncio.sleep(0)  # a peer that never stops sending must not block the others
            return decoded(await _message(stream))
        except (StreamClosedError, ssl.SSLError) as error:
            self.abort()
            convert_stream_closed_error(self, error)
        except BaseException:
            self.abort()  # the rest of the stream does not begin with a message
            raise


class _PlainTls(_Plain, TLS):
    pass


class _PlainTcpConnector(TCPConnector):
    comm_class = _Plain


class _PlainTlsConnector(TLSConnector):
    comm_class = _PlainTls


class _PlainTcpBackend(TCPBackend):
    _connector_class = _PlainTcpConnector


class _PlainTlsBackend(TLSBackend):
    _connector_class = _PlainTlsConnector
