"""The pages about agents match the results of their tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .support import (
    CODE,
    PAGES,
    RESULTS,
    Results,
    fingerprint,
    pages,
    read_fingerprint,
    read_results,
    write_pages,
    write_results,
    written_pages,
)
from .words import refused

PASSED = ["passed", "2026-01-02"]


def test_the_pages_are_the_generated_ones() -> None:
    """The generated pages are current, and no page remains for an untested program."""
    assert pages(read_results(RESULTS)) == written_pages(PAGES), "run python -m tests.house.support"


def test_the_pages_are_in_plain_words() -> None:
    """Each test of an agent is described in a plain sentence."""
    lines = [line for text in pages(read_results(RESULTS)).values() for line in text.splitlines()]
    assert [line for line in lines if refused(line)] == []
    named = [line for line in lines if line.startswith("| ") and "." not in line.partition(" | ")[0]]
    assert [line for line in named if not line.startswith(("| program", "| test", "| ["))] == []


def test_guides_are_left_alone(tmp_path: Path) -> None:
    """Writing the pages removes generated pages of other programs, but no page written by hand."""
    write_pages(tmp_path, pages({"old 1": {"tests/house/test_support.py::test_x": PASSED}}))
    (tmp_path / "claude.md").write_text("# Claude Code\n")
    made = pages({"agent 1.0": {"tests/house/test_support.py::test_x": PASSED}})
    write_pages(tmp_path, made)
    assert {file.name for file in tmp_path.iterdir()} == {*made, "claude.md"}


def test_each_result_is_of_a_test_that_exists() -> None:
    kept = json.loads(RESULTS.read_text())
    assert kept == {**kept, **read_results(RESULTS)}
    assert kept.keys() - {"passed with"} == read_results(RESULTS).keys(), "run python -m tests.house.support"


def test_results_of_asynchronous_tests_are_kept(tmp_path: Path) -> None:
    """A coroutine counts as an existing test."""
    results: Results = {"agent 1.0": {"tests/core/hosts/test_host_agent_real_pi.py::test_pi_runs_on_a_host[x]": PASSED}}
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
    assert "## The pages about agents match the results of their tests\n" in page
    assert "| each result is of a test that exists | 1 | yes | 2026-01-02 |" in page
    assert "| A page has one row for each test, with its docstring or name" in page
    assert "and how many of them failed. | 2 | **not in 1** | 2026-01-02 |" in page


def test_all_passed_with_this_code() -> None:
    """Once all tests with real agents have passed, each change of the code for agents requires another pass."""
    if not (passed_with := read_fingerprint(RESULTS)):
        pytest.skip("make agents has not passed since hashes are kept")
    assert passed_with == fingerprint(), "what talks to the agents has changed: run make agents, commit its results"


def test_the_hash_follows_the_code(tmp_path: Path) -> None:
    """It changes with each file's name and text; compiled files are ignored."""
    for directory in CODE:
        (tmp_path / directory / "__pycache__").mkdir(parents=True)
    file = tmp_path / CODE[0] / "child.py"
    hashes = [fingerprint(tmp_path)]
    for text in ("a", "b"):
        file.write_text(text)
        hashes.append(fingerprint(tmp_path))
    hashes.append(fingerprint(file.rename(file.with_name("kind.py")).parents[2]))
    assert 4 == len(set(hashes))
    (file.parent / "__pycache__" / "kind.pyc").write_text("compiled")
    assert hashes[-1] == fingerprint(tmp_path)


def test_results_of_some_tests_keep_the_hash(tmp_path: Path) -> None:
    """Only a pass of all tests sets it."""
    file = tmp_path / "agents" / "results.json"
    write_results(file, {}, "1234")
    write_results(file, {"agent 1.0": {"tests/house/test_support.py::test_x": PASSED}})
    assert "1234" == read_fingerprint(file)
