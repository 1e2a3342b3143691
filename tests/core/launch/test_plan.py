"""A run's decisions from its preset: model, thinking, tools, prompt, session and limits in its meta."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from msgspec.structs import replace
from subdeck.core.agents.offline.agent import AGENT
from subdeck.core.config.settings import AgentSettings, PermissionSettings, Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.engine import Engine
from subdeck.core.errors import ModelError, SettingsError, SubdeckError, UsageError
from subdeck.core.launch.plan import Plan, plan_all
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import PresetCatalog, discover
from subdeck.core.run.model import LaunchedBy, Limits, Origin, Permissions, RunMeta
from subdeck.core.run.outcome import FINALIZE_TOOL
from subdeck.core.spec.fields import RunSpec
from subdeck.core.spec.layers import resolve
from subdeck.core.spec.request import RunRequest

from tests.factories import write_settings

PI = Settings(agent="pi", agents={"pi": AgentSettings(("/bin/true",))}, default_model="a/b")
OFFLINE = Settings(agent="offline")


@pytest.fixture
def project(project_dir: Path) -> Project:
    (project_dir / ".pi" / "subagents").mkdir(parents=True)
    return Project(str(project_dir))


def planned(request: RunRequest, project: Project, settings: Settings) -> Plan:
    (one,) = plan_all((request,), Workspace(project, project.root, settings))
    return one


def plan(project: Project, fields: str, settings: Settings = PI, body: str = "Look.", **request: Any) -> Plan:
    Path(project.home, "scout.md").write_text(f"---\nname: scout\ndescription: d\n{fields}\n---\n{body}")
    wanted = RunRequest(task="look", preset="scout", **request)
    return planned(wanted, project, settings)


def meta(project: Project, fields: str, settings: Settings = PI, body: str = "Look.", **request: Any) -> RunMeta:
    wanted = plan(project, fields, settings, body, **request)
    return wanted.decide(background=False, launched_by=LaunchedBy("operator", "cli")).meta


def test_every_decision_of_a_preset(project: Project) -> None:
    """Each preset field that concerns the agent's start is in the meta of the run."""
    decided = meta(
        project,
        'model: "@fast"\ndenied_tools: [bash]\nprompt_mode: replace\ncontext_files: true\nstructured_result: true\n'
        "max_attempts: 5\ntimeout: 10m\nmax_turns: 4\nstall: 30",
        replace(PI, roles={"fast": "x/y:low"}),
    )

    assert ("@fast", "x/y", "low") == (decided.requested_model, decided.resolved_model, decided.thinking)
    assert ("deny", ("read", "edit", "write", FINALIZE_TOOL)) == (decided.tools.policy, decided.tools.resolved)
    assert ("replace", True, True, 5) == (
        decided.prompt_mode, decided.context_files, decided.finalize, decided.max_attempts,
    )  # fmt: skip
    assert Limits(timeout=600, max_turns=4, stall=30) == decided.limits
    assert () == decided.all_warnings


def test_a_preset_that_decides_nothing(project: Project) -> None:
    """Without preset fields the settings and the agent's defaults apply."""
    decided = meta(project, "", replace(PI, limits=Limits(timeout=60)))

    assert ("a/b", None, None, "append", None) == (
        decided.resolved_model, decided.thinking, decided.tools.resolved, decided.prompt_mode, decided.context_files,
    )  # fmt: skip
    assert (False, 1, Limits(timeout=60)) == (decided.finalize, decided.max_attempts, decided.limits)
    assert decided.session_path


def test_nothing_is_no_prompt_to_replace_with(project: Project) -> None:
    """A preset without a prompt keeps the agent's system prompt, even if finalization adds its line."""
    decided = meta(project, "prompt_mode: replace\nstructured_result: true", body="")

    assert ("append", True) == (decided.prompt_mode, decided.system_prompt is not None)


def test_attempts_of_the_settings(project: Project) -> None:
    """If a preset that finalizes sets no number of attempts, the settings do."""
    assert 3 == meta(project, "structured_result: yes").max_attempts
    assert 7 == meta(project, "structured_result: yes", replace(PI, max_attempts=7)).max_attempts


def test_a_session_that_is_not_kept(project: Project) -> None:
    """`session: none` sets no session file."""
    assert None is meta(project, "session: none").session_path


