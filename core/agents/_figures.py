"""Numbers and names from agents: an impossible number counts as unknown, and names have a maximum length."""

from __future__ import annotations

from msgspec.structs import replace

from ..run.events import Event, Notice, Retry, ToolCall, ToolResult, UsageReported
from ..run.model import NoticeLevel
from ..text.plain import one_line, shortened

MOST_TOKENS = 10**10
"""In one report: more than the largest sums of a day."""
MOST_DOLLARS = 100_000.0
"""In one report."""
MOST_MS = 10**10
"""For one call or wait: four months."""
MOST_TRIES = 10**6
NAME = 200
"""Maximum characters of a model's or tool's name, and of a stop reason."""
ID = 1000
"""Maximum characters of a call's id."""
REASON = 4000
"""Maximum characters of the reason for a retry."""


def is_figure(value: object, most: float) -> bool:
    """Whether a value is a number from 0 to `most`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def whole(value: object, most: int) -> int | None:
    """Return a number from 0 to `most` as an integer; None for any other value."""
    return int(value) if isinstance(value, int | float) and is_figure(value, most) else None


class Figures:
    """Reads the numbers of one usage report; `checked` marks the impossible ones as unknown."""

    def __init__(self) -> None:
        self._wrong: dict[str, str] = {}
        """Impossible numbers of the current report, by their kind."""
        self._reported: set[str] = set()

    def tokens(self, value: object) -> int:
        """Return a number of tokens; 0 if it is missing or impossible."""
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
        """Whether an impossible number was read."""
        return bool(self._wrong)

    def checked(self, event: UsageReported) -> tuple[UsageReported, list[Event]]:
        """Return the corrected report, and a warning the first time each kind of number is wrong."""
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
        news = wrong.keys() - self._reported
        self._reported |= news
        words = {"tokens": "a number of tokens", "price": "a price"}
        return event, [
            Notice(
                level=NoticeLevel.WARNING,
                text=f"the agent reports {words[what]} that cannot be true ({wrong[what]}): it counts as unknown",
            )
            for what in sorted(news)
        ]


def named(name: str, most: int = NAME) -> str:
    """Return a name cut to the maximum length."""
    return shortened(name, most)


def bounded(event: Event) -> Event:
    """Return an event with its names shortened."""
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
