"""Where the agent of a spool listens, and who may speak to it there: a socket in the spool, of this user alone."""

from __future__ import annotations

import os
import socket
import struct

from ...system import files

SOCKET = "agent.sock"
LOG = "agent.log"
_CREDENTIALS = struct.Struct("3i")


def listening(root: str) -> socket.socket:
    """Listen in a spool whose lock this process holds: what stands there of an earlier agent is removed.

    Raises OSError.
    """
    files.remove(os.path.join(root, SOCKET))
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    directory = files.open_directory(root)
    try:
        os.fchmod(found.fileno(), 0o600)  # by which Linux makes the file; the umask belongs to all threads
        found.bind(_address(directory))
        found.listen(32)
    except BaseException:
        found.close()
        raise
    finally:
        os.close(directory)
    return found


def connected(root: str) -> socket.socket | None:
    """Connect with the agent of a spool; None where none lives.

    Raises BlockingIOError where it takes no more connections, OSError for other trouble.
    """
    try:
        directory = files.open_directory(root)
    except FileNotFoundError:
        return None
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        found.setblocking(False)  # else it would wait for an agent that was stopped
        found.connect(_address(directory))
        found.setblocking(True)
        _check_peer(found)
    except (FileNotFoundError, ConnectionError):
        found.close()
        return None
    except BaseException:
        found.close()
        raise
    finally:
        os.close(directory)
    return found


def is_own(connection: socket.socket) -> bool:
    """Return whether the process at the other end is this user's."""
    return _peer(connection)[1] == os.geteuid()


def peer_pid(connection: socket.socket) -> int:
    """Return which process listens at the other end."""
    return _peer(connection)[0]


def _check_peer(connection: socket.socket) -> None:
    if not is_own(connection):
        raise PermissionError(f"the process there belongs to user {_peer(connection)[1]}")


def _peer(connection: socket.socket) -> tuple[int, int]:
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return pid, uid


def _address(directory: int) -> str:
    """Name the socket by the descriptor of its directory: a path of its own may be longer than the 107 bytes that the
    kernel takes.
    """
    return f"/proc/self/fd/{directory}/{SOCKET}"
