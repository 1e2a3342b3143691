"""Four programs that speak the Agent Client Protocol, as they really behave, with the gaps in their reports.

Recorded with opencode 1.18.33, Gemini CLI 0.61.0, Copilot CLI 1.0.102 and Qwen Code 0.24.4 against a scripted model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.acp_bridge._handshake import words_of
from subdeck.core.agents.acp._programs import COPILOT, GEMINI, OPENCODE, OTHER, QWEN, Program, program_in
from subdeck.core.agents.acp._stream import AcpStream
from subdeck.core.agents.acp.agent import AGENT
from subdeck.core.agents.agent import Wanted
from subdeck.core.engine import Engine
from subdeck.core.errors import UsageError
from subdeck.core.run.describe import tokens_used
from subdeck.core.run.documents import usage_document
from subdeck.core.run.events import Notice, Retry, ToolCall, UsageReported
from subdeck.core.run.model import NoticeLevel, RunReason, Usage
from subdeck.core.run.outcome import ChildExit, decide
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import events_of, result_of, run_dir, write_settings

from ...command_line import subdeck
from ...conversing import write_preset
from .test_acp_recordings import ACP, Replay

pytestmark = pytest.mark.usefixtures("forked_commands")

PLAYER = Path(__file__).parents[3] / "children" / "acp_player.py"
PROGRAMS = ("copilot", "gemini", "opencode", "qwen")
CASES = sorted(str(file.parent.relative_to(ACP)) for name in PROGRAMS for file in ACP.glob(f"{name}/*/exit.txt"))

EXPECTED: dict[str, tuple[str, str, int, int, int, int]] = {
    "copilot/api-400": ("model_error", "400 scripted 400: the context is too long", 0, 0, 0, 1),
    "copilot/api-401": ("model_error", "Authentication failed with provider at http://127.0.0.1:8080", 0, 0, 0, 1),
    "copilot/api-404": ("model_error", "Model 'mock-model' not found on provider at http://127.0.0.1", 0, 0, 0, 1),
    "copilot/api-529": ("model_error", "Failed to get response from the AI model; retried 5 times (t", 0, 0, 0, 1),
    "copilot/bash-allowed": ("unverified", "It is made.", 80, 40, 120, 0),
    "copilot/bash-refused": ("denied", "the agent ended its turn after a request was denied: execute", 40, 20, 60, 0),
    "copilot/cancel": ("unverified", "Third prompt.", 120, 60, 180, 0),
    "copilot/drop": ("model_error", "Failed to get response from the AI model; retried 5 times (t", 0, 0, 0, 1),
    "copilot/drop-once": ("unverified", "The whole answer.", 40, 20, 60, 0),
    "copilot/empty": ("empty_answer", "the agent finished without writing any text", 300, 0, 0, 0),
    "copilot/late-400": ("model_error", "400 scripted 400: the context is too long", 40, 20, 60, 0),
    "copilot/late-drop": ("model_error", "Failed to get response from the AI model; retried 5 times (t", 40, 20, 60, 0),
    "copilot/late-empty": ("model_error", "the model's answer is empty", 340, 20, 60, 0),
    "copilot/late-length": ("truncated", "A cut off answA cut off answA cut off answ", 160, 80, 240, 0),
    "copilot/length": ("truncated", "A cut off answer and moreer and more", 120, 60, 180, 0),
    "copilot/length-once": ("unverified", "A cut off answer and more.", 80, 40, 120, 0),
    "copilot/long": ("unverified", "Done.", 120, 60, 180, 0),
    "copilot/long-drop": ("unverified", "Whole.", 80, 40, 120, 0),
    "copilot/resume-1": ("unverified", "Hello there.", 40, 20, 60, 0),
    "copilot/resume-2": ("unverified", "Second answer.", 40, 20, 60, 0),
    "copilot/talk-refused": ("denied", "the agent ended its turn after a request was denied: execute", 40, 20, 60, 0),
    "copilot/text": ("unverified", "Hello there.", 40, 20, 60, 0),
    "copilot/two-prompts": ("unverified", "Third.", 120, 60, 180, 0),
    "gemini/api-400": ("model_error", "scripted 400", 0, 0, 0, 1),
    "gemini/api-401": ("model_error", "scripted 401", 0, 0, 0, 1),
    "gemini/api-404": ("model_error", "scripted 404", 0, 0, 0, 1),
    "gemini/bash-allowed": ("unverified", "It is made.", 200, 40, 0, 0),
    "gemini/bash-refused": ("unverified", "I may not.", 200, 40, 0, 0),
    "gemini/cancel": ("unverified", "Third prompt.", 200, 40, 0, 1),
    "gemini/drop": ("model_error", "Gemini CLI ended its turn without a finished answer from its", 0, 0, 0, 1),
    "gemini/drop-once": ("unverified", "Half of a The whole answer.", 100, 20, 0, 0),
    "gemini/empty": ("empty_answer", "the agent finished without writing any text", 100, 20, 0, 0),
    "gemini/late-400": ("model_error", "scripted 400", 0, 0, 0, 1),
    "gemini/late-drop": ("unverified", "Half of a ", 100, 20, 0, 0),
    "gemini/late-empty": ("unverified", "Let me look at it.", 200, 40, 0, 0),
    "gemini/late-length": ("unverified", "A cut off answ", 200, 40, 0, 0),
    "gemini/length": ("unverified", "A cut off answ", 100, 20, 0, 0),
    "gemini/length-once": ("unverified", "A cut off answ", 100, 20, 0, 0),
    "gemini/long": ("unverified", "Done.", 300, 60, 0, 0),
    "gemini/long-drop": ("unverified", "Whole.", 200, 40, 0, 0),
    "gemini/reopened": ("unverified", "Second answer.", 100, 20, 0, 0),
    "gemini/resume-1": ("unverified", "Hello there.", 100, 20, 0, 0),
    "gemini/resume-2": ("start_failed", "the agent could not be started: Internal error: No previous ", 0, 0, 0, 0),
    "gemini/talk-refused": ("unverified", "I may not.", 200, 40, 0, 0),
    "gemini/text": ("unverified", "Hello there.", 100, 20, 0, 0),
    "gemini/two-prompts": ("unverified", "Third.", 300, 60, 0, 0),
    "opencode/api-400": ("model_error", "Internal error: scripted 400: the context is too long", 0, 0, 0, 1),
    "opencode/api-401": ("model_error", "Internal error: scripted 401: bad key", 0, 0, 0, 1),
    "opencode/api-404": ("model_error", "Internal error: scripted 404: no such model", 0, 0, 0, 1),
    "opencode/api-529": ("model_error", "Internal error: scripted 529: overloaded", 0, 0, 0, 1),
    "opencode/bash-allowed": ("unverified", "It is made.", 40, 20, 60, 1),
    "opencode/bash-refused": ("denied", "the agent ended its turn after a request was denied: execute", 40, 20, 60, 1),
    "opencode/cancel": ("unverified", "Third prompt.", 80, 40, 120, 1),
    "opencode/drop": ("model_error", "Internal error: Connection reset by server", 0, 0, 0, 1),
    "opencode/drop-once": ("unverified", "The whole answer.", 40, 20, 60, 0),
    "opencode/empty": ("empty_answer", "the agent finished without writing any text", 100, 0, 0, 0),
    "opencode/late-length": ("unverified", "A cut off answ", 40, 20, 60, 1),
    "opencode/length": ("unverified", "A cut off answ", 40, 20, 60, 0),
    "opencode/length-once": ("unverified", "A cut off answ", 40, 20, 60, 0),
    "opencode/long": ("unverified", "Done.", 40, 20, 60, 1),
    "opencode/talk-refused": ("denied", "the agent ended its turn after a request was denied: execute", 40, 20, 60, 1),
    "opencode/text": ("unverified", "Hello there.", 40, 20, 60, 0),
    "opencode/two-prompts": ("unverified", "Third.", 120, 60, 180, 0),
    "qwen/api-400": ("model_error", "Internal error: 400 scripted 400: the context is too long", 0, 0, 0, 1),
    "qwen/api-401": ("model_error", "Internal error: 401 scripted 401: bad key", 0, 0, 0, 1),
    "qwen/api-404": ("model_error", "Internal error: 404 scripted 404: no such model", 0, 0, 0, 1),
    "qwen/api-529": ("model_error", "Internal error: 529 scripted 529: overloaded", 0, 0, 0, 1),
    "qwen/bash-allowed": ("done", "It is made.", 80, 40, 120, 0),
    "qwen/bash-refused": ("denied", "the agent ended its turn after a request was denied: execute", 40, 20, 60, 1),
    "qwen/cancel": ("done", "Third prompt.", 160, 80, 240, 0),
    "qwen/drop": ("model_error", "Internal error: terminated", 0, 0, 0, 1),
    "qwen/drop-once": ("unverified", "Half of a The whole answer.", 40, 20, 60, 1),
    "qwen/empty": ("model_error", "Internal error: Model stream ended with empty response text.", 0, 0, 0, 1),
    "qwen/late-length": ("unverified", "A cut off answA cut off answA cut off answA cut off answA cu", 80, 40, 120, 1),
    "qwen/length": ("unverified", "A cut off answer and moreer and moreer and moreer and more", 40, 20, 60, 1),
    "qwen/length-once": ("unverified", "A cut off answer and more.", 40, 20, 60, 1),
    "qwen/long": ("done", "Done.", 80, 40, 120, 0),
    "qwen/resume-1": ("done", "Hello there.", 40, 20, 60, 0),
    "qwen/resume-2": ("done", "Second answer.", 40, 20, 60, 0),
    "qwen/talk-refused": ("denied", "the agent ended its turn after a request was denied: execute", 40, 20, 60, 1),
    "qwen/text": ("done", "Hello there.", 40, 20, 60, 0),
    "qwen/two-prompts": ("done", "Third.", 120, 60, 180, 0),
}
"""Case -> reason, start of the answer or message, tokens (input, output, from a cache), uncounted messages."""


@pytest.mark.parametrize("case", CASES)
def test_every_recording_ends_as_it_is_told(case: str) -> None:
    """An error is never an answer, a cut answer is never `done`, and unreported tokens are not 0."""
    replay = Replay(case)
    outcome = replay.outcome(int((ACP / case / "exit.txt").read_text()))
    reason, words, *tokens = EXPECTED[case]
    facts = replay.stream.facts
    said = outcome.message if outcome.message is not None else facts.final_text
    assert (reason, words) == (outcome.reason, (said or "")[:60])
    used = facts.usage
    assert tokens == [used.input, used.output, used.cache_read, used.uncounted]
    reported = [event for event in replay.events if isinstance(event, UsageReported)]
    assert used.tokens == sum(event.input + event.output + event.cache_read + event.cache_write for event in reported)
    assert 0 == facts.unreadable


def test_expected_are_all() -> None:
    """Every recording has an expected result."""
    assert CASES == sorted(EXPECTED)


@pytest.mark.parametrize("case", [case for case in CASES if EXPECTED[case][0] == RunReason.UNVERIFIED])
def test_unverified_says_what_is_missing(case: str) -> None:
    """The warning names the program and the information that is missing."""
    warnings = [event.text for event in Replay(case).of(Notice) if event.level is NoticeLevel.WARNING]
    title = {"copilot": "Copilot", "gemini": "Gemini CLI", "opencode": "OpenCode", "qwen": "Qwen Code"}
    assert any(text.startswith(f"unverified: {title[case.partition('/')[0]]} ") for text in warnings)


def test_words_of_the_program_are_no_answer() -> None:
    """Copilot's retries are events, and the text of a failed try is dropped."""
    replay = Replay("copilot/drop-once")
    assert ["Response was interrupted due to a server error."] == [event.reason for event in replay.of(Retry)]
    assert "The whole answer." == replay.stream.facts.final_text
    assert "Info:" not in str(Replay("copilot/bash-refused").stream.facts.final_text)


