"""The spool's agent socket, which only this user may use."""

from __future__ import annotations

import os
import socket
import struct

from ...system import files

SOCKET = "agent.sock"
LOG = "agent.log"
_CREDENTIALS = struct.Struct("3i")


def listening(root: str) -> socket.socket:
    """Listen in a spool whose lock this process holds; remove an earlier agent's socket. Raises OSError."""
    files.remove(os.path.join(root, SOCKET))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = files.open_directory(root)
    try:
        os.fchmod(listener.fileno(), 0o600)  # sets the file's mode on Linux; umask would affect all threads
        listener.bind(_address(directory))
        listener.listen(32)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener


def connected(root: str) -> socket.socket | None:
    """Connect to a spool's agent; return None if none is running.

    Raises BlockingIOError if it accepts no more connections, OSError for other failures.
    """
    try:
        directory = files.open_directory(root)
    except FileNotFoundError:
        return None
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)  # otherwise it would wait for a stopped agent
        connection.connect(_address(directory))
        connection.setblocking(True)
        _check_peer(connection)
    except (FileNotFoundError, ConnectionError):
        connection.close()
        return None
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(directory)
    return connection


def is_own(connection: socket.socket) -> bool:
    """Return whether the other end's process belongs to this user."""
    return _peer(connection)[1] == os.geteuid()


def peer_pid(connection: socket.socket) -> int:
    """Return the pid of the process that listens at the other end."""
    return _peer(connection)[0]


def _check_peer(connection: socket.socket) -> None:
    if not is_own(connection):
        raise PermissionError(f"the process there belongs to user {_peer(connection)[1]}")


def _peer(connection: socket.socket) -> tuple[int, int]:
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def _address(directory: int) -> str:
    """Return the socket's path by its directory's descriptor: the real path may exceed the kernel's 107 bytes."""
    return f"/proc/self/fd/{directory}/{SOCKET}"
