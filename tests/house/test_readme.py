"""README is short and begins with the important facts; the documents behind it are complete."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from subdeck.core.cli.main import main
from subdeck.core.config.files import read_entries
from subdeck.core.config.yaml_tree import parse_mapping
from subdeck.tui.theme import OURS

from .reference import documents
from .set_up import NEWEST_MINOR, TESTED_PYTHONS
from .words import refused

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
APP = (ROOT / "docs" / "app.md").read_text(encoding="utf-8")
INDEX = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
DOCUMENTS = {str(path.relative_to(ROOT)): path for path in documents()}
LINES, CHARACTERS, WORDS = 200, 120, 1600


def test_it_is_short() -> None:
    """README has at most 200 lines of at most 120 characters, and 1,600 words."""
    lines = README.splitlines()
    assert len(lines) <= LINES
    assert [] == [line for line in lines if len(line) > CHARACTERS]
    assert len(README.split()) <= WORDS


def test_agents_are_named_first() -> None:
    """The first three lines name the supported agents."""
    first = " ".join(README.splitlines()[:3])
    assert [] == [name for name in ("Claude Code", "Codex", "pi", "ACP") if not re.search(rf"\b{name}\b", first)]


def test_a_checkout_can_be_used() -> None:
    """The two commands for a checkout are in README."""
    assert "`make run DIR=" in README
    assert "`make test`" in README


def test_the_tested_pythons_are_named() -> None:
    """README has the versions of Python that set-up names, and no other besides the oldest one that works."""
    assert {*TESTED_PYTHONS, "3.11", f"3.{NEWEST_MINOR}"} == set(re.findall(r"\b3\.\d+(?:\.\d+)?\b", README))


def test_it_is_in_plain_words() -> None:
    """No sentence of README has a wording refused in texts for users."""
    prose = re.sub(r"^```.*?^```|`[^`\n]+`|<!--.*?-->", "`…`", README, flags=re.DOTALL | re.MULTILINE)
    assert [] == [line for line in prose.splitlines() if refused(line)]


@pytest.mark.parametrize("text", re.findall(r"^```yaml\n(.*?)^```", README, re.DOTALL | re.MULTILINE))
def test_examples_are_settings(text: str) -> None:
    """The settings that README shows exist, with values of the right kind."""
    entries = list(read_entries(parse_mapping(text)))
    assert entries
    assert [] == [entry.key for entry in entries if entry.fault]


def test_the_index_has_every_page() -> None:
    """The index of the documents links every page, except the generated ones about single versions of agents."""
    pages = {name.removeprefix("docs/") for name in DOCUMENTS if name.startswith("docs/")}
    versions = {name for name in pages if re.fullmatch(r"agents/.*-\d[\d.]*\.md", name)}
    assert pages - versions - {"README.md"} == {
        target for target in re.findall(r"\]\(([^)]+\.md)\)", INDEX) if not target.startswith("../")
    }


def test_every_way_to_open_the_app_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The page about the app has each option that `subdeck --help` lists."""
    main(lambda _: 1, ["--help"])
    options = set(re.findall(r"^  (?:-\w, )?(--?\w+)", capsys.readouterr().out, re.MULTILINE))
    assert {"-C", "--run", "--readonly"} <= options
    assert {"--all", "--help", "--version"} == {option for option in options if f"subdeck {option}" not in APP}


def test_every_picture_is_shown() -> None:
    """The documents show each picture that `make screenshots` makes, and no other."""
    made = {path.name for path in (ROOT / "screenshots").glob("*.svg")}
    shown = {
        target.rpartition("/")[2]
        for path in DOCUMENTS.values()
        for target in re.findall(r"!\[[^\]]*\]\(([^)]+\.svg)\)", path.read_text(encoding="utf-8"))
    }
    assert made == shown


def test_themes_have_their_names() -> None:
    """The page about the app names each built-in theme, the first one as the default."""
    first, *others = (f"`{theme.name}`" for theme in OURS)
    assert f"{first} (default)" in APP
    assert [] == [name for name in others if name not in APP]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_table_renders_whole(name: str) -> None:
    """No table has a blank line in it, which would end it and turn the rows below into plain text."""
    text = re.sub(r"^```.*?^```", "", DOCUMENTS[name].read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    lines = text.splitlines()
    begun = False
    for number, line in enumerate(lines, 1):
        is_row = line.startswith("|")
        if is_row and not begun:
            assert re.fullmatch(r"(\|-+)+\|", lines[number]), f"{name}:{number} begins a table without a header"
        begun = is_row
