"""The answer: what was found, each claim with its `path:line`, and what was not found; Markdown, bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..text.plain import one_line, plain
from .ranking import is_definition
from .reader import Findings
from .tools import Hit, Toolbox, visible_name

NO_MODEL = "No model was used: this is the built-in offline reader (offline/reader)."
FILES_SHOWN = 5
LINES_PER_FILE = 4
NAMES_SHOWN = 12
OUTLINE_LINES = 14
EXCERPT_LINES = 12
FAILURES_SHOWN = 8
_LINE = 160


def write_answer(findings: Findings, toolbox: Toolbox, earlier_tasks: int) -> str:
    """Write the whole answer; the first line says that no model was used."""
    task = findings.task
    sections = [NO_MODEL]
    if task.asks_for_change:
        sections.append("The task asks for a change. The offline reader only reads: nothing was changed.")
    if not toolbox.names:
        sections.append("No tool of the offline reader (read, grep, find, ls) is allowed here, so nothing was read.")
    elif task.terms:
        sections.append(_summary(findings, toolbox))
    if findings.ranked:
        sections += [_closest(findings), *_evidence(findings)]
    wanted = findings.excerpts if task.names_nothing else dict.fromkeys(path for path, _ in task.files)
    sections += [_outline(path, findings.excerpts[path]) for path in wanted if path in findings.excerpts]
    shown = {file.path for file in findings.ranked[:FILES_SHOWN]}
    names = dict.fromkeys(path for paths in findings.named.values() for path in paths if path not in shown)
    if names:
        sections.append(f"{_count(len(names), 'file')} with such a name: {_some(names)}.")
    if not findings.ranked and not task.files and not names:
        sections += [
            f"In {_span(visible_name(path))}: {_some(of) or 'nothing'}." for path, of in findings.listed.items()
        ]
    missing = [term.said for term, hits in findings.found.items() if not hits]
    missing += [glob for glob in task.globs if findings.named.get(glob) == [] and glob not in missing]
    if missing:
        sections.append(f"Not found: {', '.join(_code(name) for name in missing)}.")
    sections += _troubles(findings, toolbox)
    if earlier_tasks:
        sections.append(f"This session holds {_count(earlier_tasks, 'earlier task')}; each is answered on its own.")
    return "\n\n".join(sections)


def _summary(findings: Findings, toolbox: Toolbox) -> str:
    terms = ", ".join(_code(term.said) for term in findings.task.terms)
    if "grep" not in toolbox.names:
        allowed = ", ".join(toolbox.names)
        return f"The task is about {terms}, but the tools allowed here ({allowed}) do not search in files."
    if not findings.ranked:
        return f"It looked for {terms}. No line of a file matches."
    lines = sum(sum(file.counts.values()) for file in findings.ranked)
    return f"It looked for {terms}: {_count(lines, 'match', 'es')} in {_count(len(findings.ranked), 'file')}."


def _closest(findings: Findings) -> str:
    """Show the lines around the best one, where they were read."""
    best = findings.ranked[0].best[0]
    lines = [hit for hit in findings.excerpts.get(best.path, ()) if -2 <= hit.number - best.number < EXCERPT_LINES - 2]
    numbered = "\n".join(f"{hit.number:>5}  {plain(hit.line)[:_LINE]}".rstrip() for hit in lines or [best])
    fence = _fence(numbered, 3)
    return f"The closest place is {_place(best)}:\n\n{fence}text\n{numbered}\n{fence}"


def _evidence(findings: Findings) -> list[str]:
    blocks: list[str] = []
    for file in findings.ranked[:FILES_SHOWN]:
        counts = ", ".join(f"{_code(term.said)} {count}" for term, count in file.counts.items())
        lines = sorted(file.best[:LINES_PER_FILE], key=lambda hit: hit.number)
        blocks.append(f"**{_span(visible_name(file.path))}** ({counts})\n\n{_list(lines)}")
    others = [file.path for file in findings.ranked[FILES_SHOWN:]]
    if others:
        blocks.append(f"Also in {_count(len(others), 'other file')}: {_some(others)}.")
    return blocks


def _outline(path: str, lines: Sequence[Hit]) -> str:
    """Show the definitions of a file that was read from its beginning, or its first lines."""
    texts = [hit for hit in lines if hit.line.strip()]
    definitions = [hit for hit in texts if is_definition(hit.line) and re.match(r"\s{0,4}\S", hit.line)]
    chosen = (definitions if len(definitions) > 1 else texts)[:OUTLINE_LINES]
    return f"In {_span(visible_name(path))}:\n\n{_list(chosen) or 'There is no text in it.'}"


def _troubles(findings: Findings, toolbox: Toolbox) -> list[str]:
    rows = [*dict.fromkeys((*findings.failures, *toolbox.directory.troubles))]
    listed = "\n".join(f"- {_code(row)}" for row in rows[:FAILURES_SHOWN])
    more = f"\n- and {len(rows) - FAILURES_SHOWN} more" if len(rows) > FAILURES_SHOWN else ""
    return [f"What could not be read:\n\n{listed}{more}"] if rows else []


def _list(lines: Iterable[Hit]) -> str:
    return "\n".join(f"- {_place(hit)} {_code(hit.line)}" for hit in lines)


def _some(paths: Iterable[str]) -> str:
    names = [_span(visible_name(path)) for path in paths]
    left = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f", and {left} more" if left > 0 else "")


def _place(hit: Hit) -> str:
    return _span(f"{visible_name(hit.path)}:{hit.number}")


def _count(number: int, noun: str, plural: str = "s") -> str:
    return f"{number} {noun}{'' if number == 1 else plural}"


def _code(text: str) -> str:
    return _span(one_line(text, _LINE))


def _span(shown: str) -> str:
    """Return a code span, whatever backticks the line has in it."""
    pad = " " if "`" in shown else ""
    fence = _fence(shown, 1)
    return f"{fence}{pad}{shown}{pad}{fence}"


def _fence(text: str, least: int) -> str:
    """Return more backticks than stand in a row anywhere in the text."""
    return "`" * max(least, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
