"""Messages, interrupts and questions during runs of Claude Code."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core.run.events import Decision, Interrupted, Message, ToolResult
from subdeck.core.run.model import MessageState, RequestKind, RunReason, RunStatus, Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import events_of, started
from tests.real.lab import Lab
from tests.real.model_server import call, said
from tests.waiting import wait_until

from ...command_line import subdeck
from ...conversed import current, of, wait_for_request

pytestmark = pytest.mark.agents


def waiting_shell(claude: Lab) -> dict[str, Any]:
    """Return a call of a command that runs until the file `go` exists."""
    return call("Bash", command="touch started; while [ ! -e go ]; do sleep 0.05; done; rm started go; echo over")


def has_started(claude: Lab) -> None:
    wait_until((claude.project / "started").exists, "the tool to run", timeout=30)


def let_go(claude: Lab) -> None:
    (claude.project / "go").touch()


def last_message(request: dict[str, Any]) -> str:
    return json.dumps(request["messages"][-1])


def test_a_message_in_the_middle_of_a_tool(claude: Lab) -> None:
    """A message during a tool call is in the next request to the model, and only then counts as delivered."""
    claude.script(waiting_shell(claude), said("Done, and bananas."))
    run = claude.start(tools=("bash",))
    has_started(claude)
    first, second = (claude.engine.send(run.run_id, words) for words in ("Say bananas", "/clear\n\u2028 apples"))
    wait_until(lambda: 2 == len(of(Message, claude.engine, run)), "both to be accepted")
    assert 2 == getattr(current(claude.engine, run).state, "undelivered", 0)
    let_go(claude)
    result = claude.end(run)

    assert (RunReason.DONE, "Done, and bananas.", 0) == (result.reason, result.final_text, result.exit_code)
    asked = last_message(claude.requests[1])
    assert 2 == len(claude.requests) and "over" in asked and "Say bananas" in asked and "/clear" in asked
    states = [(event.id, event.state) for event in of(Message, claude.engine, run)]
    assert [(sent.id, MessageState.DELIVERED) for sent in (first, second)] == states[2:]
    assert () == result.undelivered


def test_a_message_after_the_last_request(claude: Lab) -> None:
    """A message during the final answer gets its own turn, and the run's answer is the text of that turn."""
    claude.script({"steps": [{"text": "First answer. " * 8}], "chunk_size": 8, "chunk_delay": 0.1}, said("Second."))
    run = claude.start()
    wait_until(
        lambda: "First" in getattr(current(claude.engine, run).state, "sentence", ""),
        "the answer to begin",
        timeout=30,
    )
    sent = claude.engine.send(run.run_id, "And now?")
    result = claude.end(run)

    assert (RunReason.DONE, "Second.", 2) == (result.reason, result.final_text, result.usage.turns)
    assert "And now?" in last_message(claude.requests[1])
    last = of(Message, claude.engine, run)[-1]
    assert (sent.id, MessageState.DELIVERED) == (last.id, last.state)
    assert result.usage.cost > 0 and not result.usage.unpriced


def test_interrupted_and_gone_on(claude: Lab) -> None:
    """An interrupt ends the turn and its shell. Your next message continues the same conversation."""
    claude.script(waiting_shell(claude), said("Something else."))
    run = claude.start(tools=("bash",))
    has_started(claude)
    claude.engine.interrupt(run.run_id)
    wait_until(lambda: current(claude.engine, run).is_interrupted, "the turn to end", timeout=30)
    assert [True] == [event.is_error for event in of(ToolResult, claude.engine, run)]
    claude.engine.send(run.run_id, "Do something else")
    result = claude.end(run)

    assert (RunReason.DONE, "Something else.", 0) == (result.reason, result.final_text, result.exit_code)
    asked = last_message(claude.requests[1])
    assert "Do something else" in asked and "stopped while running" in asked
    assert 1 == len(of(Interrupted, claude.engine, run))


