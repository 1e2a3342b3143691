"""Runs opened in Claude Code and Codex, and returned to subdeck."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import AssistantText, Event, HandedBack, Message, TakenOver, ToolCall
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.e2e.terminal import Terminal
from tests.factories import events_of, result_of, wait_for_end
from tests.real.lab import Lab
from tests.real.model_server import said
from tests.waiting import wait_until

from ..conversed import current

pytestmark = [pytest.mark.agents, pytest.mark.processes]


def waits(engine: Engine, run: RunSnapshot) -> list[object]:
    """Wait until a run was returned. Return the timeline since it was opened."""
    wait_until(lambda: current(engine, run).is_waiting, "the question how it goes on")
    events = events_of(engine, run)
    begin = next(number for number, event in enumerate(events) if isinstance(event, TakenOver))
    return list(filter(None, map(_told, events[begin:])))


def _told(event: Event) -> object:
    match event:
        case AssistantText() | Message():
            return event.text
        case ToolCall():
            return event.args.get("command")
        case TakenOver() | HandedBack():
            return type(event)
        case _:
            return None


def test_claude(claude: Lab, home: Path) -> None:
    """Opening a run ends its turn, even during a tool call. The timeline shows the work by hand, and the run
    continues.
    """
    claude.script(claude.shell("tail -f /dev/null"), said("Ended."))
    claude.preset("tools: bash")
    known = {"hasCompletedOnboarding": True, "customApiKeyResponses": {"approved": ["sk-fake"], "rejected": []}}
    projects = {str(claude.project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
    (home / ".claude.json").write_text(json.dumps({**known, "projects": projects}))
    run = claude.start("Wait a while.")
    wait_until(lambda: current(claude.engine, run).usage.tool_uses, "the tool to run")
    with Terminal("by-hand", claude.engine.take_over(run.run_id), claude.project) as terminal:
        terminal.until_shown("Wait a while.")
        # scripted only now, because the agent may have sent one more request before it ended
        claude.script(claude.shell("echo seen", "Let me look."), said("Two."), said("Gone on."))
        terminal.type("What now?")
        terminal.press("Enter")
        terminal.until_shown("Two.")
        terminal.press("C-c")
        terminal.press("C-c")
        assert 0 == terminal.exit_code()
    told = waits(claude.engine, run)
    assert [TakenOver, "What now?", "Let me look.", "echo seen", "Two.", HandedBack] == told
    claude.engine.reply(run.run_id, "", Verdict.REPLY, "continue")
    ended = wait_for_end(claude.engine, run.run_id)
    assert ("done", "Gone on.") == (ended.reason, result_of(claude.engine, ended).final_text)


def test_codex(codex: Lab) -> None:
    """Opening a run interrupts its turn. The timeline shows the work by hand, and the run continues with a message."""
    codex.configure(tables=f'[projects."{codex.project}"]\ntrust_level = "trusted"\n')
    codex.preset("tools: bash", prompt="You are a scout.")
    codex.script(codex.shell("echo begun; sleep 300"))
    run = codex.start("Wait a while.")
    engine = codex.engine
    wait_until(lambda: current(engine, run).usage.tool_uses, "the tool to run")
    with Terminal("by-hand", engine.take_over(run.run_id), codex.project) as terminal:
        terminal.until_shown("Wait a while.")
        codex.script(codex.shell("echo seen", "Let me look."), *[said("Two.")] * 3)
        terminal.type("What now?")
        terminal.until_shown("What now?")
        terminal.press("Enter")
        terminal.until_shown("Two.", "Worked for")
        terminal.type("/quit")  # the second of two ctrl+c might reach the program after this one
        terminal.until_shown("/quit")
        terminal.press("Enter")
        assert 0 == terminal.exit_code()
    assert [TakenOver, "What now?", "Let me look.", "echo seen", "Two.", HandedBack] == waits(engine, run)
    codex.script(*[said("Gone on.")] * 3)
    engine.send(run.run_id, "Now you.")
    ended = wait_for_end(engine, run.run_id)
    assert ("done", "Gone on.") == (ended.reason, result_of(engine, ended).final_text)
