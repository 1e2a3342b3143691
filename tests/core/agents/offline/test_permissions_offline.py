"""Rules in a real run: the offline agent asks about its tools and follows the decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Event, Request, ToolResult
from subdeck.core.run.model import RunReason, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest
from subdeck.core.work.operation import APPLY

from tests.core.conversing import write_preset
from tests.factories import end_of, events_of, result_of, wait_for_end, write_settings
from tests.repositories import make_repository
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

TASK = "Read open.txt and closed.txt and search for `lantern` and `wick`"


@pytest.fixture
def engine(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    for name in ("open.txt", "closed.txt"):
        (project_dir / name).write_text("lantern and wick\n")
    return Engine.open(str(project_dir))


def launch(engine: Engine, project: Path, *fields: str, task: str = TASK, **settings: Any) -> RunSnapshot:
    write_settings(agent="offline", agents={}, **settings)
    write_preset(project, *fields)
    (launched,) = engine.launch([RunRequest(task=task, preset="scout")], background=True)
    return launched


def said(engine: Engine, run: RunSnapshot, kind: type[Event]) -> list[Any]:
    return [event for event in events_of(engine, run) if isinstance(event, kind)]


def decisions(engine: Engine, run: RunSnapshot) -> set[tuple[str, str, str, str]]:
    return {(each.tool_name, each.verdict, each.by, each.rule) for each in said(engine, run, Decision)}


def test_rules_of_preset_and_settings_hold_in_a_run(engine: Engine, project_dir: Path) -> None:
    """Rules allow or deny without asking you, and the log names the rule."""
    own = {"deny": ["read(closed.txt)"]}
    run = launch(
        engine, project_dir, "permissions: {allow: [read, grep], ask: ['*']}", permissions=own, answer_timeout=0.1
    )
    ended = wait_for_end(engine, run.run_id)
    assert ("read", "deny", "rule", "read(closed.txt)") in decisions(engine, ended)
    results = said(engine, ended, ToolResult)
    assert not any("lantern" in result.content for result in results if result.tool_name == "read")
    # `*` asks before calls are allowed, and the requests time out
    assert all(each.by == "timeout" for each in said(engine, ended, Decision) if each.rule != "read(closed.txt)")


def test_leave_for_the_run_is_given_once(engine: Engine, project_dir: Path) -> None:
    """Reading is asked about until it is allowed for the run. Searching is not, because no rule covers it."""
    run = launch(engine, project_dir, "permissions: {ask: [read]}")
    wait_until(lambda: said(engine, run, Request), "its request")
    engine.reply(run.run_id, "q1", Verdict.ALLOW_RUN)
    ended = wait_for_end(engine, run.run_id)
    (request,) = said(engine, ended, Request)
    assert (request.tool_name, request.rule, request.run_rule) == ("read", "read", "read(**)")
    asked, *later = said(engine, ended, Decision)
    assert (asked.verdict, asked.request, asked.rule) == (Verdict.ALLOW_RUN, "q1", "read(**)")
    assert {(each.by, each.rule, each.tool_name) for each in later} == {("rule", "read(**)", "read")}
    assert RunReason.DONE == end_of(ended).reason


CHANGE = 'replace "wick" with "flame" in open.txt'


def test_a_change_that_was_allowed_can_be_applied_and_taken_back(engine: Engine, project_dir: Path) -> None:
    """The request shows the diff before the edit, which then counts as the run's change and can be applied
    and undone.
    """
    make_repository(project_dir, open_txt="lantern and wick\n")
    run = launch(engine, project_dir, "permissions: {ask: [edit]}", "worktree: true", task=CHANGE)
    wait_until(lambda: said(engine, run, Request), "its request")
    (request,) = said(engine, run, Request)
    assert ("edit", ("open.txt",), "edit") == (request.tool_name, request.paths, request.rule)
    assert "+++ open.txt\n@@ -0,1 +0,1 @@\n-wick\n+flame" == request.diff
    engine.reply(run.run_id, request.id, Verdict.ALLOW)
    ended = wait_for_end(engine, run.run_id)
    (result,) = said(engine, ended, ToolResult)
    assert "--- open.txt\n+++ open.txt\n@@ -1,1 +1,1 @@\n-lantern and wick\n+lantern and flame\n" == result.diff
    changes = result_of(engine, ended).changes
    assert changes is not None
    assert (1, 1, 1) == (changes.files, changes.added, changes.removed)
    engine.work.act(engine.work.plan(APPLY, ended))
    assert "lantern and flame\n" == (project_dir / "open.txt").read_text()
    act = engine.last_act()
    assert act is not None
    engine.take_back(act)
    assert "lantern and wick\n" == (project_dir / "open.txt").read_text()


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        (("permissions: {deny: ['edit(*.txt)']}",), "Denied"),
        (("permissions: {deny: [edit]}",), "Denied"),
        (("denied_tools: [edit]",), "the tool edit is not allowed here"),
        (("tools: [read]",), "the tool edit is not allowed here"),
    ],
)
def test_a_change_that_is_not_allowed_is_not_made(
    engine: Engine, project_dir: Path, fields: tuple[str, ...], answer: str
) -> None:
    """With a deny rule or without the tool, the file is unchanged and the answer gives the reason."""
    ended = wait_for_end(engine, launch(engine, project_dir, *fields, task=CHANGE).run_id)
    assert answer in (result_of(engine, ended).final_text or "")
    assert "lantern and wick\n" == (project_dir / "open.txt").read_text()


def test_a_run_without_questions_makes_its_change(engine: Engine, project_dir: Path) -> None:
    """A non-interactive run also makes the change, if no rule asks."""
    ended = wait_for_end(engine, launch(engine, project_dir, "interactive: false", task=CHANGE).run_id)
    assert "at `open.txt:1`" in (result_of(engine, ended).final_text or "")
    assert "lantern and flame\n" == (project_dir / "open.txt").read_text()
