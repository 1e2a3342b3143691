"""What doctor finds, one thing missing at a time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from subdeck.core import doctor
from subdeck.core.doctor import Check, State, examine
from subdeck.core.system import cgroup, processes

from tests.core.command_line import write_preset
from tests.factories import write_settings

pytestmark = pytest.mark.processes


def checks(cwd: Path) -> dict[str, Check]:
    """Return the checks by name; of several with one name the last."""
    return {check.name: check for check in examine(str(cwd))}


def program(directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text("#!/bin/sh\necho started >> ${0}.log\n")
    path.chmod(0o755)
    return path


def test_found_programs_are_named_and_not_started(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pi's version comes from its package.json; neither it nor anything else is started by looking."""
    package = tmp_path / "pi"
    pi = program(package / "bin", "pi")
    (package / "package.json").write_text(json.dumps({"name": "@mariozechner/pi-coding-agent", "version": "9.9.9"}))
    for name in ("node", "tmux", "rg", "fd"):
        program(package / "bin", name)
    monkeypatch.setenv("PATH", str(package / "bin"))
    found = checks(project_dir)
    assert Check("pi", State.OK, f"9.9.9 ({pi})") == found["pi"]
    assert found["agent"].detail.startswith("pi 9.9.9")
    for name in ("node", "tmux", "rg", "fd"):
        assert Check(name, State.OK, str(package / "bin" / name)) == found[name]
    assert [] == list(package.rglob("*.log"))


