"""Terms of a filter that compare: `age:<1d`, `after:2026-11-20`, `before:12:30`, `cost:>1`; pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta

from ...core.run.describe import moment
from ...core.run.snapshot import RunSnapshot

Compare = Callable[[float, float], bool]
Holds = Callable[[RunSnapshot], bool]

_COMPARED = re.compile(r"(<=|>=|<|>)?\s*(\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})\s*([a-z$]*)")
_COMPARES: dict[str, Compare] = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}
_SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_DAYS = {"today": 0, "yesterday": 1}

KEYS = ("age", "cost", "after", "before")


def bound(key: str, value: str) -> Holds | None:
    """Return the test of a term; None for a value in the wrong form."""
    if key == "cost":
        return _cost(value)
    return _age(value) if key == "age" else _moment(key, value)


def form(key: str) -> str:
    """Return the syntax of a term's value."""
    return {
        "age": 'age: takes a value like "<1d" or ">2h" (s, m, h, d, w)',
        "cost": 'cost: takes a value like ">1" or "<0.05" in dollars',
    }.get(key, f'{key}: takes a value like "2026-11-20", "2026-11-20T14:30", "14:30", "today" or "yesterday"')


def _cost(value: str) -> Holds | None:
    match = _COMPARED.fullmatch(value.replace("$", ""))
    if match is None or match[3]:
        return None
    compare, limit = _COMPARES[match[1] or ">="], float(match[2])
    return lambda run: compare(run.usage.cost, limit)


def _age(value: str) -> Holds | None:
    match = _COMPARED.fullmatch(value)
    if match is None or match[3] not in _SECONDS:
        return None
    compare, limit = _COMPARES[match[1] or "<"], float(match[2]) * _SECONDS[match[3]]

    def holds(run: RunSnapshot) -> bool:
        launched = moment(run.meta.created_at)
        return launched is not None and compare((datetime.now(UTC) - launched).total_seconds(), limit)

    return holds


def _moment(key: str, value: str) -> Holds | None:
    limit = _read_moment(value)
    if limit is None:
        return None

    def holds(run: RunSnapshot) -> bool:
        launched = moment(run.meta.created_at)
        return launched is not None and (launched >= limit if key == "after" else launched < limit)

    return holds


def _read_moment(value: str) -> datetime | None:
    """Parse a day or a time of day in local time."""
    now = datetime.now().astimezone()
    if value in _DAYS:
        return datetime.combine((now - timedelta(days=_DAYS[value])).date(), time()).astimezone()
    try:
        if re.fullmatch(r"\d{1,2}:\d\d", value):
            hour, minute = map(int, value.split(":"))
            return datetime.combine(now.date(), time(hour, minute)).astimezone()
        read = datetime.fromisoformat(value.upper())
        return read.astimezone() if 1971 <= read.year <= 9000 else None
    except (ValueError, OverflowError):
        return None