def test_what_was_kept_of_a_conversation_is_replayed(claude: Lab) -> None:
    """A recorded run with an interrupt, a message and a question can be replayed."""
    shell, write = waiting_shell(claude), call("Write", file_path=str(claude.project / "new.txt"), content="x")
    claude.script({"steps": [{"text": "So far."}, *shell["steps"]]}, write, said("Written."))
    claude.preset(name="asking", tools=["bash", "write"], permissions={"ask": ["write"]})
    run = claude.start(preset="asking")
    has_started(claude)
    claude.engine.interrupt(run.run_id)
    wait_until(lambda: current(claude.engine, run).is_interrupted, "the turn to end", timeout=30)
    claude.engine.send(run.run_id, "Write it")
    result = claude.end(run, Verdict.ALLOW)
    assert (RunReason.DONE, "Written.", True) == (
        result.reason,
        result.final_text,
        (claude.project / "new.txt").exists(),
    )

    kept = Path(claude.engine.project.run_dir(result.run_id), "stdout.log")
    again = subdeck("replay", str(kept), "--json", cwd=claude.project).document
    assert (result.status, result.final_text) == (again["status"], again["finalText"])
    assert msgspec.to_builtins(result.usage) == again["usage"]


def test_interrupted_with_a_message_on_its_way(claude: Lab) -> None:
    """After an interrupt, the run continues with the message that was sent before and not read yet."""
    claude.script(waiting_shell(claude), said("Bananas."))
    run = claude.start(tools=("bash",))
    has_started(claude)
    claude.engine.send(run.run_id, "Say bananas")
    claude.engine.interrupt(run.run_id)
    result = claude.end(run)

    assert (RunReason.DONE, "Bananas.") == (result.reason, result.final_text), result.error_message
    assert "Say bananas" in last_message(claude.requests[1])
    kinds = [type(event) for event in events_of(claude.engine, result) if isinstance(event, Interrupted | Message)]
    assert [Message, Interrupted, Message] == kinds


def test_stopped_with_a_message_on_its_way(claude: Lab) -> None:
    """A stop ends the turn through Claude Code's own protocol, and an unread message doesn't start another turn."""
    claude.script(waiting_shell(claude), call("Bash", command="touch second; sleep 100"))
    run = claude.start(tools=("bash",))
    has_started(claude)
    sent = claude.engine.send(run.run_id, "Do more")
    wait_until(lambda: of(Message, claude.engine, run), "it to be accepted")
    claude.engine.stop([run.run_id])
    result = claude.end(run)
    assert RunReason.STOPPED == result.reason
    assert not (claude.project / "second").exists()
    states = [event.state for event in of(Message, claude.engine, run)]
    assert MessageState.ACCEPTED == states[0] and 2 == len(states)
    undelivered = [message.id for message in result.undelivered]
    assert ([] if states[1] is MessageState.DELIVERED else [sent.id]) == undelivered


def test_a_child_that_dies_with_a_message_on_its_way(claude: Lab) -> None:
    """If Claude Code dies, unread messages are recorded as too late, in the events and in the result."""
    claude.script(waiting_shell(claude))
    run = claude.start(tools=("bash",))
    has_started(claude)
    sent = claude.engine.send(run.run_id, "Hello?")
    wait_until(lambda: of(Message, claude.engine, run), "it to be accepted")
    os.kill(child_of(claude, run), signal.SIGKILL)
    result = claude.end(run)
    assert RunReason.AGENT_EXIT == result.reason
    assert [MessageState.ACCEPTED, MessageState.LATE] == [event.state for event in of(Message, claude.engine, run)]
    assert [(sent.id, "Hello?")] == [(message.id, message.text) for message in result.undelivered]


def test_a_wrapper_that_dies_with_messages_in_the_inbox(claude: Lab) -> None:
    """If the wrapper dies, unread messages are recorded as too late once the run is found lost."""
    claude.script(waiting_shell(claude))
    run = claude.start(tools=("bash",))
    has_started(claude)
    wrapper = started(claude.engine, run).pid
    os.kill(wrapper, signal.SIGSTOP)
    sent = claude.engine.send(run.run_id, "Hello?")
    os.kill(wrapper, signal.SIGKILL)
    result = claude.end(run)
    assert RunReason.LOST == result.reason
    assert [sent.id] == [message.id for message in result.undelivered]


