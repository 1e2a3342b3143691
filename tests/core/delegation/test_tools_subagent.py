"""The tool `subagent`, with real programs as agents."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core.agents.choice import choose_agent
from subdeck.core.agents.model_list import KeptList
from subdeck.core.agents.pi._models import cache_file, list_key
from subdeck.core.delegation.parent import Resolved
from subdeck.core.delegation.results import ARGUMENT, ToolProgress
from subdeck.core.engine import Engine
from subdeck.core.models.catalog import Model
from subdeck.core.run.model import LauncherKind

from tests.core.conversing import CONVERSING, hand_over, parts, write_preset
from tests.core.delegation.delegating import SESSION, Calling, call, parent_engine, running, task
from tests.repositories import make_repository
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return parent_engine(project_dir)


def refused(engine: Engine, params: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Make a call that is refused without starting anything. Return its one error."""
    answer = call(engine, "subagent", params, **more)
    assert answer.is_error
    assert () == engine.snapshots()
    (error,) = answer.structured["errors"]
    assert error == answer.structured["error"] == answer.details["error"]
    return error


def test_single_answers_the_child(engine: Engine) -> None:
    """The text is the agent's answer under a header, and the details have AgentDetails with the complete timeline."""
    answer = call(engine, "subagent", task("tool read", "answer all is well", description="looks at a.py"))
    assert not answer.is_error
    (row,) = answer.details["runs"]
    assert answer.text == f"**Status:** SUCCESS  \n**Session ID:** `{row['sessionId']}`\n\n---\n\nall is well"
    assert ("scout", "completed", "done", "all is well", "looks at a.py", None) == tuple(
        row[name] for name in ("preset", "status", "reason", "answer", "description", "error")
    )
    details = row["details"]
    assert ("completed", "scout", 1) == (details["status"], details["subagentType"], details["toolUses"])
    assert ["tool", "text"] == [entry["kind"] for entry in details["entries"]]
    assert row["runId"] == details["agentId"]


def test_the_parent_learns_what_was_changed(engine: Engine, project_dir: Path) -> None:
    """The figures and files are in the text for the parent's model, and in fields."""
    (project_dir / "b.py").write_text("old")
    answer = call(engine, "subagent", task("edit b.py old new", "save a.py x", "answer ok"))
    (row,) = answer.structured["runs"]
    changes = row["changes"]
    assert (2, 1, 1, "tools") == tuple(changes[name] for name in ("files", "added", "removed", "source"))
    assert {"path": "b.py", "status": "modified", "added": 1, "removed": 1} == changes["named"][1]
    assert "**Changes:** 2 files +1 −1: a.py, b.py" in answer.text


def test_a_worktree_of_its_own(project_dir: Path) -> None:
    """A parent may request a worktree: its files are unchanged, and the answer has the place of the agent's changes."""
    make_repository(project_dir)
    engine = parent_engine(project_dir)
    answer = call(engine, "subagent", task("save a.txt theirs", "answer ok", worktree=True))
    assert "one\ntwo\nthree\n" == (project_dir / "a.txt").read_text()
    (run,) = engine.snapshots()
    assert run.meta.worktree
    assert f"**Worktree:** the changes are on branch {run.meta.worktree.branch}, in {run.meta.cwd}," in answer.text
    assert "theirs" == (Path(run.meta.cwd) / "a.txt").read_text()
    (error,) = call(engine, "subagent", task("answer ok", worktree="yes")).structured["errors"]
    assert ("worktree", ["true", "false"]) == (error["field"], error["valid"])


def test_an_end_by_the_budget_has_figures_and_the_answer_so_far(engine: Engine) -> None:
    """A call may lower the budget. If that is exceeded, the parent's model gets the answer so far."""
    answer = call(engine, "subagent", task("ask-for-more Half of it.", "hang", budget=0.4))
    figures = "aborted: budget: the run reached its budget: spent $0.50 of $0.40"
    assert answer.text.endswith(f"---\n\n{figures}\n\nPartial findings:\n\nHalf of it.")
    (row,) = answer.structured["runs"]
    assert ("aborted", "budget", True) == (row["status"], row["reason"], answer.is_error)


