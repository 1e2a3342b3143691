"""The tools for background runs, and the updates that a parent session gets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.delegation.call import ROWS
from subdeck.core.delegation.parent import SessionWatch, session_name
from subdeck.core.engine import Engine
from subdeck.core.project.follower import Update
from subdeck.core.run.model import LaunchedBy, RunReason
from subdeck.core.run.snapshot import Counts

from tests.core.conversing import write_preset
from tests.core.delegation.delegating import SESSION, call, parent_engine, task
from tests.core.talking import permission
from tests.factories import changed, make_finished, make_meta, make_snapshot, wait_for_end

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return parent_engine(project_dir)


def begin(engine: Engine, *script: str, **more: Any) -> dict[str, Any]:
    return call(engine, "background_agent", task(*script), **more).structured


def status(engine: Engine, **params: Any) -> dict[str, Any]:
    return call(engine, "background_agent_status", params).structured


def ids(answer: dict[str, Any]) -> list[str]:
    return [row["runId"] for row in answer["runs"]]


def test_launch_answers_at_once(engine: Engine, project_dir: Path) -> None:
    """The answer has the handle, the files and the counts while the agent is still working."""
    answer = call(engine, "background_agent", task("wait-for go", "answer ok", description="waits"))
    row = answer.structured
    assert not answer.is_error
    assert ("scout", "waits", "running") == (row["preset"], row["description"], row["status"])
    assert (1, 1, 0) == (row["counts"]["running"], row["counts"]["total"], row["counts"]["completed"])
    assert {"meta.json", "prompt.md"} <= set(row["artifacts"]) <= set(os.listdir(row["runDir"]))
    assert all(f"{name}: {row[name]}" in answer.text for name in ("cwd", "createdAt", "runDir"))
    assert row["runId"] in answer.text and "bg: 1 running / 1 total" in answer.text
    (project_dir / "go").touch()
    assert "completed" == wait_for_end(engine, row["runId"]).status


def test_launch_names_the_entry_of_the_parent(engine: Engine) -> None:
    """The details have the entry that pi writes to its own session."""
    answer = call(engine, "background_agent", task("answer ok"))
    entry = answer.details["entry"]
    assert "pi-subagents:bg-run" == entry["customType"]
    assert (answer.structured["runId"], "scout") == (entry["data"]["runId"], entry["data"]["preset"])
    assert "entry" not in answer.structured
    wait_for_end(engine, answer.structured["runId"])


def test_background_is_always_a_process(project_dir: Path) -> None:
    """Neither a preset nor a setting can run a background run in tmux."""
    engine = parent_engine(project_dir, runner="tmux")
    write_preset(project_dir, "runner: tmux", name="pane")
    for preset in ("scout", "pane"):
        answer = call(engine, "background_agent", task("answer ok", preset=preset))
        run = wait_for_end(engine, answer.structured["runId"])
        assert ("process", True) == (run.meta.runner, run.meta.background)


def test_cancelling_does_not_reach_background_runs(engine: Engine, project_dir: Path) -> None:
    """A background run outlives its call and its client."""
    row = begin(engine, "wait-for go", "answer ok")
    del engine
    (project_dir / "go").touch()
    assert "completed" == wait_for_end(Engine.open(str(project_dir)), row["runId"]).status


def test_a_wrong_call_is_refused(engine: Engine) -> None:
    """Errors are the same as with `subagent`, and nothing is started."""
    answer = call(engine, "background_agent", task("x", preset="nope"))
    assert ("preset", "nope") == (answer.structured["error"]["field"], answer.structured["error"]["value"])
    assert "tasks" == call(engine, "background_agent", {"tasks": [task("x")]}).structured["error"]["field"]
    assert () == engine.snapshots()


def test_only_active_runs_unless_asked(engine: Engine, project_dir: Path) -> None:
    """Without arguments, the active runs are listed. The counts include all runs."""
    ended = begin(engine, "answer ok")["runId"]
    wait_for_end(engine, ended)
    active = begin(engine, "wait-for go", "answer ok")["runId"]
    answer = status(engine)
    assert [active] == ids(answer)
    assert {
        "running": 1,
        "completed": 1,
        "failed": 0,
        "aborted": 0,
        "total": 2,
        "queued": 0,
        "waiting": 0,
        "outOfReach": 0,
    } == answer["counts"]
    assert [active, ended] == ids(status(engine, includeCompleted=True))
    (project_dir / "go").touch()
    wait_for_end(engine, active)


def test_every_end_is_counted(engine: Engine) -> None:
    """Completed, failed and aborted runs are counted separately."""
    for script in (("answer ok",), ("error no", "finish")):
        wait_for_end(engine, begin(engine, *script)["runId"])
    hanging = begin(engine, "hang")["runId"]
    engine.stop([hanging])
    wait_for_end(engine, hanging)
    counts = status(engine)["counts"]
    assert (0, 1, 1, 1, 3) == tuple(counts[name] for name in ("running", "completed", "failed", "aborted", "total"))


def test_one_run_with_its_result(engine: Engine) -> None:
    """A finished run is shown with its result, also by its short id."""
    row = begin(engine, "answer the whole answer")
    wait_for_end(engine, row["runId"])
    for wanted in (row["runId"], row["runId"][-6:]):
        answer = call(engine, "background_agent_status", {"runId": wanted})
        (told,) = answer.structured["runs"]
        assert ("completed", "done", "the whole answer") == (told["status"], told["reason"], told["answer"])
        assert "**Status:** SUCCESS" in answer.text and "the whole answer" in answer.text
    for name in ("preset", "task", "cwd", "requestedModel", "resolvedModel", "createdAt", "startedAt", "endedAt"):
        assert told[name], name
    assert {"result.json", "events.jsonl", "meta.json"} <= set(told["artifacts"])
    assert told["usage"]["turns"] == 1


def test_long_answers_are_cut_in_lists_only(engine: Engine) -> None:
    """A list of runs cuts long answers. A single run has the complete one."""
    row = begin(engine, "say-big 5000", "finish")
    wait_for_end(engine, row["runId"])
    (listed,) = status(engine, includeCompleted=True)["runs"]
    assert listed["answer"].startswith("x" * 2000) and len(listed["answer"]) < 2100
    (alone,) = status(engine, runId=row["runId"])["runs"]
    assert 5000 == len(alone["answer"])


def test_unknown_run_is_answered_with_the_active_ones(engine: Engine, project_dir: Path) -> None:
    """A mistyped id is an error that lists the active runs."""
    active = begin(engine, "wait-for go", "answer ok")["runId"]
    answer = call(engine, "background_agent_status", {"runId": "20200101-000000-abcdef"})
    assert answer.is_error
    assert ("20200101-000000-abcdef", [active]) == (
        answer.structured["error"]["value"],
        answer.structured["error"]["valid"],
    )
    assert [active] == ids(answer.structured)
    assert active in answer.text
    (project_dir / "go").touch()
    wait_for_end(engine, active)


def test_sessions_are_apart(engine: Engine, project_dir: Path) -> None:
    """Each parent sees only its own background runs. You see all of them, with their launchers."""
    other = Engine.open(str(project_dir), session="parent-2", kind="mcp")
    mine = begin(engine, "answer ok")["runId"]
    theirs = call(other, "background_agent", task("answer ok"), session="parent-2").structured["runId"]
    for run_id in (mine, theirs):
        wait_for_end(engine, run_id)
    assert [mine] == ids(status(engine, includeCompleted=True))
    seen = call(other, "background_agent_status", {"includeCompleted": True}, session="parent-2").structured
    assert [theirs] == ids(seen)
    assert call(engine, "background_agent_status", {"runId": theirs}).is_error
    operator = Engine.open(str(project_dir)).snapshots()
    assert {(mine, SESSION), (theirs, "parent-2")} == {(run.run_id, run.meta.launched_by.session) for run in operator}


def test_foreground_runs_are_not_listed(engine: Engine) -> None:
    """Foreground runs of `subagent` are not listed, because they were answered."""
    call(engine, "subagent", task("answer ok"))
    assert (0, []) == (status(engine)["counts"]["total"], ids(status(engine, includeCompleted=True)))


def test_a_forked_session_sees_what_its_entries_name(engine: Engine) -> None:
    """Runs in a parent's own entries are its runs, even if another session launched them."""
    row = begin(engine, "answer ok")
    wait_for_end(engine, row["runId"])
    forked = call(engine, "background_agent_status", {"includeCompleted": True}, session="fork", runs=(row["runId"],))
    assert [row["runId"]] == ids(forked.structured)


