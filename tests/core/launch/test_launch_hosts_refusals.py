"""Decisions of a launch on other machines, and its refusals before anything exists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.agents.agent import Naming
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.config.settings import AgentSettings, Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.delegation._arguments import background_arguments, subagent_arguments
from subdeck.core.delegation.results import CallRejected
from subdeck.core.delegation.schema import specs, tools_for
from subdeck.core.engine import Engine
from subdeck.core.errors import AgentUnavailable, RunnerUnavailable, SubdeckError, UsageError
from subdeck.core.launch._eligible_hosts import NONE_HERE
from subdeck.core.launch.child_session import Keeper, own_session
from subdeck.core.launch.plan import Plan, plan_all
from subdeck.core.presets.catalog import discover
from subdeck.core.presets.file import Preset, parse_preset
from subdeck.core.presets.write import save_preset
from subdeck.core.run.model import AgentSession, LaunchedBy, PresetSource, RunMeta, RunnerKind, WorktreeFrom
from subdeck.core.spec.fields import RunSpec
from subdeck.core.spec.request import RunRequest

from tests.core.command_line import Done, subdeck
from tests.core.delegation.delegating import call, parent_engine, task
from tests.factories import make_finished, make_meta, open_engine, write_settings
from tests.repositories import make_repository

ON_HOSTS = Settings(
    agent="pi",
    agents={"pi": AgentSettings(("/bin/true",))},
    default_model="a/b",
    hosts=HostsSettings(ssh=("me@h1",)),
)
TASK = {"preset": "scout", "task": "look"}


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def planned(engine: Engine, fields: str = "", settings: Settings = ON_HOSTS, **request: Any) -> Plan:
    """Plan a run of a preset with these fields; the call uses the runner hosts by default."""
    file = Path(engine.project.home, "scout.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: scout\ndescription: d\n{fields}---\nLook.\n")
    wanted = RunRequest(task="look", preset="scout", **{"runner": "hosts", **request})
    (plan,) = plan_all((wanted,), Workspace(engine.project, engine.project.root, settings))
    return plan


def decided(engine: Engine, fields: str = "", settings: Settings = ON_HOSTS, **request: Any) -> RunMeta:
    plan = planned(engine, fields, settings, **request)
    return plan.decide(background=False, launched_by=LaunchedBy("operator", "cli")).meta


def refusal(engine: Engine, fields: str = "", settings: Settings = ON_HOSTS, **request: Any) -> SubdeckError:
    (problem,) = planned(engine, fields, settings, **request).problems
    return problem


def test_host_and_needs_of_the_call(engine: Engine) -> None:
    """A call's host and requirements are decided at the launch, and stored in the run's record."""
    meta = decided(engine, host="h07", needs={"gpu": 1})
    assert (RunnerKind.HOSTS, "h07", {"gpu": 1.0}) == (meta.runner, meta.host, meta.needs)


def test_host_and_needs_of_the_preset(engine: Engine) -> None:
    """A preset may set runner, host and requirements; a call overrides them, also with any host."""
    fields = "runner: hosts\nhost: h07\nrequires: {gpu: 1, mem: 32}\n"
    asked = [{}, {"host": "h02"}, {"host": "", "needs": {}}]
    metas = [decided(engine, fields, runner=None, **request) for request in asked]
    both = {"gpu": 1.0, "mem": 32.0}
    assert [("h07", both), ("h02", both), ("", {})] == [(meta.host, meta.needs) for meta in metas]


def test_run_of_this_machine_has_neither(engine: Engine) -> None:
    """A run on this machine has neither host nor requirements, and needs no hosts to be set up."""
    meta = decided(engine, settings=replace(ON_HOSTS, hosts=HostsSettings()), runner=None)
    assert ("", {}, ()) == (meta.host, meta.needs, meta.warnings)


@pytest.mark.parametrize("asked", [{"host": "h07"}, {"needs": {"gpu": 1}}])
def test_call_without_the_runner(engine: Engine, asked: dict[str, Any]) -> None:
    """A call that sets a host without the runner hosts is refused, with a hint to add it."""
    problem = refusal(engine, runner=None, **asked)
    assert problem.where == next(iter(asked))
    assert "--runner hosts" in problem.hint


def test_preset_without_the_runner(engine: Engine) -> None:
    """A preset with a host but without a runner is refused by its file, unless the call chooses another runner."""
    problem = refusal(engine, "host: h07\n", runner=None)
    assert (True, True) == (problem.where.endswith("scout.md"), 'add "runner: hosts"' in problem.hint)
    meta = decided(engine, "host: h07\nrequires: {gpu: 1}\n", runner="process")
    assert ("", ("host and requires in the preset has no effect with the runner process",)) == (
        meta.host,
        meta.warnings,
    )


def test_no_hosts_are_set_up(engine: Engine) -> None:
    """Without hosts the refusal tells how to get some."""
    problem = refusal(engine, settings=replace(ON_HOSTS, hosts=HostsSettings()))
    assert isinstance(problem, RunnerUnavailable)
    assert "subdeck hosts try" in problem.hint
    assert paths.user_settings_file() in problem.hint


@pytest.mark.parametrize(
    ("fields", "request_", "words"),
    [
        ("sticky: true\n", {}, "the preset is sticky"),
        ("", {"by_hand": True}, "cannot be opened in the agent"),
        ("", {"host": "-oProxyCommand=x"}, "is not a valid host name"),
        ("", {"host": "h\x1b[2J"}, "is not a valid host name"),
        ("", {"needs": {"gpu": -1}}, "invalid requirement"),
        ("", {"needs": {"subdeck": 1}}, "invalid requirement"),
        ("", {"needs": {"a b": 1}}, "invalid requirement"),
        ("", {"needs": {"gpu": float("nan")}}, "invalid requirement"),
        ("", {"needs": {f"l{number}": 1 for number in range(40)}}, "too many requirements: 40"),
    ],
)
def test_refused(engine: Engine, fields: str, request_: dict[str, Any], words: str) -> None:
    """A request that is impossible on another machine is refused in words, with an alternative."""
    problem = refusal(engine, fields, **request_)
    assert words in problem.what
    assert problem.hint
    assert str(problem).replace("\n", "").isprintable()


@pytest.mark.processes
def test_worktree_is_refused_where_it_is_asked_for(engine: Engine) -> None:
    """A worktree requested by call or preset is refused on a host; one from the settings is dropped with a warning."""
    make_repository(Path(engine.project.root))
    for fields, asked in (("", {"worktree": WorktreeFrom.FILES}), ("worktree: true\n", {})):
        problem = refusal(engine, fields, **asked)
        assert ("worktree", True) == (problem.where, "hosts.code: git" in problem.hint)
    meta = decided(engine, settings=replace(ON_HOSTS, worktree=WorktreeFrom.FILES))
    assert meta.worktree is None
    assert "running without the worktree that your settings ask for" in meta.warnings[0]


def test_sparse_without_git(engine: Engine) -> None:
    """Setting directories to send without `code: git` is refused, not ignored."""
    problem = refusal(engine, settings=replace(ON_HOSTS, hosts=HostsSettings(ssh=("h1",), sparse=("src",))))
    assert "set hosts.code: git" in problem.hint
    sent = HostsSettings(ssh=("h1",), sparse=("src",), code="git")
    assert decided(engine, settings=replace(ON_HOSTS, hosts=sent)).runner == RunnerKind.HOSTS


def test_conversation_that_an_agent_keeps(engine: Engine) -> None:
    """A conversation that its agent keeps on one machine cannot continue on another, in either direction."""
    settings = replace(ON_HOSTS, agent="claude", agents={"claude": AgentSettings(("/bin/true",), kind="claude")})
    here = make_finished(
        engine.project, make_meta(agent="claude", agent_session=AgentSession(), child_session_id="told", preset="scout")
    )
    problems = planned(engine, settings=settings, child_session="told", cwd=here.cwd).problems
    assert any("keeps a conversation on the machine" in problem.what for problem in problems)
    there = make_finished(
        engine.project,
        make_meta(
            agent="claude",
            agent_session=AgentSession(),
            child_session_id="far",
            preset="scout",
            runner=RunnerKind.HOSTS,
        ),
    )
    with pytest.raises(UsageError, match="on the host of run"):
        own_session(
            engine.project, session_id="far", preset="scout", cwd=there.cwd, agent=Keeper("claude", Naming.GIVEN)
        )


def test_attach_to_a_run_on_a_host(engine: Engine) -> None:
    """Attaching to a run on a host fails, and points to its logs."""
    meta = make_finished(engine.project, make_meta(runner=RunnerKind.HOSTS))
    with pytest.raises(SubdeckError, match="no tmux pane") as refused:
        engine.attach_command(meta.run_id)
    assert refused.value.hint.startswith("it runs on another machine; follow it with subdeck logs -f")


# --- presets ---------------------------------------------------------------------------------------------------------


def preset(fields: str) -> Preset:
    return parse_preset(f"---\nname: scout\ndescription: d\n{fields}---\nLook.\n", "/scout.md", PresetSource.PROJECT)


@pytest.mark.parametrize(
    "field", ["host: -x", "host: a b", "requires: gpu", "requires: {gpu: 0}", "requires: {subdeck: 1}"]
)
def test_bad_fields_of_a_preset(engine: Engine, field: str) -> None:
    """An invalid host or requirement is reported with its line."""
    Path(engine.project.home).mkdir(parents=True, exist_ok=True)
    Path(engine.project.home, "scout.md").write_text(f"---\nname: scout\ndescription: d\n{field}\n---\nLook.\n")
    (problem,) = discover(engine.workspace).problems
    assert problem.line == 4


def test_saved_with_a_preset(engine: Engine) -> None:
    """A call's host and requirements can be saved in a preset, and are read back unchanged."""
    spec = RunSpec(prompt="Look.", runner="hosts", host="h07", needs={"gpu": 1.0})
    path = save_preset(engine.project.home, "far", "d", spec)
    saved = parse_preset(Path(path).read_text(), path, PresetSource.PROJECT)
    assert ("hosts", "h07", {"gpu": 1.0}) == (saved.runner, saved.host, saved.needs)