def test_structured_has_no_timeline(engine: Engine) -> None:
    """The content for a client's model is the same without the timelines."""
    answer = call(engine, "subagent", task("answer ok"))
    (row,), (full,) = answer.structured["runs"], answer.details["runs"]
    assert "details" not in row
    assert full == {**row, "details": full["details"]}
    assert ("single", 1) == (answer.structured["mode"], answer.structured["completed"])


def test_the_whole_timeline_is_kept(engine: Engine) -> None:
    """However long a run is, a resumed parent session shows its complete timeline."""
    answer = call(engine, "subagent", task("say-many 60", "finish"))
    (row,) = answer.details["runs"]
    assert 60 == len(row["details"]["entries"])
    assert "entriesTotal" not in row["details"]


def test_runs_are_foreground_and_of_the_session(engine: Engine) -> None:
    """A run of `subagent` is not a background run, and it has the session that launched it."""
    call(engine, "subagent", task("answer ok"))
    (run,) = engine.snapshots()
    assert (False, SESSION, "process") == (run.meta.background, run.meta.launched_by.session, run.meta.runner)


def test_parallel_names_each_task(engine: Engine) -> None:
    """Several tasks run as a group, and text and rows have each one's index and preset."""
    answer = call(engine, "subagent", {"tasks": [task("answer one"), task("answer two", preset="other")]})
    assert answer.text.startswith("2 of 2 tasks completed")
    assert "## [1/2] scout: completed" in answer.text
    assert "## [2/2] other: completed" in answer.text
    assert [(0, "scout", "one"), (1, "other", "two")] == [
        (row["index"], row["preset"], row["answer"]) for row in answer.structured["runs"]
    ]


def test_one_failing_task_hides_no_other(engine: Engine) -> None:
    """Failed and completed tasks are both reported, and the call is an error only if none completed."""
    answer = call(engine, "subagent", {"tasks": [task("error boom", "finish"), task("answer fine", preset="other")]})
    assert not answer.is_error
    assert "1 of 2 tasks completed" in answer.text
    assert "boom" in answer.text and "fine" in answer.text
    failed, done = answer.details["runs"]
    assert ("failed", "model_error", "boom") == (failed["status"], failed["reason"], failed["error"])
    assert ("completed", "fine") == (done["status"], done["answer"])
    assert "error" == failed["details"]["status"]


def test_a_failed_run_is_an_error_with_its_timeline(engine: Engine) -> None:
    """A failed single run has its reason, and keeps its timeline."""
    answer = call(engine, "subagent", task("tool read", "error no more tokens", "finish"))
    assert answer.is_error
    assert "error" not in answer.structured
    assert "no more tokens" in answer.text
    (row,) = answer.details["runs"]
    assert "tool" == row["details"]["entries"][0]["kind"]


def test_progress_names_tasks_and_carries_entries(engine: Engine, project_dir: Path) -> None:
    """While tasks run, the progress of each has its index and preset, with its last 20 entries."""
    calling = Calling(
        engine,
        "subagent",
        {"tasks": [task("say-many 30", "wait-for go", "finish"), task("wait-for go", "answer ok", preset="other")]},
    )

    def shown() -> dict[str, Any] | None:
        rows = [progress.details["runs"][0] for progress in calling.told]
        return next((row for row in rows if row["details"].get("entriesTotal") == 30), None)

    row = wait_until(shown, "progress with 30 entries")
    assert 20 == len(row["details"]["entries"])
    assert "line 29" == row["details"]["entries"][-1]["text"]
    (project_dir / "go").touch()
    assert not calling.answer().is_error
    assert "[1/2] scout: " in calling.told[0].text
    assert "[2/2] other: " in calling.told[0].text
    assert {0, 1} == {row["index"] for row in calling.told[0].details["runs"]}


