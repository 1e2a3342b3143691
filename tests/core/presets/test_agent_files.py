"""Agent files of other programs as presets: naming their directories, the fields used, and following changes."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st
from subdeck.core.config.files import value_of
from subdeck.core.config.settings import AgentSettings, PresetDir, Settings
from subdeck.core.config.workspace import Workspace, load_settings
from subdeck.core.delegation._arguments import subagent_arguments
from subdeck.core.delegation._launch import _Models
from subdeck.core.delegation.parent import Parent
from subdeck.core.engine import Engine
from subdeck.core.errors import ContentError, SettingsError
from subdeck.core.launch.plan import Plan
from subdeck.core.launch.preview import check_preset
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import PresetCatalog, discover, tiers
from subdeck.core.presets.file import Preset
from subdeck.core.presets.sources import DEEPEST, FORMS, MOST_DIRECTORIES, form_of, preset_directories
from subdeck.core.presets.trash import delete_preset, restore_preset
from subdeck.core.presets.write import duplicate
from subdeck.core.project.follower import watch
from subdeck.core.run.model import PresetSource
from subdeck.core.spec.request import RunRequest

from tests.core.command_line import subdeck, write_preset
from tests.fuzzed import TEXTS, VALUES, fuzzed

pytestmark = pytest.mark.usefixtures("forked_commands")

FIELDS = (
    *("name", "description", "model", "tools", "disallowedTools", "permissionMode", "isolation", "maxTurns", "effort"),
    *("permission", "permissions", "disable", "steps", "mode", "sandbox_mode", "approval_policy", "features", "hooks"),
    *("developer_instructions", "web_search", "sandbox_workspace_write", "project_doc_max_bytes", "mcp_servers"),
)

REVIEWER = """---
name: reviewer
description: Reviews a change
tools: Read, Grep
permissionMode: bypassPermissions
---
Look closely.
"""


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


@pytest.fixture
def agents(project: Project) -> Path:
    """The agents of Claude Code in the project."""
    path = Path(project.root, ".claude", "agents")
    path.mkdir(parents=True)
    (path / "reviewer.md").write_text(REVIEWER)
    return path


def workspace(project: Project, *dirs: str | PresetDir, **settings: object) -> Workspace:
    return Workspace(project, project.root, msgspec.structs.replace(Settings(preset_dirs=dirs), **settings))


def catalog(project: Project, *dirs: str | PresetDir, **settings: object) -> PresetCatalog:
    return discover(workspace(project, *dirs, **settings))


def write_project_settings(project: Project, text: str) -> None:
    os.makedirs(project.home, exist_ok=True)
    Path(project.settings_file).write_text(text)


# --- the setting ------------------------------------------------------------------------------------------------------


def test_a_directory_may_say_whose_files_it_has(project: Project, home: Path) -> None:
    """The list of preset directories may name an agent per directory, in the user's and the project's settings."""
    file = home / ".config" / "subdeck" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("preset_dirs:\n  - prompts\n  - {path: ~/.claude/agents, agent: claude}\n")
    write_project_settings(project, "preset_dirs: [{path: .claude/agents, agent: claude}, {path: more}]\n")
    settings = load_settings(project)

    of_project = PresetDir(f"{project.root}/.claude/agents", "claude")
    of_user = PresetDir(f"{home}/.claude/agents", "claude")
    assert (of_project, f"{project.root}/more", f"{project.root}/prompts", of_user) == settings.preset_dirs
    shown = msgspec.to_builtins(value_of(settings, "preset_dirs"))
    assert [str, str] == [type(entry) for entry in shown[1:3]], "a plain directory is shown as it was before"
    assert {"path": of_user.path, "agent": "claude"} == shown[3]


@pytest.mark.parametrize(
    ("written", "what"),
    [
        ("[{path: ../elsewhere, agent: claude}]", "is outside the project"),
        ("[{path: link, agent: claude}]", "is outside the project"),
        ("[{agent: claude}]", "preset_dirs: expected a list of directories"),
        ("[{path: .claude/agents, agnet: claude}]", '"preset_dirs.agnet" is not a setting'),
        ("[{path: .claude/agents, agent: /bin/sh}]", "expected the name of an agent"),
    ],
)
def test_what_a_project_may_not_write(project: Project, written: str, what: str) -> None:
    """A project may name only directories inside itself, and agents by their names."""
    Path(project.root, "link").symlink_to("/etc")
    write_project_settings(project, f"preset_dirs: {written}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings(project)

    assert what in caught.value.what
    assert f"{project.settings_file}:1" == caught.value.where


# --- the files as presets --------------------------------------------------------------------------------------------


def test_files_are_presets_of_their_agent(project: Project, agents: Path) -> None:
    """Agent files are presets in the order of their directories, with the named agent and warnings for ignored
    fields.
    """
    (agents / "README.md").write_text("Our agents.\n")
    presets = catalog(project, PresetDir(str(agents), "claude"))

    (reviewer,) = presets.presets
    assert ((), "reviewer", PresetSource.DIR) == (presets.problems, reviewer.name, reviewer.source)
    assert ("claude", "claude", ("read", "grep")) == (reviewer.form, reviewer.agent, reviewer.tools)
    assert "Look closely." == reviewer.prompt
    (warning,) = reviewer.warnings
    assert warning.startswith("permissionMode is ignored: ")


def test_an_agent_of_the_settings_runs_the_files_of_its_kind(project: Project, agents: Path) -> None:
    """A second Claude Code from the user's settings reads the same files, and runs their presets."""
    own = {"work-claude": AgentSettings(("claude",), "claude")}
    (reviewer,) = catalog(project, PresetDir(str(agents), "work-claude"), agents=own).presets

    assert ("claude", "work-claude") == (reviewer.form, reviewer.agent)