def test_long_lists_are_cut(engine: Engine) -> None:
    """In a long list, the newest runs are shown and the others counted."""
    for _ in range(ROWS + 3):
        make_finished(engine.project, make_meta(background=True, launched_by=LaunchedBy(SESSION, "pi")))
    answer = status(engine, includeCompleted=True)
    assert (ROWS, 3, ROWS + 3) == (len(answer["runs"]), answer["omitted"], answer["counts"]["total"])


def test_polling_claims_nothing(engine: Engine) -> None:
    """Reading the status does not mark a run as read."""
    row = begin(engine, "answer ok")
    run = wait_for_end(engine, row["runId"])
    status(engine, runId=row["runId"])
    assert [run.run_id] == [unseen.run_id for unseen in engine.unseen()]


def test_session_names_fit() -> None:
    """A parent's session name becomes a valid id, always the same one and different from others."""
    assert "019a-b_C" == session_name("019a-b_C")
    for text in ("", "a b", "a/b", "a.b", "é" * 99, "x" * 65):
        assert session_name(text) == session_name(text)
        assert 1 <= len(session_name(text)) <= 64
        assert session_name(text).replace("-", "").replace("_", "").isascii()
    assert session_name("a b") != session_name("a/b")


def update(*runs: Any, ended: tuple[Any, ...] = (), complete: bool = True) -> Update:
    return Update(runs, (), ended, Counts(), Counts(), complete, False)


