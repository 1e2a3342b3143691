"""The pages about agents are what their tests found."""

from __future__ import annotations

import json
from pathlib import Path

from .support import PAGES, RESULTS, Results, pages, read_results, write_pages, write_results, written_pages
from .words import refused

PASSED = ["passed", "2026-01-02"]


def test_the_pages_are_the_generated_ones() -> None:
    """The generated pages are current, and no page remains of a program that was not tried."""
    assert pages(read_results(RESULTS)) == written_pages(PAGES), "run python -m tests.house.support"


def test_the_pages_are_in_plain_words() -> None:
    """Each test of an agent says in a plain sentence what it shows."""
    lines = [line for text in pages(read_results(RESULTS)).values() for line in text.splitlines()]
    assert [line for line in lines if refused(line)] == []
    named = [line for line in lines if line.startswith("| ") and "." not in line.partition(" | ")[0]]
    assert [line for line in named if not line.startswith(("| program", "| test", "| ["))] == []


def test_guides_are_left_alone(tmp_path: Path) -> None:
    """Writing the pages removes generated pages of other programs, and no page that was written by hand."""
    write_pages(tmp_path, pages({"old 1": {"tests/house/test_support.py::test_x": PASSED}}))
    (tmp_path / "claude.md").write_text("# Claude Code\n")
    made = pages({"agent 1.0": {"tests/house/test_support.py::test_x": PASSED}})
    write_pages(tmp_path, made)
    assert {file.name for file in tmp_path.iterdir()} == {*made, "claude.md"}


def test_each_result_is_of_a_test_that_exists() -> None:
    assert json.loads(RESULTS.read_text()) == read_results(RESULTS), "run python -m tests.house.support"


def test_results_of_asynchronous_tests_are_kept(tmp_path: Path) -> None:
    """A test that is a coroutine is a test that exists."""
    results: Results = {"agent 1.0": {"tests/core/test_host_agent_real_pi.py::test_pi_runs_on_a_host[x]": PASSED}}
    file = tmp_path / "results.json"
    write_results(file, results)
    assert results == read_results(file)


def test_what_does_not_hold_is_shown() -> None:
    """A page has one row for each test, with its docstring or name, its cases, and how many of them failed."""
    here = "tests/house/test_support.py"
    tests = {
        f"{here}::test_what_does_not_hold_is_shown[a]": ["failed", "2026-01-01"],
        f"{here}::test_what_does_not_hold_is_shown[b]": PASSED,
        f"{here}::test_each_result_is_of_a_test_that_exists": PASSED,
    }
    results: Results = {"agent 1.0": tests}
    made = pages(results)
    assert "| [agent 1.0](agent-1.0.md) | 3 | 2 | 1 | 2026-01-02 |" in made["README.md"]
    page = made["agent-1.0.md"]
    assert "## The pages about agents are what their tests found\n" in page
    assert "| each result is of a test that exists | 1 | yes | 2026-01-02 |" in page
    assert "| A page has one row for each test, with its docstring or name" in page
    assert "and how many of them failed. | 2 | **not in 1** | 2026-01-02 |" in page
