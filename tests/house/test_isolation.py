"""Tests of the isolation: no test may be able to reach the real home, tmux or a model."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import isolation
from tests.conftest import MAY_START
from tests.house.set_up import ROOT
from tests.waiting import wait_until


def test_nothing_of_the_user_is_reached(home: Path, world: Path) -> None:
    """Home, settings, pi's directory, temporary files and the working directory are the test's own."""
    real_home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    places = [Path(os.environ[name]) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "PI_CODING_AGENT_DIR")]
    places += [Path.home(), Path.cwd(), Path(tempfile.mkdtemp())]
    assert all(place.is_relative_to(world) for place in places)
    assert real_home not in (home, *home.parents)


def test_only_known_variables_pass(world: Path, monkeypatch) -> None:
    """Keys of model providers, a tmux around the tests and settings of pi and subdeck are not passed in."""
    strangers = {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "TMUX", "PI_SUBAGENTS_CHILD", "SUBDECK_RUN_ID", "HTTPS_PROXY"}
    for name in strangers:
        monkeypatch.setenv(name, "from outside")
    inner = world / "inner"
    inner.mkdir()
    assert set() == strangers & isolation.variables(inner).keys()


@pytest.mark.processes
def test_the_default_tmux_socket_is_private(world: Path) -> None:
    """A tmux started without any option lives in the test's world, and its socket's path is short enough."""
    subprocess.run(["tmux", "new-session", "-d", "sleep 60"], check=True)
    said = subprocess.check_output(["tmux", "display-message", "-p", "#{socket_path}"], text=True).strip()
    assert Path(said).is_relative_to(world)
    assert len(said) < 60
    isolation.end_tmux_servers(world)
    wait_until(lambda: not isolation.carriers(os.environ[isolation.MARKER]), "tmux to end")


@pytest.mark.processes
def test_a_left_over_is_named_and_killed(world: Path) -> None:
    """A process that outlives its test is found by its environment, even if it left session and parent."""
    test_id = f"left-over-{world.name}"
    subprocess.run(["sh", "-c", "setsid sleep 61 &"], env=os.environ | {isolation.MARKER: test_id}, check=True)
    wait_until(lambda: list(isolation.carriers(test_id).values()) == ["sleep 61"], "sleep to start")
    (named,) = isolation.end_left_overs(test_id, patience=0.0)
    assert named.endswith(": sleep 61")
    wait_until(lambda: not isolation.carriers(test_id), "sleep to be killed")


def test_the_own_pi_of_the_machine_is_hidden(tmp_path: Path) -> None:
    """A pi on the developer's PATH is hidden; its neighbours in the same directory are not."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("pi", "neighbour"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    path = isolation.search_path(str(programs), tmp_path / "links")
    assert shutil.which("pi", path=path) is None
    assert shutil.which("neighbour", path=path) is not None
    assert shutil.which("pi") is None


@pytest.mark.processes
def test_fd_takes_the_flag_that_pi_passes(project_dir: Path) -> None:
    """The fd of the tests finds files although Debian's lacks `--no-require-git`, and keeps odd arguments whole."""
    (project_dir / "two words.txt").touch()
    found = subprocess.check_output(["fd", "--no-require-git", "--glob", "two w*", str(project_dir)], text=True)
    assert f"{project_dir}/two words.txt\n" == found


def test_what_make_says_arrives() -> None:
    """Variables that a make target sets for the tests reach them."""
    given = set(re.findall(r"\b(SUBDECK_\w+)=", (ROOT / "Makefile").read_text()))
    assert set() == given - isolation.KEPT


PROBE = """
import subprocess

import pytest

def test_says_nothing():
    subprocess.run(["true"])

@pytest.mark.processes
def test_says_so():
    subprocess.run(["true"])

def test_starts_nothing():
    pass

def test_has_an_agent(claude_executable):
    pass
"""


@pytest.mark.processes
def test_who_starts_a_process_says_so(tmp_path: Path) -> None:
    """A test that starts a process fails without a mark for it; one that requests a real agent gets its mark."""
    probe = tmp_path / "test_probe.py"
    probe.write_text(PROBE)
    options = ["-c", ROOT / "pyproject.toml", "-p", "tests.conftest", "-p", "no:cacheprovider", "-m", "not agents"]
    command = [sys.executable, "-m", "pytest", "-v", *options, "--basetemp", tmp_path / "probe", probe]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    assert {"3 passed", "1 deselected", "1 error"} <= set(re.split(r", | in |=+ ", said.splitlines()[-1]))
    assert "ERROR at teardown of test_says_nothing" in said
    assert "the test starts a process with subprocess.Popen('true', ['true'])" in said


FILES_PROBE = """
import subprocess
from pathlib import Path

import pytest

@pytest.mark.processes
def test_leaves_a_process(tmp_path):
    seen = Path(__file__).with_name("seen")
    subprocess.run(["sh", "-c", '(sleep 0.3; touch "$1/late" && touch "$2") &', "sh", tmp_path, seen])

def test_fails(tmp_path):
    assert not tmp_path.exists()
"""


@pytest.mark.processes
def test_files_go_with_the_test_that_passes(tmp_path: Path) -> None:
    """A passing test's directory is removed once none of its processes is left; a failing test's is kept."""
    probe, base = tmp_path / "test_probe.py", tmp_path / "base"
    probe.write_text(FILES_PROBE)
    options = ["-c", ROOT / "pyproject.toml", "-p", "tests.conftest", "-p", "no:cacheprovider", "--basetemp", base]
    command = [sys.executable, "-m", "pytest", *options, probe]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL).stdout
    assert "1 failed, 1 passed" in said
    assert (tmp_path / "seen").exists()
    assert ["test_fails0"] == [path.name for path in base.iterdir() if not path.is_symlink()]


def test_make_quick_starts_nothing() -> None:
    """`make quick` excludes all tests that may start a process, except those marked for a first look."""
    (left_out,) = re.findall(r'-m "quick or not \(([a-z or]+)\)"', (ROOT / "Makefile").read_text())
    assert set() == MAY_START - set(left_out.split(" or "))


def test_a_world_is_new_or_as_new() -> None:
    """A world that a test has changed is removed; an empty one is reused under another name."""
    used, empty = isolation.new_world(), isolation.new_world()
    (used / "home" / "file").touch()
    for world in (used, empty):
        isolation.end_world(world)
    again = isolation.new_world()
    assert not used.exists()
    assert not empty.exists()
    assert {(), isolation.PARTS} == {tuple(sorted(names)) for _, names, _ in os.walk(again)}
    assert [] == [names for *_, names in os.walk(again) if names]
    shutil.rmtree(again)


@pytest.mark.parametrize("change", ["mode", "link", "missing"])
def test_a_changed_world_does_not_come_again(change: str) -> None:
    """A world with other rights, or a replaced directory, is not reused."""
    world = isolation.new_world()
    home = world / "home"
    if change == "mode":
        home.chmod(0o500)
    else:
        home.rmdir()
    if change == "link":
        home.symlink_to(world / "tmp")
    isolation.end_world(world)
    assert not world.exists()
