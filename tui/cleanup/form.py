"""The rules of a clean-up as they are typed, and in words what they would take; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...core.config.settings import Retention
from ...core.project.retention import DAY, Selection, Stock
from ...core.project.trash import KEPT
from ...core.run.describe import runs_word, size_text
from ...core.text.plain import one_line

T = TypeVar("T", int, float)

FIELDS = ("days", "keep", "max_mb")
_MEANT = {
    "days": "Older than: a number of days",
    "keep": "Keep: a whole number of runs",
    "max_mb": "At most: a number of megabytes",
}


def written(rule: Retention) -> dict[str, str]:
    """Return the rules of the settings as they would be typed."""
    return {
        "days": "" if rule.days is None else f"{rule.days:g}",
        "keep": "" if rule.keep is None else str(rule.keep),
        "max_mb": "" if rule.max_mb is None else f"{rule.max_mb:g}",
    }


def read_rule(fields: dict[str, str]) -> tuple[Retention, str]:
    """Return what is typed as rules, blank ones unset, and what is wrong with them in words."""
    problems: list[str] = []

    def read(name: str, kind: Callable[[str], T]) -> T | None:
        text = fields[name].strip().replace(",", "")
        if not text:
            return None
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not 0 <= value < 1e9:
            problems.append(f"{_MEANT[name]}, or nothing; not {one_line(fields[name], 20)}")
            return None
        return value

    rule = Retention(read("days", float), read("keep", int), read("max_mb", float))
    return rule, "\n".join(problems)


def now_line(stock: Stock) -> str:
    """Say what is there."""
    trash = f"in the trash {runs_word(len(stock.trash))}, {size_text(stock.trash_size)}"
    return f"Now there are {runs_word(len(stock.runs))}, {size_text(stock.size)}; {trash}."


def taken_line(selection: Selection) -> str:
    if not selection.going:
        return "Takes nothing."
    return f"Takes {runs_word(len(selection.going))}, {size_text(selection.size)}:"


def spared_line(selection: Selection) -> str:
    """Say what stays although it is old, and what nobody has seen."""
    parts: list[str] = []
    if selection.unfinished:
        parts.append(f"{runs_word(selection.unfinished)} not done yet: never taken.")
    if selection.needed:
        parts.append(f"{runs_word(selection.needed)} marked, or in need of you: not taken.")
    if selection.untold:
        parts.append(f"! The end of {selection.untold} of those taken was not looked at yet.")
    return " ".join(parts)


def room_line(stock: Stock, selection: Selection, now: float, *, purge: bool) -> str:
    """Say honestly when which room is free."""
    if not selection.going:
        return ""
    room = size_text(selection.size)
    if purge:
        return f"Frees {room} at once. Nothing brings these runs back."
    hours = round(KEPT / 3600)
    line = f"Frees nothing now, and {room} in {hours} h, when the trash gives them up; till then they can come back."
    if not stock.trash:
        return line
    oldest = min(run.ended or now for run in stock.trash)
    left = max(0.0, oldest + KEPT - now)
    when = f"in {round(left / 3600)} h" if left >= 3600 else "within the hour"
    return f"{line} What is in the trash now ({size_text(stock.trash_size)}) begins to go {when}."


def loss_text(selection: Selection, *, purge: bool, undo_key: str) -> str:
    """Name what is lost, for the question."""
    lines = [
        f"{runs_word(len(selection.going))} with transcripts, answers, logs and child sessions, "
        f"{size_text(selection.size)}."
    ]
    if selection.untold:
        lines.append(f"The end of {selection.untold} of them was not looked at yet.")
    if purge:
        lines.append("They are removed for good: nothing brings them back.")
    else:
        lines.append(f"They go to the trash for {round(KEPT / DAY * 24)} h; {undo_key} brings all of them back.")
    return "\n\n".join(lines)
