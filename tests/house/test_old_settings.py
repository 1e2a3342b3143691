"""Texts and documents have the present spelling of each setting, never an older one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.config.files import (
    GROUPS,
    KEYS,
    OLD_NAMES,
    example_line,
    example_settings,
    parse_settings,
    read_entries,
)
from subdeck.core.config.renamed import PRESETS
from subdeck.core.presets.fields import FIELDS

from .reference import documents
from .strings import INVENTORY, ROOT, TREES

HISTORY = ("CHANGELOG.md", "docs/reference/changes-0.2.md")
"""Documents that name older spellings on purpose."""
REVIEWED = {"Cycle the theme: dark, light"}
"""Parts of texts that are reviewed exceptions."""
OF_PRESETS = {*FIELDS, *PRESETS}
"""Names that a preset also has, for which an older spelling of a setting cannot be told from a key of a preset."""
DISTINCT = sorted(old for old in OLD_NAMES if re.search(r"[_.]", old) and old not in OF_PRESETS)
WORDS = sorted(old for old in OLD_NAMES if not re.search(r"[_.]", old) and old not in OF_PRESETS)
"""Older spellings that are words of English: they count only in front of a value, or after the word setting."""
_DISTINCT = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, DISTINCT))})(?![\w.]|\.\w)")
_ANY = "|".join(map(re.escape, OLD_NAMES))
_WORDS = re.compile(rf"(?<![\w.-])(?:{'|'.join(WORDS)}): ?[\[{{\w\"'(]|\bsettings? `?(?:{_ANY})\b(?!\.\w)")
_NOT_OLD = re.compile(rf"<!--.*?-->|\b(?:{'|'.join(GROUPS)}): {{\w+:")
"""A comment, or a setting below its group: `app: {keys: …}`."""
_YAML = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
DOCUMENTS = [path for path in documents() if str(path.relative_to(ROOT)) not in HISTORY]


def old_names(text: str) -> list[str]:
    """Return the older spellings in a text."""
    text = _NOT_OLD.sub("", text)
    return [*_DISTINCT.findall(text), *_WORDS.findall(text)]


def test_every_older_spelling_is_recognized() -> None:
    """Each older spelling is found, unless a preset has a key of that name; a present one is not."""
    for old, new in OLD_NAMES.items():
        if old not in OF_PRESETS:
            assert old_names(f"set {old}: 3"), old
        assert old_names(f"the setting {old}"), old
        assert [] == old_names(f"set {new} to 3, or the setting {new}"), new
    assert ["setting cgroup"] == old_names("turned off by the setting cgroup")
    assert [] == old_names("app: {keys: {stop: k}} changes your keys, worktree: {copy: [a]} copies a")


def test_texts_of_the_program() -> None:
    """No text of the program has an older spelling: errors, hints, help, labels."""
    lines = INVENTORY.read_text(encoding="utf-8").splitlines()
    found = {line for line in lines if old_names(line.partition(": ")[2])}
    assert [] == sorted(line for line in found if not any(text in line for text in REVIEWED))


def test_names_in_the_program() -> None:
    """No module has an older spelling as a text of its own, which it would print; the table of fields has one."""
    found: list[str] = []
    for path in sorted(path for tree in TREES for path in (ROOT / tree).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if any(old in source for old in DISTINCT):
            nodes = ast.walk(ast.parse(source))
            texts = (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))
            found += [f"{path.relative_to(ROOT)}: {text}" for text in texts if text in DISTINCT]
    assert ["core/config/host_settings.py: hosts.reach"] == found


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents(path: Path) -> None:
    """No document has an older spelling, neither in its sentences nor in its examples of settings."""
    text = path.read_text(encoding="utf-8")
    for block in _YAML.findall(text):
        assert [] == [entry.written for entry in read_entries(parse_settings(block)) if entry.written != entry.key]
    lines = [_NOT_OLD.sub("", line) for line in _YAML.sub("", text).splitlines()]
    found = [line for line in lines if _DISTINCT.search(line) or any(map(_WORDS.search, _CODE.findall(line)))]
    assert [] == [line for line in found if not any(text in line for text in REVIEWED)]


def test_the_example_file() -> None:
    """The example file has the present spellings."""
    example = "\n".join(line.removeprefix("# ") for line in example_settings().splitlines() if line[:2] != "##")
    assert [] == [entry.written for entry in read_entries(parse_settings(example)) if entry.written != entry.key]
    assert [] == old_names("\n".join(line for line in example_settings().splitlines() if line[:2] == "##"))


def test_an_example_is_a_line_of_a_file() -> None:
    """The example of each setting can be copied into a file as it is."""
    for name in KEYS:
        (entry,) = read_entries(parse_settings(example_line(name)))
        assert (name, name, None) == (entry.key, entry.written, entry.fault)


def _table() -> Iterator[tuple[str, str]]:
    page = (ROOT / "docs/reference/changes-0.2.md").read_text(encoding="utf-8")
    _, _, section = page.partition("\n## Settings\n")
    yield from re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", section.partition("\n## ")[0], re.MULTILINE)


def test_the_table_of_changes() -> None:
    """The page on the changes lists every setting whose spelling has changed since 0.1."""
    former = {old for key in KEYS.values() for old in key.setting.former}
    assert {old: new for old, new in OLD_NAMES.items() if old not in former} == dict(_table())
