"""Regular expressions: what the oldest Pythons read wrongly is in none of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
POSSESSIVE = re.compile(r"(?<!\\)[*?}]\+(?!\])|[\])]\+\+|\(\?>|\\[dDsSwW]\+\+")


def possessive(source: str) -> list[str]:
    """Return the strings of a module that look like a pattern with a possessive quantifier or an atomic group."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        value = node.value if isinstance(node, ast.Constant) else None
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if isinstance(text, str) and POSSESSIVE.search(text):
            found.append(text)
    return found


@pytest.mark.parametrize("pattern", ["[^a]*+", "a{2}+", "(?:a)++", "b?+", "(?>a)", r"\w++"])
def test_what_is_found(pattern: str) -> None:
    """Every way to write them is found, in text and in bytes."""
    assert [pattern] == possessive(repr(pattern)) == possessive(repr(pattern.encode()))


@pytest.mark.parametrize("text", [r"\*+", "+++ b/file", "C++", r"a+", "(?:a)+", "[-*+]"])
def test_what_is_not_found(text: str) -> None:
    """Ordinary quantifiers, and texts that are no patterns, are let be."""
    assert [] == possessive(repr(text))


def test_no_pattern_is_possessive() -> None:
    """Python 3.11.0 to 3.11.4 lose what possessive quantifiers and atomic groups match together with groups."""
    found = {
        str(path.relative_to(ROOT)): patterns
        for tree in ("core", "tui")
        for path in (ROOT / tree).rglob("*.py")
        if (patterns := possessive(path.read_text(encoding="utf-8")))
    }
    assert {} == found