def test_progress_begins_at_once(engine: Engine, project_dir: Path) -> None:
    """The first progress comes before the agent writes anything."""
    calling = Calling(engine, "subagent", task("wait-for go", "answer ok"))
    first = wait_until(lambda: calling.told, "the first progress")[0]
    assert "running" == first.details["runs"][0]["status"]
    (project_dir / "go").touch()
    calling.answer()


def test_cancelling_stops_the_runs(engine: Engine) -> None:
    """A cancelled call ends all its runs as cancelled, and its answer names who cancelled them."""
    calling = Calling(engine, "subagent", {"tasks": [task("hang"), task("say begun", "hang", preset="other")]})
    running(engine, 2)
    calling.cancelled.set()
    answer = calling.answer()
    assert answer.is_error
    assert [("aborted", "cancelled")] * 2 == [(row["status"], row["reason"]) for row in answer.details["runs"]]
    assert f"cancelled by {SESSION}" in answer.text


@pytest.mark.parametrize(("kind", "name"), [("mcp", "the MCP client"), ("pi", "pi")])
def test_who_cancelled(engine: Engine, kind: str, name: str) -> None:
    """A run that a parent agent cancelled names the kind of that agent, because a session id is not readable."""
    parent = Engine.open(engine.cwd, session="0b5e7c1e-9f", kind=LauncherKind(kind))
    calling = Calling(parent, "subagent", task("hang"))
    running(engine)
    calling.cancelled.set()
    assert f"cancelled by {name}" in calling.answer().text


def test_cancelled_before_it_began_starts_nothing(engine: Engine) -> None:
    """A call whose client is already gone starts no run."""
    cancelled = threading.Event()
    cancelled.set()
    assert call(engine, "subagent", task("hang"), cancelled=cancelled).is_error
    assert () == engine.snapshots()


def test_a_listener_that_raises_cancels_the_runs(engine: Engine) -> None:
    """If progress cannot be sent, the runs are stopped, and the caller gets its own exception."""

    def tell(progress: ToolProgress) -> None:
        raise BrokenPipeError("gone")

    calling = Calling(engine, "subagent", task("hang"), tell)
    calling.join()
    assert isinstance(calling.raised, BrokenPipeError)
    (run,) = engine.wait([run.run_id for run in engine.snapshots()], timeout=30)
    assert "cancelled" == run.reason


def test_a_deleted_run_is_told(engine: Engine) -> None:
    """If all runs are deleted, the call ends with a readable error."""
    calling = Calling(engine, "subagent", task("linger 0.3", "leave 0"))
    running(engine)
    os.rename(engine.project.runs, f"{engine.project.runs}-away")
    answer = calling.answer()
    assert answer.is_error
    assert "deleted" in answer.text


def test_unknown_preset(engine: Engine) -> None:
    """The error has the name, the valid names, its source and similar names."""
    error = refused(engine, task("answer ok", preset="scuot"))
    assert ("preset", "scuot", ["other", "scout"], ARGUMENT) == tuple(
        error[name] for name in ("field", "value", "valid", "where")
    )
    assert "did you mean scout" in error["hint"]


def test_valid_values_are_twenty_at_most(engine: Engine, project_dir: Path) -> None:
    """However many presets exist, an error lists twenty."""
    for number in range(30):
        write_preset(project_dir, name=f"p{number:02}")
    assert 20 == len(refused(engine, task("answer ok", preset="zzz"))["valid"])


def test_broken_preset_is_told_by_its_path(engine: Engine, project_dir: Path) -> None:
    """The error of an unusable preset has the path of its file."""
    path = write_preset(project_dir, "runner: rocket", name="broken")
    error = refused(engine, task("answer ok", preset="broken"))
    assert error["where"].startswith(str(path))


def test_unavailable_model_of_the_call(engine: Engine) -> None:
    """An unavailable model in a call is refused with the available ones, and the call as the source."""
    error = refused(engine, task("answer ok", model="fake/nope"), models=("z/z", "fake/a"))
    assert ("model", "fake/nope", ["z/z", "fake/a"], ARGUMENT) == tuple(
        error[name] for name in ("field", "value", "valid", "where")
    )


