"""What programs tell beside the words of the model: the tokens of a turn, and what Copilot says in the model's place.

Each error, retry and denial of Copilot's is a chunk of its own. A request to the model begins with `usage_update`; a
further one without a call of a tool between them goes on with an answer that the length limit cut off, three times at
most.

The protocol has tokens with the end of a turn. `totalTokens` says whether tokens from a cache are among those of the
input: there they are counted apart.
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
"""How the error of an empty answer begins."""
MOST_TRIES = 3
"""Requests for one answer: after so many the program takes it as it is."""


class Notes:
    """Takes the chunks of a turn; what the model wrote stays in the sentence, what the program did comes as events."""

    def __init__(self, writing: Sentence) -> None:
        self._writing = writing
        self.begin()

    def begin(self) -> None:
        """Begin a turn."""
        self.error = ""
        """The text of an error that nothing came after."""
        self._before = ""
        """What was written before the request at work."""
        self._requests = 0
        """For the answer that is being written."""
        self._is_retried = False
        self._has_text = False
        """Whether something came of the request at work."""
        self._tries = 0

    @property
    def is_certain(self) -> bool:
        """Whether the error is one that the program is known to write."""
        return _KNOWN_ERROR.match(self.error) is not None

    @property
    def words(self) -> str:
        return error_words(self.error.removeprefix(_ERROR).strip())

    @property
    def is_cut(self) -> bool:
        """Whether the program has given up to ask for the rest of the answer."""
        return self._requests >= MOST_TRIES

    @property
    def is_empty(self) -> bool:
        """Whether nothing came of the last request."""
        return self._requests > 0 and not self._has_text

    def asked(self) -> None:
        """Take the beginning of a request to the model."""
        if not self._is_retried:
            self._requests += 1
        self._is_retried = self._has_text = False
        self._before = self._writing.whole()

    def called(self) -> None:
        """Take a call of a tool: the next request is for another answer."""
        self._requests = 0
        self._has_text = True

    def take(self, text: str) -> list[Event] | None:
        """Return the events of a chunk of the program; None for text of the model."""
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
            self._writing.add_text(self.error)  # the model goes on after it, so that it is the model's
            self.error = ""
        elif text.startswith(_ERROR) and (not self._has_text or _KNOWN_ERROR.match(text)):
            self.error = text
            return []
        self._has_text = self._has_text or bool(text.strip())
        return None


# --- tokens ----------------------------------------------------------------------------------------------------------

_Read = Callable[[object], int]
_Counts = tuple[int, int, int, int]
"""Input, output, read from a cache, written to one."""


class Tokens:
    """Of one session: takes what a program tells, and returns what is new of it."""

    def __init__(self, read: _Read) -> None:
        """`read` returns what a number of tokens says."""
        self._read = read
        self.cost: float | None = None
        """Of the session so far; None where it was not told in dollars."""
        self._told_cost = 0.0
        self._told: _Counts = (0, 0, 0, 0)
        """Of the turns before, where a program sums them up."""
        self.begin()

    def begin(self) -> None:
        """Begin a turn."""
        self._has_steps = self._has_calls = False

    def called(self) -> None:
        """Take a call of a tool: the turn has more than one request."""
        self._has_calls = True

    def of_step(self, usage: dict[str, Any], model: str, *, is_counted: bool) -> UsageReported:
        """Return what one request of the turn used; tries of it that failed are not counted."""
        self._has_steps = True
        return self._event(_counts(usage, self._read), "stop", model, is_counted=is_counted)

    def of_turn(self, result: dict[str, Any], stop: str, program: Program, model: str) -> UsageReported | None:
        """Return what the turn used; None where its requests told that already."""
        if self._has_steps:
            if not program.marks_whole or program.marks_whole in mapping(result.get("_meta")):
                return None
            return self._event((0, 0, 0, 0), "error", model, is_counted=False)  # of several tries it tells the last
        usage = mapping(result.get("usage"))
        quota = mapping(mapping(result.get("_meta")).get("quota"))
        counts = _counts(usage, self._read) if usage else _quota(quota, self._read)
        if counts is None or (not any(counts) and stop != "stop"):
            return self._event((0, 0, 0, 0), stop, model, is_counted=False)
        if program.sums_session:
            counts, self._told = _less(counts, self._told), counts
        is_part = program.counts_last_step and self._has_calls
        return self._event(counts, stop, model, is_counted=not is_part and any(counts))

    def _event(self, counts: _Counts, stop: str, model: str, *, is_counted: bool) -> UsageReported:
        cost = None if self.cost is None else max(0.0, self.cost - self._told_cost)
        self._told_cost = self.cost or 0.0
        read = dict(zip(("input", "output", "cache_read", "cache_write"), counts, strict=True))
        # Programs tell $0 for a model whose price they do not know.
        is_priced = bool(cost) or (cost is not None and not any(counts) and is_counted)
        return UsageReported(
            **read, cost=cost or 0.0, model=model, stop_reason=stop, priced=is_priced, counted=is_counted
        )


def _counts(usage: dict[str, Any], count: _Read) -> _Counts:
    given, output = count(usage.get("inputTokens")), count(usage.get("outputTokens"))
    read, written = count(usage.get("cachedReadTokens")), count(usage.get("cachedWriteTokens"))
    total = count(usage.get("totalTokens"))
    is_inside = 0 < total < given + output + read + written
    return (max(0, given - read - written) if is_inside else given), output, read, written


def _quota(quota: dict[str, Any], count: _Read) -> _Counts | None:
    """Read what gemini tells: those from a cache are among the input, and nobody tells how many."""
    told = mapping(quota.get("token_count"))
    if not {"input_tokens", "output_tokens"} & told.keys():
        return None
    return count(told.get("input_tokens")), count(told.get("output_tokens")), 0, 0


def reports_nothing(result: dict[str, Any]) -> bool:
    """Whether the end of a turn says of each model that no answer of it was finished, as gemini does."""
    quota = mapping(mapping(result.get("_meta")).get("quota"))
    return quota.get("model_usage") == [] and not any(_quota(quota, count) or (1,))


def _less(counts: _Counts, before: _Counts) -> _Counts:
    """Return what came since; all of it where the program has begun to count anew."""
    if any(now < then for now, then in zip(counts, before, strict=True)):
        return counts
    given, output, read, written = (now - then for now, then in zip(counts, before, strict=True))
    return given, output, read, written