def test_every_installed_agent_is_named(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With version, program and the credentials that are seen, never what they are; and what `auto` takes, and why."""
    directory = program(tmp_path / "bin", "claude").parent
    codex = program(tmp_path / "codex" / "bin", "codex")
    (tmp_path / "codex" / "package.json").write_text(json.dumps({"name": "@openai/codex", "version": "0.9"}))
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    agents = {
        "codex": {"command": [str(codex)]},
        "work": {"kind": "claude", "command": ["claude"], "env": {"ANTHROPIC_AUTH_TOKEN": "secret"}},
        "gone": {"kind": "claude", "command": ["/nowhere/claude"]},
    }
    write_settings(agents=agents, agent="auto", default_model=None)
    found = checks(project_dir)
    claude = f"version unknown ({directory}/claude); credentials: ANTHROPIC_API_KEY"
    assert Check("claude", State.OK, claude) == found["claude"]
    assert Check("codex", State.OK, f"0.9 ({codex}); no credentials found") == found["codex"]
    assert found["work"].detail.endswith("credentials: ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN")
    assert (State.WARN, True) == (found["gone"].state, "/nowhere/claude" in found["gone"].detail)
    assert Check("pi", State.OK, "pi is not on PATH; usable: claude, codex, work") == found["pi"]
    assert "claude (pi is not on PATH) (setting agent: auto)" == found["agent"].detail
    write_settings(agents=agents, agent="auto", default_model="openai/gpt")
    assert "offline (pi is not on PATH) (setting agent: auto), for default_model openai/gpt" == (
        checks(project_dir)["agent"].detail
    )
    write_settings(agents=agents, agent="codex", default_model=None)
    assert "codex 0.9 (setting agent: codex); auto would use claude (pi is not on PATH)" == (
        checks(project_dir)["agent"].detail
    )
    assert "secret" not in str(found)
    assert [] == list(tmp_path.rglob("*.log"))


def test_missing_programs_come_with_a_command(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is named with the command of the package manager that is there."""
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin", "apt").parent))
    found = checks(project_dir)
    assert "sudo apt install ripgrep" == found["rg"].fix
    assert "sudo apt install fd-find" == found["fd"].fix
    assert "sudo apt install tmux" == found["tmux"].fix
    assert "npm install" in found["pi"].fix
    assert {State.WARN} == {found[name].state for name in ("rg", "fd", "tmux", "pi")}
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "install tmux with your system's package manager" == checks(project_dir)["tmux"].fix


def test_fd_under_its_debian_name(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command makes the link that pi looks for, and after it all is well."""
    program(tmp_path / "bin", "fdfind")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin" if not os.path.exists("/usr/bin/fd") else "")
    found = checks(project_dir)["fd"]
    assert State.WARN is found.state
    assert 0 == os.system(found.fix)
    assert State.OK is checks(project_dir)["fd"].state


def test_presets_are_counted_and_broken_ones_named(project_dir: Path) -> None:
    """A broken preset is a warning with its file; without any preset the next step is said."""
    assert "subdeck presets" in checks(project_dir)["presets"].fix
    path = write_preset(project_dir)
    assert Check("presets", State.OK, "1: scout") == checks(project_dir)["presets"]
    path.write_text("no frontmatter")
    broken = checks(project_dir)["presets"]
    assert (State.WARN, f"edit {path}") == (broken.state, broken.fix)


def test_agent_that_cannot_be_used_is_a_problem(project_dir: Path, home: Path) -> None:
    """An agent that the settings ask for and that is not there keeps every run from being started."""
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("agent: pi\n")
    assert State.PROBLEM is checks(project_dir)["agent"].state


def test_broken_settings_are_a_problem(project_dir: Path) -> None:
    """The file and line are named, and the rest is examined with the defaults."""
    path = project_dir / ".pi" / "subagents" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("agent: pi\n")
    found = checks(project_dir)
    assert State.PROBLEM is found["settings"].state
    assert found["settings"].detail.startswith(f"{path}:1: ")
    assert State.OK is found["agent"].state


def test_caps_without_effect_are_told(project_dir: Path) -> None:
    """A project's cap above the user's counts for nothing, and that is said."""
    path = project_dir / ".pi" / "subagents" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("max_parallel: 99\n")
    assert State.WARN is checks(project_dir)["settings"].state


@pytest.mark.parametrize(("broken", "name"), [("_can_lock", "flock"), ("_has_pidfd", "pidfd"), ("start_time", "/proc")])
def test_missing_kernel_features_are_problems(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, broken: str, name: str
) -> None:
    """Without locks, pidfds or /proc no status could be proven."""
    owner = processes if broken == "start_time" else doctor
    monkeypatch.setattr(owner, broken, lambda *_: None)
    found = checks(project_dir)["system"]
    assert State.PROBLEM is found.state
    assert f"{name} does not work" in found.detail
    assert found.fix


def test_looking_leaves_nothing(project_dir: Path) -> None:
    """No file is made by the trial of a lock."""
    examine(str(project_dir))
    assert [".git"] == os.listdir(project_dir)


def test_project_that_cannot_be_written(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only project is a problem with the command that opens it."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    found = checks(project_dir)["project"]
    assert (State.PROBLEM, f"chmod u+rwx {project_dir}") == (found.state, found.fix)


@pytest.mark.parametrize(
    ("version", "state", "detail"),
    [
        ("v20.20.2", State.PROBLEM, "node is 20.20.2, but pi 1.5.2 requires 22.19.0 or newer"),
        ("v22.19.0", State.OK, "node (22.19.0)"),
        ("nonsense", State.OK, "node"),
    ],
)
def test_the_node_that_pi_needs(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, state: State, detail: str
) -> None:
    """A node older than pi's package asks for is a problem, since no run can start; the step says what to do."""
    about = {"name": "@earendil-works/pi-coding-agent", "version": "1.5.2", "engines": {"node": ">=22.19.0"}}
    program(tmp_path / "pi" / "bin", "pi")
    (tmp_path / "pi" / "package.json").write_text(json.dumps(about))
    node = program(tmp_path / "pi" / "bin", "node")
    node.write_text(f"#!/bin/sh\necho {version}\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'pi' / 'bin'}:/usr/bin:/bin")
    found = checks(project_dir)["node"]
    assert (state, True) == (found.state, found.detail.endswith(detail))
    assert ("22.19.0 or newer" in found.fix) is (state is State.PROBLEM)


def test_the_node_of_a_command(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the command of pi names its node, that one is looked at, not the one on PATH."""
    old = program(tmp_path / "old", "node")
    new = program(tmp_path / "new", "node")
    new.write_text("#!/bin/sh\necho v22.20.1\n")
    cli = program(tmp_path / "pi", "cli.js")
    about = {"name": "@earendil-works/pi-coding-agent", "version": "1.5.2", "engines": {"node": ">=22.19.0"}}
    (tmp_path / "pi" / "package.json").write_text(json.dumps(about))
    write_settings(agents={"pi": {"command": [str(new), str(cli)]}}, agent="pi")
    monkeypatch.setenv("PATH", f"{old.parent}:/usr/bin:/bin")
    assert Check("node", State.OK, f"{new} (22.20.1)") == checks(project_dir)["node"]
    assert not Path(f"{old}.log").exists()


def test_how_processes_are_kept_together(
    project_dir: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said whether runs get control groups, what is less where they do not, and the way out if there is one."""

    def processes_check(setting: str) -> Check:
        settings = home / ".config" / "subdeck" / "config.yaml"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(f"cgroup: {setting}\n")
        return checks(project_dir)["processes"]

    group = tmp_path / "group"
    group.mkdir()
    (group / "cgroup.procs").touch()
    monkeypatch.setattr(cgroup, "own", lambda: str(group))
    assert Check("processes", State.OK, f"each run gets a control group below {group}") == processes_check("auto")
    assert "turned off by the setting cgroup: off" in processes_check("off").detail
    monkeypatch.setenv("PATH", str(tmp_path))
    assert State.PROBLEM is processes_check("scope").state
    program(tmp_path, "systemd-run")
    assert State.OK is processes_check("scope").state
    monkeypatch.setattr(cgroup, "own", lambda: None)
    assert (State.OK, "") == ((found := processes_check("auto")).state, found.fix)
    assert "can outlive a killed wrapper" in found.detail
    manager = tmp_path / "systemd" / "private"
    manager.parent.mkdir()
    manager.touch()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert (State.WARN, True) == ((found := processes_check("auto")).state, "cgroup: scope" in found.fix)


def test_processes_that_are_hidden(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A /proc without the processes of other users is told, for what a child starts as one of them is not seen."""
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: path != "/proc/1/stat" and exists(path))
    assert "hidepid" in checks(project_dir)["processes"].detail


@pytest.mark.parametrize(
    ("said", "state", "words"),
    [
        ("git version 2.39.5", State.OK, "git (2.39.5)"),
        ("git version 2.31.0 (Apple Git-1)", State.WARN, "git (2.31.0); 2.38 is needed to apply the changes of runs"),
        ("git version 2.25.1", State.WARN, "git (2.25.1); 2.31 is needed to record what runs change"),
        ("nonsense", State.WARN, "cannot read git's version"),
        (None, State.WARN, "not on PATH; needed to record what runs change, and for worktrees"),
    ],
)
def test_git_is_there_and_new_enough(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, state: State, words: str
) -> None:
    """A git that is missing, or too old for some of what it is asked for, is told with what that is."""
    if said is not None:
        program(tmp_path / "bin", "git").write_text(f"#!/bin/sh\necho '{said}'\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = checks(project_dir)["git"]
    assert (state, True) == (found.state, found.detail.endswith(words))
    assert bool(found.fix) == (state is State.WARN)
