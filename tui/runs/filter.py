"""The filter of the run list: words and `key:value`, each possibly negated; pure.

    parser status:failed,aborted -preset:docs "two words" is:unread age:<1d cost:>1 text:token /a.*b/

All terms must match. An incomplete term, like `status:` while it is being typed, is ignored; so is an invalid one:
`Filter.error` has the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from ...core.errors import UsageError, nearest
from ...core.run.columns import COLUMNS, model_of
from ...core.run.describe import latest
from ...core.run.model import STATUS_OF, RunnerKind, RunStatus
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from . import _bounds

LONGEST = 500
"""Characters of a filter that are read."""
SEARCHED = 2_000
"""Characters of a task that are searched."""

_TERM = re.compile(r'(?P<negated>-?)(?P<body>/(?:[^/\\]|\\.)+/(?=\s|$)|(?:"[^"]*(?:"|$)|[^\s"])+)')
_EXPRESSION = re.compile(r"/(?P<expression>.+)/", re.DOTALL)
_KEYED = re.compile(r"(?P<key>[A-Za-z]+):(?P<values>.*)", re.DOTALL)
_VALUE = re.compile(r'(?:"[^"]*(?:"|$)|[^,"])+')


class Flags(NamedTuple):
    """The app's knowledge of a run beside its snapshot."""

    unseen: bool
    marked: bool
    holds: frozenset[str] = frozenset()
    """The sought texts found in the run's requests, actions or messages."""
    silent: bool = False


Test = Callable[[RunSnapshot, Flags], bool]


class Filter(Struct, frozen=True):
    """A parsed filter; every run passes an empty one."""

    text: str = ""
    """As it was typed, on one line."""
    tests: tuple[Test, ...] = ()
    error: UsageError | None = None
    """Its first invalid term."""
    sought: frozenset[str] = frozenset()
    """Texts of `text:`, to be searched for in the runs' files."""

    def __bool__(self) -> bool:
        return bool(self.tests)

    def passes(self, run: RunSnapshot, flags: Flags) -> bool:
        return all(test(run, flags) for test in self.tests)


EVERYTHING = Filter()


def parse_filter(text: str) -> Filter:
    """Parse a filter; every text has a result."""
    text = one_line(text, LONGEST)
    tests: list[Test] = []
    sought: set[str] = set()
    first_error: UsageError | None = None
    for term in _TERM.finditer(text):
        body, error = term["body"], None
        keyed = _KEYED.fullmatch(body)
        if expression := _EXPRESSION.fullmatch(body):
            test, error = _expression_test(expression["expression"])
        elif keyed is None:
            test = _word_test(_unquoted(body))
        elif keyed["key"].casefold() == TEXT:
            test = _text_test(text_value := keyed["values"].replace('"', "").strip())
            sought.update(filter(None, (text_value,)))
        else:
            values = [_unquoted(value) for value in _VALUE.findall(keyed["values"])]
            test, error = _keyed_test(keyed["key"].casefold(), [value for value in values if value])
        first_error = first_error or error
        if test is not None:
            tests.append(_negation(test) if term["negated"] else test)
    return Filter(text, tuple(tests), first_error, frozenset(sought))


def split_terms(text: str) -> tuple[str, str]:
    """Split a typed text into `key:value` terms of known keys, which choose runs, and the remaining literal text.

    The value of `text:` belongs to that text.
    """
    terms: list[str] = []
    literals: list[str] = []
    end = 0
    for term in _TERM.finditer(text):
        keyed = _KEYED.fullmatch(term["body"])
        key = keyed["key"].casefold() if keyed else ""
        if keyed is None or key not in KEYS:
            continue
        literals.append(text[end : term.start()].strip())
        end = term.end()
        if key == TEXT:
            literals.append(keyed["values"].replace('"', ""))
        else:
            terms.append(term[0])
    literals.append(text[end:].strip())
    return " ".join(terms), " ".join(filter(None, literals))


def _unquoted(text: str) -> str:
    return text.replace('"', "").strip().casefold()


def _negation(test: Test) -> Test:
    return lambda run, flags: not test(run, flags)


# --- words -----------------------------------------------------------------------------------------------------------


def _word_test(word: str) -> Test | None:
    if not word or word == "-":
        return None
    return lambda run, _: any(word in text.casefold() for text in _texts(run))


def _expression_test(expression: str) -> tuple[Test | None, UsageError | None]:
    """Return the case-insensitive test of `/expression/`, and its error."""
    from ...core.search.pattern import Pattern

    try:
        pattern = Pattern(expression, regex=True, ignore_case=True)
    except UsageError as error:
        return None, UsageError(error.what)
    return lambda run, _: any(pattern.spans(text) for text in _texts(run)), None


def _text_test(text: str) -> Test | None:
    """Return the test of `text:`, for which the files have already been searched."""
    return (lambda _, flags: text in flags.holds) if text else None


def _texts(run: RunSnapshot) -> Iterator[str]:
    """Yield the texts searched for a word, the likeliest first."""
    meta = run.meta
    yield meta.title
    yield meta.description
    yield meta.task[:SEARCHED]
    yield meta.short_id
    yield latest(run)
    yield model_of(run)
    if run.reason:
        yield run.reason.value


# --- key:value -------------------------------------------------------------------------------------------------------