def test_a_command_is_told_whole() -> None:
    """The command is shown without the directory that opencode puts before it."""
    (call,) = Replay("opencode/bash-allowed").of(ToolCall)
    assert "echo hi > made.txt" == call.args["command"]


def stream_of(name: str, *messages: dict[str, Any]) -> AcpStream:
    stream = AcpStream()
    about = {"id": 1, "result": {"protocolVersion": 1, "agentInfo": {"name": name}}}
    sent = {"sent": {"id": 0, "method": "session/prompt", "params": {}}}
    for message in (about, sent, *messages):
        stream.feed(json.dumps(message).encode())
    return stream


def text(words: str) -> dict[str, Any]:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}}
    return {"method": "session/update", "params": {"update": update}}


ASKED = {"method": "session/update", "params": {"update": {"sessionUpdate": "usage_update", "used": 1, "size": 2}}}
USED = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}


def ended(**result: Any) -> dict[str, Any]:
    return {"id": 0, "result": {"stopReason": "end_turn", **result}}


@pytest.mark.parametrize(
    ("messages", "reason", "answer"),
    [
        ([ASKED, text("Error: "), text("none found."), ended(usage=USED)], "unverified", "Error: none found."),
        ([ASKED, text("Error: none found."), ended(usage=USED)], "unverified", "Error: none found."),
        ([ASKED, text("Error: none found."), ended()], "model_error", None),
        ([ASKED, text("Info: two files."), ended(usage=USED)], "unverified", "Info: two files."),
        ([ASKED, text("Fine."), ended()], "model_error", "Fine."),
        ([ASKED, ended(usage=USED)], "model_error", None),
    ],
)
def test_what_a_model_writes_is_not_taken_for_the_program(
    messages: list[dict[str, Any]], reason: str, answer: str | None
) -> None:
    """An error line followed by more text is the model's answer. A turn without usage is an error."""
    facts = stream_of("Copilot", *messages).facts
    assert (reason, answer) == (decide(facts, exit=ChildExit(code=0)).reason, facts.final_text)