def child_of(claude: Lab, run: RunSnapshot) -> int:
    return started(claude.engine, run).child_pid


@pytest.mark.parametrize(
    ("verdict", "word", "written", "answer"),
    [(Verdict.ALLOW, "", True, "File created"), (Verdict.DENY, "Not there.", False, "Not there.")],
)
def test_it_asks_for_leave(claude: Lab, verdict: Verdict, word: str, written: bool, answer: str) -> None:
    """A permission request shows what the call would do and waits for you. The model gets your decision."""
    place = claude.project / "new.txt"
    claude.script(call("Write", file_path=str(place), content="one\ntwo\n"), said("So be it."))
    run = claude.start()
    request = wait_for_request(claude.engine, run)
    assert (RequestKind.PERMISSION, "write", "wants to write a file") == (
        request.kind,
        request.tool_name,
        request.title,
    )
    assert (str(place),) == request.paths
    assert "+one\n+two" in request.diff
    assert not place.exists()
    claude.engine.reply(run.run_id, request.id, verdict, word)
    result = claude.end(run)

    assert (RunReason.DONE, "So be it.") == (result.reason, result.final_text), result.error_message
    assert written == place.exists()
    assert answer in last_message(claude.requests[1])
    (decision,) = of(Decision, claude.engine, run)
    assert (verdict, word, "operator") == (decision.verdict, decision.text, decision.by)


def test_it_asks_a_question(claude: Lab) -> None:
    """You can reply to a question with one of its choices or your own text, and the model reads it."""
    options = [{"label": "SQLite", "description": "small"}, {"label": "PG", "description": "big"}]
    question = {"question": "Which database?", "header": "Store", "multiSelect": False, "options": options}
    claude.script(call("AskUserQuestion", questions=[question]), said("As you say."))
    run = claude.start()
    request = wait_for_request(claude.engine, run)
    assert (RequestKind.QUESTION, ("SQLite", "PG")) == (request.kind, request.choices)
    assert "Which database?" in request.text and "PG: big" in request.text
    claude.engine.reply(run.run_id, request.id, Verdict.REPLY, "DuckDB")
    assert RunReason.DONE == claude.end(run).reason
    assert "DuckDB" in last_message(claude.requests[1])


def test_it_asks_several_questions(claude: Lab) -> None:
    """Several questions at once arrive as one form, with a field for each question."""
    options = [{"label": label, "description": "it"} for label in "ab"]
    questions = [
        {"question": f"Which {name}?", "header": name, "multiSelect": False, "options": options}
        for name in ("one", "two")
    ]
    claude.script(call("AskUserQuestion", questions=questions), said("As you say."))
    run = claude.start()
    request = wait_for_request(claude.engine, run)
    assert (RequestKind.FORM, ["one", "two"]) == (request.kind, [field.title for field in request.fields])
    names = [field.name for field in request.fields]
    claude.engine.reply(run.run_id, request.id, Verdict.REPLY, json.dumps({names[0]: "a", names[1]: "neither"}))
    assert RunReason.DONE == claude.end(run).reason
    asked = last_message(claude.requests[1])
    assert "Which one?" in asked and "neither" in asked


def test_interrupted_while_it_asks(claude: Lab) -> None:
    """An interrupt withdraws the pending question, and the agent waits for your message."""
    claude.script(call("Bash", command="rm -rf build"), said("Otherwise."))
    run = claude.start()
    request = wait_for_request(claude.engine, run)
    assert ("bash", "rm -rf build") == (request.tool_name, request.command)
    claude.engine.interrupt(run.run_id)
    wait_until(lambda: current(claude.engine, run).is_interrupted, "the turn to end", timeout=30)
    assert () == current(claude.engine, run).requests
    claude.engine.send(run.run_id, "Go on")
    assert (RunReason.DONE, "Otherwise.") == ((result := claude.end(run)).reason, result.final_text)
    assert [Verdict.WITHDRAWN] == [event.verdict for event in of(Decision, claude.engine, run)]


