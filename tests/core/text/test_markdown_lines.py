"""Agents' markdown, line by line: marks are removed, all other text stays in place."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies
from subdeck.core.text.markdown import LONGEST_LINE, Line, Look, lines, part, prose
from subdeck.core.text.plain import plain


def shown(text: str) -> list[str]:
    return [line.prefix + line.text for line in lines(text)]


def looks(text: str) -> list[tuple[str, Look]]:
    return [(line.text[span.start : span.end], span.look) for line in lines(text) for span in line.spans]


@pytest.mark.parametrize(
    ("text", "expected", "styled"),
    [
        ("It is **done** in `a.py`", "It is done in a.py", [("done", Look.STRONG), ("a.py", Look.CODE)]),
        ("an *odd* one", "an odd one", [("odd", Look.EMPHASIS)]),
        ("***both***", "both", [("both", Look.EMPHASIS), ("both", Look.STRONG)]),
        ("**a `b*c` d**", "a b*c d", [("a b*c d", Look.STRONG), ("b*c", Look.CODE)]),
        ("`` a ` b ``", "a ` b", [("a ` b", Look.CODE)]),
        ("# Title", "Title", [("Title", Look.TITLE)]),
        ("### The `rest` ###", "The rest", [("The rest", Look.STRONG), ("rest", Look.CODE)]),
        ("- one\n  * two", "• one\n  • two", []),
        ("1. **one**", "1. one", [("one", Look.STRONG)]),
        ("> said *so*", "▏ said so", [("so", Look.EMPHASIS)]),
        ("---", "───", [("───", Look.FAINT)]),
        ("see [the guide](docs/a.md).", "see the guide (docs/a.md).", [("docs/a.md", Look.FAINT)]),
        ("```py\nx = `1`\n```\nend", "  x = `1`\nend", [("x = `1`", Look.CODE)]),
        ("~~~\n```\n~~~", "  ```", [("```", Look.CODE)]),
        ("text:\n\n    a `b` **c**", "text:\n\n    a `b` **c**", [("    a `b` **c**", Look.CODE)]),
        ("- one\n\n    a `b`", "• one\n\n    a b", [("b", Look.CODE)]),
        (r"\*no\* \`tick\`", "*no* `tick`", []),
    ],
)
def test_marks_are_not_shown(text: str, expected: str, styled: list[tuple[str, Look]]) -> None:
    """Marks become a style and, where needed, a character of the same width."""
    assert expected.split("\n") == shown(text)
    assert styled == looks(text)


@pytest.mark.parametrize(
    "text",
    [
        "2 * 3 * 4",
        "src/*.py and tests/*.py",
        "*.md *.py",
        "a_b_c, __init__, _private_",
        "#tag, issue #12, C#",
        "**open",
        "`open",
        "a ** b ** c",
        "[ ] box, a[0](x y)",
        "| a | `b` |\n|---|---|",
        "x" * LONGEST_LINE + "`y`",
    ],
)
def test_what_may_be_no_mark_stays(text: str) -> None:
    """Globs, names, tables and unclosed marks are shown as written."""
    assert text.split("\n") == shown(text)


ALPHABET = "ab .*_`#-[]()>~\\|\n1!"


@given(strategies.text(ALPHABET, max_size=80))
def test_only_marks_go(text: str) -> None:
    """Letters and digits stay in order, and positions map from source to displayed text."""
    laid = lines(text)
    if "```" not in text and "~~~" not in text:
        assert re.sub(r"[^ab1]", "", text) == re.sub(r"[^ab1]", "", "".join(line.text for line in laid))
    for line in laid:
        assert all(0 <= span.start < span.end <= len(line.text) for span in line.spans)
        if line.source:
            assert len(line.places) == len(line.source) + 1
            assert line.places[-1] == len(line.text)
            assert [*line.places] == sorted(line.places)
            for at, char in enumerate(line.source):
                if char in "ab1":
                    assert line.text[line.places[at]] == char


@given(strategies.text(ALPHABET, max_size=60), strategies.integers(0, 60), strategies.integers(0, 60))
def test_a_part_is_like_its_line(text: str, begin: int, length: int) -> None:
    """A line broken into rows keeps its styles and its source."""
    for line in lines(text):
        start, end = min(begin, len(line.text)), min(begin + length, len(line.text))
        row = part(line, start, end)
        assert line.text[start:end] == row.text
        assert all(0 <= span.start < span.end <= len(row.text) for span in row.spans)
        assert row.source in line.source
        if row.source:
            assert len(row.places) == len(row.source) + 1
            assert all(0 <= place <= len(row.text) for place in row.places)


def test_words_are_found_as_shown_and_as_written() -> None:
    """A search matches with or without the marks."""
    (line,) = lines("It is **done** in `a.py`")
    for words in ("done in a", "**done** in `a"):
        assert [(6, 15)] == [line.found(re.compile(re.escape(words)))[0]]
    assert [] == line.found(re.compile("undone"))
    assert [(0, 1)] == Line("ab").found(re.compile("a"))


@pytest.mark.parametrize(
    "hostile",
    [
        *("`" * 2000, "`a``b" * 400, "**a" * 600, "[" * 2000, "[a](" * 500, "*a " * 600, "_ " * 999 + "x", "\\*" * 900),
        *("# " + " " * 1900 + "x" + " " * 90, " " * 1999 + "x", "- " * 1000, "```" * 600, "> " * 900),
    ],
)
def test_hostile_text_is_laid_out(hostile: str) -> None:
    """Hostile text can be laid out, and the result is safe for a terminal."""
    for line in lines(f"{hostile}\n{hostile}"):
        assert plain(line.text) == line.text and "\0" not in line.text


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("## Review\n\n1. `a.py:3` returns **early**", 80, "Review 1. a.py:3 returns early"),
        ("Text ## Next part", 80, "Text Next part"),
        ("Now I read `src/au", 80, "Now I read src/au"),
        ("It is **very", 80, "It is very"),
        ("`a` " * 50, 12, "a a a a a a…"),
        ("plain words", 80, "plain words"),
    ],
)
def test_prose_is_one_plain_line(text: str, limit: int, expected: str) -> None:
    """Prose for rows and toasts has no marks, even if it was cut inside of them."""
    assert expected == prose(text, limit)