def test_the_tools_of_a_parent(project: Project) -> None:
    """A parent's active tools limit the preset's list."""
    bound = meta(project, "denied_tools: bash", parent_tools=("read", "bash", "webfetch", "subagent"))
    allowed = meta(project, "tools: read, write", parent_tools=("read", "bash"))

    assert ("read", "webfetch") == bound.tools.resolved
    assert ("read",) == allowed.tools.resolved
    assert ("write is left out: the parent does not have it",) == allowed.all_warnings


def test_the_model_of_a_parent(project: Project) -> None:
    """`default_model: inherit` uses the parent's model, and none if it is unknown."""
    settings = replace(PI, default_model="inherit")

    assert "par/ent" == meta(project, "", settings, parent_model="par/ent").resolved_model
    assert "" == meta(project, "", settings).resolved_model


@pytest.mark.parametrize(
    ("preset", "settings", "expected", "warnings"),
    [
        (Limits(), Limits(), Limits(), 0),
        (Limits(timeout=5), Limits(), Limits(timeout=5), 0),
        (Limits(), Limits(stall=5), Limits(stall=5), 0),
        (Limits(timeout=5, max_turns=2), Limits(timeout=9, max_turns=2), Limits(timeout=5, max_turns=2), 0),
        (Limits(timeout=90, stall=1), Limits(timeout=9, stall=9), Limits(timeout=9, stall=1), 1),
        (Limits(max_turns=50, stall=50), Limits(max_turns=5, stall=5), Limits(max_turns=5, stall=5), 2),
    ],
)
def test_a_preset_only_lowers_limits(preset: Limits, settings: Limits, expected: Limits, warnings: int) -> None:
    """The lower limit applies, from preset or settings; a request above the settings is reported as without effect."""
    asked = RunSpec(**structs.asdict(preset))
    spec = resolve(RunSpec(), asked, Settings(limits=settings))

    assert (expected, warnings) == (spec.limits, len(spec.warnings))


def test_a_limit_without_effect_is_a_warning_of_the_run(project: Project) -> None:
    """The run's warnings name the limit that applies instead."""
    decided = meta(project, "timeout: 2m", replace(PI, limits=Limits(timeout=60)))

    assert ("timeout 120 of the preset is above the 60 of the settings, so the setting applies",) == decided.warnings


def test_rules_of_settings_and_preset_go_together(project: Project) -> None:
    """A run has the rules of settings and preset; a fully denied tool is not provided, even if the preset lists it."""
    own = PermissionSettings(allow=("read",), deny=("bash",))
    decided = meta(
        project,
        "tools: [read, bash, edit]\npermissions: {allow: ['edit(src/**)', read]}",
        replace(PI, permissions=own),
    )
    assert Permissions(allow=("read", "edit(src/**)"), deny=("bash",)) == decided.permissions
    assert ("read", "edit") == decided.tools.resolved
    assert meta(project, "").permissions is None
    with pytest.raises(UsageError, match="deny every tool in the list bash"):
        meta(project, "tools: [bash]", replace(PI, permissions=own))


def test_how_long_a_run_waits_for_people(project: Project) -> None:
    """The preset's reply and idle timeouts apply, or the settings' without them."""
    usual = meta(project, "")
    assert (600, 1800) == (usual.answer_timeout, usual.idle_timeout)
    decided = meta(project, "reply_timeout: 1h\nidle_timeout: 5", replace(PI, reply_timeout=7.0))
    assert (3600, 5) == (decided.answer_timeout, decided.idle_timeout)
    assert 7 == meta(project, "", replace(PI, reply_timeout=7.0)).answer_timeout


@pytest.mark.parametrize(
    ("fields", "settings", "expected"),
    [
        ("", OFFLINE, True),
        ("interactive: false", OFFLINE, False),
        ("", replace(OFFLINE, interactive=False), False),
        ("interactive: true", replace(OFFLINE, interactive=False), True),
    ],
)
def test_preset_and_settings_say_whether_a_child_is_talked_to(
    project: Project, monkeypatch: pytest.MonkeyPatch, fields: str, settings: Settings, expected: bool
) -> None:
    """The preset, or else the settings, decide whether a run is interactive, if its agent can be."""
    choose = AGENT.choose
    monkeypatch.setattr(AGENT, "choose", lambda *of: replace(choose(*of), talks=True))
    assert expected is meta(project, fields, settings).talk


def test_a_role_must_resolve_offline(project: Project) -> None:
    """The offline agent accepts any literal id, but refuses an undefined role."""
    assert "offline/reader" == meta(project, "model: never/seen", OFFLINE).resolved_model
    with pytest.raises(ModelError, match="no roles are configured here"):
        meta(project, 'model: "@fast"', OFFLINE)
    assert "offline/reader" == meta(project, 'model: "@fast"', replace(OFFLINE, roles={"fast": "a/b"})).resolved_model