def test_a_program_that_is_not_known() -> None:
    """An unknown program's answer is accepted, and its usage is unknown if it reports none."""
    facts = stream_of("goose", text("Fine."), ended()).facts
    assert RunReason.DONE is decide(facts, exit=ChildExit(code=0)).reason
    assert "?" == tokens_used(facts.usage)
    shown = usage_document(facts.usage)
    assert [None] * 5 == [shown.input, shown.output, shown.cache_read, shown.cache_write, shown.cost]
    assert "120+" == tokens_used(Usage(input=100, output=20, uncounted=1))


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (["/usr/bin/copilot", "--acp"], COPILOT),
        (["npx", "@github/copilot@1.0.102", "--acp"], COPILOT),
        (["/home/me/bin/gemini", "--acp"], GEMINI),
        (["node", "/opt/x/gemini.js", "--acp"], GEMINI),
        (["opencode", "acp"], OPENCODE),
        (["npx", "-y", "@qwen-code/qwen-code", "--acp"], QWEN),
        (["/usr/bin/goose", "acp", "--provider", "gemini"], OTHER),
        (["env", "goose", "gemini"], OTHER),
    ],
)
def test_a_program_is_known_by_its_command(command: Sequence[str], program: Program) -> None:
    """A program that was not started yet is identified by its command."""
    assert program is program_in(command)


