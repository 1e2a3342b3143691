"""A plugin for the tests with real agents: records, for each program and version, which of them passed and when.

`pytest -p tests.house.support_lane …` adds its results to `tests/agents/results.json`; `support.py` makes pages of it.
If all of these tests ran and passed, and none was skipped, it also stores the hash of the code and the versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from .set_up import ACP_AGENTS, AGENTS, PI_VERSION
from .support import RESULTS, Results, fingerprint, read_results, write_results

_PROGRAM = "agent"
"""The property of a report that names its program."""

_results: Results = {}
_skipped: set[str] = set()
"""Tests that were not run, for example because a program is missing."""
_DOES_NOT_APPLY = "not for this agent: "
"""Prefix of a skip that leaves nothing untested."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.user_properties += [(_PROGRAM, program) for program in _programs(item)]


def _programs(item: pytest.Item) -> Iterator[str]:
    """Yield the programs that a test starts, each with its version."""
    names: tuple[str, ...] = getattr(item, "fixturenames", ())
    given: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    kind = next((str(given[name]) for name in ("kind", "acp", "parent") if name in given), "")
    if "acp" in given or kind.startswith("acp-"):
        name = kind.removeprefix("acp-")
        yield from (f"{package.rpartition('/')[2]} {ACP_AGENTS[package]}" for package in ACP_AGENTS if name in package)
    elif kind in AGENTS:
        yield f"{kind} {AGENTS[kind][1]}"
    elif "pi_executable" in names:
        yield f"pi {given.get('pi_executable', PI_VERSION)}"
    else:
        yield from (
            f"{program} {version}" for program, (_, version) in AGENTS.items() if f"{program}_executable" in names
        )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    is_tried = not report.skipped or _DOES_NOT_APPLY in str(report.longrepr)
    if not is_tried and any(name == _PROGRAM for name, _ in report.user_properties):
        _skipped.add(report.nodeid)
    if report.when != "call" and not (report.when == "setup" and report.failed):
        return
    held = "passed" if report.passed else "failed" if report.failed else ""
    for name, program in report.user_properties:
        if name == _PROGRAM and held:
            _results.setdefault(str(program), {})[report.nodeid] = [held, f"{datetime.now(UTC):%Y-%m-%d}"]


def is_whole(config: pytest.Config) -> bool:
    """Return whether all tests with real agents were selected."""
    return not config.option.keyword and config.args_source is pytest.Config.ArgsSource.TESTPATHS


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if _results and not hasattr(session.config, "workerinput"):
        known = read_results(RESULTS)
        for program, tests in _results.items():
            known[program] = known.get(program, {}) | tests
        passed = exitstatus == pytest.ExitCode.OK and is_whole(session.config) and not _skipped
        write_results(RESULTS, known, fingerprint() if passed else None)
