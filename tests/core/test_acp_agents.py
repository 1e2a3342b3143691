"""Runs of ACP agents with a scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.finalize_tool import CLAUDE_NAME
from subdeck.core.engine import Engine
from subdeck.core.run.events import AssistantText, Notice, ToolCall, ToolResult
from subdeck.core.run.model import RunRequest
from subdeck.core.run.outcome import FINALIZE_TOOL
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import events_of, lives, result_of, started
from tests.house.set_up import ACP_HOME
from tests.mock_models import MockModels
from tests.waiting import wait_until

from .conversing import write_preset

pytestmark = [pytest.mark.agents, pytest.mark.processes]

PATIENCE = 90
CONFIG = """
model = "mock-model"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""


def say(text: str, **turn: Any) -> dict[str, Any]:
    return {"steps": [{"text": text}], **turn}


class Acp:
    """An engine with one such agent, and the model that it asks."""

    def __init__(self, agent: str, project: Path, home: Path, mock: MockModels, programs: dict[str, str]) -> None:
        self.agent = agent
        self.project = project
        self._mock = mock
        self._log = Path(str(mock.log_path))
        env = {"PATH": os.environ["PATH"]}
        if agent == "claude":
            env |= {
                "ANTHROPIC_BASE_URL": mock.url,
                "ANTHROPIC_API_KEY": "none",
                "CLAUDE_CODE_EXECUTABLE": programs["claude"],
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
            }
        else:
            env |= {"MOCK_KEY": "none", "CODEX_PATH": programs["codex"], "CODEX_HOME": str(home / ".codex")}
            (home / ".codex").mkdir()
            (home / ".codex" / "config.toml").write_text(CONFIG.format(url=mock.url))
        command = [str(ACP_HOME / "node_modules" / ".bin" / f"{agent}-{'agent-' * (agent == 'claude')}acp")]
        settings = {"agent": "other", "agents": {"other": {"kind": "acp", "command": command, "env": env}}}
        file = home / ".config" / "subdeck" / "config.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))

    @property
    def engine(self) -> Engine:
        return Engine.open(str(self.project))

    def shell(self, command: str) -> dict[str, Any]:
        """Return a turn of the model that runs a command."""
        name, argument = ("Bash", "command") if self.agent == "claude" else ("exec_command", "cmd")
        return {"steps": [{"tool_calls": [{"name": name, "arguments": {argument: command}}]}]}

    def finalize(self, **arguments: str) -> dict[str, Any]:
        """Return a turn of the model that hands over its result."""
        space = {} if self.agent == "claude" else {"namespace": "mcp__subdeck"}
        name = CLAUDE_NAME if self.agent == "claude" else FINALIZE_TOOL
        return {"steps": [{"tool_calls": [{"name": name, "arguments": arguments, **space}]}]}

    def script(self, *turns: dict[str, Any]) -> None:
        self._mock.script["turns"] = [*turns, TITLE]
        self._mock.counters.clear()

    def asked(self) -> list[str]:
        """Return every text that the model was sent."""
        records = map(json.loads, self._log.read_text().splitlines())
        return [text for record in records if record["event"] == "request" for text in _texts(record["body"])]

    def start(self, task: str = "Look.", **request: Any) -> RunSnapshot:
        (run,) = self.engine.launch([RunRequest(task=task, preset="scout", **request)], background=False)
        return run

    def wait(self, run: RunSnapshot) -> RunSnapshot:
        (ended,) = self.engine.wait([run.run_id], timeout=PATIENCE)
        return ended

    def run(self, task: str = "Look.", **request: Any) -> RunSnapshot:
        return self.wait(self.start(task, **request))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


TITLE = {"when": {"tools": False}, **say("A title")}
"""Codex has another model find one, which is offered no tools, once a turn has taken some time."""


@pytest.fixture(params=["claude", "codex"])
def acp(
    request: pytest.FixtureRequest, project_dir: Path, home: Path, claude_executable: str, codex_executable: str
) -> Iterator[Acp]:
    if not ACP_HOME.exists():
        pytest.skip("the agents of the Agent Client Protocol could not be installed here")
    write_preset(project_dir)
    with MockModels({"turns": []}, log_path=str(home / "asked.jsonl")) as mock:
        yield Acp(request.param, project_dir, home, mock, {"claude": claude_executable, "codex": codex_executable})


def test_an_answer(acp: Acp) -> None:
    """A run returns the answer, the tokens and the id of the conversation."""
    acp.script(say("It says hello."))
    ended = acp.run()
    result = result_of(acp.engine, ended)
    assert ("completed", "done", "It says hello.") == (ended.status, ended.reason, result.final_text)
    assert result.child_session_id
    assert (100, 20) == (result.usage.input, result.usage.output)


