"""The starter presets of `subdeck init`: their content and needs, and that nothing is replaced."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest
from subdeck.core import starters
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.paths import DEMO, Project, user_settings_file
from subdeck.core.presets.file import Preset, read_preset
from subdeck.core.run.model import PresetSource, WorktreeFrom
from subdeck.core.starters import NAMES, detect_tests, plan_lines, plan_starters, write_starters

from tests.core.command_line import SUBDECK, subdeck

from .git.repositories import commit, make

pytestmark = pytest.mark.usefixtures("forked_commands")

REMOVED = {"scout", "planner", "reviewer", "worker"}
"""Roles that were once included and then removed."""


def written(project: Path) -> dict[str, Preset]:
    found = [read_preset(str(path), PresetSource.PROJECT) for path in (project / ".pi/subagents").glob("*.md")]
    return {preset.name: preset for preset in found if isinstance(preset, Preset)}


@pytest.fixture
def project(project_dir: Path) -> Path:
    """A git repository with one commit and a Makefile with a target for tests."""
    return make(project_dir, {"Makefile": "all:\n\ntest: all\n\ttrue\n"})


def workspace(project: Path, **settings: object) -> Workspace:
    return Workspace(Project(str(project)), str(project), Settings(**settings))  # type: ignore[arg-type]


@pytest.mark.processes
def test_what_is_written(project: Path) -> None:
    """Four presets that run anywhere: two read-only ones, one in a worktree, one with a check of the tests."""
    plan = plan_starters(workspace(project), for_all=False)
    assert ((), {}) == (write_starters(plan)[1], plan.cannot_start)
    presets = written(project)
    assert set(NAMES) == set(presets)
    assert not REMOVED & set(presets)
    for preset in presets.values():
        assert ("inherit", None, None, ()) == (preset.model, preset.agent, preset.runner, preset.warnings)
        assert len(preset.prompt.split()) > 100
        assert "{" not in preset.prompt
    assert ("read", "grep", "find", "ls") == presets["explore-code"].tools
    assert ("edit", "write") == presets["review-changes"].denied_tools
    assert (None, WorktreeFrom.FILES) == (presets["implement"].tools, presets["implement"].worktree)
    assert ("edit(**)",) == presets["implement"].permissions.allow
    assert () == presets["fix-tests"].permissions.allow
    assert "make-test" == presets["fix-tests"].check
    assert "Run the tests with `make test`." in presets["fix-tests"].prompt
    assert "checks:\n  make-test: [make, test]\n" == Path(user_settings_file()).read_text()


@pytest.mark.processes
def test_nothing_is_replaced(project: Path) -> None:
    """An existing file or preset of that name stays, and is listed; so does a check that runs these tests."""
    place = project / ".pi/subagents"
    place.mkdir(parents=True)
    (place / "implement.md").write_text("mine, and broken")
    (place / "other.md").write_text("---\nname: explore-code\ndescription: mine\n---\n")
    plan = plan_starters(workspace(project, checks={"tests": ("make", "test")}), for_all=False)
    assert ["review-changes", "fix-tests"] == [starter.name for starter in plan.new]
    assert ("tests", ()) == (plan.check, plan.entries)
    assert ["  explore-code    exists: other.md", "  implement       exists: implement.md"] == plan_lines(plan)[3:5]
    write_starters(plan)
    assert "mine, and broken" == (place / "implement.md").read_text()
    assert {"explore-code", "review-changes", "fix-tests"} == set(written(project))
    assert plan_starters(workspace(project), for_all=False).is_done


@pytest.mark.processes
def test_a_name_of_a_check_that_is_taken(project: Path) -> None:
    """An existing check of that name with another command keeps its name."""
    plan = plan_starters(workspace(project, checks={"make-test": ("make", "check")}), for_all=False)
    assert ("make-test-2", "[make, test]") == (plan.check, plan.entries[0].value)


@pytest.mark.processes
def test_an_agent_that_has_to_be_named(project: Path) -> None:
    """If only a program from the settings is installed, without a protocol, the plan says how to choose it."""
    other = AgentSettings(("/bin/true",))
    plan = plan_starters(workspace(project, agents={"other": other}), for_all=False)
    assert ["other"] == [agent.name for agent in plan.agents]
    line = '! runs use offline until you choose an agent: add "agent: other" to your settings'
    assert line in plan_lines(plan)
    chosen = plan_starters(workspace(project, agents={"other": other}, agent="other"), for_all=False)
    assert not any(line.startswith("! runs use") for line in plan_lines(chosen))


@pytest.mark.processes
def test_a_check_that_only_these_settings_lack(project: Path) -> None:
    """If the presets came with the repository, init adds the check for fix-tests to this user's settings."""
    write_starters(plan_starters(workspace(project), for_all=False))
    plan = plan_starters(workspace(project), for_all=False)
    assert ((), ["make-test"], False) == (plan.new, [entry.name for entry in plan.entries], plan.is_done)
    assert plan_starters(workspace(project, checks={"make-test": ("make", "test")}), for_all=False).is_done


