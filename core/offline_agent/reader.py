"""What is looked at for a task: each step asks for the next calls by what was found so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..text.plain import one_line
from .ranking import RankedFile, rank
from .stream import Conversation
from .task import Task, Term
from .tools import Call, Hit, Outcome, Toolbox, visible_name

FILES_READ = 3
_WINDOW = 60
"""Lines read of a file around its best line."""
_OVERVIEW = ("readme", "pyproject.toml", "package.json", "cargo.toml", "go.mod", "makefile")


class Findings(NamedTuple):
    """What was found; the answer is written from it alone."""

    task: Task
    listed: dict[str, list[str]]
    """Names by directory."""
    named: dict[str, list[str]]
    """Files by the pattern that their names match."""
    found: dict[Term, tuple[Hit, ...]]
    """Lines with each term, or with its beginning where it was itself nowhere."""
    ranked: list[RankedFile]
    """Files with such lines, best first."""
    excerpts: dict[str, tuple[Hit, ...]]
    """What was read, by path."""
    failures: list[str]


def look(task: Task, toolbox: Toolbox, conversation: Conversation) -> Findings:
    """Carry out the steps that the allowed tools permit; the intent is said before anything is looked at."""
    failures: list[str] = []
    excerpts: dict[str, tuple[Hit, ...]] = {}
    intent = f"I'm looking into this: {one_line(task.text, 140) or 'what is here'}\n\n"
    scope = {"path": task.directories[0]} if len(task.directories) == 1 else {}

    def step(said: str, calls: list[Call]) -> list[tuple[Call, Outcome]]:
        """Return the calls that succeeded."""
        nonlocal intent
        calls = [call for call in calls if call.name in toolbox.names]
        if not calls:
            return []
        outcomes = conversation.turn(intent + said, calls, toolbox.carry_out)
        intent = ""
        failures.extend(outcome.text for outcome in outcomes if outcome.is_error)
        return [(call, outcome) for call, outcome in zip(calls, outcomes, strict=True) if not outcome.is_error]

    def read(why: str, first_lines: dict[str, int]) -> None:
        calls = [Call("read", {"path": path, "offset": first, "limit": _WINDOW}) for path, first in first_lines.items()]
        for call, outcome in step(f"{why}: {_names(first_lines)}.", calls):
            excerpts[call.args["path"]] = outcome.hits

    def search(why: str, patterns: dict[Term, str]) -> dict[Term, tuple[Hit, ...]]:
        words = {pattern: {"wordStart": True} if term.is_word else {} for term, pattern in patterns.items()}
        calls = [Call("grep", {"pattern": pattern, **word, **scope}) for pattern, word in words.items()]
        hits = {call.args["pattern"]: outcome.hits for call, outcome in step(f"{why} {_names(words)}.", calls)}
        return {term: hits[pattern] for term, pattern in patterns.items() if pattern in hits}

    start = f"The task names {_names(task.directories)}." if task.directories else "First, what is here."
    listings = step(start, [Call("ls", {"path": path}) for path in task.directories or (".",)])
    listed = {call.args["path"]: [hit.path for hit in outcome.hits] for call, outcome in listings}
    read("I read what the task names", {path: max(1, line - _WINDOW // 4) for path, line in task.files})
    if task.names_nothing:
        here = [name for name in listed.get(".", ()) if not name.endswith("/")]
        about = [name for kind in _OVERVIEW for name in here if name.lower().startswith(kind)]
        read("I read what the directory says about itself", dict.fromkeys(about[:FILES_READ], 1))
    words = [term.beginning or term.pattern for term in task.terms if term.is_word and len(term.pattern) > 2]
    globs = dict.fromkeys((*task.globs, *(f"*{word}*" for word in words[:FILES_READ])))
    finds = step("Are there files named after it?", [Call("find", {"pattern": glob, **scope}) for glob in globs])
    named = {call.args["pattern"]: [hit.path for hit in outcome.hits] for call, outcome in finds}
    found = search("Now I search the files for", {term: term.pattern for term in task.terms})
    shorter = {term: term.beginning for term, hits in found.items() if term.beginning and not hits}
    found |= search("Code often writes it shorter:", shorter)
    ranked = rank(found)
    best = {file.path: max(1, file.best[0].number - _WINDOW // 3) for file in ranked} or {
        path: 1 for paths in named.values() for path in paths
    }
    unread = [path for path in best if path not in excerpts][:FILES_READ]
    read("I read what fits best", {path: best[path] for path in unread})
    return Findings(task, listed, named, found, ranked, excerpts, failures)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{visible_name(name)}`" for name in names)