def test_model_of_a_preset_is_told_by_its_path(engine: Engine, project_dir: Path) -> None:
    """The error of an unknown model has the path of its preset."""
    path = write_preset(project_dir, "model: '@nope'", name="roley")
    error = refused(engine, task("answer ok", preset="roley"))
    assert ("@nope", str(path)) == (error["value"], error["where"])


def test_the_model_of_a_preset_is_read_as_that_of_a_call(engine: Engine, project_dir: Path) -> None:
    """It may be in any case, without a provider or with thinking, and is shown as written."""
    for written, resolved, thinking in (
        ("FAKE/Puppet", "fake/puppet", None), ("puppet:high", "fake/puppet", "high"), ("Fake/A", "fake/a", None),
    ):  # fmt: skip
        write_preset(project_dir, f"model: {written}", name="fixed")
        call(engine, "subagent", task("answer ok", preset="fixed"), models=("fake/a",))
        newest = engine.snapshots()[0].meta
        assert (written, resolved, thinking) == (newest.requested_model, newest.resolved_model, newest.thinking)


def test_an_unavailable_model_of_a_preset(engine: Engine, project_dir: Path) -> None:
    """If the parent sends its models, a preset's model is checked like a call's, with the preset's file as
    the source.
    """
    path = write_preset(project_dir, "model: fake/nope", name="fixed")
    error = refused(engine, task("answer ok", preset="fixed"), models=("fake/a",))
    assert ("model", "fake/nope", ["fake/a"], str(path)) == tuple(
        error[name] for name in ("field", "value", "valid", "where")
    )


def test_a_complete_list_of_models(engine: Engine, project_dir: Path) -> None:
    """If the parent sends no models, a preset's model is refused if pi's own up-to-date list does not have it."""
    write_preset(project_dir, "model: fake/other", name="fixed")
    assert not call(engine, "subagent", task("answer ok", preset="fixed")).is_error
    command = choose_agent("puppet", engine.settings).command
    file = Path(cache_file(command))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(KeptList(list_key(command), (Model("fake", "a", "pi"),))))
    answer = call(engine, "subagent", task("answer ok", preset="fixed"))
    assert (True, ["fake/puppet", "fake/a"]) == (answer.is_error, answer.structured["error"]["valid"])


def test_a_default_that_is_meant_for_another_agent(project_dir: Path) -> None:
    """If the agent doesn't have the default_model that the parent resolved, it uses its own."""
    engine = parent_engine(project_dir, agents={"claude": {"command": ["/bin/true"]}}, agent="claude")
    answer = call(
        engine, "background_agent", task("look"), resolve=lambda ref: Resolved(resolved=ref), models=("fake/puppet",)
    )
    assert answer.text.startswith("Started "), answer  # it may have finished already
    (run,) = engine.wait([run.run_id for run in engine.snapshots()])
    assert ("claude", "") == (run.meta.agent, run.meta.resolved_model)
    assert any("default_model fake/puppet is not a model of this agent" in text for text in run.meta.all_warnings)


def test_an_unknown_role_lists_the_roles(project_dir: Path) -> None:
    """The valid values for an unknown role are the roles, in a call or preset and with any resolver."""
    engine = parent_engine(project_dir, roles={"fast": "fake/puppet", "deep": "fake/puppet:high"})
    write_preset(project_dir, "model: '@fst'", name="roley")
    for params, more in (
        (task("answer ok", model="@fst"), {}),
        (task("answer ok", preset="roley"), {}),
        (task("answer ok", model="@fst"), {"resolve": lambda ref: Resolved(error="no such role")}),
    ):
        assert ["@deep", "@fast"] == refused(engine, params, **more)["valid"]
    assert "did you mean @fast?; known: @deep, @fast" in refused(engine, task("answer ok", model="@fst"))["what"]


def test_no_model_at_all(project_dir: Path) -> None:
    """If no model is named, the error lists the available ones and `default_model`."""
    engine = parent_engine(project_dir, default_model=None)
    error = refused(engine, task("answer ok"))
    assert ("", ["fake/puppet"]) == (error["value"], error["valid"])
    assert "default_model" in error["hint"]