@pytest.mark.parametrize(
    ("agent", "form", "message"),
    [
        ("pi", "", 'unknown agent file format "pi"; set its form: claude'),
        ("nobody", "", 'unknown agent file format "nobody"'),
        ("pi", "claude", 'the agent "pi" cannot run agent files of claude; use claude, or an agent'),
    ],
)
def test_a_directory_that_nobody_can_read(project: Project, agents: Path, agent: str, form: str, message: str) -> None:
    """An unreadable directory is one problem with a way out, and all other presets load."""
    Path(project.home).mkdir(parents=True)
    Path(project.home, "own.md").write_text("---\nname: own\ndescription: d\n---\n")
    presets = catalog(project, PresetDir(str(agents), agent, form))

    assert ["own"] == [preset.name for preset in presets.presets]
    (problem,) = presets.problems
    assert problem.path == str(agents)
    assert message in problem.message


def test_a_broken_file_is_a_problem_by_its_name(project: Project, agents: Path) -> None:
    """A broken file's problem has the agent's name, not the file's, and the line of the field."""
    (agents / "other.md").write_text("---\nname: planner\ndescription: d\nisolation: remote\n---\n")
    presets = catalog(project, PresetDir(str(agents), "claude"))

    assert ["reviewer"] == [preset.name for preset in presets.presets]
    assert [("planner", 4)] == [(problem.name, problem.line) for problem in presets.problems]


def test_directories_below_are_looked_into(project: Project, agents: Path) -> None:
    """Agents in subdirectories are found, as their program finds them; links there are not followed."""
    (agents / "team" / "review").mkdir(parents=True)
    (agents / "team" / "review" / "second.md").write_text(REVIEWER.replace("name: reviewer", "name: second"))
    (agents / "team" / "again.md").write_text(REVIEWER)
    (agents / "loop").symlink_to(agents)
    (agents / ".hidden").mkdir()
    (agents / ".hidden" / "x.md").write_text(REVIEWER.replace("name: reviewer", "name: hidden"))
    presets = catalog(project, PresetDir(str(agents), "claude"))

    assert ["reviewer", "second"] == [preset.name for preset in presets.presets]
    (problem,) = presets.problems
    assert 'the name "reviewer" is already used by ../reviewer.md' in problem.message


