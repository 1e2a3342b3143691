"""Results that the model of an MCP client reads."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core.delegation.call import call_tool
from subdeck.core.delegation.parent import Parent
from subdeck.core.delegation.results import argument_error, end_fields, rejection, run_fields
from subdeck.core.delegation.schema import BACKGROUND_OUTPUT, SEND_OUTPUT, STATUS_OUTPUT
from subdeck.core.engine import Engine
from subdeck.core.mcp._results import LEAST, LIMITS, OTHER_LIMIT, brief, limit_of
from subdeck.core.run.changes import Changes, WorktreePlan
from subdeck.core.run.model import LaunchedBy
from subdeck.core.run.snapshot import Counts

from tests.core.mcp.mcp_client import Pipes, make_project
from tests.factories import make_finished, make_meta, make_result, make_snapshot

pytestmark = pytest.mark.processes

TOKENS = 250
"""Maximum tokens of a row without its texts."""


def tokens(value: object) -> float:
    """Estimate tokens at three characters each, which is more than English or JSON really costs."""
    return len(json.dumps(value, separators=(",", ":"))) / 3


@pytest.fixture
def project(project_dir: Path) -> Path:
    return make_project(project_dir)


def called(client: Pipes, name: str, **arguments: Any) -> Any:
    """Call a tool; return the result for the model."""
    client.ask("tools/call", name=name, arguments=arguments)
    return client.answer()["result"]["structuredContent"]


@pytest.mark.parametrize(("unpriced", "cost"), [(0, 0.5), (7, None)])
def test_a_cost_that_is_not_all_is_left_out(unpriced: int, cost: float | None) -> None:
    """An incomplete cost is left out, because a model would take it as the total."""
    usage = {"input": 10, "output": 2, "cost": 0.5, "turns": 1, "unpriced": unpriced}
    row = {"runId": "r", "status": "completed", "durationMs": 1, "usage": usage, "answer": "x"}
    (shown,) = brief({"runs": [row]}, 10_000, lambda run_id, answer: "")["runs"]
    assert (cost, 12) == (shown["usage"].get("cost"), shown["usage"]["input"] + shown["usage"]["output"])


def test_an_end_by_the_budget_has_figures_and_the_answer_so_far(project: Path) -> None:
    """At the budget limit the model gets the reason with the figures, and the answer so far."""
    with Pipes(project) as client:
        (row,) = called(client, "subagent", preset="scout", task="ask-for-more Half of it.\nhang", budget=0.4)["runs"]
    assert ("aborted", "budget", "Half of it.") == (row["status"], row["reason"], row["answer"])
    assert "the run reached its budget: spent $0.50 of $0.40" == row["error"]


def test_an_answer_has_no_echo_and_no_paths(project: Path) -> None:
    """A foreground result costs little more than its answer: it repeats neither the task nor paths."""
    task = "touch begun\nanswer it is in a.py"
    with Pipes(project) as client:
        (row,) = called(client, "subagent", preset="scout", task=task)["runs"]
    assert ("completed", "it is in a.py", "scout") == (row["status"], row["answer"], row["preset"])
    assert tokens(row | {"answer": ""}) < TOKENS
    assert "begun" not in json.dumps(row)
    assert "/" not in json.dumps(row | {"resolvedModel": ""})


def test_changes_that_are_elsewhere_have_their_place(project: Path) -> None:
    """Changes outside of the model's own files are reported with branch and directory."""
    plan = WorktreePlan(branch="subdeck/look", root="/shop", commit="c0ffee")
    changes = Changes(files=1, added=1)
    run = make_snapshot(make_meta(preset="scout", cwd="/work/tree", worktree=plan))
    result = make_result(run.run_id, changes=changes)
    row = {"index": 0, **run_fields(run), **end_fields(run, result)}
    (shown,) = brief({"mode": "single", "completed": 1, "runs": [row]}, 10_000, lambda *_: "")["runs"]
    assert ("/work/tree", {"branch": "subdeck/look"}) == (shown["cwd"], shown["worktree"])
    far = {"index": 0, **run_fields(make_snapshot(make_meta())), **end_fields(run, replace(result, branch="far/look"))}
    (shown,) = brief({"mode": "single", "completed": 1, "runs": [far]}, 10_000, lambda *_: "")["runs"]
    assert ("far/look", False, False) == (shown["branch"], "worktree" in shown, "cwd" in shown)


