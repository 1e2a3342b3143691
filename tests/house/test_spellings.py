"""Texts for users have no hidden spelling of a command, and pictures no key of the past."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from subdeck.core.cli._aliases import ALIASES
from subdeck.tui.keys.actions import ACTIONS
from subdeck.tui.keys.keymap import key_label

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


TEXT = re.compile(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
"""A text of a picture, and where it begins."""
CELL = 12.2
"""Width of a character in a picture."""
HINT = re.compile(r"(?:^|(?<=  ))(\S+) ([a-z][^ ]*(?: [^ ]+)*)")


def footer(picture: str) -> str:
    """Return the last row of a picture."""
    found = [(float(y), float(x), unescape(text).replace("\xa0", " ")) for x, y, text in TEXT.findall(picture)]
    row = ""
    for _, x, text in sorted(each for each in found if each[0] == max(found)[0]):
        row = row.ljust(round(x / CELL)) + text
    return row.strip()


def unbound_hints(row: str) -> list[str]:
    """Return the hints of a row whose key does something else, or nothing. Some names depend on the run."""
    bound = {(key_label(key), action.name if action.name_here is None else "") for action in ACTIONS
             for _, key in action.keys}  # fmt: skip
    hints = [(key, name) for key, name in HINT.findall(row) if key != "bg:"]
    return [f"{key} {name}" for key, name in hints if not bound & {(key, name), (key, "")}] if len(hints) > 2 else []


def test_pictures_show_bound_keys() -> None:
    """The footers of the pictures have the keys of today; the tour has none in its last row."""
    pictures = {path.name: footer(path.read_text(encoding="utf-8")) for path in (ROOT / "screenshots").glob("*.svg")}
    assert len([row for row in pictures.values() if len(HINT.findall(row)) > 2]) > 15
    assert {name: found for name, row in pictures.items() if (found := unbound_hints(row))} == {}


def test_an_unbound_key_is_found() -> None:
    """A key that does something else, or nothing, is found in a footer."""
    row = "P apply   x discard   ] next hunk   tab next file   # nothing   ? help"
    assert ["x discard", "] next hunk", "# nothing"] == unbound_hints(row)
