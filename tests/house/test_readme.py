"""README says what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from subdeck.core.cli.main import COMMANDS
from subdeck.core.preset_file import parse_preset
from subdeck.core.runs import PresetSource
from subdeck.tui.actions.key_table import with_table

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_keys_are_those_of_the_registry() -> None:
    """The table of keys is current; `python -m subdeck.tui.actions.key_table README.md` mends it."""
    assert with_table(README) == README


def test_every_command_is_named() -> None:
    """Each command of the table has its place in README, and README names no other."""
    named = set(re.findall(r"`subdeck ([a-z]+)[ `]", README))
    assert set(COMMANDS) == named


EXAMPLES = re.findall(r"```markdown\n(.*?)```", README, re.DOTALL)


def test_the_first_example() -> None:
    """The first preset that README shows is the plain one that its text speaks of."""
    preset = parse_preset(EXAMPLES[0], "repo-scout.md", PresetSource.PROJECT)
    assert ("repo-scout", ("read", "grep", "find", "ls")) == (preset.name, preset.tools)


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_presets(example: str) -> None:
    """What README shows as a preset file is one, without a warning."""
    assert () == parse_preset(example, "example.md", PresetSource.PROJECT).warnings


def test_links_lead_somewhere() -> None:
    """Pictures and documents that README shows are in the tree."""
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).is_file(), target