def test_a_background_run_has_all_that_is_known_of_it(project: Path) -> None:
    """A background run's handle and status have every field, null if unknown."""
    task = "wait-for go\nanswer it is in a.py"
    with Pipes(project) as client:
        started = called(client, "background_agent", preset="scout", task=task)
        run_dir = project / ".pi/subagents/runs" / started["runId"]
        (project / "go").touch()
        (run,) = Engine.open(str(project)).wait([started["runId"]], timeout=30)
        (alone,) = called(client, "background_agent_status", runId=started["runId"])["runs"]
        (listed,) = called(client, "background_agent_status", includeCompleted=True)["runs"]
    for fields in (started, alone):
        assert (task, str(project), str(run_dir)) == (fields["task"], fields["cwd"], fields["runDir"])
        assert {"fake/puppet"} == {fields["requestedModel"], fields["resolvedModel"]}
        assert run.meta.created_at == fields["createdAt"]
        assert {"meta.json", "prompt.md"} <= set(fields["artifacts"]) <= set(os.listdir(run_dir))
        assert tokens(fields | {"answer": ""}) < 2 * TOKENS
    assert started["endedAt"] is None and run.end
    assert (run.started_at, run.end.ended_at, "it is in a.py") == (
        alone["startedAt"],
        alone["endedAt"],
        alone["answer"],
    )
    assert "result.json" in alone["artifacts"] and "activity" not in alone
    assert ("wait-for go answer it is in a.py", ".") == (listed["task"], listed["cwd"])
    assert f".pi/subagents/runs/{run.run_id}" == listed["runDir"]
    assert ("fake/puppet", "fake/puppet") == (listed["requestedModel"], listed["resolvedModel"])
    assert run.meta.created_at[:19] + "Z" == listed["createdAt"]
    assert run.end.ended_at[:19] + "Z" == listed["endedAt"]
    assert "artifacts" not in listed


def test_a_list_says_where_its_runs_are(project: Path) -> None:
    """Rows of a list are short: their task is cut, and directories are relative to one common root."""
    engine = Engine.open(str(project), session="s", kind="mcp")
    (project / "sub").mkdir()
    known: dict[str, Any] = {"background": True, "launched_by": LaunchedBy("s", "mcp"), "preset": "scout"}
    for day, cwd in enumerate((str(project), str(project / "sub"), "/elsewhere"), start=1):
        meta = make_meta(**known, task="look " * 99, cwd=cwd, created_at=f"2026-01-0{day}T00:00:00.000Z")
        make_finished(engine.project, meta, final_text=None)
    answer = call_tool(engine, "background_agent_status", {"includeCompleted": True}, parent=Parent("s", "mcp"))
    shown = brief(answer.structured, 10_000, lambda *_: "", with_handles=True)
    jsonschema.validate(shown, STATUS_OUTPUT)
    assert str(project) == shown["root"]
    assert ["/elsewhere", "sub", "."] == [row["cwd"] for row in shown["runs"]]
    for row in shown["runs"]:
        assert 80 == len(row["task"]) and row["task"].endswith("…")
        assert Path(shown["root"], row["runDir"], "meta.json").is_file()
        assert (None, None) == (row["requestedModel"], row["resolvedModel"])
        assert tokens(row) < TOKENS
        assert all(part in answer.text for part in (f"cwd: {row['cwd']};", row["createdAt"], row["runDir"]))
    assert f"relative to {project}" in answer.text


def test_a_long_task_names_the_file_that_has_it_all(project: Path) -> None:
    """A handle has only the beginning of a long task, with the path of its file."""
    task = "answer ok\n" + "# and so on\n" * 999
    with Pipes(project) as client:
        started = called(client, "background_agent", preset="scout", task=task)
    beginning, _, end = started["task"].partition(f"\n[… truncated from {len(task)} characters; the whole task is in ")
    assert task.startswith(beginning) and 1000 == len(beginning)
    assert task == Path(end.removesuffix("]")).read_text()
    Engine.open(str(project)).wait([started["runId"]], timeout=30)


@pytest.mark.parametrize("output", [BACKGROUND_OUTPUT, SEND_OUTPUT])
def test_the_error_of_a_run_is_what_the_schema_says(output: dict[str, Any]) -> None:
    """The schema accepts the error of a run that failed at once, and of a wrong call."""
    run = make_snapshot(make_meta(), "failed", message="cannot start")
    place = {"runDir": "/runs/r", "artifacts": []}
    failed = {**run_fields(run), **place, **end_fields(run, None), "counts": msgspec.to_builtins(Counts())}
    shown = brief(failed, 10_000, lambda *_: "", with_handles=True)
    assert "cannot start" == shown["error"]
    jsonschema.validate(shown, output)
    jsonschema.validate(brief(rejection([argument_error("no such run")]).structured, 10_000, lambda *_: ""), output)


