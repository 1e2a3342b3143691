"""Errors as the screen says them; pure."""

from __future__ import annotations

from ..core.plain import one_line, plain


def problem_text(error: Exception) -> str:
    """What, where, what to do, fit for the screen."""
    return plain(str(error)) or one_line(type(error).__name__)
