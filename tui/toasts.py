"""Toasts, and the list of those shown since the app was opened."""

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
"""Further toasts are only in the list."""

KEPT = 1000
"""Toasts in the list; the oldest are dropped first."""

INDENT = 13
"""Cells of time and sign; a message's further lines leave them empty."""

_SIGNS = {"information": ("·", "$text-muted"), "warning": ("!", "$text-warning"), "error": ("✗", "$text-error")}


class PastToast(Struct, frozen=True):
    time: str
    """Local time, `20:12:34`."""
    severity: str
    text: str


@dataclass
class Toast(Notification):
    kind: str = ""
    """It replaces a toast of the same kind; empty: it replaces none."""


def answer_key(
    node: Widget, text: str, *, severity: SeverityLevel = "information", timeout: float | None = None
) -> None:
    """Show a toast with the effect of a key, or the reason for none; it replaces the previous one."""
    cast(Any, node.app).notify(text, severity=severity, timeout=timeout, markup=False, kind=f"key: {severity}")


class ToastList:
    """Holds the texts of all toasts, even if toasts are off or silent."""

    def __init__(self) -> None:
        self._kept: deque[PastToast] = deque(maxlen=KEPT)

    def add(self, text: str, severity: str = "information") -> None:
        self._kept.append(PastToast(datetime.now().strftime("%H:%M:%S"), severity, text))

    def entries(self) -> list[Content]:
        """Return the messages for the screen, newest first, each with its time and a severity sign."""
        return [_entry(toast) for toast in reversed(self._kept)]


def _entry(toast: PastToast) -> Content:
    sign, style = _SIGNS.get(toast.severity, _SIGNS["information"])
    first, *more = toast.text.split("\n")
    head = Content.assemble((toast.time, "$text-muted"), "  ", (sign, style), "  ", first)
    return Content("\n").join((head, *(Content(" " * INDENT + row) for row in more)))
