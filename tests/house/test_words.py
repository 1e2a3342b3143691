"""Texts for users have no wording that needs a second reading, and every changed sentence is reviewed."""

from __future__ import annotations

import re

import pytest

from . import strings
from .words import (
    ALLOWED,
    IN_DOCSTRINGS,
    WORDINGS,
    Wording,
    docstrings,
    refused,
    violations,
    violations_in_docstrings,
)


@pytest.mark.parametrize("wording", [*WORDINGS, *IN_DOCSTRINGS], ids=lambda wording: wording.bad)
def test_each_pattern(wording: Wording) -> None:
    """A pattern finds its bad example and nothing in its good one."""
    assert re.search(wording.pattern, wording.bad, re.IGNORECASE)
    assert not re.search(wording.pattern, wording.good, re.IGNORECASE)


def test_no_user_reads_a_refused_wording() -> None:
    """No text for a user has a refused wording; `python -m tests.house.words` prints them."""
    assert [] == [*violations()]


def test_no_docstring_has_a_refused_wording() -> None:
    """No docstring of the two trees has a wording of the lists; `python -m tests.house.words` prints them."""
    assert [] == [*violations_in_docstrings()]


def test_which_parts_of_a_template_are_texts() -> None:
    """The texts between its elements count, with a gap for each value; tags and statements are none."""
    source = '{% if x %}<p class="a b">Hello {{ name }}</p>{% end %}\n<b>and more</b> · <i>{{ y }}</i>'
    assert ["Hello {}", "and more"] == strings.texts_of_template(source)


def test_which_strings_are_docstrings() -> None:
    """Modules, classes, functions, fields and constants have docstrings; other strings are none of them."""
    source = (
        '"""module"""\nX = "no"\n"""constant"""\nclass A:\n    """class"""\n    x: int\n    """field"""\n'
        '    def f(self):\n        """function"""\n        return "no"\n'
    )
    assert ["module", "constant", "class", "field", "function"] == [*docstrings(source)]


def test_allowed_texts_are_there() -> None:
    """Each allowed text is in its file, and needs to be allowed."""
    known = strings.inventory()
    assert [] == [
        text for file, texts in ALLOWED.items() for text in texts if text not in known[file] or not refused(text)
    ]


def test_the_inventory_is_current() -> None:
    """`strings.txt` has every text that a user reads; `python -m tests.house.strings` writes it."""
    assert strings.lines() == strings.INVENTORY.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ('raise UsageError(f"{name} is not a run", hint="try again")', ["try again", "{} is not a run"]),
        ('"""A docstring of a module."""\ndef f():\n    """And of a function."""', []),
        ('@click.command("x")\ndef f():\n    """What --help prints."""', ["What --help prints."]),
        ('Button("Cancel")\nAction("stop", KEYS, "stop", needs=x)\nmeta["status"]', ["Cancel", "stop"]),
        ('CSS = "#a { color: red; }"', []),
        ('say("a" if x else f"{n} runs")', ["{} runs"]),
        ('SQL = re.compile(r"(?:a b)+")', []),
    ],
)
def test_what_counts_as_a_text(source: str, texts: list[str]) -> None:
    """Words in strings count, and labels of one word; docstrings count only if click prints them."""
    assert texts == sorted(strings.texts_of(source))