# --- the command line ------------------------------------------------------------------------------------------------


def run(project_dir: Path, *options: str) -> Done:
    return subdeck("run", "--no-preset", "look", *options, cwd=project_dir)


@pytest.mark.processes
def test_options_need_the_runner(project_dir: Path) -> None:
    """`--host` and `--needs` without the runner are refused with a hint; with it, hosts must be set up."""
    write_settings()
    alone = run(project_dir, "--needs", "gpu=1", "--needs", "mem", "--host", "h07")
    assert (2, True) == (alone.code, 'host and needs require "runner: hosts"' in alone.err)
    assert "no hosts are set up" in run(project_dir, "--runner", "hosts", "--host", "h07").err


@pytest.mark.processes
@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (("gpu=x",), "expected LABEL=NUMBER"),
        (("gpu", "gpu=2"), "is required twice"),
        (("=1",), "invalid requirement"),
    ],
)
def test_bad_needs(project_dir: Path, needs: tuple[str, ...], words: str) -> None:
    """An invalid requirement is refused, with its correct form."""
    write_settings(hosts={"ssh": ["h1"]})
    done = run(project_dir, "--runner", "hosts", *(word for need in needs for word in ("--needs", need)))
    assert (2, True, True) == (done.code, words in done.err, "gpu=1" in done.err or "once" in done.err)


