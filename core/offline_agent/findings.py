"""What a run has seen so far; every later step and the answer are drawn from it alone."""

from __future__ import annotations

from typing import NamedTuple

from .task import Task, Term
from .tools import Call, Outcome


class Excerpt(NamedTuple):
    """Lines of a file that were read."""

    path: str
    first_line: int
    lines: tuple[str, ...]
    total_lines: int


class Findings:
    """The calls that were carried out, and what they say together."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._carried_out: list[tuple[Call, Outcome]] = []

    def add(self, call: Call, outcome: Outcome) -> None:
        self._carried_out.append((call, outcome))

    def of(self, tool: str) -> list[tuple[Call, Outcome]]:
        """Return the calls of one tool that succeeded."""
        return [(call, outcome) for call, outcome in self._carried_out if call.name == tool and not outcome.is_error]

    @property
    def failures(self) -> list[str]:
        return [outcome.text for _, outcome in self._carried_out if outcome.is_error]

    @property
    def calls(self) -> int:
        return len(self._carried_out)

    @property
    def searches(self) -> list[tuple[Term, Outcome]]:
        """Each term with the lines found for it, or for its short form where it was itself nowhere."""
        by_pattern = {call.args["pattern"]: outcome for call, outcome in self.of("grep")}
        return [
            (term, by_pattern[pattern])
            for term in self.task.terms
            for pattern in (term.pattern, term.short)
            if pattern in by_pattern and (pattern == term.short or by_pattern[pattern].counts or not term.short)
        ]

    @property
    def missing(self) -> list[Term]:
        """Terms that were looked for and are nowhere."""
        outcomes = dict(self.searches)
        named = {path for _, outcome in self.of("find") for path in outcome.paths}
        return [
            term
            for term in self.task.terms
            if term in outcomes and not outcomes[term].counts and not _in_a_name(term, named)
        ]

    @property
    def named_files(self) -> tuple[str, ...]:
        """Files whose names match, in the order in which they were found."""
        return tuple(dict.fromkeys(path for _, outcome in self.of("find") for path in outcome.paths))

    @property
    def excerpts(self) -> list[Excerpt]:
        return [
            Excerpt(call.args["path"], outcome.first_line, outcome.lines, outcome.total_lines)
            for call, outcome in self.of("read")
        ]


def _in_a_name(term: Term, paths: set[str]) -> bool:
    return any(term.pattern.lower() in path.lower() for path in paths)