def test_call_goes_before_preset(engine: Engine, project_dir: Path) -> None:
    """The call's model overrides the preset's, in any case, without a provider or with thinking."""
    write_preset(project_dir, "model: fake/preset", name="fixed")
    for model, resolved, thinking in (
        (None, "fake/preset", None), ("FAKE/Puppet", "fake/puppet", None), ("puppet:high", "fake/puppet", "high"),
    ):  # fmt: skip
        given = {} if model is None else {"model": model}
        call(engine, "subagent", task("answer ok", preset="fixed", **given))
        newest = engine.snapshots()[0].meta
        assert (resolved, thinking) == (newest.resolved_model, newest.thinking)


def test_all_problems_of_all_tasks(engine: Engine) -> None:
    """A call with several errors gets all of them, by task, and starts nothing."""
    tasks = [task("answer ok"), task("x", preset="nope"), task("x", cwd="/nowhere"), task("x", sessionId="no-such")]
    tasks.append(task("x", model="no/such"))
    answer = call(engine, "subagent", {"tasks": tasks}, models=("fake/puppet",))
    assert [(1, "preset"), (2, "cwd"), (3, "sessionId"), (4, "model")] == [
        (error["index"], error["field"]) for error in answer.structured["errors"]
    ]
    assert () == engine.snapshots()


def test_unknown_tool(engine: Engine) -> None:
    """The error of an unknown tool lists the known ones."""
    answer = call(engine, "Agent", {})
    assert ["subagent", "background_agent", "background_agent_status", "background_agent_send"] == answer.structured[
        "error"
    ]["valid"]


