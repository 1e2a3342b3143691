"""What the transcript says around the run, and where it is shown besides its file."""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from ..run.model import RunMeta
from ..text.plain import one_line, plain

PANE_PATIENCE = 500
"""Milliseconds that a pane may take to make room."""


def header(meta: RunMeta) -> str:
    """Facts of the run, one a line, and the task."""
    facts = {
        "Run": meta.run_id,
        "Preset": f"{meta.preset} ({meta.preset_source})" if meta.preset else "ad hoc",
        "Model": meta.resolved_model or "the agent's own default",
        "Directory": meta.cwd,
        "Tools": _tools(meta),
        "Started by": f"{meta.launched_by.kind}, session {meta.launched_by.session}",
    }
    lines = [f"{name + ':':<12}{one_line(value, 300)}" for name, value in facts.items()]
    return "\n".join([*lines, "", *plain(meta.task).splitlines()[:40], ""])


def pane(terminal: int = 1) -> Callable[[bytes], None]:
    """Return what shows a piece of transcript in the tmux pane; it does nothing where there is none.

    A pane that takes nothing (somebody typed ctrl-S in it) is given up until it does: the child is not kept waiting.
    """
    if not os.isatty(terminal):
        return lambda piece: None
    os.set_blocking(terminal, False)
    poller = select.poll()
    poller.register(terminal, select.POLLOUT)
    patience = PANE_PATIENCE

    def show(piece: bytes) -> None:
        nonlocal patience
        rest = memoryview(piece)
        try:
            while rest:
                if not poller.poll(patience):
                    patience = 0
                    return
                rest = rest[os.write(terminal, rest) :]
            patience = PANE_PATIENCE
        except OSError:
            return  # the pane is gone; the files go on

    return show


def _tools(meta: RunMeta) -> str:
    resolved = meta.tools.resolved
    if resolved is None:
        return "the agent's own set"
    return ", ".join(resolved) or "none"
