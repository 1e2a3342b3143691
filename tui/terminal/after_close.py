"""Work that outlives the screen it was started for, and reports of failed work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from textual._context import NoActiveAppError
from textual.app import ScreenError
from textual.css.query import QueryError
from textual.dom import DOMError, DOMNode
from textual.widget import MountError, Widget
from textual.worker import Worker, WorkerState

from ...core.system.log import log_fault
from ..text.format import format_error

P = ParamSpec("P")
T = TypeVar("T")

_NOT_THERE = (QueryError, DOMError, MountError, ScreenError, NoActiveAppError)
"""Textual's errors for a widget that is no longer on a screen."""


def is_open(node: DOMNode) -> bool:
    """Return whether a screen, or the screen of a widget, is open: `is_mounted` stays true after it is closed."""
    try:
        return node.is_attached and node.screen in node.app.screen_stack
    except _NOT_THERE:
        return False


def was_closed(error: BaseException, *owners: object) -> bool:
    """Return whether work failed only because it used a screen that has been closed.

    `owners` are the widgets, or methods of widgets, that the work belongs to; anything else is ignored.
    """
    nodes = [getattr(owner, "__self__", owner) for owner in owners]
    return isinstance(error, _NOT_THERE) and any(isinstance(node, DOMNode) and not is_open(node) for node in nodes)


def notify_failure(node: Widget, event: Worker.StateChanged) -> None:
    """Log and show why a worker failed; do nothing if it ended otherwise, or because `node` was closed."""
    error = event.worker.error
    if event.state is WorkerState.ERROR and error is not None and not was_closed(error, node):
        log_fault(f"in the worker {event.worker.name or event.worker.group}", error)
        node.notify(format_error(error), severity="error", markup=False)


async def carry_out(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do something in a thread, even if the app ends before one is free; raises the errors of `work`."""
    within = partial(copy_context().run, partial(work, *args, **kwargs))
    return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, within))
