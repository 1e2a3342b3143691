"""Isolation of every test, failing closed: no real home, no default tmux socket, no provider's key, no left-overs."""

from __future__ import annotations

import gc
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from . import isolation
from .commands import Commands
from .house.set_up import (
    AGENTS,
    CACHE,
    MCP_CLIENTS_HOME,
    NEW_PI_HOME,
    NEW_PI_NODE,
    NEW_PI_VERSION,
    PI_HOME,
    PI_VERSION,
    agent_program,
    node_version,
)

# The same examples everywhere, however slow the machine is: a failure can be repeated.
hypothesis.settings.register_profile("subdeck", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("subdeck")

# `make clean` removes it; without it every worker compiles all test modules again.
sys.dont_write_bytecode = False

PI_PROGRAM = "node_modules/.bin/pi"
SESSION_WORLD = pytest.StashKey[Path]()

MARKS_OF_FIXTURES = {"pi_executable": "pi", "claude_executable": "agents", "codex_executable": "agents"}
"""Tests with one of these fixtures get its mark."""

MAY_START = frozenset({"processes", "tmux", "pi", "agents", "npm", "cluster", "app"})
"""Marks of tests that may start processes; `make quick` skips them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-snapshots", action="store_true", help="keep the screens of tests/tui/snapshots as they are"
    )
    parser.addoption("--sweep-seed", type=int, help="what the faults of tests/cluster/test_sweep.py are drawn from")


def pytest_configure(config: pytest.Config) -> None:
    """Isolate this process before any test module is imported."""
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(isolation.PLACE))
    gc.disable()  # until all tests are collected, which makes hardly any garbage
    isolation.reset_signals()
    sys.addaudithook(isolation.note_start)
    root = config.stash[SESSION_WORLD] = isolation.new_root()
    environment = isolation.variables(root)
    environment["PATH"] = isolation.search_path(environment.get("PATH", os.defpath), root / "bin")
    isolation.enter(environment)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage of the tests, not the tests themselves, and less often.

    One app is a cycle of some 100,000 objects: with Python's default thresholds a fifth of the time went into
    collections.
    """
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use a real agent's program; other marks are set by the test or module.

    A test with another project's program is run again if it fails, because we can neither speed up nor fix that
    program; the summary names the test. Tests with only our programs are never run again, not even in a real terminal.

    Tests with real agents below the engine are not part of `make test`: tests/contract checks the same with scripted
    ones, and `make check` compares the code with the last one that passed `make agents`. Most tests with real parents
    are left out too, because the tool tests make their calls without them.
    """
    for item in items:
        for fixture in MARKS_OF_FIXTURES.keys() & getattr(item, "fixturenames", ()):
            item.add_marker(MARKS_OF_FIXTURES[fixture])
        has_agent = any(item.get_closest_marker(name) for name in ("agents", "pi"))
        if has_agent and "core" in item.path.parts:
            item.add_marker(pytest.mark.lane)
        if has_agent or item.get_closest_marker("npm"):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_unconfigure(config: pytest.Config) -> None:
    isolation.end_spare_worlds()
    shutil.rmtree(config.stash[SESSION_WORLD], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def session_leaves_nothing(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The processes started by session fixtures must be gone when the session ends."""
    tmp_path_factory.getbasetemp()  # fixes the place of tmp_path before tempfile is redirected to a world
    session_id = f"session-{secrets.token_hex(8)}"
    os.environ[isolation.MARKER] = session_id
    yield
    isolation.end_tmux_servers(pytestconfig.stash[SESSION_WORLD])
    if left := isolation.end_left_overs(session_id):
        pytest.fail(f"left running at the end of the session: {'; '.join(left)}", pytrace=False)


@pytest.fixture(autouse=True)
def world(session_leaves_nothing: None, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Give the test its own environment and working directory.

    Fail it for processes that it leaves behind, and for processes that it starts without the required mark.
    """
    if "tmp_path" in request.fixturenames:
        request.getfixturevalue("tmp_path")  # made first, so removed last: when no process writes there any more
    test_id = secrets.token_hex(8)
    root = isolation.new_world()
    others = isolation.pids()
    isolation.started.clear()
    isolation.connected.clear()
    before, directory, temporary = dict(os.environ), Path.cwd(), tempfile.tempdir
    isolation.enter(isolation.variables(root, before) | {isolation.MARKER: test_id}, before)
    tempfile.tempdir = os.environ["TMPDIR"]
    os.chdir(root / "here")
    try:
        yield root
    finally:
        started = list(isolation.started)
        if isolation.connected:
            gc.collect()  # an open connection is reported now, and not in some later test
            gc.freeze()  # objects that are left are not searched again, which takes up to half a second
        isolation.end_tmux_servers(root)
        left = isolation.end_left_overs(test_id, others)
        os.chdir(directory)
        tempfile.tempdir = temporary
        isolation.enter(before)
        isolation.end_world(root)
    if left:
        pytest.fail(f"the test left running: {'; '.join(left)}", pytrace=False)
    if started and not any(mark.name in MAY_START for mark in request.node.iter_markers()):
        pytest.fail(f"the test starts {started[0]}: mark it, or its module, with pytest.mark.processes", pytrace=False)


@pytest.fixture(scope="session")
def commands(session_leaves_nothing: None) -> Iterator[Commands]:
    """The process that runs subdeck commands without loading it for each."""
    ready = Commands()
    yield ready
    ready.close()


@pytest.fixture
def home(world: Path) -> Path:
    """The private home directory."""
    return world / "home"


@pytest.fixture
def project_dir(tmp_path: Path) -> Path:
    """An empty project: a directory with a `.git` that has a HEAD, kept by pytest if the test fails."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return project


@pytest.fixture
def pi_executable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The real pi that `make test` installs; with `EITHER_PI` of `tests/real/lab.py`, the newer one."""
    monkeypatch.setenv("NODE_COMPILE_CACHE", str(CACHE / "node"))  # otherwise it compiles itself in each test
    if getattr(request, "param", PI_VERSION) == NEW_PI_VERSION:
        return _new_pi(monkeypatch)
    named = os.environ.get("SUBDECK_TEST_PI") or str(PI_HOME / PI_PROGRAM)
    if not os.access(named, os.X_OK):
        pytest.fail(f"there is no pi at {named}; `sh tests/house/set_up.sh test` installs it", pytrace=False)
    return named


@pytest.fixture
def claude_executable() -> str:
    """The real Claude Code that `make test` installs."""
    return _agent("claude")


@pytest.fixture
def codex_executable() -> str:
    """The real Codex that `make test` installs."""
    return _agent("codex")


def _agent(name: str) -> str:
    program = agent_program(name)
    if not os.access(program, os.X_OK):
        pytest.skip(f"{name} {AGENTS[name][1]} could not be installed here")
    return str(program)


def _new_pi(monkeypatch: pytest.MonkeyPatch) -> str:
    """Put the node for pi 1.x first on PATH; skip the test if either is missing."""
    program = NEW_PI_HOME / PI_PROGRAM
    if not os.access(program, os.X_OK):
        pytest.skip(f"pi {NEW_PI_VERSION} could not be installed here")
    if node_version() < NEW_PI_NODE:
        monkeypatch.setenv("PATH", f"{MCP_CLIENTS_HOME / 'node_modules/.bin'}{os.pathsep}{os.environ['PATH']}")
    if node_version() < NEW_PI_NODE:
        pytest.skip(f"pi {NEW_PI_VERSION} needs node {'.'.join(map(str, NEW_PI_NODE))} or newer")
    return str(program)
