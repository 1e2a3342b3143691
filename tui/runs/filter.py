"""What an operator writes to see only some runs: words and `key:value`, each of which may be negated; pure.

    parser status:failed,aborted -preset:docs "two words" is:unseen

All terms must hold. A term that means nothing yet, like `status:` while it is being written, is left out; one that
never will is told by `Filter.problem` and left out too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

from ...core.errors import nearest
from ...core.run.describe import latest
from ...core.run.model import RunSnapshot, RunStatus
from ...core.text.plain import one_line

LONGEST = 500
"""Characters of a filter that are read."""
SEARCHED = 2_000
"""Characters of a task in which words are looked for."""

_TERM = re.compile(r'(?P<negated>-?)(?P<body>(?:"[^"]*(?:"|$)|[^\s"])+)')
_KEYED = re.compile(r"(?P<key>[A-Za-z]+):(?P<values>.*)", re.DOTALL)
_VALUE = re.compile(r'(?:"[^"]*(?:"|$)|[^,"])+')


class Seen(NamedTuple):
    """What the operator has made of a run; the run itself does not know."""

    unseen: bool
    marked: bool


Test = Callable[[RunSnapshot, Seen], bool]


class Filter(Struct, frozen=True):
    """A parsed filter; an empty one lets every run pass."""

    text: str = ""
    """As it was written, on one line."""
    tests: tuple[Test, ...] = ()
    problem: str = ""
    """What of it cannot be understood, for the operator; empty when all can."""
    asks_seen: bool = False
    """Whether marks or what was looked at decide."""

    def __bool__(self) -> bool:
        return bool(self.tests)

    def lets_pass(self, run: RunSnapshot, seen: Seen) -> bool:
        return all(test(run, seen) for test in self.tests)


EVERYTHING = Filter()


def parse_filter(text: str) -> Filter:
    """Read a filter; whatever was written, this answers one."""
    text = one_line(text, LONGEST)
    tests: list[Test] = []
    problems: list[str] = []
    asks_seen = False
    for negated, body in _terms(text):
        keyed = _KEYED.fullmatch(body)
        if keyed is None:
            test = _word_test(_unquoted(body))
        else:
            key = keyed["key"].casefold()
            test, problem = _keyed_test(key, [_unquoted(value) for value in _VALUE.findall(keyed["values"])])
            problems += [problem] if problem else []
            asks_seen |= key == "is"
        if test is not None:
            tests.append(_negation(test) if negated else test)
    return Filter(text, tuple(tests), problems[0] if problems else "", asks_seen)


def _terms(text: str) -> Iterator[tuple[bool, str]]:
    for term in _TERM.finditer(text):
        yield term["negated"] == "-", term["body"]


def _unquoted(text: str) -> str:
    return text.replace('"', "").strip().casefold()


def _negation(test: Test) -> Test:
    return lambda run, seen: not test(run, seen)


# --- words -----------------------------------------------------------------------------------------------------------


def _word_test(word: str) -> Test | None:
    if not word or word == "-":
        return None
    return lambda run, _: any(word in text.casefold() for text in _texts(run))


def _texts(run: RunSnapshot) -> Iterator[str]:
    """What a word is looked for in, the likeliest first."""
    meta = run.meta
    yield meta.title
    yield meta.description
    yield meta.task[:SEARCHED]
    yield meta.short_id
    yield latest(run)
    yield meta.resolved_model or meta.requested_model
    if run.reason:
        yield run.reason.value


# --- key:value -------------------------------------------------------------------------------------------------------


def _preset(run: RunSnapshot) -> str:
    return run.meta.title


def _agent(run: RunSnapshot) -> str:
    return run.meta.agent


def _runner(run: RunSnapshot) -> str:
    return run.meta.runner


def _model(run: RunSnapshot) -> str:
    return run.meta.resolved_model or run.meta.requested_model


def _group(run: RunSnapshot) -> str:
    return run.meta.group.id if run.meta.group else ""


_HELD: dict[str, Callable[[RunSnapshot], str]] = {
    "preset": _preset,
    "agent": _agent,
    "runner": _runner,
    "model": _model,
    "group": _group,
}
"""Keys whose value has to stand somewhere in what this answers."""
_IS: dict[str, Test] = {
    "unseen": lambda _, seen: seen.unseen,
    "marked": lambda _, seen: seen.marked,
}
_STATUSES = tuple(status.value for status in RunStatus)
KEYS = ("status", *_HELD, "is")
_SHORT = {"s": "status"}


def _keyed_test(key: str, values: list[str]) -> tuple[Test | None, str]:
    """Return the test of a term, None where there is nothing to test, and what is wrong with it."""
    key = _SHORT.get(key, key)
    values = [value for value in values if value]
    if key == "status":
        return _chosen(key, values, _STATUSES, lambda names: lambda run, _: run.status.value in names)
    if key == "is":
        return _chosen(key, values, tuple(_IS), lambda names: lambda run, seen: any(_IS[n](run, seen) for n in names))
    if (answer := _HELD.get(key)) is not None:
        return (_holding(answer, values) if values else None), ""
    hint = nearest(key, KEYS) or f"there are {', '.join(KEYS)}"
    return None, f"{one_line(key, 20)}: is no key; {hint} (in quotes it is a word)"


def _holding(answer: Callable[[RunSnapshot], str], values: list[str]) -> Test:
    def test(run: RunSnapshot, _: Seen) -> bool:
        text = answer(run).casefold()
        return any(value in text for value in values)

    return test


def _chosen(
    key: str, values: list[str], names: tuple[str, ...], test_of: Callable[[frozenset[str]], Test]
) -> tuple[Test | None, str]:
    """Values are beginnings of names, so that a filter works while it is being written."""
    chosen = frozenset(name for name in names for value in values if name.startswith(value))
    strange = next((value for value in values if not any(name.startswith(value) for name in names)), None)
    problem = "" if strange is None else f'{key}: has no "{strange}"; there are {", ".join(names)}'
    return (test_of(chosen) if chosen else None), problem
