"""A made-up alert, sent the way real ones are: `subdeck notify --test`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from msgspec import Struct

from ..alerts.alert import Alert, OpenRequest
from ..alerts.spool import Document
from ..config.notification_settings import Notifications
from ..errors import SettingsError
from ..paths import iso_time
from ..run.enumerations import AlertKind
from ..run.model import RequestKind
from ..text.shell import shell_word
from ._channels import COMMAND, attempt, channels_of, outgoing
from ._documents import as_json, document_of
from ._links import links

_COMMAND = "rm -rf build"
_REPLY_S = 600.0


class Sent(Struct, frozen=True):
    """An attempt on one of the user's ways to be notified."""

    channel: str
    """`command` or `url`."""
    target: str
    """The command as typed in a shell, or the request line with the names of all headers."""
    body: bytes
    """As sent to it."""
    fault: str
    """Why it failed; empty if it was sent."""


def example(settings: Notifications) -> Document:
    """Return the document of a made-up request, with a new id."""
    now = time.time()
    asked = OpenRequest(
        id="q1",
        hash="0" * 32,
        kind=RequestKind.PERMISSION,
        deadline=iso_time(now + _REPLY_S),
        text=f"wants to run a command\n  {_COMMAND}",
        command=_COMMAND,
    )
    alert = Alert(
        id=f"test.{os.urandom(8).hex()}",
        kind=AlertKind.NEEDS_INPUT,
        at=now,
        what="needs input: a permission request",
        run_id="20260101-120000-abcdef",
        project="/home/you/shop",
        preset="a test",
        task="Test your notifications.",
        asked=asked,
    )
    return document_of([alert], settings.content, links(settings))


def send(settings: Notifications, document: Document) -> Iterator[Sent]:
    """Send a document once by each way that is set up, and yield the outcomes."""
    for channel in channels_of(settings):
        target, body, fault = _shown(channel, settings, document)
        yield Sent(channel, target, body, fault or attempt(channel, settings, document))


def _shown(channel: str, settings: Notifications, document: Document) -> tuple[str, bytes, str]:
    """Return the target and the body of an attempt, and why it cannot be made."""
    if channel == COMMAND:
        return " ".join(map(shell_word, settings.command)), as_json(document), ""
    try:
        request = outgoing(settings, document)
    except SettingsError as error:
        return f"POST {settings.url}", b"", f"{error.where}: {error.what}"
    shown = (f"{name}: {'…' if name in request.secrets else value}" for name, value in request.headers.items())
    return "\n".join((f"POST {request.url}", *shown)), request.body, ""
