"""Figures and names as agents report them: a figure that cannot be true counts as unknown, and a name has an end."""

from __future__ import annotations

from msgspec.structs import replace

from ..run.events import Event, Notice, Retry, ToolCall, ToolResult, UsageReported
from ..run.model import NoticeLevel
from ..text.plain import one_line, shortened

MOST_TOKENS = 10**10
"""Of one report: more than the largest sums of a day."""
MOST_DOLLARS = 100_000.0
"""Of one report."""
MOST_MS = 10**10
"""Of one call or wait: four months."""
MOST_TRIES = 10**6
NAME = 200
"""Characters of the name of a model or a tool, and of the word for how a message ended."""
ID = 1000
"""Characters of the id of a call."""
REASON = 4000
"""Characters of the reason of a retry."""


def is_figure(value: object, most: float) -> bool:
    """Whether something is a number from 0 to `most`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def whole(value: object, most: int) -> int | None:
    """Return a number from 0 to `most` as a whole one; None for everything else."""
    return int(value) if isinstance(value, int | float) and is_figure(value, most) else None


class Figures:
    """Reads what one report says was used; `checked` has the report say what of that is not known."""

    def __init__(self) -> None:
        self._wrong: dict[str, str] = {}
        """What cannot be true in the report that is being read, by what it is of."""
        self._told: set[str] = set()

    def tokens(self, value: object) -> int:
        """Return a number of tokens: 0 where none is told, and where it cannot be true."""
        return int(self._figure(value, MOST_TOKENS, "tokens"))

    def dollars(self, value: object) -> float:
        return self._figure(value, MOST_DOLLARS, "price")

    def _figure(self, value: object, most: float, what: str) -> float:
        if value is None:
            return 0
        if isinstance(value, int | float) and is_figure(value, most):
            return value
        self._wrong.setdefault(what, one_line(str(value) if isinstance(value, int | float) else "no number", 40))
        return 0

    @property
    def are_wrong(self) -> bool:
        """Whether something that was read cannot be true."""
        return bool(self._wrong)

    def checked(self, event: UsageReported) -> tuple[UsageReported, list[Event]]:
        """Return the report for which the figures were read, and a warning of each kind once."""
        wrong, self._wrong = self._wrong, {}
        if not wrong:
            return event, []
        tokens = event.input + event.output + event.cache_read + event.cache_write
        is_priced = event.priced and "price" not in wrong
        event = replace(
            event,
            priced=is_priced,
            cost=event.cost if is_priced else 0.0,
            counted=event.counted and "tokens" not in wrong and (is_priced or tokens > 0),
        )
        news = wrong.keys() - self._told
        self._told |= news
        words = {"tokens": "a number of tokens", "price": "a price"}
        return event, [
            Notice(
                level=NoticeLevel.WARNING,
                text=f"the agent reports {words[what]} that cannot be true ({wrong[what]}): it counts as unknown",
            )
            for what in sorted(news)
        ]


def named(name: str, most: int = NAME) -> str:
    """Return a name with an end; one of the usual length is as it is."""
    return shortened(name, most)


def bounded(event: Event) -> Event:
    """Return an event whose names have an end."""
    match event:
        case ToolCall() | ToolResult() if (
            len(event.tool_name) > NAME or max(map(len, (event.tool_call_id, event.within))) > ID
        ):
            return replace(
                event,
                tool_name=named(event.tool_name),
                tool_call_id=named(event.tool_call_id, ID),
                within=named(event.within, ID),
            )
        case UsageReported() if max(len(event.model), len(event.stop_reason)) > NAME:
            return replace(event, model=named(event.model), stop_reason=named(event.stop_reason))
        case Retry() if len(event.reason) > REASON:
            return replace(event, reason=named(event.reason, REASON))
        case _:
            return event
