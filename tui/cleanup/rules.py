"""The rules of a clean-up as they are typed, and what they would delete in words; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...core.config.settings import Retention
from ...core.errors import UsageError
from ...core.project.retention import DAY, Selection, Stock
from ...core.project.trash import KEPT
from ...core.run.describe import runs_word, size_text
from ...core.text.plain import one_line

T = TypeVar("T", int, float)

FIELDS = ("days", "keep", "max_mb")
_EXPECTED = {
    "days": "Older than: enter a number of days",
    "keep": "Keep: enter a whole number of runs",
    "max_mb": "At most: enter a number of megabytes",
}


def written(rule: Retention) -> dict[str, str]:
    """Return the rules of the settings as they would be typed."""
    return {
        "days": "" if rule.days is None else f"{rule.days:g}",
        "keep": "" if rule.keep is None else str(rule.keep),
        "max_mb": "" if rule.max_mb is None else f"{rule.max_mb:g}",
    }


def read_rule(fields: dict[str, str]) -> Retention:
    """Return what is typed as rules, blank ones unset. Raises UsageError, which names every wrong field."""
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
            problems.append(f'{_EXPECTED[name]} or leave it empty, not "{one_line(fields[name], 20)}"')
            return None
        return value

    rule = Retention(read("days", float), read("keep", int), read("max_mb", float))
    if problems:
        raise UsageError("\n".join(problems))
    return rule


def now_line(stock: Stock) -> str:
    """Say how many runs there are."""
    trash = f"{runs_word(len(stock.trash))}, {size_text(stock.trash_size)}"
    return f"Now: {runs_word(len(stock.runs))}, {size_text(stock.size)}; in the trash: {trash}."


def taken_line(selection: Selection) -> str:
    if not selection.going:
        return "Nothing would be deleted."
    return f"Would delete {runs_word(len(selection.going))}, {size_text(selection.size)}:"


def spared_line(selection: Selection) -> str:
    """Say which old runs are kept, and which of the others nobody has looked at."""
    parts: list[str] = []
    if selection.unfinished:
        parts.append(f"Kept: {runs_word(selection.unfinished)} not finished yet.")
    if selection.needed:
        parts.append(f"Kept: {runs_word(selection.needed)} that you marked or that need you.")
    if selection.untold:
        parts.append(f"! You have not yet looked at the end of {selection.untold} of those to be deleted.")
    return " ".join(parts)


def room_line(stock: Stock, selection: Selection, now: float, *, purge: bool) -> str:
    """Say how much room is freed, and when."""
    if not selection.going:
        return ""
    room = size_text(selection.size)
    if purge:
        return f"Frees {room} at once. These runs cannot be restored."
    hours = round(KEPT / 3600)
    line = f"Frees nothing now, and {room} in {hours} h, when they leave the trash; until then they can be restored."
    if not stock.trash:
        return line
    oldest = min(run.ended or now for run in stock.trash)
    left = max(0.0, oldest + KEPT - now)
    when = f"in {round(left / 3600)} h" if left >= 3600 else "within the hour"
    return f"{line} The first runs now in the trash ({size_text(stock.trash_size)} in all) leave it {when}."


def loss_text(selection: Selection, *, purge: bool, undo_key: str) -> str:
    """Say what is lost, for the question."""
    lines = [
        f"{runs_word(len(selection.going))} with transcripts, answers, logs and child sessions, "
        f"{size_text(selection.size)}."
    ]
    if selection.untold:
        lines.append(f"You have not yet looked at the end of {selection.untold} of them.")
    if purge:
        lines.append("They are removed for good and cannot be restored.")
    else:
        lines.append(f"They stay in the trash for {round(KEPT / DAY * 24)} h; {undo_key} restores all of them.")
    return "\n\n".join(lines)