def test_an_error_is_said_once(project: Path) -> None:
    """An error of a call, single or multiple, appears once; so does a run's failure."""
    with Pipes(project) as client:
        single = called(client, "subagent", preset="nobody", task="answer yes")
        assert {"error"} == set(single)
        assert 1 == json.dumps(single).count("scout")  # the valid one
        several = called(client, "subagent", tasks=[{"preset": "scout"}, {"preset": "scout", "task": " "}])
        assert {"errors"} == set(several)
        assert [0, 1] == [error["index"] for error in several["errors"]]
        (failed,) = called(client, "subagent", preset="scout", task="error no such luck\nfinish")["runs"]
    assert ("failed", "no such luck") == (failed["status"], failed["error"])
    assert 1 == json.dumps(failed).count("no such luck")


def test_a_long_answer_names_the_file_that_has_it_all(project: Path) -> None:
    """An answer above the client's limit is cut, with the path of the file with the whole answer."""
    with Pipes(project) as client:
        client.ask("tools/call", name="subagent", arguments={"preset": "scout", "task": "say-big 200000\nfinish"})
        result = client.answer()["result"]
    (row,) = result["structuredContent"]["runs"]
    assert result["content"][0]["text"].endswith(row["answer"])
    assert len(json.dumps(row)) <= OTHER_LIMIT
    beginning, _, end = row["answer"].partition("\n[… truncated from 200000 characters; the whole answer is in ")
    assert beginning and {"x"} == set(beginning)
    assert "x" * 200_000 == Path(end.removesuffix("]")).read_text()


@pytest.mark.parametrize("client", LIMITS)
def test_each_client_has_its_limit(client: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit depends on the client's name; Claude Code's environment may lower it."""
    assert LIMITS[client] == limit_of(client) != OTHER_LIMIT
    monkeypatch.setenv("MAX_MCP_OUTPUT_TOKENS", "1000")
    assert (2400 if client == "claude-code" else LIMITS[client]) == limit_of(client)
    monkeypatch.setenv("MAX_MCP_OUTPUT_TOKENS", "many")
    assert LIMITS[client] == limit_of(client)


def rows(*answers: str) -> list[dict[str, Any]]:
    return [
        {"index": number, "runId": f"run-{number}", "preset": "scout", "status": "completed", "answer": answer}
        for number, answer in enumerate(answers)
    ]


def whole(run_id: str, answer: str) -> str:
    return f"/runs/{run_id}"


@pytest.mark.parametrize("text", ["x", "é", '"\n', "\N{PILE OF POO}"])
def test_the_limit_holds_whatever_the_text(text: str) -> None:
    """The limit counts bytes as sent."""
    result = brief({"mode": "single", "completed": 1, "runs": rows(text * 9000)}, 5000, whole)
    assert 4000 < len(json.dumps(result, ensure_ascii=False).encode()) - json.dumps(result).count(": ") * 2 < 5001


def test_only_the_longest_are_cut() -> None:
    """Short answers stay whole; the rest of the limit is shared by the others."""
    result = brief({"mode": "parallel", "completed": 3, "runs": rows("a" * 10, "b" * 9000, "c" * 9000)}, 6000, whole)
    short, *long = (row["answer"] for row in result["runs"])
    assert "a" * 10 == short
    assert all(text.endswith(f"/runs/run-{number}]") for number, text in enumerate(long, 1))
    assert 2000 < min(map(len, long))
    assert abs(len(long[0]) - len(long[1])) < 2


def test_a_long_list_leaves_out_the_oldest() -> None:
    """If not even the rows fit, the first ones are listed with the number of omitted ones."""
    counts = {"running": 0, "completed": 50, "failed": 0, "aborted": 0, "total": 50}
    listing = {"counts": counts, "root": "/" * 900, "runs": rows(*("a" * 2000 for _ in range(50))), "omitted": 3}
    result = brief(listing, 8000, whole)
    shown = len(result["runs"])
    assert 5 < shown < 50
    assert 53 - shown == result["omitted"]
    assert len(json.dumps(result)) < 8000 + LEAST
