"""The settings of notifications, in the app and away from the terminal.

The sender of notifications imports this without the table of all settings. Annotations are evaluated here, as in
`settings`.
"""

import os
import re
from typing import Annotated, Literal

from msgspec import Struct

from ..run.enumerations import AlertKind
from .values import DurationOrZero, Setting, Spelling, Switch, Verbatim, argv

_ADDRESS = re.compile(r"https?://[A-Za-z0-9.\-_\[\]:]+(?:/[!-~]*)?")
"""Without a user name or password, which belong into the file of headers."""
_LINK = re.compile(r"https?://[!-~]+")


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text.strip()):
        raise ValueError
    return text.strip()


def _link(text: str) -> str:
    if not _LINK.fullmatch(text.strip()):
        raise ValueError
    return text.strip()


def _path(text: str) -> str:
    if not text.strip():
        raise ValueError
    return os.path.expanduser(text.strip())


Address = Annotated[str, Spelling("an address such as https://push.example/agents, without a user name,", _address)]
Link = Annotated[str, Spelling("an address that begins with https:// or http://", _link)]
FilePath = Annotated[str, Spelling("a file", _path)]


class Notifications(Struct, frozen=True):
    when: Annotated[
        tuple[AlertKind, ...],
        Spelling(f"a list of {', '.join(AlertKind)}", tuple),
        Setting(
            "Conditions that you are notified of away from the terminal, by command, url or both: needs_input (an "
            "agent waits for your reply), failed, finished, idle and budget.",
            "[needs_input, failed]",
            is_rare=True,
        ),
    ] = tuple(AlertKind)
    command: Annotated[
        tuple[Verbatim, ...],
        Spelling('a list such as [my-notify, "--urgent"]', argv),
        Setting(
            "Program to start for each notification, as a list of words (no shell). It gets one JSON document on "
            "stdin, and has 30 seconds.",
            '[my-notify, "--urgent"]',
        ),
    ] = ()
    url: Annotated[
        Address | None,
        Setting("Address to post each notification to. Redirects are not followed.", "https://push.example/agents"),
    ] = None
    format: Annotated[
        Literal["json", "ntfy"],
        Setting(
            "Format for the url: json, or ntfy for a topic on an ntfy server, such as https://ntfy.sh/my-topic.",
            is_rare=True,
        ),
    ] = "json"
    headers_file: Annotated[
        FilePath | None,
        Setting(
            'File with secret headers for the url, a line "Name: value" each. Only you may have access to it (mode '
            "0600).",
            "~/.config/subdeck/notify-headers",
            is_rare=True,
        ),
    ] = None
    link: Annotated[
        Link | None,
        Setting(
            "Address for the links in notifications, instead of the page of subdeck web. {run_id} and {request} are "
            "replaced.",
            '"https://desk.example/{run_id}"',
            is_rare=True,
        ),
    ] = None
    content: Annotated[
        Literal["title", "summary", "full"],
        Setting(
            "What a notification contains: title (only that something happened), summary (preset, project and kind), "
            "or full (also the command, the diff, the question or the answer).",
            is_rare=True,
        ),
    ] = "summary"
    dwell: Annotated[
        DurationOrZero,
        Setting(
            "How long a notification waits in case you look at the run in the meantime. Requests are sent at once.",
            "5s",
            is_rare=True,
        ),
    ] = 5.0
    toasts: Annotated[Switch, Setting("Show a toast in the app when a run finishes.")] = True
    bell: Annotated[Switch, Setting("Also ring the terminal's bell.", is_rare=True)] = False
    desktop: Annotated[
        Literal["off", "osc9", "osc777"],
        Setting(
            "Desktop notifications through the terminal: off, osc9 (iTerm2, Windows Terminal, kitty) "
            "or osc777 (foot, Ghostty, urxvt).",
            "osc9",
        ),
    ] = "off"
    title: Annotated[
        Switch, Setting("Show the number of running runs in the terminal's title.", is_rare=True, needs_restart=True)
    ] = True

    @property
    def is_sent(self) -> bool:
        """Whether notifications are sent anywhere outside the app."""
        return bool(self.command or self.url) and bool(self.when)
