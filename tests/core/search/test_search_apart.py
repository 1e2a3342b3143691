"""A search in its own process finds the same, and ends when cancelled."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.events import AssistantText, encode_event
from subdeck.core.search import scan
from subdeck.core.search.pattern import Pattern
from subdeck.core.search.process import search_apart

from tests.factories import make_finished

pytestmark = pytest.mark.processes


@pytest.fixture
def project(project_dir: Path) -> paths.Project:
    project = paths.Project(str(project_dir))
    for said in ("one needle", "a" * 60 + "!", "two needles"):
        run_id = make_finished(project).run_id
        Path(project.run_dir(run_id), paths.EVENTS).write_bytes(encode_event(AssistantText(text=said)))
    return project


def test_finds_the_same(project: paths.Project) -> None:
    """A search in another process returns the same hits as one in this process, even for very many runs."""
    run_ids = [*os.listdir(project.runs), *(f"20260101-000000-{number:06x}" for number in range(10_000))]
    for pattern in (Pattern("NEEDLE", ignore_case=True), Pattern("need.e$", regex=True), Pattern("nowhere")):
        expected = list(scan.search(project.runs, run_ids, pattern, lambda: False))
        assert expected == list(search_apart(project.runs, run_ids, pattern, lambda: False))


def test_ends_at_once_when_it_is_not_wanted_any_more(project: paths.Project) -> None:
    """An expression that would run for years ends as soon as the search is cancelled."""
    began = time.monotonic()
    over = search_apart(project.runs, os.listdir(project.runs), Pattern("(a+)+$", regex=True), lambda: asked())

    def asked() -> bool:
        return time.monotonic() - began > 1.0

    assert [] == list(over)
    assert time.monotonic() - began < 10


def test_ends_with_its_reader(project: paths.Project) -> None:
    """A search whose reader stops leaves no process behind, which the fixtures check after every test."""

    def is_hard(run_id: str) -> bool:
        return b"needle" not in Path(project.run_dir(run_id), paths.EVENTS).read_bytes()

    run_ids = sorted(os.listdir(project.runs), key=is_hard)
    found = search_apart(project.runs, run_ids, Pattern("needle|(a+)+$", regex=True), lambda: False)
    assert next(found).hits
    found.close()  # pyright: ignore[reportAttributeAccessIssue] - it is a generator
