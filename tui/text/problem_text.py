"""Errors as the screen says them."""

from __future__ import annotations

from textual.widget import Widget
from textual.worker import Worker, WorkerState

from ...core.text.plain import one_line, plain


def problem_text(error: Exception) -> str:
    """What, where, what to do, fit for the screen."""
    return plain(str(error)) or one_line(type(error).__name__)


def tell_failure(node: Widget, event: Worker.StateChanged) -> None:
    """Say that work beside the event loop went wrong; nothing where it ended otherwise."""
    error = event.worker.error
    if event.state is WorkerState.ERROR and error is not None:
        text = problem_text(error) if isinstance(error, Exception) else type(error).__name__
        node.notify(text, severity="error", markup=False)