def test_a_tool_that_nobody_allows(acp: Acp) -> None:
    """In a non-interactive run, a permission request is denied with a warning, and the run continues."""
    write_preset(acp.project, "interactive: false")
    target = acp.project / "made"
    acp.script(acp.shell(f"touch {target}; mkdir /proc/none"), say("I may not."))
    ended = acp.run()
    assert ("done", "I may not.") == (ended.reason, result_of(acp.engine, ended).final_text)
    assert 1 == len([event for event in events_of(acp.engine, ended) if isinstance(event, ToolCall)])
    if acp.agent == "claude":
        denied = [event.text for event in events_of(acp.engine, ended) if isinstance(event, Notice)]
        assert any(text.startswith("denied: Bash touch") for text in denied)
        assert not target.exists()


def test_a_conversation_goes_on(acp: Acp) -> None:
    """A conversation is continued by its id, and only the new answer is in the new run."""
    acp.script(say("First answer."))
    first = acp.run()
    session = result_of(acp.engine, first).child_session_id
    acp.script(say("Second answer."))
    second = acp.run("And now?", child_session=session)
    assert ("done", session) == (second.reason, result_of(acp.engine, second).child_session_id)
    said = [event.text for event in events_of(acp.engine, second) if isinstance(event, AssistantText)]
    assert ["Second answer."] == said


@pytest.mark.parametrize("force", [False, True], ids=["stop", "kill"])
def test_in_the_middle_of_a_sentence(acp: Acp, force: bool) -> None:
    """Stopping a run keeps the unfinished sentence, and no process of the agent is left."""
    acp.script({"steps": [{"text": "So far so go"}, {"hang": True}]})
    run = acp.start()
    wait_until(lambda: "go" in acp.engine.snapshots([run.run_id])[0].sentence, "the sentence", PATIENCE)
    acp.engine.stop([run.run_id], force=force)
    ended = acp.wait(run)
    result = result_of(acp.engine, ended)
    assert ("aborted", "killed" if force else "stopped") == (ended.status, ended.reason)
    assert ("So far so go", True) == (result.final_text, result.partial)
    assert not lives(started(acp.engine, ended).child_pid)


def test_a_refusal_of_the_provider(acp: Acp) -> None:
    """A provider error fails the run with the provider's message, without raw JSON."""
    acp.script({"status": 400})
    ended = acp.run()
    result = result_of(acp.engine, ended)
    assert ("failed", "model_error") == (ended.status, ended.reason)
    assert "scripted status 400" in (result.error_message or "")
    assert "{" not in (result.error_message or "")


def test_a_model_that_is_not_offered(acp: Acp) -> None:
    """An unknown model is refused before any request, and the error lists the available models."""
    acp.script(say("Never."))
    ended = acp.run(model="nobody/nothing")
    result = result_of(acp.engine, ended)
    assert ("failed", "start_failed") == (ended.status, ended.reason)
    assert 'has no model "nobody/nothing"; it has ' in (result.error_message or "")


@pytest.mark.parametrize("tools", ["tools: [read, grep]", "denied_tools: [edit, write]"])
def test_only_readers(acp: Acp, tools: str) -> None:
    """A tool list that can only read starts the agent in its read-only or plan mode, where no file changes."""
    write_preset(acp.project, f"{tools}\ninteractive: false")
    acp.script(acp.shell(f"touch {acp.project}/made"), say("Looked."))
    ended = acp.run()
    assert ("done", False) == (ended.reason, (acp.project / "made").exists())


def test_the_prompt_goes_before_the_task(acp: Acp) -> None:
    """The preset's prompt goes before the task, with a warning on the run."""
    write_preset(acp.project, prompt="You look.")
    acp.script(say("Seen."))
    ended = acp.run()
    assert any("put before the task" in warning for warning in ended.meta.all_warnings)
    assert any("You look.\n\nLook." in text for text in acp.asked())


def test_a_result_is_handed_over(acp: Acp) -> None:
    """The agent submits a structured result through subdeck's MCP server, without a permission request. If it doesn't,
    it is asked again. A call without a result is refused.
    """
    write_preset(acp.project, "structured_result: true")
    acp.script(
        say("I am done."), acp.finalize(status="SUCCESS"), acp.finalize(status="SUCCESS", result="42"), say("Over.")
    )
    ended = acp.run()
    result = result_of(acp.engine, ended)
    assert ("completed", "finalized", "42", 2) == (ended.status, ended.reason, result.final_text, result.attempts)
    events = events_of(acp.engine, ended)
    assert [FINALIZE_TOOL] * 2 == [event.tool_name for event in events if isinstance(event, ToolCall)]
    refused, taken = (event for event in events if isinstance(event, ToolResult))
    assert (True, False) == (refused.is_error, taken.is_error)
    assert "Refused: SUCCESS requires a non-empty result" in refused.content
    assert "The result was received." == taken.content
    assert not any(isinstance(event, Notice) and "denied" in event.text for event in events)


def test_nothing_is_handed_over(acp: Acp) -> None:
    """If the agent never submits a structured result, the run fails, even with a good answer."""
    write_preset(acp.project, "structured_result: true\nmax_attempts: 1")
    acp.script(say("I am done."))
    assert ("failed", "finalize_missing") == ((ended := acp.run()).status, ended.reason)
