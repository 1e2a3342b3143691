"""Which files and lines answer a task best: rare words count more, names and definitions count more than mentions."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from .findings import Findings
from .task import Term
from .tools import Hit

_KEYWORDS = r"(?:def|class|function|func|fn|type|interface|struct|enum|trait|impl|const|let|var|module|sub)"
_DEFINITION = re.compile(
    r"\s*(?:export |default |public |private |protected |static |abstract |async |pub(?:\(\w+\))? |final )*"
    rf"{_KEYWORDS}\b"
    r"|#{1,6} |\s*\w+\s*[:=]|\[[\w.]+\]"
)
_READABLE = 400
"""Characters: longer lines are made by programs."""

_IMPORT = re.compile(r"\s*(?:import|from|use|require|#include|using|package)\b")
_COMMENT = re.compile(r"\s*(?:#(?!#{0,5} )|//|/?\*|--|;)")
_TEST_PATH = re.compile(r"(?:^|[/_.-])(?:tests?|specs?|__tests__|fixtures?|examples?)(?:[/_.-]|$)", re.I)
_PROSE_PATH = re.compile(r"\.(?:md|mdx|rst|txt|adoc)$|(?:^|/)(?:LICENSE|CHANGELOG|AUTHORS|NOTICE)", re.I)
_DATA_PATH = re.compile(
    r"\.(?:jsonl?|lock|svg|csv|tsv|log|xml|map|snap|ipynb|html|css)$|[.-]min\.|(?:^|[.-])lock\.", re.I
)


class RankedFile(NamedTuple):
    path: str
    score: float
    counts: tuple[tuple[Term, int], ...]
    """How many lines match each term, in the order of the task."""
    best: tuple[Hit, ...]
    """The lines that say most, best first; empty where matches were only counted."""

    @property
    def matches(self) -> int:
        return sum(count for _, count in self.counts)


def rank(findings: Findings) -> list[RankedFile]:
    """Put the files with matching lines in order, best first."""
    searches = [(term, outcome) for term, outcome in findings.searches if outcome.counts]
    files = {path for _, outcome in searches for path in outcome.counts}
    rarity = {term: term.weight * math.log(1 + 2 * len(files) / len(outcome.counts)) for term, outcome in searches}
    lines: dict[str, dict[int, tuple[Hit, float]]] = {}
    for term, outcome in searches:
        defines = re.compile(rf"\b{_KEYWORDS}\s+{re.escape(term.pattern)}", re.IGNORECASE)
        for hit in outcome.hits:
            of_file = lines.setdefault(hit.path, {})
            _, so_far = of_file.get(hit.number, (hit, 0.0))
            of_file[hit.number] = (hit, so_far + rarity[term] * (3 if defines.search(hit.line) else 1))
    ranked: list[RankedFile] = []
    for path in files:
        counts = tuple((term, outcome.counts[path]) for term, outcome in searches if path in outcome.counts)
        scored = sorted((-_line_score(hit, weight), hit.number, hit) for hit, weight in lines.get(path, {}).values())
        if not scored:
            ranked.append(RankedFile(path, 0.0, counts, ()))
            continue
        score = sum(rarity[term] * (1 + math.log2(count)) for term, count in counts)
        score += sum(2 * rarity[term] for term, _ in searches if term.pattern.lower() in path.lower())
        score -= 2 * scored[0][0]
        score *= sum(term.weight for term, _ in counts) * _place_factor(path, findings)
        if all(len(hit.line) > _READABLE for *_, hit in scored):
            score *= 0.2
        ranked.append(RankedFile(path, score, counts, tuple(hit for *_, hit in scored)))
    return sorted(ranked, key=lambda file: (-round(file.score, 6), file.path))


def is_definition(line: str) -> bool:
    return _DEFINITION.match(line) is not None


def _line_score(hit: Hit, weight: float) -> float:
    if len(hit.line) > _READABLE:
        return weight * 0.2
    if _IMPORT.match(hit.line):
        return weight * 0.5
    if _COMMENT.match(hit.line):
        return weight * 0.8
    return weight * (1.6 if is_definition(hit.line) else 1.0)


def _place_factor(path: str, findings: Findings) -> float:
    task = findings.task
    if _DATA_PATH.search(path):
        return 0.3
    if _TEST_PATH.search(path):
        return 1.0 if task.mentions("test", "spec", "fixture", "example") else 0.5
    if _PROSE_PATH.search(path):
        return 1.0 if task.mentions("doc", "readme", "changelog", "manual", "guide") else 0.6
    return 1.0
