"""Reports beside the model's text: a turn's tokens, and Copilot's own messages.

Copilot sends each error, retry and denial as a separate chunk. A request to the model begins with `usage_update`.
Another one without a tool call in between continues an answer that the length limit cut off; one answer takes at most
three requests.

The protocol reports tokens at the end of a turn. `totalTokens` shows whether the input includes the tokens from a
cache; if it does, they are counted separately.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...run.events import Event, Notice, Retry, UsageReported
from ...run.model import NoticeLevel
from ...text.plain import one_line
from .._json_lines import count, error_words, mapping
from ..sentence import Sentence
from ._programs import Program

_RETRIES = re.compile(r"Info: (.*) Retrying\.\.\.\s*")
_CANCELLED = "Info: Operation cancelled by user"
_ERROR = "Error: "
_KNOWN_ERROR = re.compile(
    r"Error: (\d{3}\b|Authentication failed|Model '.*' not found|Failed to get response|No response was returned)"
    r"|Error: .*\(HTTP \d{3}\)",
    re.DOTALL,
)
EMPTY = "No response was returned"
"""Start of the error for an empty answer."""
MOST_TRIES = 3
"""Requests per answer, after which the program accepts an incomplete one."""


class Notes:
    """Sorts the chunks of a turn: the model's text stays in the sentence, the program's text becomes events."""

    def __init__(self, writing: Sentence) -> None:
        self._writing = writing
        self.begin()

    def begin(self) -> None:
        """Begin a turn."""
        self.error = ""
        """The text of an error not followed by other text."""
        self._before = ""
        """Text written before the current request."""
        self._requests = 0
        """For the answer being written."""
        self._is_retried = False
        self._has_text = False
        """Whether the current request brought anything."""
        self._tries = 0

    @property
    def is_certain(self) -> bool:
        """Whether the error has a known form of the program."""
        return _KNOWN_ERROR.match(self.error) is not None

    @property
    def words(self) -> str:
        return error_words(self.error.removeprefix(_ERROR).strip())

    @property
    def is_cut(self) -> bool:
        """Whether the program stopped requesting the rest of the answer."""
        return self._requests >= MOST_TRIES

    @property
    def is_empty(self) -> bool:
        """Whether the last request brought nothing."""
        return self._requests > 0 and not self._has_text

    def asked(self) -> None:
        """Handle the beginning of a request to the model."""
        if not self._is_retried:
            self._requests += 1
        self._is_retried = self._has_text = False
        self._before = self._writing.whole()

    def called(self) -> None:
        """Handle a tool call: the next request is for another answer."""
        self._requests = 0
        self._has_text = True

    def take(self, text: str) -> list[Event] | None:
        """Return the events of a program's chunk; None if the chunk is the model's text."""
        if retry := _RETRIES.fullmatch(text):
            self.error = ""
            self._writing.clear()
            self._writing.add_text(self._before)
            self._is_retried = True
            self._tries += 1
            reason = one_line(error_words(retry[1]), 400)
            return [Retry(attempt=self._tries, max_attempts=0, delay_ms=0, reason=reason)]
        if text.strip() == _CANCELLED:
            return [Notice(level=NoticeLevel.INFO, text=text.strip().removeprefix("Info: "))]
        if self.error:
            self._writing.add_text(self.error)  # the model continues after it, so the text was the model's
            self.error = ""
        elif text.startswith(_ERROR) and (not self._has_text or _KNOWN_ERROR.match(text)):
            self.error = text
            return []
        self._has_text = self._has_text or bool(text.strip())
        return None


# --- tokens ----------------------------------------------------------------------------------------------------------

_Read = Callable[[object], int]
_Counts = tuple[int, int, int, int]
"""Input, output, read from a cache, written to a cache."""


class Tokens:
    """One session's usage: takes the program's reports and returns the increase."""

    def __init__(self, read: _Read) -> None:
        """`read` parses a number of tokens."""
        self._read = read
        self.cost: float | None = None
        """Of the session so far; None if it is not reported in dollars."""
        self._reported_cost = 0.0
        self._reported: _Counts = (0, 0, 0, 0)
        """Total of earlier turns, if the program reports running totals."""
        self.begin()

    def begin(self) -> None:
        """Begin a turn."""
        self._has_steps = self._has_calls = False

    def called(self) -> None:
        """Handle a tool call: the turn has more than one request."""
        self._has_calls = True

    def of_step(self, usage: dict[str, Any], model: str, *, is_counted: bool) -> UsageReported:
        """Return the usage of one request; failed attempts are not counted."""
        self._has_steps = True
        return self._event(_counts(usage, self._read), "stop", model, is_counted=is_counted)

    def of_turn(self, result: dict[str, Any], stop: str, program: Program, model: str) -> UsageReported | None:
        """Return the turn's usage; None if its requests already reported it."""
        if self._has_steps:
            if not program.marks_whole or program.marks_whole in mapping(result.get("_meta")):
                return None
            return self._event((0, 0, 0, 0), "error", model, is_counted=False)  # only the last attempt is reported
        usage = mapping(result.get("usage"))
        quota = mapping(mapping(result.get("_meta")).get("quota"))
        counts = _counts(usage, self._read) if usage else _quota(quota, self._read)
        if counts is None or (not any(counts) and stop != "stop"):
            return self._event((0, 0, 0, 0), stop, model, is_counted=False)
        if program.sums_session:
            counts, self._reported = _less(counts, self._reported), counts
        is_part = program.counts_last_step and self._has_calls
        return self._event(counts, stop, model, is_counted=not is_part and any(counts))

    def _event(self, counts: _Counts, stop: str, model: str, *, is_counted: bool) -> UsageReported:
        cost = None if self.cost is None else max(0.0, self.cost - self._reported_cost)
        self._reported_cost = self.cost or 0.0
        read = dict(zip(("input", "output", "cache_read", "cache_write"), counts, strict=True))
        # Programs report $0 for a model with an unknown price.
        is_priced = bool(cost) or (cost is not None and not any(counts) and is_counted)
        return UsageReported(
            **read, cost=cost or 0.0, model=model, stop_reason=stop, priced=is_priced, counted=is_counted
        )


def _counts(usage: dict[str, Any], count: _Read) -> _Counts:
    input_tokens, output = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
    read, written = count(usage.get("cachedReadTokens")), count(usage.get("cachedWriteTokens"))
    total = count(usage.get("totalTokens"))
    is_inside = 0 < total < input_tokens + output + read + written
    return (max(0, input_tokens - read - written) if is_inside else input_tokens), output, read, written


def _quota(quota: dict[str, Any], count: _Read) -> _Counts | None:
    """Parse gemini's numbers: the input includes an unknown number of tokens from a cache."""
    counts = mapping(quota.get("token_count"))
    if not {"input_tokens", "output_tokens"} & counts.keys():
        return None
    return count(counts.get("input_tokens")), count(counts.get("output_tokens")), 0, 0


def reports_nothing(result: dict[str, Any]) -> bool:
    """Whether the end of a turn reports no finished answer of any model, as gemini does."""
    quota = mapping(mapping(result.get("_meta")).get("quota"))
    return quota.get("model_usage") == [] and not any(_quota(quota, count) or (1,))


def _less(counts: _Counts, before: _Counts) -> _Counts:
    """Return the increase; the full counts if the program started again from zero."""
    if any(now < then for now, then in zip(counts, before, strict=True)):
        return counts
    input_tokens, output, read, written = (now - then for now, then in zip(counts, before, strict=True))
    return input_tokens, output, read, written
