"""What is done for a task, step by step: each step looks at the findings so far and asks for the next calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .findings import Findings
from .ranking import rank
from .task import Term
from .tools import Call, visible_name

FILES_READ = 3
NAMES_SOUGHT = 3
_WINDOW = 60
"""Lines read of a file around its best line; the whole file when it is not longer."""
_NAMED_LINES = 400
_OVERVIEW = ("readme", "pyproject.toml", "package.json", "cargo.toml", "go.mod", "makefile")


class Step(NamedTuple):
    said: str
    calls: list[Call]


NOTHING = Step("", [])


def look_around(findings: Findings) -> Step:
    directories = findings.task.directories
    said = f"The task names {_listed(directories)}." if directories else "First, what is here."
    return Step(said, [Call("ls", {"path": path}) for path in directories or (".",)])


def read_what_is_named(findings: Findings) -> Step:
    files = findings.task.files
    calls = [
        Call("read", {"path": path, "offset": max(1, line - _WINDOW // 4), "limit": _WINDOW})
        if line > 1
        else Call("read", {"path": path, "limit": _NAMED_LINES})
        for path, line in files
    ]
    return Step(f"I read what the task names: {_listed([path for path, _ in files])}.", calls)


def find_names(findings: Findings) -> Step:
    words = [term.short or term.pattern for term in findings.task.terms if term.word and len(term.pattern) > 2]
    patterns = [*findings.task.globs, *(f"*{word}*" for word in words[:NAMES_SOUGHT])]
    scope = _scope(findings)
    calls = [Call("find", {"pattern": pattern, **scope}) for pattern in dict.fromkeys(patterns)]
    return Step("Are there files named after it?", calls)


def search(findings: Findings) -> Step:
    terms = findings.task.terms
    said = f"Now I search the files for {_listed([term.pattern for term in terms])}."
    return Step(said, [_grep(term, term.pattern, findings) for term in terms])


def search_short_forms(findings: Findings) -> Step:
    found = {call.args["pattern"] for call, outcome in findings.of("grep") if outcome.counts}
    terms = [term for term in findings.task.terms if term.short and term.pattern not in found]
    said = f"Nothing says {_listed([term.said for term in terms])}; code often writes it shorter."
    return Step(said, [_grep(term, term.short, findings) for term in terms])


def read_the_best(findings: Findings) -> Step:
    if findings.task.names_nothing:
        return NOTHING
    read = {excerpt.path for excerpt in findings.excerpts}
    ranked = rank(findings)
    windows = {file.path: max(1, file.best[0].number - _WINDOW // 3) for file in ranked[:FILES_READ]}
    if not windows:
        windows = dict.fromkeys(findings.named_files[:FILES_READ], 1)
    calls = [
        Call("read", {"path": path, "offset": offset, "limit": _WINDOW})
        for path, offset in windows.items()
        if path not in read
    ]
    count = len(ranked) or len(findings.named_files)
    said = f"{count} file{'s fit' if count > 1 else ' fits'}; I read {_listed([call.args['path'] for call in calls])}."
    return Step(said, calls)


def read_an_overview(findings: Findings) -> Step:
    """For a task that names nothing to look for."""
    if not findings.task.names_nothing:
        return NOTHING
    here = [name for call, outcome in findings.of("ls") if call.args["path"] == "." for name in outcome.paths]
    chosen = [name for wanted in _OVERVIEW for name in here if name.lower().startswith(wanted) and name[-1] != "/"]
    calls = [Call("find", {"pattern": "*", **_scope(findings)})]
    calls += (Call("read", {"path": name, "limit": _WINDOW}) for name in chosen[:FILES_READ])
    return Step("The task names nothing to search for, so I read what this directory says about itself.", calls)


STEPS: tuple[Callable[[Findings], Step], ...] = (
    look_around,
    read_what_is_named,
    read_an_overview,
    find_names,
    search,
    search_short_forms,
    read_the_best,
)


def _grep(term: Term, pattern: str, findings: Findings) -> Call:
    where = {"wholeWord": True} if len(pattern) < 3 else {"wordStart": True}
    return Call("grep", {"pattern": pattern, **(where if term.word else {}), **_scope(findings)})


def _scope(findings: Findings) -> dict[str, str]:
    """Where to search: the one directory that the task names, else everywhere."""
    directories = findings.task.directories
    return {"path": directories[0]} if len(directories) == 1 else {}


def _listed(names: list[str] | tuple[str, ...]) -> str:
    quoted = [f"`{visible_name(name)}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
