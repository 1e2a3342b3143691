"""Plain fields are read without a YAML parser, with the same result."""

from __future__ import annotations

import random
import sys

import pytest
from subdeck.core.config import yaml_tree
from subdeck.core.config.yaml_tree import parse_mapping
from subdeck.core.errors import ContentError

CHARACTERS = "ab Z09-_:.,/()+*@!?=$^~&<>'\"#|[]{}%\\`\té\u2028"


def test_plain_fields_need_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual frontmatter is read with its lines, without loading a library."""
    monkeypatch.delitem(sys.modules, "yaml", raising=False)
    fields = parse_mapping("name: scout\n\ntools: read, grep\nmodel: fake/llama:low \n", first_line=2)
    assert [("name", "scout", 2), ("tools", "read, grep", 4), ("model", "fake/llama:low", 5)] == [
        (key, node.value, node.line) for key, node in fields.pairs.items() if isinstance(node, yaml_tree.Text)
    ]
    assert "yaml" not in sys.modules


def test_plain_fields_are_what_yaml_reads() -> None:
    """Fields read without the parser equal the parser's, which one more line below them requires."""
    chance, read = random.Random(1), 0
    for _ in range(20_000):
        text = "\n".join(_line(chance) for _ in range(chance.randint(0, 3)))
        try:
            fields = parse_mapping(text, first_line=2)
        except ContentError:
            continue
        read += bool(fields.pairs)
        expected = dict(parse_mapping(f"{text}\nlast: []\n", first_line=2).pairs)
        assert isinstance(expected.pop("last"), yaml_tree.Items), "the parser was not asked"
        assert expected == fields.pairs, text
    assert read > 1000


def _line(chance: random.Random) -> str:
    key = "".join(chance.choice("abyn-_Z1") for _ in range(chance.randint(1, 4)))
    usual = CHARACTERS[:28] if chance.random() < 0.8 else CHARACTERS
    value = "".join(chance.choice(usual) for _ in range(chance.randint(0, 7)))
    return key + chance.choice((": ", ": ", ":  ", ":")) + value + chance.choice(("", "", "\n"))
