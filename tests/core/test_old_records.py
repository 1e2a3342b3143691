"""Runs, presets and settings of earlier versions are read the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.old_records import EXPECTED, documents, lay_out

from .command_line import subdeck

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]


def differences(expected: object, found: object, where: str = "") -> Iterator[str]:
    """Yield missing or different values; values added by a newer version do not count."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            yield from differences(value, found.get(key, "nothing"), f"{where}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{where}/{number}")
    elif expected != found:
        yield f"{where}: {expected!r} is {found!r} now"


def test_everything_is_said_of_old_records(home: Path, project_dir: Path) -> None:
    """Each command prints the same about old records as the version that wrote them."""
    lay_out(home, project_dir)

    def call(words: tuple[str, ...]) -> str:
        return subdeck(*words, cwd=project_dir).out

    expected: dict[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    assert [] == list(differences(expected, documents(call, home, project_dir)))


def test_a_deleted_run_of_an_earlier_version_comes_back(home: Path, project_dir: Path) -> None:
    lay_out(home, project_dir)
    assert 0 == subdeck("rm", "--undo", "236cff", cwd=project_dir).code
    runs = subdeck("status", "--all", "--json", cwd=project_dir).document["runs"]
    assert ["completed"] == [run["status"] for run in runs if run["runId"].endswith("236cff")]