@pytest.mark.processes
def test_without_tests_there_is_no_check(project_dir: Path) -> None:
    """Without a test command, and for all projects, fix-tests has no check and explains how to set one."""
    plan = plan_starters(workspace(project_dir), for_all=False)
    assert ("", ()) == (plan.check, plan.entries)
    write_starters(plan)
    assert written(project_dir)["fix-tests"].check is None
    assert "# check: NAME" in (project_dir / ".pi/subagents/fix-tests.md").read_text()
    (project_dir / "go.mod").write_text("module x\n")
    for_all = plan_starters(workspace(project_dir), for_all=True)
    assert ("", ()) == (for_all.check, for_all.entries)
    assert any("gets no check (a preset for all projects)" in line for line in plan_lines(for_all))


@pytest.mark.processes
def test_settings_that_cannot_be_changed(project: Path) -> None:
    """If the check cannot be added to the settings, fix-tests is written without it, and the reason is reported."""
    plan = plan_starters(workspace(project), for_all=False)
    path = Path(user_settings_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("checks: [odd]\n")
    presets, (trouble,) = write_starters(plan)
    assert (4, True) == (len(presets), f"{path}:1" in trouble)
    assert written(project)["fix-tests"].check is None


def test_outside_git_implement_cannot_start(tmp_path: Path, home: Path) -> None:
    """A starter that could not start here is named before it is written."""
    plan = plan_starters(workspace(tmp_path), for_all=False)
    assert ["implement"] == list(plan.cannot_start)
    assert any("! implement cannot start here yet" in line and "git init" in line for line in plan_lines(plan))


@pytest.mark.processes
def test_what_stops_all_of_them(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason that several presets share is given once, after the list of files to write."""
    monkeypatch.setenv(DEMO, "/demo")
    lines = plan_lines(plan_starters(workspace(project), for_all=False))
    (stopped,) = [number for number, line in enumerate(lines) if "cannot start" in line]
    assert lines[stopped].startswith(
        "! explore-code, implement, review-changes, fix-tests cannot start here yet: this is"
    )
    assert all(number < stopped for number, line in enumerate(lines) if not line.startswith("!"))


@pytest.mark.processes
def test_the_role_of_a_bundled_preset(project: Path) -> None:
    """With bundled presets on, init gives Explore its role, which then starts."""
    path = Path(user_settings_file())
    path.parent.mkdir(parents=True)
    path.write_text("bundled_presets: true  # Explore\n")
    marked = subdeck("presets", "--json", cwd=project).document["presets"]
    assert [True] == [bool(preset["cannotStart"]) for preset in marked if preset["name"] == "Explore"]
    assert 0 == subdeck("init", "--yes", cwd=project).code
    assert path.read_text().startswith("bundled_presets: true  # Explore\n")
    assert "\nroles:\n  fast: inherit\n" in path.read_text()
    listed = subdeck("presets", "--json", cwd=project).document["presets"]
    assert {*NAMES, "Explore"} == {preset["name"] for preset in listed if not preset["cannotStart"]}


MAKE, NPM, GO = ("make-test", "make test"), ("npm-test", "npm test"), ("go-test", "go test ./...")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"Makefile": "test:\n"}, [MAKE]),
        ({"GNUmakefile": "build test: x\n"}, [MAKE]),
        ({"Makefile": "tests:\ntest := x\n# test:\n"}, []),
        ({"package.json": '{"scripts": {"test": "jest"}}'}, [NPM]),
        ({"package.json": '{"scripts": {"test": "jest"}}', "pnpm-lock.yaml": ""}, [("pnpm-test", "pnpm test")]),
        ({"package.json": '{"scripts": {"test": "jest"}}', "bun.lock": ""}, [("bun-test", "bun run test")]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"package.json": "[" * 100_000}, []),
        ({"package.json": '{"scripts": ["test"]}'}, []),
        ({"Cargo.toml": ""}, [("cargo-test", "cargo test")]),
        ({"go.mod": ""}, [GO]),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, [("pytest", "python3 -m pytest")]),
        ({"pyproject.toml": "[project]\n"}, []),
        ({"tests/conftest.py": "", "uv.lock": ""}, [("uv-pytest", "uv run pytest")]),
        ({"pytest.ini": "", ".venv/bin/pytest": ""}, [("venv-pytest", ".venv/bin/python -m pytest")]),
        ({"go.mod": "", "Makefile": "test:\n"}, [MAKE, GO]),
    ],
)
def test_how_tests_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    """The test command of a project is detected from its files."""
    monkeypatch.setattr(starters.shutil, "which", lambda program: f"/bin/{program}")
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert expected == [(tests.name, tests.words) for tests in detect_tests(str(tmp_path))]


def test_an_installed_program_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several ways to run the tests, one with an installed program is used."""
    monkeypatch.setattr(starters.shutil, "which", lambda program: "/bin/go" if program == "go" else None)
    (tmp_path / "Makefile").write_text("test:\n")
    (tmp_path / "go.mod").write_text("")
    assert ["go-test", "make-test"] == [tests.name for tests in detect_tests(str(tmp_path))]


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.mark.processes
def test_without_a_terminal_it_is_refused(project: Path) -> None:
    """Without a terminal and without --yes nothing is written, and the error names the way out."""
    for words in (["init"], ["init", "--json"]):
        done = subdeck(*words, cwd=project)
        assert (2, "") == (done.code, done.out)
        assert "--yes" in done.err and "--dry-run" in done.err
    assert "not a terminal" in subdeck("init", cwd=project).err
    assert not (project / ".pi").exists()


@pytest.mark.processes
def test_a_dry_run_writes_nothing(project: Path) -> None:
    """--dry-run shows agents, test command, presets and settings, and changes nothing."""
    done = subdeck("init", "--dry-run", cwd=project)
    assert 0 == done.code
    for part in ("Agents", "make test, detected in Makefile", *NAMES, "checks: {make-test: [make, test]}"):
        assert part in done.out
    document = subdeck("init", "--dry-run", "--json", cwd=project).document
    assert ["new"] * 4 == [preset["state"] for preset in document["presets"]]
    assert not (project / ".pi").exists()
    assert not Path(user_settings_file()).exists()


@pytest.mark.processes
def test_init_writes_once(project: Path) -> None:
    """--yes writes everything; the second time all exist, and there is nothing to ask."""
    document = subdeck("init", "--yes", "--json", cwd=project).document
    assert ["written"] * 4 == [preset["state"] for preset in document["presets"]]
    assert all(os.path.isfile(preset["path"]) for preset in document["presets"])
    assert (["make", "test"], "make-test") == (document["tests"][0]["command"], document["check"])
    again = subdeck("init", cwd=project)
    assert (0, True) == (again.code, "Nothing to write: all of them exist." in again.out)
    assert not any(preset["cannotStart"] for preset in subdeck("presets", "--json", cwd=project).document["presets"])


@pytest.mark.processes
def test_for_all_projects(project: Path) -> None:
    """--global writes into the user's directory."""
    document = subdeck("init", "--global", "--yes", "--json", cwd=project).document
    assert os.path.join(os.environ["PI_CODING_AGENT_DIR"], "subagents") == document["directory"]
    assert {"global"} == {one["source"] for one in subdeck("presets", "--json", cwd=project).document["presets"]}


@pytest.mark.processes
@pytest.mark.parametrize(("answer", "count"), [("n\n", 0), ("y\n", 4)])
def test_it_asks_on_a_terminal(project: Path, answer: str, count: int) -> None:
    """On a terminal the plan is shown and nothing is written before the answer."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen([*SUBDECK, "init"], cwd=project, stdin=theirs, stdout=subprocess.PIPE) as process:
            os.write(ours, answer.encode())
            out, _ = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"explore-code" in out
    assert count == len(written(project))


@pytest.mark.processes
def test_each_starter_runs_offline(project: Path) -> None:
    """Each starter preset completes with the offline agent, and fix-tests passes its check."""
    subdeck("init", "--yes", cwd=project)
    commit(project)
    done = [subdeck("run", name, "where is all", "--json", cwd=project) for name in NAMES]
    assert [(0, "completed")] * 4 == [(each.code, each.document["status"]) for each in done]
    assert 0 == done[-1].document["check"]["exitCode"]


@pytest.mark.processes
def test_what_could_not_be_written_is_reported(project: Path) -> None:
    """If the check cannot be added to the settings, the presets are written, and the exit code is 1 with the reason."""
    path = Path(user_settings_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("checks:\n  {tests:\n    [make, check]}\n")
    done = subdeck("init", "--yes", cwd=project)
    assert (1, 4) == (done.code, len(written(project)))
    assert f"{path}:" in done.err and "checks: {make-test: [make, test]}" in done.err
