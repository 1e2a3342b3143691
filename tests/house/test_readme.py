"""README says what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from subdeck.core.cli.main import COMMANDS, main
from subdeck.core.config.files import KEYS
from subdeck.core.presets.fields import FIELDS
from subdeck.core.presets.file import parse_preset
from subdeck.core.run.model import PresetSource
from subdeck.tui.theme import OURS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_is_named() -> None:
    """Each command of the table has its place in README, and README names no other."""
    named = set(re.findall(r"`subdeck ([a-z][a-z-]*)[ `]", README))
    assert set(COMMANDS) == named


def test_the_table_of_commands_is_complete() -> None:
    """Each command has a row in the table of commands, and no row is there twice."""
    table = README.partition("## Command line")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`subdeck[^|\n]*?) \|", table.replace("\\|", "/"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    first_words = [row.strip("`").split()[1] for row in rows if row != "`subdeck`"]
    assert set(COMMANDS) == set(first_words)


def test_every_key_of_presets_is_explained() -> None:
    """The table of preset keys has every key that a preset may have."""
    table = README.partition("## Presets")[2].partition("\n### ")[0]
    explained = {
        key for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for key in re.findall(r"`(\w+)`", row)
    }
    assert set(FIELDS) == explained


EXAMPLES = re.findall(r"```markdown\n(.*?)```", README, re.DOTALL)


def test_the_first_example() -> None:
    """The first preset that README shows is the plain one that its text speaks of."""
    preset = parse_preset(EXAMPLES[0], "repo-scout.md", PresetSource.PROJECT)
    assert ("repo-scout", ("read", "grep", "find", "ls")) == (preset.name, preset.tools)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_presets(example: str) -> None:
    """What README shows as a preset file is one, without a warning."""
    assert () == parse_preset(example, "example.md", PresetSource.PROJECT).warnings


def test_every_option_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Each way to open the app that `subdeck --help` lists stands in README."""
    main(lambda _: 1, ["--help"])
    options = set(re.findall(r"^  (?:-\w, )?(--?\w+)", capsys.readouterr().out, re.MULTILINE))
    assert {"-C", "--run", "--readonly"} <= options
    assert {"--help", "--version"} == {option for option in options if f"`subdeck {option}" not in README}


def test_every_picture_is_shown() -> None:
    """README shows or names each picture that `make screenshots` makes."""
    made = {f"screenshots/{path.name}" for path in (ROOT / "screenshots").glob("*.svg")}
    assert made == {target for target in re.findall(r"\]\(([^)]+)\)", README) if target.endswith(".svg")}


def test_the_settings_of_the_app() -> None:
    """Each key of the settings that only the app reads stands in README."""
    keys = {key for key in KEYS if key.partition(".")[0] in ("theme", "keys", "notifications", "retention")}
    assert keys <= set(re.findall(r"`([a-z_.]+)`", README))


def test_themes_have_their_names() -> None:
    """README names each theme of ours, the first one as the default."""
    first, *others = (f"`{theme.name}`" for theme in OURS)
    assert f"{first} (default)" in README
    assert [] == [name for name in others if name not in README]


def test_links_lead_somewhere() -> None:
    """Pictures and documents that README shows are in the tree."""
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).is_file(), target


def test_every_table_renders_whole() -> None:
    """No table has a blank line in it, which would end it and make plain text of the rows below."""
    lines = README.splitlines()
    begun = False
    for number, line in enumerate(lines, 1):
        is_row = line.startswith("|")
        if is_row and not begun:
            assert re.fullmatch(r"(\|-+)+\|", lines[number]), f"README.md:{number} begins a table without a header"
        begun = is_row
