"""The answer: what was found, each claim with its `path:line`, and what was not found; Markdown, bounded."""

from __future__ import annotations

import os
import re
from collections import Counter

from ..text.plain import one_line, plain
from . import NO_MODEL
from .findings import Excerpt, Findings
from .intent import asks_for_change
from .ranking import RankedFile, is_definition, rank
from .tools import visible_name

FILES_SHOWN = 5
LINES_PER_FILE = 4
OTHERS_NAMED = 12
OUTLINE_LINES = 14
EXCERPT_LINES = 12
_LINE = 160


def write_answer(findings: Findings, *, tools: tuple[str, ...], earlier_turns: int, incomplete: list[str]) -> str:
    """Write the whole answer; `incomplete` says what the search had to leave out."""
    if not tools:
        sections = ["No tool of the offline reader is allowed in this run (read, grep, find, ls), so nothing was read."]
    else:
        ranked = rank(findings)
        sections = [
            _change_note(findings),
            _summary(findings, ranked, tools),
            _names(findings, ranked) if findings.task.globs else "",
            _closest_place(findings, ranked),
            _evidence(ranked),
            *(_outline(excerpt) for excerpt in _wanted_outlines(findings)),
            _names(findings, ranked) if not findings.task.globs else "",
            _overview(findings, ranked),
            _not_found(findings),
            _troubles(findings, incomplete),
        ]
        if not any(sections):
            sections = [f"The tools allowed here ({', '.join(tools)}) found nothing to say about this task."]
    if earlier_turns:
        before = f"{earlier_turns} earlier task{'s' if earlier_turns > 1 else ''}"
        sections.append(f"This session holds {before}; the offline reader answers each task on its own.")
    return "\n\n".join([NO_MODEL, *(section for section in sections if section)])


def _change_note(findings: Findings) -> str:
    if not asks_for_change(findings.task.text):
        return ""
    return "The task asks for a change. The offline reader only reads: nothing was changed."


def _summary(findings: Findings, ranked: list[RankedFile], tools: tuple[str, ...]) -> str:
    terms = findings.task.terms
    if not terms:
        return ""
    looked_for = ", ".join(_code(term.said) for term in terms)
    if "grep" not in tools:
        return (
            f"The task is about {looked_for}, but the tools allowed here ({', '.join(tools)}) do not search in files."
        )
    if not ranked:
        return f"It looked for {looked_for}. No line of a file matches."
    lines = sum(file.matches for file in ranked)
    return f"It looked for {looked_for}: {_count(lines, 'match', 'matches')} in {_count(len(ranked), 'file')}."


def _closest_place(findings: Findings, ranked: list[RankedFile]) -> str:
    if not ranked:
        return ""
    best = ranked[0].best[0]
    place = f"The closest place is {_place(best.path, best.number)}"
    excerpt = next((excerpt for excerpt in findings.excerpts if excerpt.path == best.path), None)
    if excerpt is None or not excerpt.first_line <= best.number < excerpt.first_line + len(excerpt.lines):
        return f"{place}: {_code(best.line)}"
    start = max(0, best.number - excerpt.first_line - 2)
    shown = excerpt.lines[start : start + EXCERPT_LINES]
    width = len(str(excerpt.first_line + start + len(shown)))
    numbered = [
        f"{number:>{width}}  {plain(line)[:_LINE]}".rstrip()
        for number, line in enumerate(shown, excerpt.first_line + start)
    ]
    return f"{place}:\n\n{_fenced(numbered)}"


def _evidence(ranked: list[RankedFile]) -> str:
    blocks: list[str] = []
    for file in ranked[:FILES_SHOWN]:
        counts = ", ".join(f"{_code(term.said)} {count}" for term, count in file.counts)
        lines = sorted(file.best[:LINES_PER_FILE], key=lambda hit: hit.number)
        blocks.append(
            "\n".join(
                [
                    f"**{_escaped(visible_name(file.path))}** ({counts})",
                    "",
                    *(f"- {_place(hit.path, hit.number)} {_code(hit.line)}" for hit in lines),
                ]
            )
        )
    others = ranked[FILES_SHOWN:]
    if others:
        named = ", ".join(_span(visible_name(file.path)) for file in others[:OTHERS_NAMED])
        left = len(others) - OTHERS_NAMED
        more = f", and {left} more" if left > 0 else ""
        blocks.append(f"Also in {_count(len(others), 'other file')}: {named}{more}.")
    return "\n\n".join(blocks)