def own(**others: Any) -> Any:
    return make_snapshot(make_meta(background=True, launched_by=LaunchedBy(SESSION, "pi"), preset="scout"), **others)


def test_watch_tells_counts_when_they_change() -> None:
    """The session's counts come at the start and with each change, in the footer's words."""
    watch = SessionWatch(SESSION, ())
    (first,) = watch.take(update())
    assert ("counts", "bg: 0 running / 0 total") == (first["type"], first["text"])
    run = own(status="running")
    (second,) = watch.take(update(run, make_snapshot()))
    assert ("bg: 1 running / 1 total", 1, 1) == (second["text"], second["running"], second["total"])
    assert [] == list(watch.take(update(run)))


def test_watch_tells_what_a_run_asks() -> None:
    """The person at the parent gets each request once, with the way to reply. The model gets none."""
    watch = SessionWatch(SESSION, ())
    run = own(status="running", requests=(permission(1),))
    asked, counts = watch.take(update(run))
    assert ("asked", run.run_id, "warning") == (asked["type"], asked["runId"], asked["notice"]["level"])
    asks = f"scout {run.meta.short_id} wants to run a command: rm -rf build"
    said = f"{asks} — the user can answer in the deck or with subdeck reply {run.meta.short_id}"
    assert asked["notice"]["text"].startswith(said)
    assert {"type", "runId", "notice"} == set(asked)
    assert ("bg: 1 running / 1 total", 1) == (counts["text"], counts["waiting"])
    assert [] == list(watch.take(update(run)))
    two = changed(run, requests=(permission(1), permission(2, command="make")))
    (more,) = watch.take(update(two))
    assert "make" in more["notice"]["text"]
    foreign = make_snapshot(run.meta, "running", foreign=True, requests=(permission(3),))
    assert "asked" not in [line["type"] for line in watch.take(update(foreign))]


def test_watch_tells_each_end_once() -> None:
    """A finished run is reported with an entry, a message that starts no turn, and a notice."""
    watch = SessionWatch(SESSION, ())
    run = own(status="running")
    list(watch.take(update(run)))
    done = make_snapshot(run.meta, "failed", reason=RunReason.MODEL_ERROR, message="boom")
    end, counts = watch.take(update(done, ended=(done,)))
    assert "bg: 0 running / 1 total" == counts["text"]
    assert ("pi-subagents:bg-update", "failed") == (end["entry"]["customType"], end["entry"]["data"]["status"])
    assert ("pi-subagents:bg-done", True) == (end["message"]["customType"], end["message"]["display"])
    assert "error" == end["notice"]["level"] and "boom" in end["notice"]["text"]
    assert (run.run_id, "scout", "failed") == tuple(end["run"][name] for name in ("runId", "preset", "status"))
    assert [] == list(watch.take(update(done)))


def test_watch_tells_what_ended_unseen() -> None:
    """A run that the parent considers running is reported at once if it has finished or is missing."""
    over, unasked = own(), own()
    watch = SessionWatch(SESSION, (over.run_id, "20200101-000000-abcdef"))
    lines = list(watch.take(update(over, unasked)))
    ends = [line["run"] for line in lines if line["type"] == "ended"]
    assert [(over.run_id, "completed"), ("20200101-000000-abcdef", "failed")] == [
        (end["runId"], end["status"]) for end in ends
    ]
    assert [] == list(watch.take(update(over, unasked)))


def test_watch_waits_for_all_runs_to_be_read() -> None:
    """While old runs are still being read, nothing is counted and no run is considered missing."""
    run = own()
    watch = SessionWatch(SESSION, (run.run_id,))
    assert [] == list(watch.take(update(complete=False)))
    assert ["ended", "counts"] == [line["type"] for line in watch.take(update(run))]


def test_a_deleted_run_is_not_listed(engine: Engine) -> None:
    """A run that you delete is also gone for the parent."""
    row = begin(engine, "answer ok")
    wait_for_end(engine, row["runId"])
    engine.delete([row["runId"]])
    assert [] == ids(status(engine, includeCompleted=True))
