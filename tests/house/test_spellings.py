"""Texts for users have no hidden spelling of a command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from subdeck.core.cli._aliases import ALIASES

from .reference import ROOT, documents
from .strings import inventory

HIDDEN = re.compile(rf"\bsubdeck(?: -C \S+)? (?:{'|'.join(map(re.escape, ALIASES))})(?![\w-])|\bmerge\b.*--pick\b")
OF_EARLIER_VERSIONS = ("put here by `subdeck pi install`, {digest}; `subdeck pi uninstall` takes it away",)
"""Texts that subdeck recognizes in files of its earlier versions."""
ALONE = re.compile(r"`(?:answer|clean|keep|take-over)(?: [A-Z]+)?`")
"""A command in a sentence. The other hidden spellings are also names of settings, keys or arguments."""
NAMES_BOTH = ("CHANGELOG.md", "docs/reference/changes-0.2.md")
"""Documents about changes."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield the texts of the program, of documents and of pictures, each with the name of its file."""
    for name, strings in inventory().items():
        yield from ((name, text) for text in strings if text.strip() not in OF_EARLIER_VERSIONS)
    for path in documents():
        if (name := str(path.relative_to(ROOT))) not in NAMES_BOTH:
            yield name, path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "screenshots").glob("*.svg")):
        yield path.name, unescape(re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8"))).replace("\xa0", " ")


def hidden_spellings(text: str) -> list[str]:
    return HIDDEN.findall(text)


def test_no_guide_has_a_hidden_spelling_in_a_sentence() -> None:
    """A guide names commands by today's spelling, also without the name of the program."""
    guides = [path for path in documents() if path.parent in (ROOT, ROOT / "docs") and path.name not in NAMES_BOTH]
    assert [(path.name, found) for path in guides for found in ALONE.findall(path.read_text(encoding="utf-8"))] == []


def test_no_text_has_a_hidden_spelling() -> None:
    """Help, hints, errors, documents and pictures have today's spelling of every command."""
    assert [(name, found) for name, text in texts() for found in hidden_spellings(text)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("run subdeck ls", 1),
        ("`subdeck kill RUN`", 1),
        ("`merge RUN --pick`", 1),
        ("subdeck status", 0),
        ("a subdeck newer than this", 0),
    ],
)
def test_a_hidden_spelling_is_found(text: str, count: int) -> None:
    """A spelling is found behind the name of the program."""
    assert len(hidden_spellings(text)) == count