def test_all_problems_at_once(project: Project) -> None:
    """All problems that prevent a launch are reported at once."""
    problems = plan(
        project, 'model: "@nobody"\ndenied_tools: [read, grep, find, ls, edit]', OFFLINE, cwd="gone"
    ).problems

    assert {ModelError, UsageError} == {type(problem) for problem in problems}
    assert 3 == len(problems)


@pytest.mark.processes
def test_settings_are_read_again_at_each_launch(project: Project, home: Path) -> None:
    """A launch uses the current settings; broken ones prevent it."""
    config = home / ".config" / "subdeck" / "config.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("agent: offline\n")
    engine = Engine.open(project.root)
    config.write_text("agent: offline\nlimits: {max_turns: 9}\n")
    (run,) = engine.launch((RunRequest(task="look"),), background=False)
    engine.wait((run.run_id,), timeout=60)
    config.write_text("limit: {max_turns: 9}\n")
    with pytest.raises(SettingsError, match='"limit" is not a setting'):
        engine.launch((RunRequest(task="look"),), background=False)

    assert Limits(max_turns=9) == run.meta.limits
    assert [run.run_id] == [snapshot.run_id for snapshot in engine.snapshots()]


def test_planning_looks_at_the_files_of_now(project: Project) -> None:
    """A launch uses the preset's current file."""
    plan(project, "thinking: low")

    assert "high" == meta(project, "thinking: high").thinking
    assert os.path.isfile(os.path.join(project.home, "scout.md"))


def test_where_a_run_comes_from(project: Project) -> None:
    """A run's meta names the runs that it repeats and follows up."""
    asked = RunRequest(task="again", rerun="a", follow_up="b")
    run = planned(asked, project, OFFLINE).decide(background=True, launched_by=LaunchedBy("operator", "app"))
    assert Origin(rerun="a", follow_up="b") == run.meta.origin


@pytest.mark.parametrize(
    ("fields", "request_fields"),
    [
        ("", {"task": " "}),
        ("", {"preset": "scuot"}),
        ("", {"cwd": "gone"}),
        ("", {"agent": "pie"}),
        ("", {"runner": "tmxu"}),
        ("", {"child_session": "no-such"}),
        ("", {"parent_session": "gone.jsonl"}),
        ("agent: offline\nmodel: '@nobody'", {"cwd": "gone", "runner": "tmxu"}),
        ("session: none", {"child_session": "abc"}),
    ],
)
def test_check_and_launch_agree(project: Project, fields: str, request_fields: dict[str, Any]) -> None:
    """A launch is refused for the first problem that its check finds, and never without one."""
    Path(project.home, "scout.md").write_text(f"---\nname: scout\ndescription: d\n{fields}\n---\nLook.")
    write_settings(agent="offline")
    engine = Engine.open(project.root)
    request = RunRequest(**{"task": "look", "preset": "scout", **request_fields})

    problems = engine.check(request)
    with pytest.raises(SubdeckError) as refused:
        engine.launch((request,), background=False)

    assert str(refused.value) == str(problems[0])
    assert not os.path.exists(project.runs)


def test_check_reads_the_settings_that_a_launch_would(project: Project) -> None:
    """Check and launch both read the current settings; broken ones are a problem of the check."""
    engine = Engine.open(project.root)
    request = RunRequest(task="look", model="x/y")
    write_settings(agent="none-such")
    (problem,) = engine.check(request)
    with pytest.raises(SettingsError) as refused:
        engine.launch((request,), background=False)
    assert str(problem) == str(refused.value)

    write_settings(agent="offline")
    assert engine.check(request) == ()
    assert engine.settings.agent == "offline"


def test_presets_are_read_once_for_a_group(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets are read once for all runs launched together."""
    (Path(project.home) / "scout.md").write_text("---\nname: scout\ndescription: d\n---\n")
    reads: list[Workspace] = []

    def counted(workspace: Workspace) -> PresetCatalog:
        reads.append(workspace)
        return discover(workspace)

    monkeypatch.setattr("subdeck.core.launch.plan.discover", counted)
    plans = plan_all((RunRequest(task="look", preset="scout"),) * 3, Workspace(project, project.root, OFFLINE))

    assert [()] * 3 == [plan.problems for plan in plans]
    assert len(reads) == 1