def settled(command: Sequence[str], **wanted: Any) -> str:
    return "\n".join(AGENT.settle(AGENT.choose("other", command, {}), Wanted(**wanted)))


@pytest.mark.parametrize("name", ["budget", "max_tokens"])
def test_a_limit_that_nothing_can_enforce(name: str) -> None:
    """A limit that needs usage after each request is an error in a call or preset, and a warning in the settings. It
    works if the agent reports that usage.
    """
    for command in (["copilot"], ["gemini"], ["opencode"], ["goose"]):
        with pytest.raises(UsageError, match=f"{name}: other reports its usage only after each turn"):
            settled(command, spends=(name,), where="preset.md")
        assert f"{name} from the settings: other reports" in settled(command, caps=(name,))
    assert "" == settled(["qwen"], spends=(name,), caps=(name,))


def test_a_result_that_cannot_be_handed_over() -> None:
    """Copilot does not pass its client's MCP server to its model."""
    with pytest.raises(UsageError, match="structured_result: other does not pass the tool"):
        settled(["copilot"], finalize=True, where="preset.md")
    settled(["gemini"], finalize=True)


def test_an_error_names_its_field_once() -> None:
    """Without a preset file, the error names the field once, before the message."""
    with pytest.raises(UsageError) as caught:
        settled(["copilot"], finalize=True)
    assert str(caught.value).startswith("structured_result: other does not pass the tool")
    with pytest.raises(UsageError) as caught:
        settled(["copilot"], finalize=True, where="preset.md")
    assert str(caught.value).startswith("preset.md: structured_result: other does not pass the tool")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            {"message": "Internal error", "data": {"details": "No previous sessions"}},
            "Internal error: No previous sessions",
        ),
        ({"message": "Internal error: x", "data": {"details": "x"}}, "Internal error: x"),
        ({"message": "Internal error", "data": {"service": "session"}}, "Internal error"),
        ({"message": 3, "data": "why"}, "why"),
        ({}, ""),
    ],
)
def test_the_details_of_an_error(error: dict[str, Any], words: str) -> None:
    """A general message is shown with the details of the error."""
    assert words == words_of(error)


class Played:
    """A project whose agent plays a recording."""

    def __init__(self, project: Path) -> None:
        self.project = project

    def plays(self, case: str, *, is_program: bool = False) -> None:
        """With `is_program`, the command has the name of the recorded program."""
        command = [sys.executable, str(PLAYER), str(ACP / case / "stdout.jsonl")]
        if is_program:
            program = self.project / case.partition("/")[0]
            program.write_text(f"#!/bin/sh\nexec {' '.join(command)}\n")
            program.chmod(0o755)
            command = [str(program)]
        write_settings(agent="other", agents={"other": {"kind": "acp", "command": command}})

    def run(self, case: str, *, is_program: bool = False, **request: Any) -> RunSnapshot:
        self.plays(case, is_program=is_program)
        engine = Engine.open(str(self.project))
        (run,) = engine.launch([RunRequest(task="Look.", preset="scout", **request)], background=False)
        (run,) = engine.wait([run.run_id], timeout=60)
        return run


