"""What a run uses, the limits on that, and where people set each limit.

Annotations are evaluated here, as in `model`.
"""

from enum import Enum

from msgspec import Struct

from .enumerations import Cost, Period, Whole
from .inputs import Argument, Option
from .prices import dollars


class Usage(Struct, frozen=True, rename="camel"):
    """Sums over a run; tokens, and cost in dollars."""

    input: Whole = 0
    output: Whole = 0
    cache_read: Whole = 0
    cache_write: Whole = 0
    cost: Cost = 0.0
    turns: Whole = 0
    tool_uses: Whole = 0
    unpriced: Whole = 0
    """Tokens without a reported price: not in `cost`."""
    estimated: Cost = 0.0
    """The part of `cost` from the user's table, until the agent reports its own."""
    uncounted: Whole = 0
    """Messages whose tokens the agent did not fully report: the sums are too low."""

    @property
    def tokens(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write


class Limits(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Limits of a run; None means no limit. Each has an entry in `LIMITS`.

    These end the run from outside. One that only its agent can keep belongs here too.
    """

    timeout: Period | None = None
    """Seconds."""
    max_turns: Whole | None = None
    stall: Period | None = None
    """Seconds without a byte from the agent while no tool runs."""
    budget: Cost | None = None
    """Dollars."""
    max_tokens: Whole | None = None
    """Of all kinds: input, output and cache."""

    def is_overspent(self, used: Usage) -> bool:
        """Return whether the run has used up its dollars or its tokens."""
        return (self.budget is not None and used.cost >= self.budget) or (
            self.max_tokens is not None and used.tokens >= self.max_tokens
        )

    def spent_words(self, used: Usage) -> str:
        """`spent $0.52 of $0.50`, `used 1,204 of 1,000 tokens`; for the limit that is used up."""
        if self.budget is not None and used.cost >= self.budget:
            return f"spent {dollars(used.cost)} of {dollars(self.budget)}"
        return f"used {used.tokens:,} of {self.max_tokens or 0:,} tokens"


class Unit(Enum):
    """How a limit is written and shown."""

    SECONDS = "seconds"
    DOLLARS = "dollars"
    COUNT = "count"


class Limit(Struct, frozen=True, kw_only=True):
    """What people read of a limit. Presets and settings can set it; the settings' value is the upper bound."""

    unit: Unit
    meaning: str
    """For preset authors."""
    setting: str
    """Its meaning as a setting."""
    example: str
    """Its value in the example of a settings file."""
    words: str
    """Template for a line: `{}` stands for the value, `{s}` for the ending of a plural."""
    label: str = ""
    """Label in the launch dialog, for dollars and counts; empty: the dialog does not ask for it."""
    option: Option | None = None
    argument: Argument | None = None


LIMITS = {
    "timeout": Limit(
        unit=Unit.SECONDS,
        meaning="Stop the run after this time: seconds, or 90s, 10m, 2h.",
        setting="Stop a run after this time. Presets can only lower it.",
        example="30m",
        words="timeout {}",
    ),
    "max_turns": Limit(
        unit=Unit.COUNT,
        meaning="Stop the run after this many model turns.",
        setting="Stop a run after this many model turns.",
        example="100",
        words="{} turn{s}",
    ),
    "budget": Limit(
        unit=Unit.DOLLARS,
        meaning="Stop the run after it has spent this many dollars.",
        setting="Stop a run after it has spent this many dollars.",
        example="2.50",
        words="budget {}",
        label="Budget",
        option=Option("--budget", "DOLLARS", "Stop the run after this many dollars."),
        argument=Argument("budget", "Stop the subagent after this many dollars; can only lower the limit.", "number"),
    ),
    "max_tokens": Limit(
        unit=Unit.COUNT,
        meaning="Stop the run after it has used this many tokens, cache tokens included.",
        setting="Stop a run after it has used this many tokens, cache tokens included.",
        example="5000000",
        words="{:,} tokens",
        label="Tokens",
        option=Option("--max-tokens", "N", "Stop the run after this many tokens."),
        argument=Argument(
            "maxTokens", "Stop the subagent after this many tokens; can only lower the limit.", "integer", int
        ),
    ),
    "stall": Limit(
        unit=Unit.SECONDS,
        meaning="Stop the run if the agent is idle for this long while no tool is running.",
        setting="Stop a run if its agent is idle for this long while no tool is running.",
        example="10m",
        words="stall {}",
    ),
}
"""By field of `Limits`: settings, presets, commands, tools and the app are made from this table."""
