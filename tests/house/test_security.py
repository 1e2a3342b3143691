"""`SECURITY.md` promises what tests hold."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text()
NAMED = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT))


def test_each_test_that_is_named_exists() -> None:
    """A promise is held by a test of the suite, by the name that stands there."""
    missing = {
        f"{file}::{name}"
        for file, name in NAMED
        if not (ROOT / file).exists()
        or not re.search(rf"^(async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE)
    }
    assert set() == missing


def test_each_promise_names_its_test() -> None:
    """No row of a table that has a column of tests is without one."""
    tables = re.findall(r"^\|[^\n]*\| test \|\n\|-+\|-+\|\n((?:\|[^\n]*\n)+)", TEXT, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [] == [row for row in rows if "::" not in row.rpartition(" | ")[2]]


def test_keys_of_presets_are_known() -> None:
    """What turns something off in a preset is a key that presets have."""
    from subdeck.core.presets.fields import FIELDS

    keys = set(re.findall(r"`(\w+): \S[^`]*`", TEXT)) - {"defaultProjectTrust"}
    assert {"context_files", "project_resources", "prompt_mode", "tools"} <= keys
    assert set() == keys - set(FIELDS)
