"""The ways to notify the user: their command, and their address. Each attempt has a time limit."""

from __future__ import annotations

import os
import select
import signal
import stat
from typing import TYPE_CHECKING

from msgspec import Struct

from .. import __version__
from ..alerts.spool import Document
from ..config.notification_settings import Notifications
from ..errors import SettingsError
from ..system import files
from ..text.plain import one_line
from ._documents import as_json, as_ntfy

if TYPE_CHECKING:
    from http.client import HTTPConnection

COMMAND, URL = "command", "url"
COMMAND_S, URL_S = 30.0, 10.0
"""Seconds that an attempt may take."""
_LARGEST_FILE = 64 * 1024
_LAST_WORDS = 500
"""Bytes of a command's stderr that explain its failure."""


class Outgoing(Struct, frozen=True):
    """A request to an address, as it is sent."""

    url: str
    headers: dict[str, str]
    secrets: tuple[str, ...]
    """Names of the headers from the user's file: their values are never shown."""
    body: bytes


def channels_of(settings: Notifications) -> tuple[str, ...]:
    """Return the names of the ways that the user has set up."""
    return tuple(name for name in (COMMAND, URL) if getattr(settings, name))


def attempt(channel: str, settings: Notifications, document: Document) -> str:
    """Send a document once; return why that failed, empty if it succeeded."""
    try:
        if channel == COMMAND:
            return run(settings.command, as_json(document))
        return post(outgoing(settings, document))
    except SettingsError as error:
        return one_line(f"{error.where}: {error.what}", 300)


# --- a command -------------------------------------------------------------------------------------------------------


def run(argv: tuple[str, ...], content: bytes, seconds: float = COMMAND_S) -> str:
    """Start the user's command with a document on its stdin; return why it failed. Its process group ends with it."""
    from subprocess import DEVNULL, Popen

    stdin, complaints = _in_memory(content), _in_memory(b"")
    try:
        process = Popen(argv, stdin=stdin, stdout=DEVNULL, stderr=complaints, cwd="/", start_new_session=True)
    except OSError as error:
        return one_line(f"cannot start {argv[0]}: {error.strerror or error}", 300)
    except ValueError as error:
        return one_line(f"cannot start {argv[0]}: {error}", 300)
    finally:
        os.close(stdin)
    try:
        is_over = _ends_within(process.pid, seconds)
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its pid is not reused before it is reaped
        except OSError:
            pass  # only the command itself, which has ended
        code = process.wait()
        if not is_over:
            return f"{one_line(argv[0], 200)} took longer than {seconds:g} s"
        if not code:
            return ""
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        last_line = _last_line(complaints)
        return one_line(f"{argv[0]} {how}{last_line and f': {last_line}'}", 300)
    finally:
        os.close(complaints)


def _ends_within(pid: int, seconds: float) -> bool:
    """Wait for a child of this process to end, without reaping it."""
    pidfd = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        return bool(poller.poll(seconds * 1000))
    finally:
        os.close(pidfd)


def _in_memory(content: bytes) -> int:
    """Return a file in memory: unlike a pipe it is never full, and no process that holds it open delays us."""
    descriptor = os.memfd_create("alert")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _last_line(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    text = os.pread(descriptor, _LAST_WORDS, max(0, size - _LAST_WORDS)).decode("utf-8", "replace")
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


# --- an address ------------------------------------------------------------------------------------------------------


def outgoing(settings: Notifications, document: Document) -> Outgoing:
    """Return the request for a document. Raises SettingsError if the file of headers cannot be used."""
    url = settings.url or ""
    secrets = read_headers(settings.headers_file) if settings.headers_file else {}
    if settings.format == "ntfy":
        url, _, topic = url.rstrip("/").rpartition("/")
        url, body = f"{url}/", as_ntfy(document, topic)
    else:
        body = as_json(document)
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": document.id,
        "User-Agent": f"subdeck/{__version__}",
        "Connection": "close",
    }
    return Outgoing(url, headers | secrets, tuple(secrets), body)


def read_headers(path: str) -> dict[str, str]:
    """Read the user's file of secret headers. Raises SettingsError if others can access it, or if it is invalid."""
    try:
        descriptor, status = files.open_regular(path, follow=True)
    except OSError as error:
        raise SettingsError(f"cannot read it: {error.strerror or error}", where=path) from error
    with open(descriptor, "rb") as file:
        content = file.read(_LARGEST_FILE)
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
        what = "other users can access the secret headers in it"
        raise SettingsError(what, where=path, hint=f"chmod 600 {path}")
    headers = dict[str, str]()
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not (colon and name.isascii() and name.replace("-", "").isalnum() and value.strip().isprintable()):
            raise SettingsError('expected a line "Name: value"', where=f"{path}:{number}")
        headers[name] = value.strip()
    return headers


def post(request: Outgoing, seconds: float = URL_S) -> str:
    """Post a request; return why that failed. A redirect is not followed: it is a failure."""
    import threading
    from http.client import HTTPException

    connection, path = _connection(request.url, seconds)
    # The time limit of a connection is for each of its steps: an answer that comes byte by byte would take for ever.
    alarm = threading.Timer(seconds, _break_off, (connection,))
    alarm.daemon = True
    try:
        connection.connect()
    except (OSError, ValueError) as error:
        return one_line(f"cannot connect to {connection.host}: {_reason(error)}", 300)
    try:
        alarm.start()
        connection.request("POST", path, request.body, {**request.headers})
        status = connection.getresponse().status
    except (OSError, HTTPException, ValueError) as error:
        return one_line(f"no answer from {connection.host}: {_reason(error)}", 300)
    finally:
        alarm.cancel()
        connection.close()
    if 200 <= status < 300:
        return ""
    redirected = ", a redirect, which is not followed" if 300 <= status < 400 else ""
    return f"{connection.host} answered with status {status}{redirected}"


def _connection(url: str, seconds: float) -> tuple[HTTPConnection, str]:
    from http.client import HTTPConnection, HTTPSConnection
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    path = f"{parts.path or '/'}{parts.query and f'?{parts.query}'}"
    return kind(parts.hostname or "", parts.port, timeout=seconds), path


def _break_off(connection: HTTPConnection) -> None:
    from socket import SHUT_RDWR

    try:
        if connection.sock:
            connection.sock.shutdown(SHUT_RDWR)
    except OSError:
        return  # it was closed just now


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
