"""The documents: their examples are valid, and their sentences plain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from subdeck.core.config.files import read_entries
from subdeck.core.config.yaml_tree import parse_mapping
from subdeck.core.presets.file import parse_preset
from subdeck.core.run.model import PresetSource

from .words import refused

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _blocks(language: str) -> list[ParameterSet]:
    """Return the blocks of code in that language, each with a name for its test."""
    blocks: list[ParameterSet] = []
    for file in sorted(DOCS.rglob("*.md")):
        found = re.findall(rf"^```{language}\n(.*?)^```", file.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for number, text in enumerate(found, start=1):
            blocks.append(pytest.param(text, id=f"{file.relative_to(DOCS)}-{number}"))
    return blocks


@pytest.mark.parametrize("text", _blocks("markdown"))
def test_examples_are_presets(text: str) -> None:
    """Every preset file that a document shows is valid, without a warning."""
    assert parse_preset(text, "example.md", PresetSource.PROJECT).warnings == ()


@pytest.mark.parametrize("text", _blocks("yaml"))
def test_examples_are_settings(text: str) -> None:
    """Every block of YAML that a document shows has only existing settings, with values of the right kind."""
    entries = list(read_entries(parse_mapping(text)))
    assert entries != []
    assert [entry.key for entry in entries if entry.fault] == []


GUIDES = {
    str(file.relative_to(DOCS)): text
    for file in sorted(DOCS.rglob("*.md"))
    if not (text := file.read_text(encoding="utf-8")).startswith("<!-- Generated")
}
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`|<!--.*?-->", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", GUIDES)
def test_guides_are_in_plain_words(name: str) -> None:
    """No sentence of a guide has a wording refused in texts for users."""
    lines = _CODE.sub("`…`", GUIDES[name]).splitlines()
    assert [line for line in lines if refused(line)] == []


@pytest.mark.parametrize("name", [name for name in GUIDES if name != "README.md"])
def test_a_guide_begins_with_its_use(name: str) -> None:
    """The first sentence of a guide tells readers what they can do afterwards."""
    title, _, first, *_ = GUIDES[name].splitlines()
    assert (title[:2], first.partition(" page")[0]) == ("# ", "After this")
