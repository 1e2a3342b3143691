"""Rules of a real run: the offline agent asks about its tools, and goes by what is decided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Event, Request, ToolResult
from subdeck.core.run.model import RunReason, RunRequest, Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.conversing import write_preset
from tests.factories import end_of, events_of, wait_for_end, write_settings
from tests.waiting import wait_until

TASK = "Read open.txt and closed.txt and search for `lantern` and `wick`"


@pytest.fixture
def engine(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    for name in ("open.txt", "closed.txt"):
        (project_dir / name).write_text("lantern and wick\n")
    return Engine.open(str(project_dir))


def launch(engine: Engine, project: Path, rules: str, **settings: Any) -> RunSnapshot:
    write_settings(agent="offline", agents={}, **settings)
    write_preset(project, f"permissions: {rules}")
    (launched,) = engine.launch([RunRequest(task=TASK, preset="scout")], background=True)
    return launched


def said(engine: Engine, run: RunSnapshot, kind: type[Event]) -> list[Any]:
    return [event for event in events_of(engine, run) if isinstance(event, kind)]


def decisions(engine: Engine, run: RunSnapshot) -> set[tuple[str, str, str, str]]:
    return {(each.tool_name, each.verdict, each.by, each.rule) for each in said(engine, run, Decision)}


def test_rules_of_preset_and_settings_hold_in_a_run(engine: Engine, project_dir: Path) -> None:
    """What a rule allows or denies is done so without a question, and the records say by which rule."""
    own = {"deny": ["read(closed.txt)"]}
    run = launch(engine, project_dir, "{allow: [read, grep], ask: ['*']}", permissions=own, answer_timeout=0.1)
    ended = wait_for_end(engine, run.run_id)
    assert ("read", "deny", "rule", "read(closed.txt)") in decisions(engine, ended)
    results = said(engine, ended, ToolResult)
    assert not any("lantern" in result.content for result in results if result.tool_name == "read")
    # `*` asks before anything is allowed, and nobody is there to answer.
    assert all(each.by == "timeout" for each in said(engine, ended, Decision) if each.rule != "read(closed.txt)")


def test_leave_for_the_run_is_given_once(engine: Engine, project_dir: Path) -> None:
    """Reading is asked about until it is allowed in this run; searching is not, as no rule mentions it."""
    run = launch(engine, project_dir, "{ask: [read]}")
    wait_until(lambda: said(engine, run, Request), "its request")
    engine.reply(run.run_id, "q1", Verdict.ALLOW_RUN)
    ended = wait_for_end(engine, run.run_id)
    (request,) = said(engine, ended, Request)
    assert (request.tool_name, request.rule, request.run_rule) == ("read", "read", "read(**)")
    asked, *later = said(engine, ended, Decision)
    assert (asked.verdict, asked.request, asked.rule) == (Verdict.ALLOW_RUN, "q1", "read(**)")
    assert {(each.by, each.rule, each.tool_name) for each in later} == {("rule", "read(**)", "read")}
    assert RunReason.DONE == end_of(ended).reason
