"""Which field of a launch dialog an error is about; pure."""

from __future__ import annotations

from collections.abc import Iterable

from ...core.errors import ModelError, RunnerUnavailable, SubdeckError
from ...core.text.plain import one_line
from ..text.format import format_error

REST = ""
"""The foot of the dialog."""

_FIELDS = {"task": "task", "previous": "task", "cwd": "cwd", "copies": "copies", "tools": "tools", "save": "save"}
"""Field by the `where` of an error."""


def by_field(problems: Iterable[Exception], fields: Iterable[str]) -> dict[str, str]:
    """Return what to say beside each of these fields, and what is about none of them at `REST`."""
    known, said = frozenset(fields), dict[str, list[str]]()
    for problem in problems:
        field = field_of(problem)
        if field in known and isinstance(problem, SubdeckError):
            said.setdefault(field, []).append(beside(problem))
        else:
            said.setdefault(REST, []).append(format_error(problem))
    return {field: "\n".join(texts) for field, texts in said.items()}


def field_of(problem: Exception) -> str:
    """Return the field that an error is about; `REST` for none."""
    if isinstance(problem, ModelError):
        return "model"
    if isinstance(problem, RunnerUnavailable):
        return "runner"
    return _FIELDS.get(getattr(problem, "where", ""), REST)


def beside(problem: SubdeckError) -> str:
    """Return what is wrong and what to do, for a place that shows where."""
    return one_line(f"{problem.what}: {problem.hint}" if problem.hint else problem.what, 600)
