"""Plain fields are read without a YAML parser, and exactly as one would read them."""

from __future__ import annotations

import random
import sys

import pytest
from subdeck.core.config import yaml_tree
from subdeck.core.config.yaml_tree import Fields, parse_mapping
from subdeck.core.errors import ContentError

CHARACTERS = "ab Z09-_:.,/()+*@!?=$^~&<>'\"#|[]{}%\\`\té\u2028"


def test_plain_fields_need_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The frontmatter that most presets have is read with its lines, and nothing is loaded for it."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    fields = parse_mapping("name: scout\n\ntools: read, grep\nmodel: fake/llama:low \n", first_line=2)
    assert [("name", "scout", 2), ("tools", "read, grep", 4), ("model", "fake/llama:low", 5)] == [
        (key, node.value, node.line) for key, node in fields.pairs.items() if isinstance(node, yaml_tree.Text)
    ]


def test_plain_fields_are_what_yaml_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is read without the parser is what the parser reads, or the parser is asked."""
    chance = random.Random(1)
    plain = yaml_tree._plain_fields
    read: dict[str, Fields] = {}
    for _ in range(20_000):
        text = "\n".join(_line(chance) for _ in range(chance.randint(0, 3)))
        if (fields := plain(text, 2)) is not None:
            read[text] = fields
    monkeypatch.setattr(yaml_tree, "_plain_fields", lambda text, first_line: None)
    assert len(read) > 200
    for text, fields in read.items():
        try:
            expected: object = parse_mapping(text, first_line=2)
        except ContentError as error:
            expected = error
        assert expected == fields, text


def _line(chance: random.Random) -> str:
    key = "".join(chance.choice("abyn-_Z1") for _ in range(chance.randint(1, 4)))
    usual = CHARACTERS[:28] if chance.random() < 0.8 else CHARACTERS
    value = "".join(chance.choice(usual) for _ in range(chance.randint(0, 7)))
    return key + chance.choice((": ", ": ", ":  ", ":")) + value + chance.choice(("", "", "\n"))
