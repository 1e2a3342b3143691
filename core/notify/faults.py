"""What does not work, or is risky, in the user's settings of notifications."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec import Struct

from ..config.notification_settings import Notifications
from ..errors import SettingsError
from ..system.processes import find_program
from ..text.plain import one_line
from ._channels import read_headers
from ._documents import FULL


class Fault(Struct, frozen=True):
    key: str
    """The setting, such as `notifications.url`."""
    what: str
    hint: str


def faults(settings: Notifications) -> Iterator[Fault]:
    """Yield the faults of the settings, each with its way out."""
    if settings.command and not _is_there(settings.command[0]):
        what = f"notifications.command: cannot find {one_line(settings.command[0], 200)}"
        yield Fault("notifications.command", what, "install it, or write its whole path")
    if settings.url is None:
        return
    if settings.content == FULL and not is_on_this_machine(settings.url):
        host = urlsplit(settings.url).hostname
        what = f"notifications.content: full sends commands, diffs and answers to {host}"
        yield Fault("notifications.content", what, "use summary, or an address on this machine")
    if settings.format == "ntfy" and not urlsplit(settings.url).path.strip("/"):
        what = "notifications.url: no topic at its end, which the format ntfy needs"
        yield Fault("notifications.url", what, "write an address such as https://ntfy.sh/my-topic")
    if settings.headers_file:
        try:
            read_headers(settings.headers_file)
        except SettingsError as error:
            what = f"notifications.headers_file: {error.where}: {error.what}"
            yield Fault("notifications.headers_file", what, error.hint or "fix the file, or remove the setting")


def is_on_this_machine(url: str) -> bool:
    """Return whether an address certainly is on this machine; its name is not looked up."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.endswith(".localhost") or _is_loopback(host)


def _is_loopback(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == 4 and all(part.isdecimal() for part in parts) and parts[0] == "127"


def _is_there(program: str) -> bool:
    if "/" in program:
        return os.path.isfile(program) and os.access(program, os.X_OK)
    return find_program(program) is not None
