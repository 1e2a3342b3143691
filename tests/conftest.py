"""Isolation of every test, failing closed: no real home, no default tmux socket, no provider's key, no left-overs."""

from __future__ import annotations

import inspect
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from . import isolation
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

# The same examples everywhere, however slow the machine: what fails, fails again.
hypothesis.settings.register_profile("subdeck", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("subdeck")

# `make clean` removes it; without it every worker compiles all test modules anew.
sys.dont_write_bytecode = False

PI_PROGRAM = "node_modules/.bin/pi"
SESSION_WORLD = pytest.StashKey[Path]()

STARTS_PROCESSES = (
    "test_catalog.py",
    "test_channels.py",
    "test_check.py",
    "test_child_session.py",
    "test_cli_*.py",
    "test_comparing.py",
    "test_containment.py",
    "test_context.py",
    "test_conversation.py",
    "test_day_budget.py",
    "test_demo.py",
    "test_engine_*.py",
    "test_finalization.py",
    "test_follow.py",
    "test_foreign.py",
    "test_forker.py",
    "test_git_*.py",
    "test_hold.py",
    "test_hosts_*.py",
    "test_host_agent*.py",
    "test_keeping.py",
    "test_lease.py",
    "test_left_overs.py",
    "test_liveness.py",
    "test_mark.py",
    "test_mcp.py",
    "test_mcp_going.py",
    "test_mcp_install.py",
    "test_mcp_protocol.py",
    "test_mcp_results.py",
    "test_merging.py",
    "test_offline_agent*.py",
    "test_planted.py",
    "test_processes.py",
    "test_queue_order.py",
    "test_recording*.py",
    "test_replay.py",
    "test_relay*.py",
    "test_hosts_launch.py",
    "test_rights.py",
    "test_runners_process.py",
    "test_session.py",
    "test_standby.py",
    "test_sticky.py",
    "test_taking*.py",
    "test_tools_background.py",
    "test_tools_subagent.py",
    "test_wheel.py",
    "test_work_*.py",
    "test_worktrees_of_runs.py",
    "test_wrapper_*.py",
)
"""Test modules whose tests take long, because they start runs and commands."""
FUZZ = ("test_*_fuzz.py", "test_mutated_recordings.py", "test_hostile_streams.py")
"""Test modules that give what reads foreign text thousands of damaged pieces."""
QUICK = ("test_deck.py", "test_engine_groups.py")
"""Of the app and of the engine these are enough for a first look."""


def new_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-snapshots", action="store_true", help="keep the screens of tests/tui/snapshots as they are"
    )
    parser.addoption("--sweep-seed", type=int, help="what the faults of tests/cluster/test_sweep.py are drawn from")


def pytest_configure(config: pytest.Config) -> None:
    """Leave the real world before any test module is imported."""
    isolation.reset_signals()
    root = config.stash[SESSION_WORLD] = new_root()
    environment = isolation.variables(root)
    environment["PATH"] = isolation.search_path(environment.get("PATH", os.defpath), root / "bin")
    isolation.enter(environment)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make quick` leaves out: what starts processes, and the coroutines of `tests/tui`: they run the app.

    A test that types into a real terminal is run once more where it fails: a busy machine may take its keys in another
    order. So is a test of another program, which we cannot hurry. The summary names it.

    What runs real agents below the engine is left out of `make test`: tests/contract proves the same with scripted
    ones, and `make check` compares the code with the one that `make agents` last passed with.
    """
    starts_processes = cache(lambda path: any(map(path.match, STARTS_PROCESSES)))
    fuzzes = cache(lambda path: any(map(path.match, FUZZ)))
    for item in items:
        has_agent = any(item.get_closest_marker(name) for name in ("agents", "pi"))
        if has_agent and "core" in item.path.parts:
            item.add_marker(pytest.mark.lane)
        if "e2e" in item.path.parts or has_agent:
            item.add_marker(pytest.mark.flaky(reruns=1))
        if item.path.name in QUICK:
            continue
        if starts_processes(item.path) or "contract" in item.path.parts:
            item.add_marker(pytest.mark.processes)
        if fuzzes(item.path):
            item.add_marker(pytest.mark.fuzz)
        if "tui" in item.path.parts and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.app)


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[SESSION_WORLD], ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def session_leaves_nothing(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What fixtures of a wider scope start must be gone when the session ends."""
    tmp_path_factory.getbasetemp()  # settles where tmp_path lives before tempfile is turned to a world
    session_id = f"session-{secrets.token_hex(8)}"
    os.environ[isolation.MARKER] = session_id
    yield
    isolation.end_tmux_servers(pytestconfig.stash[SESSION_WORLD])
    if left := isolation.end_left_overs(session_id):
        pytest.fail(f"left running at the end of the session: {'; '.join(left)}", pytrace=False)


@pytest.fixture(autouse=True)
def world(session_leaves_nothing: None) -> Iterator[Path]:
    """Give the test an environment and a working directory of its own, and fail it for processes that it leaves."""
    test_id = secrets.token_hex(8)
    root = new_root()
    others = isolation.pids()
    before, directory, temporary = dict(os.environ), Path.cwd(), tempfile.tempdir
    isolation.enter(isolation.variables(root) | {isolation.MARKER: test_id})
    tempfile.tempdir = os.environ["TMPDIR"]
    here = root / "here"
    here.mkdir()
    os.chdir(here)
    try:
        yield root
    finally:
        isolation.end_tmux_servers(root)
        left = isolation.end_left_overs(test_id, others)
        os.chdir(directory)
        tempfile.tempdir = temporary
        isolation.enter(before)
        shutil.rmtree(root, ignore_errors=True)
    if left:
        pytest.fail(f"the test left running: {'; '.join(left)}", pytrace=False)


@pytest.fixture
def home(world: Path) -> Path:
    """The private home directory."""
    return world / "home"


@pytest.fixture
def project_dir(tmp_path: Path) -> Path:
    """An empty project: a directory with a `.git` that has a HEAD, kept by pytest when the test fails."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return project


@pytest.fixture
def pi_executable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The real pi that `make test` installs; where the test asks for it (`real_pi.EITHER_PI`), the newer one."""
    monkeypatch.setenv("NODE_COMPILE_CACHE", str(CACHE / "node"))  # else it compiles itself in each test
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
    """Put the node that pi 1.x needs first on PATH; skip the test where one of the two is missing."""
    program = NEW_PI_HOME / PI_PROGRAM
    if not os.access(program, os.X_OK):
        pytest.skip(f"pi {NEW_PI_VERSION} could not be installed here")
    if node_version() < NEW_PI_NODE:
        monkeypatch.setenv("PATH", f"{MCP_CLIENTS_HOME / 'node_modules/.bin'}{os.pathsep}{os.environ['PATH']}")
    if node_version() < NEW_PI_NODE:
        pytest.skip(f"pi {NEW_PI_VERSION} needs node {'.'.join(map(str, NEW_PI_NODE))} or newer")
    return str(program)