OWN_RULES = {"allow": ["bash(touch allowed)"], "ask": ["write"], "deny": ["bash(touch denied*)"]}


@pytest.mark.parametrize("tools", [{"tools": "bash, write"}, {}])
def test_rules_of_the_run_go_before_the_users_own(claude: Lab, tools: dict[str, str]) -> None:
    """Rules of the run also decide about calls that Claude Code would make without asking."""
    home = Path(os.environ["HOME"], ".claude")
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.json").write_text(json.dumps({"permissions": {"allow": ["Bash", "Write", "Edit"]}}))
    names = ("allowed", "denied1", "free")
    written = call("Write", file_path=str(claude.project / "written"), content="x")
    claude.script(*(call("Bash", command=f"touch {name}") for name in names), written, said("Done."))
    claude.preset(permissions=OWN_RULES, **tools)
    run = claude.start()
    result = claude.end(run)
    assert RunReason.DONE == result.reason, result.error_message
    made = {name for name in (*names, "written") if (claude.project / name).exists()}
    assert {"allowed", "free"} == made
    by_rule = [
        (each.subject, each.verdict, each.rule) for each in of(Decision, claude.engine, run) if each.by == "rule"
    ]
    assert by_rule == [
        ("touch allowed", Verdict.ALLOW, "bash(touch allowed)"),
        ("touch denied1", Verdict.DENY, "bash(touch denied*)"),
    ]


RULES = {"allow": ["edit(made/**)"], "ask": ["bash(touch *)"], "deny": ["bash(rm *)", "edit(notes.md)"]}


@pytest.mark.parametrize("listed", [True, False])
def test_rules_decide_before_anybody_is_asked(claude: Lab, listed: bool) -> None:
    """Rules decide before you are asked: denied calls don't run, allowed ones do, and only `ask` rules ask you. Calls
    that match no rule work as without rules.
    """
    claude.preset(name="ruled", permissions=RULES, **({"tools": ["bash", "read", "edit", "write"]} if listed else {}))
    notes, made = (str(claude.project / name) for name in ("notes.md", "made/it"))
    claude.script(
        call("Bash", command="echo hi"),
        call("Bash", command=f"cat {notes} && rm -f {notes}"),
        call("Read", file_path=notes),
        call("Write", file_path=notes, content="x"),
        call("Write", file_path=made, content="x"),
        call("Bash", command="touch one"),
        call("Bash", command="touch one"),
        said("Done."),
    )
    run = claude.start(preset="ruled")
    request = wait_for_request(claude.engine, run)
    assert ("touch one", "bash(touch *)", "bash(touch one)") == (request.command, request.rule, request.run_rule)
    claude.engine.reply(run.run_id, request.id, Verdict.ALLOW_RUN)
    result = claude.end(run)

    assert RunReason.DONE == result.reason, result.error_message
    assert ("a note\n", "x") == (Path(notes).read_text(), Path(made).read_text())
    decided = [(event.verdict, event.rule, event.by) for event in of(Decision, claude.engine, run)]
    assert [
        (Verdict.DENY, "bash(rm *)", "rule"),
        (Verdict.DENY, "edit(notes.md)", "rule"),
        (Verdict.ALLOW, "edit(made/**)", "rule"),
        (Verdict.ALLOW_RUN, "bash(touch one)", "operator"),
        (Verdict.ALLOW, "bash(touch one)", "rule"),
    ] == decided
    assert [False, True, False, True, False, False, False] == [
        event.is_error for event in of(ToolResult, claude.engine, run)
    ]


def test_interrupted_and_left_alone(claude: Lab) -> None:
    """If you send nothing after an interrupt, the run ends as interrupted after a while, and keeps its text."""
    claude.script({"steps": [{"text": "Let me count."}, *waiting_shell(claude)["steps"]]})
    claude.preset(name="patient", idle_timeout=0.5, tools=["bash"])
    run = claude.start(preset="patient")
    has_started(claude)
    claude.engine.interrupt(run.run_id)
    result = claude.end(run)
    assert (RunStatus.ABORTED, RunReason.INTERRUPTED) == (result.status, result.reason)
    assert "Let me count." == result.final_text