def test_a_child_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call from an agent in a run starts nothing."""
    monkeypatch.setenv("PI_SUBAGENTS_CHILD", "1")
    assert "cannot delegate" in refused(engine, task("answer ok"))["what"]


def test_the_parent_resolves_first(engine: Engine, project_dir: Path) -> None:
    """The parent is asked for the effective reference, and unknown ones are resolved from roles and catalog."""
    write_preset(project_dir, "model: '@fast'", name="fast")
    asked: list[str] = []

    def resolve(ref: str) -> Resolved | None:
        asked.append(ref)
        return Resolved("fake/puppet", "low") if ref == "@fast" else None

    call(engine, "subagent", {"tasks": [task("answer ok", preset="fast"), task("answer ok")]}, resolve=resolve)
    assert ["@fast", "fake/puppet"] == asked
    assert {("@fast", "fake/puppet", "low"), ("fake/puppet", "fake/puppet", None)} == {
        (run.meta.requested_model, run.meta.resolved_model, run.meta.thinking) for run in engine.snapshots()
    }


def test_a_parent_that_finds_no_role_is_believed(engine: Engine, project_dir: Path) -> None:
    """The parent's error is shown with the role's source."""
    path = write_preset(project_dir, "model: '@fast'", name="fast")
    error = refused(engine, task("answer ok", preset="fast"), resolve=lambda ref: Resolved(error="no such role"))
    assert ("@fast", str(path)) == (error["value"], error["where"])
    assert "no such role" in error["what"]


def test_the_roles_of_a_parents_resolver_are_named(engine: Engine) -> None:
    """The error lists the parent's roles as valid values, with the nearest one and the models, and without control
    sequences.
    """
    roles = {"fast": "fake/puppet", "@deep": "fake/puppet:high", "": "x/y"}
    found = Resolved(error="unknown \x1b[31mrole", roles=roles)
    error = refused(engine, task("answer ok", model="@fst"), resolve=lambda ref: found)
    assert ["@fast", "@deep"] == error["valid"]
    assert "did you mean @fast?" in error["hint"]
    assert "@fast (fake/puppet), @deep (fake/puppet:high)" in error["hint"]
    assert "\x1b" not in error["what"]


def test_the_parents_conversation_is_handed_on(engine: Engine, tmp_path: Path) -> None:
    """The parent's session file is read. If it doesn't exist yet, the branch that the parent sends is used."""
    said = {"role": "user", "content": [{"type": "text", "text": "remember the word heron"}]}
    entry = {"type": "message", "id": "00000001", "parentId": None, "message": said}
    header = {"type": "session", "version": 3, "id": "x", "cwd": "/"}
    file = tmp_path / "parent.jsonl"
    file.write_text(f"{json.dumps(header)}\n{json.dumps(entry)}\n")
    for more in ({"session_file": str(file)}, {"session_file": str(tmp_path / "not-yet"), "branch": [entry]}):
        call(engine, "subagent", task("answer ok"), **more)
        newest = engine.snapshots()[0]
        prompt = Path(engine.project.run_dir(newest.run_id), "prompt.md").read_text()
        assert "<parent-context>" in prompt and "remember the word heron" in prompt
    call(engine, "subagent", task("answer ok"))
    assert engine.snapshots()[0].meta.inherited is None


def test_the_parents_tools_bound_the_presets(engine: Engine, project_dir: Path) -> None:
    """An agent gets no tool that its parent does not have, and never a delegating one."""
    write_preset(project_dir, "tools: read, bash", name="bounded")
    call(engine, "subagent", task("answer ok", preset="bounded"), active_tools=("read", "subagent"))
    assert ("read",) == engine.snapshots()[0].meta.tools.resolved


def test_what_a_parent_has_switched_off_counts(engine: Engine, project_dir: Path) -> None:
    """All tools of the parent limit an allowlist, and dropped tools are reported to its model in one line."""
    write_preset(project_dir, "tools: read, grep, find, webfetch", name="bounded")
    has = {"active_tools": ("read", "bash"), "all_tools": ("read", "bash", "grep", "find")}
    answer = call(engine, "subagent", task("answer ok", preset="bounded"), **has)
    started = call(engine, "background_agent", task("answer ok", preset="bounded"), **has)
    engine.wait([run.run_id for run in engine.snapshots()])

    assert ("read", "grep", "find") == engine.snapshots()[0].meta.tools.resolved
    line = "webfetch is left out: the parent does not have it"
    assert f"  \n**Tools:** {line}\n\n---\n\nok" in answer.text
    assert f"\n{line}\n" in started.text
    assert (line, line) == (answer.structured["runs"][0]["toolsLeftOut"], started.structured["toolsLeftOut"])


def test_default_model_inherit_takes_the_parents(project_dir: Path) -> None:
    """`default_model: inherit` uses the parent's model."""
    engine = parent_engine(project_dir, default_model="inherit")
    call(engine, "subagent", task("answer ok"), model="fake/of-parent")
    assert "fake/of-parent" == engine.snapshots()[0].meta.resolved_model


def test_a_child_session_goes_on(engine: Engine) -> None:
    """A `sessionId` from an earlier answer continues its conversation."""
    first = call(engine, "subagent", task("answer ok")).structured["runs"][0]
    again = call(engine, "subagent", task("answer ok", sessionId=first["sessionId"])).structured["runs"][0]
    assert first["sessionId"] == again["sessionId"]
    assert first["runId"] != again["runId"]


def test_the_presets_runner_is_used(engine: Engine, project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A foreground run uses its preset's runner: without tmux it is refused, and the error names tmux."""
    write_preset(project_dir, "runner: tmux", name="pane")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "tmux" in refused(engine, task("answer ok", preset="pane"))["what"]


def test_a_finalized_result_is_told(project_dir: Path) -> None:
    """The agent's structured result is in a field next to the answer."""
    engine = parent_engine(project_dir, command=CONVERSING)
    write_preset(project_dir, "structured_result: true", name="final")
    params = task(parts(hand_over(status="SUCCESS", result="all is well")), preset="final")
    (row,) = call(engine, "subagent", params).structured["runs"]
    assert ("all is well", "finalized") == (row["answer"], row["reason"])
    assert {"status": "SUCCESS", "result": "all is well"} == row["finalized"]