def _wanted_outlines(findings: Findings) -> list[Excerpt]:
    """Files that the task names, or that tell about the directory when it names nothing."""
    named = {path for path, _ in findings.task.files}
    return [excerpt for excerpt in findings.excerpts if excerpt.path in named or findings.task.names_nothing]


def _outline(excerpt: Excerpt) -> str:
    title = f"{_span(visible_name(excerpt.path))} has {_count(excerpt.total_lines, 'line')}"
    numbered = [(number, line) for number, line in enumerate(excerpt.lines, excerpt.first_line) if line.strip()]
    telling = [(number, line) for number, line in numbered if is_definition(line) and _is_outer(line)]
    chosen = (telling if len(telling) > 1 else numbered)[:OUTLINE_LINES]
    if not chosen:
        return f"{title}; there is no text in it."
    rows = [f"- {_place(excerpt.path, number)} {_code(line)}" for number, line in chosen]
    return "\n".join([f"{title}{'' if len(chosen) == excerpt.total_lines else ', among them'}:", "", *rows])


def _is_outer(line: str) -> bool:
    return re.match(r"\s{0,4}\S", line) is not None and not line.lstrip().startswith(("{", "}"))


def _names(findings: Findings, ranked: list[RankedFile]) -> str:
    shown = {file.path for file in ranked[:FILES_SHOWN]}
    named = [path for path in findings.named_files if path not in shown]
    if not named or findings.task.names_nothing:
        return ""
    rows = [f"- {_span(visible_name(path))}" for path in named[:OTHERS_NAMED]]
    left = len(named) - len(rows)
    return "\n".join([f"{_count(len(named), 'file name')} fit{'s' if len(named) == 1 else ''}:", "", *rows]) + (
        f"\n- and {left} more" if left > 0 else ""
    )


def _overview(findings: Findings, ranked: list[RankedFile]) -> str:
    """What lies in the directory, for a task without an answer in the files."""
    task = findings.task
    if not task.names_nothing and (ranked or task.files or findings.named_files):
        return ""
    parts: list[str] = []
    for call, outcome in findings.of("ls"):
        names = ", ".join(_span(visible_name(name)) for name in outcome.paths[:30])
        left = f", and {len(outcome.paths) - 30} more" if len(outcome.paths) > 30 else ""
        parts.append(f"In {_code(visible_name(call.args['path']))}: {names or 'nothing'}{left}.")
    kinds = Counter(os.path.splitext(path)[1] or "no extension" for path in findings.named_files)
    if kinds:
        most = sorted(kinds.items(), key=lambda entry: (-entry[1], entry[0]))[:8]
        files = ", ".join(f"{_span(visible_name(kind))} {count}" for kind, count in most)
        parts.append(f"{_count(len(findings.named_files), 'file')} in all: {files}.")
    return "\n\n".join(parts)


def _not_found(findings: Findings) -> str:
    nowhere = [_code(term.said) for term in findings.missing]
    nowhere += [
        f"a file named {_code(call.args['pattern'])}"
        for call, outcome in findings.of("find")
        if call.args["pattern"] in findings.task.globs and not outcome.paths
    ]
    return f"Not found: {', '.join(nowhere)}." if nowhere else ""


def _troubles(findings: Findings, incomplete: list[str]) -> str:
    rows = [f"- {_escaped(one_line(text, 200))}" for text in [*findings.failures[:5], *incomplete]]
    return "\n".join(["What could not be read:", "", *rows]) if rows else ""


def _place(path: str, number: int) -> str:
    return _span(f"{visible_name(path)}:{number}")


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def _code(text: str) -> str:
    return _span(one_line(text, _LINE))


def _span(shown: str) -> str:
    """A code span that holds any line: its fence is longer than every run of backticks in it."""
    runs = [len(run) for run in re.findall("`+", shown)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if runs else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fenced(lines: list[str]) -> str:
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([f"{fence}text", *lines, fence])


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>])", r"\\\1", text)
