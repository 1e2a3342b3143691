"""Which files and lines answer a task best: rare words count more, names and definitions count more than mentions."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

from .task import Term
from .tools import MAX_LINE, Hit

_DEFINITION = re.compile(
    r"\s*(?:export |default |public |private |protected |static |abstract |async |pub(?:\(\w+\))? |final )*"
    r"(?:def|class|function|func|fn|type|interface|struct|enum|trait|impl|const|let|var|module|sub)\b"
    r"|#{1,6} |\s*\w+\s*[:=]|\[[\w.]+\]"
)
_MENTION = re.compile(r"\s*(?:(?:import|from|use|require|#include|using|package)\b|#(?!#{0,5} )|//|/?\*|--|;)")
_ASIDE = re.compile(
    r"(?:^|[/_.-])(?:tests?|specs?|__tests__|fixtures?|examples?)(?:[/_.-]|$)|(?:^|/)(?:LICENSE|CHANGELOG|AUTHORS|NOTICE)"
    r"|\.(?:md|mdx|rst|txt|adoc|jsonl?|lock|svg|csv|tsv|log|xml|map|snap|ipynb|html|css)$|[.-](?:min|lock)\.",
    re.IGNORECASE,
)
"""Paths of tests, prose and data: code comes before them."""


class RankedFile(NamedTuple):
    path: str
    counts: dict[Term, int]
    """How many lines match each term, in the order of the task."""
    best: list[Hit]
    """The lines that match, the ones that say most first."""


def rank(found: dict[Term, tuple[Hit, ...]]) -> list[RankedFile]:
    """Put the files with matching lines in order, best first."""
    counts: dict[str, dict[Term, int]] = {}
    for term, hits in found.items():
        for path, count in Counter(hit.path for hit in hits).items():
            counts.setdefault(path, {})[term] = count
    spread = Counter(term for of_file in counts.values() for term in of_file)
    rarity = {term: term.weight * math.log(1 + 2 * len(counts) / spread[term]) for term in spread}
    lines: dict[str, dict[Hit, float]] = {path: {} for path in counts}
    for term, hits in found.items():
        for hit in hits:
            of_file = lines[hit.path]
            of_file[hit] = of_file.get(hit, 0) + rarity[term] * _line_factor(hit.line)

    def score(path: str) -> float:
        named = sum(2 * rarity[term] for term in spread if term.pattern.lower() in path.lower())
        often = sum(rarity[term] * (1 + math.log2(count)) for term, count in counts[path].items())
        together = len(counts[path])
        said = named + often + 2 * max(lines[path].values())
        return round(said * together * (0.5 if _ASIDE.search(path) else 1), 6)

    def best(path: str) -> list[Hit]:
        return sorted(lines[path], key=lambda hit: -lines[path][hit])

    return [
        RankedFile(path, counts[path], best(path)) for path in sorted(counts, key=lambda path: (-score(path), path))
    ]


def is_definition(line: str) -> bool:
    return _DEFINITION.match(line) is not None


def _line_factor(line: str) -> float:
    if len(line) == MAX_LINE:  # written by a program
        return 0.2
    return 0.6 if _MENTION.match(line) else 1.6 if is_definition(line) else 1.0