def test_a_checkout_with_very_many_directories(project: Project, agents: Path) -> None:
    """The number and depth of searched directories is limited."""
    for number in range(150):
        (agents / f"{number:03}").mkdir()
    (agents / "000" / "1" / "2" / "3" / "4").mkdir(parents=True)
    (place,) = (
        place for place in preset_directories(workspace(project, PresetDir(str(agents), "claude"))) if place.form
    )

    assert MOST_DIRECTORIES == len(place.directories())
    for number in range(1, 150):
        (agents / f"{number:03}").rmdir()
    assert DEEPEST == max(path.count("/") for path in place.directories()) - str(agents).count("/")


def test_names_are_found_for_the_screen(project: Project, agents: Path) -> None:
    """The order of files with one name includes these directories."""
    Path(project.home).mkdir(parents=True)
    Path(project.home, "own.md").write_text("---\nname: reviewer\ndescription: d\n---\n")
    found = tiers("reviewer", workspace(project, PresetDir(str(agents), "claude")))

    assert [(0, f"{project.home}/own.md"), (1, str(agents / "reviewer.md"))] == [
        (tier.rank, tier.path) for tier in found
    ]


@pytest.mark.processes
def test_what_the_command_line_says(project: Project, agents: Path) -> None:
    """`presets` lists them with ignored fields and faults, shows one in full, and doctor reports both."""
    (agents / "broken.md").write_text("---\nname: planner\ndescription: d\nisolation: remote\n---\n")
    write_project_settings(project, "preset_dirs: [{path: .claude/agents, agent: claude}]\n")
    root = Path(project.root)

    listed = subdeck("presets", cwd=root).out
    assert "! reviewer: permissionMode is ignored" in listed
    assert f"✗ {agents}/broken.md:4: isolation: " in listed
    shown = subdeck("presets", "reviewer", cwd=root).out
    assert "Form:        an agent file of claude\n" in shown
    assert "! permissionMode is ignored" in shown
    (document,) = subdeck("presets", "reviewer", "--json", cwd=root).document["presets"]
    assert ("claude", ["read", "grep"]) == (document["form"], document["tools"])
    doctor = subdeck("doctor", cwd=root).out
    assert "1: reviewer" in doctor and f"{agents}/broken.md:4: isolation: " in doctor


@pytest.mark.fuzz
@fuzzed
@given(st.dictionaries(st.sampled_from(FIELDS) | TEXTS, VALUES, max_size=6), st.sampled_from(sorted(FORMS)), TEXTS)
def test_any_file_is_a_preset_or_a_fault(fields: dict[str, object], form: str, body: str) -> None:
    """Any content of a file is read, or refused with a sentence."""
    lines = "\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in fields.items())
    toml = "\n".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in fields.items())
    for text in (f"---\n{lines}\n---\n{body}", toml, body):
        with suppress(ContentError):
            found = form_of(form).parse(text, f"/x/a{FORMS[form]}", "claude")
            assert found is None or (found.name and not (found.tools and found.denied_tools))


# --- editing and copying in the app ----------------------------------------------------------------------------------


def test_an_edited_file_is_judged_in_its_own_form(project: Project, agents: Path) -> None:
    """The editor checks a Claude file as a Claude file, not as a subdeck preset."""
    here = workspace(project, PresetDir(str(agents), "claude"), agent="offline")
    path = str(agents / "reviewer.md")
    text = REVIEWER.replace("tools: Read, Grep", "disallowedTools: Bash(rm *)")

    right = check_preset(REVIEWER.encode(), here, str(agents), PresetSource.DIR, path)
    wrong = check_preset(text.encode(), here, str(agents), PresetSource.DIR, path)
    assert right.preset is not None and ("read", "grep") == right.preset.tools
    assert wrong.fault is not None and 4 == wrong.fault.line
    notes = check_preset(b"no agent\n", here, str(agents), PresetSource.DIR, path)
    assert notes.fault is not None and "not an agent file" in notes.fault.what