# --- delegation ------------------------------------------------------------------------------------------------------


def test_tools_name_hosts_only_where_there_are_some(project_dir: Path) -> None:
    """Parents see `host` and `needs` only if the user has hosts; the other fields stay the same."""
    engine = parent_engine(project_dir)
    before = tools_for(engine)[0].parameters["properties"]
    assert before.keys().isdisjoint({"host", "needs"})
    write_settings(models=["fake/puppet"], hosts={"ssh": ["h1"]})
    after = tools_for(engine)[0].parameters["properties"]
    assert {"host", "needs"} == after.keys() - before.keys()
    assert {**before, "tasks": None} == {key: after[key] for key in before} | {"tasks": None}
    assert specs(["a/b"], [], isolated=False) == specs(["a/b"], [], isolated=False, hosts=False)


def test_arguments_of_hosts() -> None:
    """`any` leaves the host open; without hosts the fields are unknown."""
    _, (one,) = subagent_arguments({**TASK, "host": "any", "needs": {"gpu": 1}}, isolated=False, hosts=True)
    assert ("", {"gpu": 1}, True) == (one.spec.host, one.spec.needs, one.names_host)
    assert not background_arguments(TASK, isolated=False, hosts=True).names_host
    for wrong in ({"host": 1}, {"needs": ["gpu"]}, {"needs": {"gpu": "1"}}, {"needs": {"gpu": 0}}):
        with pytest.raises(CallRejected):
            background_arguments({**TASK, **wrong}, isolated=False, hosts=True)
    with pytest.raises(CallRejected) as unknown:
        background_arguments({**TASK, "host": "h1"}, isolated=False)
    assert "host" not in (unknown.value.errors[0].valid or ())


def test_host_of_a_call_that_cannot_be(project_dir: Path) -> None:
    """A parent that names an impossible host gets the name of the wrong argument."""
    engine = parent_engine(project_dir, hosts={"ssh": ["h1"]})
    answer = call(engine, "background_agent", {**task("answer ok"), "host": "no such"})
    error = answer.structured["error"]
    assert answer.is_error
    assert ("host", "no such") == (error["field"], error["value"])
    assert json.dumps(answer.structured)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "kind", "command"),
    [
        ("pi", "pi", ("pi",)),
        ("claude", "claude", ("claude",)),
        ("codex", "codex", ("codex",)),
        ("mine", "pi", ("/no/such/program", "--flag")),
    ],
)
def test_an_agent_may_be_on_hosts_alone(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str, command: tuple[str, ...]
) -> None:
    """An agent that is not installed here can be launched on a host, which checks it; it cannot be launched here."""
    monkeypatch.setenv("PATH", str(tmp_path))
    agents = {"mine": AgentSettings(("/no/such/program", "--flag"))}
    settings = replace(ON_HOSTS, agent=name, agents=agents, default_model="")
    request = {"model": "a/b"} if kind == "pi" else {}
    meta = decided(engine, settings=settings, **request)
    assert (name, kind, command, RunnerKind.HOSTS) == (meta.agent, meta.kind, meta.agent_command, meta.runner)
    label = planned(engine, settings=settings, **request).agent.label
    assert label == f"{name} (here {'the program does not exist' if name == 'mine' else f'{name} is not on PATH'})"
    assert NONE_HERE not in meta.warnings
    assert NONE_HERE in decided(engine, settings=replace(settings, agent="auto")).warnings
    with pytest.raises(AgentUnavailable):
        decided(engine, settings=settings, runner="process", **request)
    with pytest.raises(AgentUnavailable, match='unknown agent "nobody"'):
        decided(engine, settings=replace(settings, agent="nobody"), **request)