@pytest.fixture
def played(project_dir: Path, home: Path) -> Played:
    write_preset(project_dir, "reply_timeout: 1")
    return Played(project_dir)


@pytest.mark.processes
def test_an_unverified_run_on_the_command_line(played: Played) -> None:
    """An unverified run exits with 0, its answer and a warning. With --strict, `run` and `wait` exit with 1."""
    played.plays("copilot/two-prompts")
    played.plays("copilot/text")
    done = subdeck("run", "scout", "Look.", cwd=played.project)
    assert (0, "Hello there.") == (done.code, done.out.strip())
    assert "Copilot reports model errors as text" in done.err
    strict = subdeck("run", "scout", "Look.", "--strict", "--json", cwd=played.project)
    assert (1, "completed", "unverified") == (strict.code, strict.document["status"], strict.document["reason"])
    run_id = strict.document["runId"]
    assert [0, 1] == [subdeck("wait", run_id, *more, cwd=played.project).code for more in ((), ("--strict",))]
    played.plays("copilot/api-400")
    failed = subdeck("run", "scout", "Look.", "--json", cwd=played.project)
    assert (1, "model_error", None) == (failed.code, failed.document["reason"], failed.document["usage"]["input"])


@pytest.mark.processes
@pytest.mark.parametrize("case", ["opencode/talk-refused", "copilot/talk-refused", "qwen/talk-refused"])
def test_a_request_that_nobody_answers(played: Played, case: str) -> None:
    """If the agent ends its turn with an unanswered request, the run fails, even with a text before it."""
    run = played.run(case)
    result = result_of(Engine.open(str(played.project)), run)
    assert ("failed", "denied") == (result.status, result.reason)
    assert "no reply within 1 s" in (result.error_message or "")
    assert "echo hi > made.txt" in (result.error_message or "")


@pytest.mark.processes
def test_an_agent_that_goes_on_after_a_request(played: Played) -> None:
    """If gemini continues after a denial, its answer counts."""
    run = played.run("gemini/talk-refused")
    assert ("completed", "unverified") == (run.status, run.reason)


@pytest.mark.processes
def test_what_was_said_is_told_to_a_new_session(played: Played) -> None:
    """gemini loses sessions: a follow-up starts a new one, with the conversation before the task and a warning."""
    first = played.run("gemini/text")
    engine = Engine.open(str(played.project))
    session = result_of(engine, first).child_session_id
    again = played.run("gemini/reopened", child_session=session, is_program=True)
    result = result_of(engine, again)
    assert ("completed", "Second answer.") == (result.status, result.final_text)
    warnings = [event.text for event in events_of(engine, again) if isinstance(event, Notice)]
    assert any("Gemini CLI cannot keep loaded sessions" in text for text in warnings)
    assert "User: Look.\n\nYou: Hello there." == (run_dir(engine, again) / "earlier.md").read_text()
    third = played.run("gemini/reopened", child_session=result.child_session_id, is_program=True)
    said = (run_dir(engine, third) / "earlier.md").read_text()
    assert 2 == said.count("User: Look.") == said.count("You: ")


@pytest.mark.processes
def test_a_second_attempt_for_a_result(played: Played) -> None:
    """The second attempt gets the conversation of the first, because gemini cannot load it."""
    write_preset(played.project, "structured_result: true", "max_attempts: 2", "interactive: false")
    run = played.run("gemini/text", is_program=True)
    engine = Engine.open(str(played.project))
    result = result_of(engine, run)
    assert ("finalize_missing", 2) == (result.reason, result.attempts)
    assert "You: Hello there." in (run_dir(engine, run) / "earlier.md").read_text()


@pytest.mark.processes
def test_a_sticky_conversation(played: Played) -> None:
    """Each run gets the conversation of the earlier ones."""
    write_preset(played.project, "sticky: true", "interactive: false")
    engine = Engine.open(str(played.project))
    runs = [played.run("gemini/text", is_program=True) for _ in range(3)]
    assert ["completed"] * 3 == [run.status for run in runs]
    assert not (run_dir(engine, runs[0]) / "earlier.md").exists()
    assert [1, 2] == [(run_dir(engine, run) / "earlier.md").read_text().count("You: Hello") for run in runs[1:]]


def test_a_session_of_another_agent_is_not_begun_anew() -> None:
    """Only gemini is known to lose sessions. Other programs load the session, or fail with the reason."""
    assert [True, False, False] == [program.loses_sessions for program in (GEMINI, COPILOT, OTHER)]