_FIELDS: dict[str, Callable[[RunSnapshot], str]] = {
    **{
        column.name: column.filtered
        for column in sorted(COLUMNS, key=lambda column: column.needs_remote)
        if column.filtered
    },
    "group": lambda run: run.meta.group.id if run.meta.group else "",
}
"""Keys whose value has to be contained in the result of their function."""
_CURRENT: dict[str, Test] = {
    "unread": lambda _, flags: flags.unseen,
    "selected": lambda _, flags: flags.marked,
    "idle": lambda _, flags: flags.silent,
    "untrusted": lambda run, _: run.foreign,
    "needs-input": lambda run, _: run.is_waiting,
    "interrupted": lambda run, _: run.is_interrupted,
    "unknown": lambda run, _: run.elsewhere and not run.has_ended,
}
_FORMER = {
    "unseen": "unread",
    "marked": "selected",
    "silent": "idle",
    "foreign": "untrusted",
    "waiting": "needs-input",
}
"""Former values of `is:`, which are still accepted."""
_IS: dict[str, Test] = _CURRENT | {former: _CURRENT[value] for former, value in _FORMER.items()}
_CHECKS: dict[str, Callable[[RunSnapshot], bool]] = {
    "passed": lambda run: run.check is not None and run.check.passed,
    "failed": lambda run: run.check is not None and run.check.failed,
    "running": lambda run: run.checking is not None,
    "none": lambda run: not run.meta.check,
}
_STATUSES = tuple(status.value for status in RunStatus)
_RUNNERS = tuple(runner.value for runner in RunnerKind)
_REASONS = tuple(reason.value for reason in STATUS_OF)
_CHANGED: dict[str, Test] = {
    "yes": lambda run, _: bool(run.changes and run.changes.files),
    "no": lambda run, _: bool(run.changes and not run.changes.files and not run.changes.remarks),
    "shared": lambda run, _: bool(run.changes and run.changes.files and run.changes.shared),
}
FILE = "file"
"""The key of a changed file: a part of its path."""
TEXT = "text"
"""The key of a text anywhere in a run's files."""
KEYS = ("status", *_FIELDS, "runner", "is", "reason", "check", "changed", FILE, TEXT, *_bounds.KEYS)
_SHORT = {"s": "status"}


def _keyed_test(key: str, values: list[str]) -> tuple[Test | None, UsageError | None]:
    """Return the test of a term, None for an empty one, and its error."""
    key = _SHORT.get(key, key)
    if key == "status":
        return _chosen(key, values, _STATUSES, lambda names: lambda run, _: run.status.value in names)
    if key == "reason":
        return _chosen(key, values, _REASONS, lambda names: lambda run, _: (run.reason or "") in names)
    if key == "runner":
        return _chosen(key, values, _RUNNERS, lambda names: lambda run, _: run.meta.runner in names)
    if key == "is":
        return _chosen(key, values, tuple(_IS), lambda names: lambda run, flags: any(_IS[n](run, flags) for n in names))
    if key == "check":
        return _chosen(key, values, tuple(_CHECKS), lambda names: lambda run, _: any(_CHECKS[n](run) for n in names))
    if key == "changed":
        return _chosen(
            key, values, tuple(_CHANGED), lambda names: lambda run, f: any(_CHANGED[n](run, f) for n in names)
        )
    if key == FILE:
        return (_has_file(values) if values else None), None
    if (field := _FIELDS.get(key)) is not None:
        return (_contains(field, values) if values else None), None
    if key in _bounds.KEYS:
        return _bound(key, values)
    hint = nearest_key(key) or f"use one of {', '.join(KEYS)}"
    return None, UsageError(f'unknown key "{one_line(key, 20)}:"', hint=f"{hint} (quote it to search for it)")


def nearest_key(key: str) -> str:
    """Return "did you mean …?" for a word similar to a key, or the beginning of one; otherwise an empty string."""
    begun = [each for each in KEYS if len(key) > 1 and each.startswith(key)]
    return f"did you mean {', '.join(begun)}?" if begun else nearest(key, KEYS)


def misspelled_key(text: str) -> str:
    """Return which key was probably meant in a literal search text; empty if no word is similar to one."""
    for term in _TERM.finditer(text):
        keyed = _KEYED.fullmatch(term["body"])
        if keyed and (key := keyed["key"].casefold()) not in KEYS and (hint := nearest_key(key)):
            return f'"{one_line(key, 20)}:" is not a filter key; {hint}'
    return ""


def _bound(key: str, values: list[str]) -> tuple[Test | None, UsageError | None]:
    """Return a test for any of the bounds; one that is still being typed, like `age:<`, is ignored."""
    complete = [value for value in values if value not in ("<", ">", "<=", ">=")]
    holds = [_bounds.bound(key, value) for value in complete]
    tests = [test for test in holds if test is not None]
    error = UsageError(_bounds.form(key)) if len(tests) < len(holds) else None
    return (lambda run, _: any(test(run) for test in tests)) if tests else None, error


def _contains(field: Callable[[RunSnapshot], str], values: list[str]) -> Test:
    def test(run: RunSnapshot, _: Flags) -> bool:
        text = field(run).casefold()
        return any(value in text for value in values)

    return test


def _has_file(values: list[str]) -> Test:
    def test(run: RunSnapshot, _: Flags) -> bool:
        named = run.changes.named if run.changes else ()
        return any(
            value in path.casefold() for file in named for path in (file.path, file.old_path) for value in values
        )

    return test


def _chosen(
    key: str, values: list[str], names: tuple[str, ...], test_of: Callable[[frozenset[str]], Test]
) -> tuple[Test | None, UsageError | None]:
    """Return a test for names that begin with one of the values, so that a filter works while it is being typed."""
    chosen = frozenset(name for name in names for value in values if name.startswith(value))
    unknown = next((value for value in values if not any(name.startswith(value) for name in names)), None)
    if unknown is None:
        return (test_of(chosen) if chosen else None), None
    current_names = [name for name in names if name not in _FORMER]
    hint = nearest(unknown, current_names) or f"use one of {', '.join(current_names)}"
    error = UsageError(f'unknown value "{one_line(unknown, 20)}" for {key}:', hint=hint)
    return (test_of(chosen) if chosen else None), error
