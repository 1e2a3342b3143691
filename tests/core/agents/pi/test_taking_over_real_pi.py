"""Runs opened in pi in tmux, and returned to subdeck."""

from __future__ import annotations

import pytest
from subdeck.core.run.events import AssistantText, HandedBack, Message, TakenOver, ToolCall
from subdeck.core.run.model import Verdict

from tests.e2e.terminal import Terminal
from tests.factories import events_of, result_of, wait_for_end
from tests.real.lab import NEWER_PI, Lab
from tests.real.model_server import called, said, texts
from tests.waiting import wait_until

from ...conversed import current

pytestmark = [pytest.mark.pi, NEWER_PI, pytest.mark.processes]


def test_a_run_is_taken_over_and_handed_back(pi: Lab) -> None:
    """Opening a run ends its turn, and pi shows the conversation. The timeline shows the work by hand, and the run
    continues.
    """
    pi.preset("runner: process", prompt="Look.")
    pi.script(called(("bash", {"command": "sleep 300"})), said("By hand."), said("Gone on."))
    run = pi.start("Wait a while.")
    engine = pi.engine
    wait_until(lambda: current(pi.engine, run).usage.tool_uses, "the tool to run")
    with Terminal("by-hand", engine.take_over(run.run_id), pi.project) as terminal:
        terminal.until_shown("Wait a while.")
        assert current(pi.engine, run).is_taken_over
        terminal.type("What now?")
        terminal.press("Enter")
        terminal.until_shown("By hand.")
        terminal.press("C-c")
        terminal.press("C-c")
        assert 0 == terminal.exit_code()
    wait_until(lambda: current(pi.engine, run).is_waiting, "the question how it goes on")
    engine.send(run.run_id, "Now you.")
    ended = wait_for_end(engine, run.run_id)
    assert ("done", "Gone on.") == (ended.reason, result_of(engine, ended).final_text)
    told = [
        event
        for event in events_of(engine, ended)
        if isinstance(event, TakenOver | HandedBack | Message | AssistantText)
    ]
    shown = [event.text if isinstance(event, AssistantText | Message) else type(event) for event in told]
    assert [TakenOver, "What now?", "By hand.", HandedBack, "Now you.", "", "Gone on."] == shown
    assert ["Wait a while.", "What now?", "Now you."] == texts(pi.requests[-1])


def test_a_finished_run_whose_tools_ask(pi: Lab) -> None:
    """A finished run continues as a new run. Its rules ask you in pi, in readable sentences."""
    pi.preset("permissions: {ask: [bash]}", prompt="Look.")
    pi.script(said("One."), called(("bash", {"command": "echo seen"})), said("Two."))
    first = pi.run("Say one.")
    engine = pi.engine
    with Terminal("by-hand", engine.take_over(first.run_id), pi.project) as terminal:
        terminal.until_shown("Say one.", "One.")
        terminal.type("What now?")
        terminal.press("Enter")
        terminal.until_shown("May bash be called?", "echo seen", "Yes", "No")
        terminal.press("Enter")
        terminal.until_shown("Two.")
        terminal.press("C-c")
        terminal.press("C-c")
        assert 0 == terminal.exit_code()
    (run,) = (run for run in engine.snapshots() if run.run_id != first.run_id)
    wait_until(lambda: current(pi.engine, run).is_waiting, "the question how it goes on")
    engine.reply(run.run_id, "", Verdict.REPLY, "finish here")
    ended = wait_for_end(engine, run.run_id)
    assert ("done", "Two.", first.run_id) == (
        ended.reason,
        result_of(engine, ended).final_text,
        ended.meta.origin.follow_up,
    )
    (call,) = [event for event in events_of(engine, ended) if isinstance(event, ToolCall)]
    assert {"command": "echo seen"} == call.args
