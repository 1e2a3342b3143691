"""No regular expression uses syntax that the oldest Pythons misread."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
POSSESSIVE = re.compile(r"(?<!\\)[*?}]\+(?!\])|[\])]\+\+|\(\?>|\\[dDsSwW]\+\+")


IN_A_CLASS_OR_ESCAPED = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
IN_A_PATTERN = re.compile(r"[*+?}]\+|\(\?>")
"""Reliable in a text known to be a pattern, without its classes and escapes."""
ANYTHING_LIKE_IT = re.compile(r"[*+?})\]]\+|\(\?>")
"""Parsing a module takes a hundred times longer than searching its text."""
TREES = ("core", "tui", "tests", "screenshots")
ALLOWED = {
    "tests/core/agents/test_updates.py": (
        "what the code was with them, to compare with; skipped on Pythons that get it wrong"
    ),
    "tests/house/test_patterns.py": "this module",
}


def possessive(source: str) -> list[str]:
    """Return the strings of a module with a possessive quantifier or an atomic group, or similar syntax.

    An argument for a function of `re` is a pattern; any other string may become part of one.
    """
    if not ANYTHING_LIKE_IT.search(source):
        return []
    found: list[str] = []
    patterns: set[ast.AST] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[first, *_]):
                patterns.update(ast.walk(first))
            case ast.Constant(value=str() | bytes() as value):
                text = value.decode("latin-1") if isinstance(value, bytes) else value
                is_pattern = node in patterns and IN_A_PATTERN.search(IN_A_CLASS_OR_ESCAPED.sub("a", text))
                if is_pattern or POSSESSIVE.search(text):
                    found.append(text)
            case _:
                pass
    return found


@pytest.mark.parametrize("pattern", ["[^a]*+", "a{2}+", "(?:a)++", "b?+", "(?>a)", r"\w++"])
def test_what_is_found(pattern: str) -> None:
    """Every way to write them is found, in text and in bytes."""
    assert [pattern] == possessive(repr(pattern)) == possessive(repr(pattern.encode()))


@pytest.mark.parametrize("text", [r"\*+", "+++ b/file", "C++", r"a+", "(?:a)+", "[-*+]"])
def test_what_is_not_found(text: str) -> None:
    """Ordinary quantifiers, and texts that are not patterns, pass."""
    assert [] == possessive(repr(text))


@pytest.mark.parametrize("pattern", ["a++", ".++", "a?+b", r"\(++", "a{1,2}+", "(?i:x)*+", "x(?>a|b)", "[]]++"])
def test_what_is_found_in_a_pattern(pattern: str) -> None:
    """In an argument of `re` it is also found after a literal and a dot, in text, bytes and parts of both."""
    calls = [f"re.compile({pattern!r})", f"re.sub({pattern.encode()!r}, b'', x)", f"re.search({pattern!r} + y, z)"]
    calls.append(f"re.compile(f'{{x}}' {pattern!r})")
    assert [[pattern]] * 4 == [possessive(call) for call in calls]


@pytest.mark.parametrize("pattern", [r"C\+\+", "[a?+]", r"[\]*+]", r"\++", "a+(?:b+)?", r"\*+", "[]*+]"])
def test_what_is_not_found_in_a_pattern(pattern: str) -> None:
    """Escapes and classes are not quantifiers."""
    assert [] == possessive(f"re.compile({pattern!r})")


def test_no_pattern_is_possessive() -> None:
    """Python 3.11.0 to 3.11.4 lose what possessive quantifiers and atomic groups match together with groups."""
    found = {
        name: patterns
        for tree in TREES
        for path in (ROOT / tree).rglob("*.py")
        if (patterns := possessive(path.read_text(encoding="utf-8")))
        and (name := str(path.relative_to(ROOT))) not in ALLOWED
    }
    assert {} == found
