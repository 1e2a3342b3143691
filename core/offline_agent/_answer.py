"""Investigate a task step by step and write the answer: each claim with its `path:line`; Markdown, bounded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ..text.plain import one_line, plain
from ._directory import READING, Call, Directory, Hit, place, visible_name
from ._replacement import HOW, Replacement
from ._stream import Conversation
from ._task import Task

NO_MODEL = "No model was used: this is the built-in offline agent (offline/reader)."
FILES_READ = 3
LINES_READ = 60
"""Lines of a file, from a little before its best line."""
FILES_SHOWN = 5
LINES_PER_FILE = 4
SHOWN = 12
_LINE = 160
_DEFINITION = re.compile(r"\s*((export|pub|public|static|async) )*(def|class|function|func|fn|type|struct)\b")
_ASIDE = re.compile(r"(^|[/_.-])(tests?|specs?|examples?)[/_.-]|\.(md|rst|txt|jsonl?|lock|svg|csv|log|xml|html|css)$")
"""Paths of tests, prose and data, which rank below code."""


class Answer:
    """Investigates a task with the allowed tools, and reports findings and missing terms."""

    def __init__(self, task: Task, directory: Directory, tools: Sequence[str], conversation: Conversation) -> None:
        self._task = task
        self._directory = directory
        self._tools = tools
        self._conversation = conversation
        self._intent = f"I'm looking into this: {one_line(task.text, 140) or 'what is here'}\n\n"
        self._scope = next(iter(task.directories)) if len(task.directories) == 1 else "."
        self._sections = [NO_MODEL]
        self._missing: dict[str, None] = {}
        self.fault = ""
        """Why the task failed; empty if it was done as well as possible without a model."""

    def write(self, earlier_tasks: int) -> str:
        """Investigate, and return the whole answer; its first line states that no model was used."""
        say = self._sections.append
        if self._task.replacement:
            self._replace(self._task.replacement)
            return self._written(earlier_tasks)
        if self._task.asks_for_change:
            say(f"The task asks for a change. The only change without a model is `{HOW}`: nothing was changed.")
        if not set(READING).intersection(self._tools):
            say(f"No reading tool ({', '.join(READING)}) is allowed here, so nothing was read.")
        around = self._look_around()
        self._find_files()
        if self._task.terms:
            self._search()
        self._sections += around
        if self._missing:
            say(f"Not found: {', '.join(map(_code, self._missing))}.")
        if problems := [*self._directory.problems]:
            rows = "\n".join(f"- {_code(problem)}" for problem in problems[:SHOWN])
            say(f"{_count(len(problems), 'thing')} could not be read:\n\n{rows}")
        return self._written(earlier_tasks)

    def _written(self, earlier_tasks: int) -> str:
        if earlier_tasks:
            held = _count(earlier_tasks, "earlier task")
            self._sections.append(f"This session holds {held}; each is answered on its own.")
        return "\n\n".join(self._sections)

    def _replace(self, replacement: Replacement) -> None:
        """Make the one change that a task can request, or report why it failed."""
        if "edit" not in self._tools:
            self.fault = "the tool edit is not allowed here"
        else:
            texts = f"{_code(replacement.old)} with {_code(replacement.new) if replacement.new else 'nothing'}"
            text = f"I replace {texts} in {_span(visible_name(replacement.path))}."
            (outcome,) = self._conversation.turn(text, [Call("edit", replacement.args)], self._directory.carry_out)
            if outcome.is_error:
                self.fault = one_line(outcome.text)
            else:
                locations = _some(place(hit) for hit in outcome.hits)
                self._sections.append(f"Replaced {texts} at {locations}.")
        if self.fault:
            self._sections.append(f"Nothing was changed: {_code(self.fault)}.")

    def _look_around(self) -> list[str]:
        """List the directories that the task names, or the current one, and read the named files, or its readme."""
        directories = [*self._task.directories] or ["."]
        text = f"The task names {_some(directories)}." if self._task.directories else "First, what is here."
        listings = self._step(text, [Call("ls", {"path": path}) for path in directories])
        listed = {call.args["path"]: [hit.path for hit in hits] for call, hits in listings}
        sections = [f"In {_span(visible_name(path))}: {_some(names) or 'nothing'}." for path, names in listed.items()]
        files = self._task.files
        if not (files or self._task.terms or self._task.globs):
            files = {name: 1 for names in listed.values() for name in names if name.lower().startswith("readme")}
        for path, hits in self._read("I read what this is about", files).items():
            lines = _claims([hit for hit in hits if hit.line.strip()][:SHOWN])
            sections.append(f"In {_span(visible_name(path))}:\n\n{lines or 'There is no text in it.'}")
        return sections

    def _find_files(self) -> None:
        calls = [Call("find", {"pattern": glob, "path": self._scope}) for glob in self._task.globs]
        for call, hits in self._step("Are there files of that name?", calls):
            glob, paths = call.args["pattern"], [hit.path for hit in hits]
            if paths:
                self._sections.append(f"{_count(len(paths), 'file')} called {_code(glob)}: {_some(paths)}.")
            else:
                self._missing[glob] = None

    def _search(self) -> None:
        """Search for all terms at once, and show the best lines of the best files."""
        terms = ", ".join(_code(term.text) for term in self._task.terms)
        if "grep" not in self._tools:
            self._sections.append(f"The task is about {terms}, but the tools allowed here do not search in files.")
            return
        patterns = [term.pattern for term in self._task.terms]
        call = Call("grep", {"pattern": "|".join(map(re.escape, patterns)), "path": self._scope})
        for _, hits in self._step(f"Now I search the files for {_some(patterns)}.", [call]):
            hits_by_term = {term.text: [hit for hit in hits if term.matches(hit.line)] for term in self._task.terms}
            self._missing |= dict.fromkeys(term for term, lines in hits_by_term.items() if not lines)
            self._show(terms, _rank(hits_by_term.values()))

    def _show(self, terms: str, ranked: dict[str, list[Hit]]) -> None:
        paths = [*ranked]
        matches = _count(sum(map(len, ranked.values())), "matching line")
        summary = f": {matches} in {_count(len(paths), 'file')}." if paths else ". No line of a file matches."
        self._sections.append(f"It looked for {terms}{summary}")
        if self._task.asks_back and len(paths) > 1:
            chosen = self._conversation.choose("Which file shall I read?", paths[:SHOWN])
            paths = [chosen] if chosen else paths
        best = {path: max(1, ranked[path][0].number - LINES_READ // 3) for path in paths[:FILES_READ]}
        read = self._read("I read what fits best", best)
        if paths and (hits := read.get(paths[0])):
            closest = ranked[paths[0]][0]
            lines = [hit for hit in hits if -2 <= hit.number - closest.number < SHOWN - 2]
            numbered = "\n".join(f"    {hit.number:>5}  {plain(hit.line)[:_LINE]}".rstrip() for hit in lines)
            self._sections.append(f"The closest place is {_span(place(closest))}:\n\n{numbered}")
        for path in paths[:FILES_SHOWN]:
            lines = sorted(ranked[path][:LINES_PER_FILE], key=lambda hit: hit.number)
            self._sections.append(f"**{_span(visible_name(path))}**\n\n{_claims(lines)}")
        if others := paths[FILES_SHOWN:]:
            self._sections.append(f"Also in {_count(len(others), 'other file')}: {_some(others)}.")

    def _read(self, why: str, starts: dict[str, int]) -> dict[str, tuple[Hit, ...]]:
        calls = [Call("read", {"path": path, "offset": start, "limit": LINES_READ}) for path, start in starts.items()]
        return {call.args["path"]: hits for call, hits in self._step(f"{why}: {_some(starts)}.", calls)}

    def _step(self, text: str, calls: list[Call]) -> list[tuple[Call, tuple[Hit, ...]]]:
        """Return the successful calls with their results; the first step also states the intent."""
        calls = [call for call in calls if call.name in self._tools]
        if not calls:
            return []
        outcomes = self._conversation.turn(self._intent + text, calls, self._directory.carry_out)
        self._intent = ""
        return [(call, outcome.hits) for call, outcome in zip(calls, outcomes, strict=True) if not outcome.is_error]


def _rank(hit_lists: Iterable[list[Hit]]) -> dict[str, list[Hit]]:
    """Return the matching lines by file: first files with more of the terms, code before prose; in each file, lines
    with more terms first, definitions before mentions.
    """
    terms_by_file: Counter[str] = Counter()
    terms_by_line: Counter[Hit] = Counter()
    for hits in hit_lists:
        terms_by_file.update({hit.path for hit in hits})
        terms_by_line.update(hits)
    ranked: dict[str, list[Hit]] = {}
    for hit in sorted(terms_by_line, key=lambda hit: (-terms_by_line[hit], not _DEFINITION.match(hit.line))):
        ranked.setdefault(hit.path, []).append(hit)

    def order(path: str) -> tuple[float, int, str]:
        score = terms_by_file[path] + terms_by_line[ranked[path][0]]
        return -score * (0.5 if _ASIDE.search(path) else 1), -len(ranked[path]), path

    return {path: ranked[path] for path in sorted(ranked, key=order)}


def _some(names: Iterable[str]) -> str:
    spans = [_span(visible_name(name)) for name in names]
    more = [f"and {len(spans) - SHOWN} more"] if len(spans) > SHOWN else []
    return ", ".join(spans[:SHOWN] + more)


def _claims(lines: Iterable[Hit]) -> str:
    return "\n".join(f"- {_span(place(hit))} {_code(hit.line)}" for hit in lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _code(text: str) -> str:
    return _span(one_line(text, _LINE))


def _span(shown: str) -> str:
    """Return a code span, with more backticks around it than in any row inside it."""
    fence = "`" * max(len(run) + 1 for run in ["", *re.findall("`+", shown)])
    pad = " " if "`" in shown else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
