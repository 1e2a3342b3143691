"""Doctor's findings, with one thing missing at a time."""

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
    """Return the checks by name, the last one of each name."""
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
    """Doctor reads pi's version from its package.json and starts no program."""
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
    """Each agent has its version, program and credentials (never their values), and `auto` a choice and reason."""
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
    """A missing program is named with the install command of the available package manager."""
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
    """The suggested command makes the link that pi looks for, and then the check passes."""
    program(tmp_path / "bin", "fdfind")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin" if not os.path.exists("/usr/bin/fd") else "")
    found = checks(project_dir)["fd"]
    assert State.WARN is found.state
    assert 0 == os.system(found.fix)
    assert State.OK is checks(project_dir)["fd"].state


def test_presets_are_counted_and_broken_ones_named(project_dir: Path) -> None:
    """A broken preset is a warning with its file; without presets doctor names the next step."""
    assert "subdeck presets" in checks(project_dir)["presets"].fix
    path = write_preset(project_dir)
    assert Check("presets", State.OK, "1: scout") == checks(project_dir)["presets"]
    path.write_text("no frontmatter")
    broken = checks(project_dir)["presets"]
    assert (State.WARN, f"edit {path}") == (broken.state, broken.fix)


def test_agent_that_cannot_be_used_is_a_problem(project_dir: Path, home: Path) -> None:
    """A missing agent chosen in the settings is a problem, because no run can start."""
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("agent: pi\n")
    assert State.PROBLEM is checks(project_dir)["agent"].state


def test_broken_settings_are_a_problem(project_dir: Path) -> None:
    """Broken settings are named by file and line, and the other checks use the defaults."""
    path = project_dir / ".pi" / "subagents" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("agent: pi\n")
    found = checks(project_dir)
    assert State.PROBLEM is found["settings"].state
    assert found["settings"].detail.startswith(f"{path}:1: ")
    assert State.OK is found["agent"].state


def test_caps_without_effect_are_told(project_dir: Path) -> None:
    """A project's cap above the user's is a warning, because it has no effect."""
    path = project_dir / ".pi" / "subagents" / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("max_parallel: 99\n")
    assert State.WARN is checks(project_dir)["settings"].state


@pytest.mark.parametrize(("broken", "name"), [("_can_lock", "flock"), ("_has_pidfd", "pidfd"), ("start_time", "/proc")])
def test_missing_kernel_features_are_problems(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, broken: str, name: str
) -> None:
    """Without locks, pidfds or /proc doctor reports a problem, because no status can be proven."""
    owner = processes if broken == "start_time" else doctor
    monkeypatch.setattr(owner, broken, lambda *_: None)
    found = checks(project_dir)["system"]
    assert State.PROBLEM is found.state
    assert f"{name} does not work" in found.detail
    assert found.fix


def test_problems_come_first() -> None:
    """Problems come before warnings, and both before the rest; the verdict counts them in one line."""
    one, two, three, four = (
        Check(name, state, "")
        for name, state in zip("abcd", (State.OK, State.WARN, State.PROBLEM, State.WARN), strict=True)
    )
    assert [three, two, four, one] == doctor.worst_first((one, two, three, four))
    assert "1 problem, 2 warnings: fix the problem before you start runs here." == doctor.summary(
        (one, two, three, four)
    )
    assert "2 problems: fix the problems before you start runs here." == doctor.summary((three, three))
    assert "No problems, 1 warning: runs can start here." == doctor.summary((one, two))
    assert "No problems: runs can start here." == doctor.summary((one,))


def test_looking_leaves_nothing(project_dir: Path) -> None:
    """Checking for locks leaves no file behind."""
    examine(str(project_dir))
    assert [".git"] == os.listdir(project_dir)


def test_project_that_cannot_be_written(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only project is a problem with the command that makes it writable."""
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
    """A node too old for pi's package is a problem with a way out, because no run can start."""
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
    """If the command of pi names its node, doctor checks that one, not the one on PATH."""
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
    """Doctor reports whether runs get control groups; if not, what is weaker, and a possible way out."""

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
    assert "turned off by the setting advanced.cgroup: off" in processes_check("off").detail
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
    """A /proc that hides other users' processes is reported, because an agent may start some of them."""
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
    """A missing or too old git is a warning that names the affected features."""
    if said is not None:
        program(tmp_path / "bin", "git").write_text(f"#!/bin/sh\necho '{said}'\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    found = checks(project_dir)["git"]
    assert (state, True) == (found.state, found.detail.endswith(words))
    assert bool(found.fix) == (state is State.WARN)
