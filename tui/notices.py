"""Every message that the app has told since it was opened."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from msgspec import Struct
from textual.content import Content
from textual.notifications import Notification, SeverityLevel
from textual.widget import Widget

TOASTS_ON_SCREEN = 3
"""The list has the others."""

KEPT = 1000
"""Messages; the oldest go first."""

INDENT = 13
"""Cells of time and sign, which the lines after a message's first leave empty."""

_SIGNS = {"information": ("·", "$text-muted"), "warning": ("!", "$text-warning"), "error": ("✗", "$text-error")}


class Notice(Struct, frozen=True):
    time: str
    """Where the operator sits, `20:12:34`."""
    severity: str
    text: str


@dataclass
class Toast(Notification):
    kind: str = ""
    """It takes the place of one of the same kind; empty for one that takes nobody's."""


def answer_key(
    node: Widget, text: str, *, severity: SeverityLevel = "information", timeout: float | None = None
) -> None:
    """Say in a toast what a key did, or why it did nothing, in the place of what was said so before."""
    cast(Any, node.app).notify(text, severity=severity, timeout=timeout, markup=False, kind=f"key: {severity}")


class Notices:
    """Holds what toasts said, and what they would have said where they are off or silent."""

    def __init__(self) -> None:
        self._kept: deque[Notice] = deque(maxlen=KEPT)

    def add(self, text: str, severity: str = "information") -> None:
        self._kept.append(Notice(datetime.now().strftime("%H:%M:%S"), severity, text))

    def entries(self) -> list[Content]:
        """Return them for the screen, the newest first, each with its time and a sign for its weight."""
        return [_entry(notice) for notice in reversed(self._kept)]


def _entry(notice: Notice) -> Content:
    sign, style = _SIGNS.get(notice.severity, _SIGNS["information"])
    first, *more = notice.text.split("\n")
    head = Content.assemble((notice.time, "$text-muted"), "  ", (sign, style), "  ", first)
    return Content("\n").join((head, *(Content(" " * INDENT + row) for row in more)))
