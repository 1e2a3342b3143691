"""What is typed to search all runs: a text or `/expression/`, and terms of the filter that choose the runs; pure."""

from __future__ import annotations

from msgspec import Struct

from ...core.errors import UsageError
from ...core.search.pattern import Pattern
from ...core.text.plain import one_line
from ..runs.filter import EVERYTHING, LONGEST, Filter, parse_filter, split_terms


class Query(Struct, frozen=True):
    """What to search for, and in which runs."""

    pattern: Pattern | None = None
    """None where nothing to search for was typed yet, or where it makes no sense."""
    runs: Filter = EVERYTHING
    error: str = ""

    @property
    def words(self) -> str:
        """What a search of the transcript finds it by; empty for an expression."""
        return "" if self.pattern is None or self.pattern.is_regex else self.pattern.text


def parse_query(text: str) -> Query:
    """Parse what was typed; whatever it is, there is a result.

    Known `key:value` terms choose runs, all else is the text as it stands; its case counts when a capital letter is
    in it. Between two slashes it is an expression.
    """
    terms, sought = split_terms(one_line(text, LONGEST))
    runs = parse_filter(terms)
    if runs.error is not None:
        return Query(runs=runs, error=runs.error.advice)
    if not sought or sought in ("/", "//"):
        return Query(runs=runs)
    is_regex = len(sought) > 2 and sought[0] == sought[-1] == "/"
    try:
        pattern = pattern_of(sought[1:-1] if is_regex else sought, regex=is_regex)
    except UsageError as error:
        return Query(runs=runs, error=error.what)
    return Query(pattern, runs)


def pattern_of(text: str, *, regex: bool = False) -> Pattern:
    """Return the pattern of a text whose case counts when a capital letter is in it. Raises UsageError."""
    return Pattern(text, regex=regex, ignore_case=text == text.lower())
