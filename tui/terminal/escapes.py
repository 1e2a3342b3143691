"""Escape sequences for the terminal itself: desktop notifications, and the title of its window."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from textual.widget import Widget

from ...core.run.need import needing_input
from ...core.run.snapshot import Counts
from ...core.text.plain import one_line
from ..text.format import short_path
from .textual_internals import write_to_terminal

if TYPE_CHECKING:
    from ..engine_api import EngineApi

LIMIT = 200
"""Characters of one text in a sequence."""


def notification(protocol: str, title: str, body: str) -> str:
    """Return the sequence for a desktop notification, by `osc9` or `osc777`; empty for any other protocol."""
    match protocol:
        case "osc9":
            return f"\x1b]9;{one_line(f'{title}: {body}', LIMIT)}\x07"
        case "osc777":
            # A semicolon ends a field of this sequence.
            fields = (one_line(text, LIMIT).replace(";", ",") for text in (title, body))
            return f"\x1b]777;notify;{';'.join(fields)}\x07"
        case _:
            return ""


def through_tmux(sequence: str, environment: Mapping[str, str] = os.environ) -> str:
    """Wrap a sequence so that tmux, if present, passes it to the terminal around it (`allow-passthrough`)."""
    if not sequence or not environment.get("TMUX"):
        return sequence
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"


KEEP, BRING_BACK = "\x1b[22;0t", "\x1b[23;0t"
"""Save and restore the title on the terminal's stack, if it has one."""
CLEAR = "\x1b]2;\x07"
PROJECT_WIDTH = 60

_UNTITLED = ("", "dumb", "linux", "unknown")
"""Values of TERM without a window to name."""


def has_title(environment: Mapping[str, str] = os.environ) -> bool:
    term = environment.get("TERM", "")
    return term not in _UNTITLED and not term.startswith(("vt", "eterm"))


def title(counts: Counts, project: str) -> str:
    """`subdeck – 1 needs input – 2 running – ~/src/shop`."""
    waiting = f"{needing_input(counts.waiting)} – " if counts.waiting else ""
    return one_line(f"subdeck – {waiting}{counts.running} running – {short_path(project, PROJECT_WIDTH)}", 200)


class WindowTitle:
    """Names the window whenever its title has changed."""

    def __init__(self, node: Widget, engine: EngineApi) -> None:
        self._node = node
        self._project = engine.project.root
        self._is_enabled = engine.settings.notifications.title and has_title()
        self._shown = ""

    def show(self, counts: Counts) -> None:
        text = title(counts, self._project)
        if self._is_enabled and text != self._shown:
            self._shown = text
            write_to_terminal(self._node, f"\x1b]2;{text}\x07")


@contextmanager
def kept_title(is_enabled: bool) -> Generator[str]:
    """Restore the window's title at the end, with the yielded sequence; written directly, because the app is not
    running before and after.
    """
    terminal = sys.__stderr__
    if not is_enabled or terminal is None or not terminal.isatty() or not has_title():
        yield ""
        return
    terminal.write(KEEP)
    terminal.flush()
    try:
        yield CLEAR + BRING_BACK
    finally:
        terminal.write(CLEAR + BRING_BACK)
        terminal.flush()