def test_a_copy_is_a_preset_of_ours(project: Project, agents: Path) -> None:
    """A copy of a Claude file is a subdeck preset, and keeps the file's restrictions."""
    here = workspace(project, PresetDir(str(agents), "claude"))
    (reviewer,) = discover(here).presets

    path = duplicate(reviewer, "reviewer-2", project.home)
    copied = {preset.name: preset for preset in discover(here).presets}["reviewer-2"]
    assert (path, "", "claude", ("read", "grep")) == (copied.path, copied.form, copied.agent, copied.tools)
    assert ((), "inherit", reviewer.prompt) == (copied.warnings, copied.model, copied.prompt)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_deleted_and_brought_back(project: Project, agents: Path, form: str) -> None:
    """Deleting moves a file of any format to the project's trash, and undo restores it."""
    path = agents / f"x{FORMS[form]}"
    path.write_text("x")

    deleted = delete_preset(str(path), PresetSource.DIR, project)
    assert not path.exists()
    restore_preset(deleted)
    assert "x" == path.read_text()


def test_the_directories_are_watched(project: Project, agents: Path) -> None:
    """A new or changed file is reported at once, even in a directory created later."""
    here = workspace(project, PresetDir(str(agents), "claude"))
    stop = threading.Event()
    places = partial(preset_directories, here)
    changes = watch(project, lambda: tuple(path for place in places() for path in place.directories()), stop)

    def look_for(news: bool) -> None:
        """Read until a change of presets is reported, or until no change is left."""
        deadline = time.monotonic() + 20
        while next(changes).presets is not news:
            assert time.monotonic() < deadline, "no change of presets was seen"

    look_for(news=True)
    look_for(news=False)
    (agents / "new.md").write_text(REVIEWER)
    look_for(news=True)
    (agents / "team").mkdir()
    look_for(news=True)
    look_for(news=False)
    (agents / "team" / "other.md").write_text(REVIEWER)
    look_for(news=True)
    stop.set()
    list(changes)  # it ends


def test_a_preset_of_ours_is_none_of_theirs(project: Project, agents: Path) -> None:
    """A plain path to the same directory reads its files as subdeck presets, without translating names."""
    (found,) = catalog(project, str(agents)).presets

    assert isinstance(found, Preset) and ("", None, ("Read", "Grep")) == (found.form, found.agent, found.tools)


# --- inherited models ------------------------------------------------------------------------------------------------

CLAUDE = {"claude": AgentSettings(("/bin/true",), "claude")}


@pytest.mark.parametrize(
    ("parent", "resolved", "is_said"),
    [("anthropic/claude-x", "anthropic/claude-x", False), ("openai/gpt-x", "", True), (None, "", False)],
)
def test_the_parents_model_where_it_can_be_had(
    project: Project, agents: Path, monkeypatch: pytest.MonkeyPatch, parent: str | None, resolved: str, is_said: bool
) -> None:
    """A file without a model uses the parent's; one that Claude Code does not have is left out with a notice."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    here = workspace(project, PresetDir(str(agents), "claude"), agents=CLAUDE, default_model="fake/other")
    plan = Plan(RunRequest(task="-", preset="reviewer", parent_model=parent), here, lambda: discover(here))

    assert resolved == plan.model.resolved
    assert is_said == any("claude does not have the parent's model" in notice for notice in plan.model.notices)
    assert () == plan.problems


@pytest.mark.parametrize("model", ["sonnet", "inherit"])
def test_a_parents_list_of_models_is_not_that_of_another_agent(project_dir: Path, home: Path, model: str) -> None:
    """If pi delegates to a preset of Claude Code, the model is not searched in pi's list."""
    (home / ".config" / "subdeck").mkdir(parents=True)
    (home / ".config" / "subdeck" / "config.yaml").write_text("agents: {claude: {command: [/bin/true]}}\n")
    engine = Engine.open(str(project_dir))
    write_preset(project_dir, name="reviewer", extra=f"agent: claude\nmodel: {model}\n")
    models = _Models(engine, Parent("parent", "pi", models=("fake/a",)))
    (task,) = subagent_arguments({"preset": "reviewer", "task": "look"}, isolated=False)[1]

    assert (None, None) == models.of(task)
