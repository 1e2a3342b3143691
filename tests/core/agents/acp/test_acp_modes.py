"""A read-only tool list selects a read-only mode of an ACP agent, or the run is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from subdeck.core.agents.acp._conversation import AcpConversation
from subdeck.core.agents.acp._programs import read_only_mode
from subdeck.core.agents.child import Start
from subdeck.core.engine import Engine
from subdeck.core.errors import AgentUnavailable, UsageError
from subdeck.core.run.events import Notice, Request
from subdeck.core.run.model import ToolPolicy, Tools
from subdeck.core.spec.request import RunRequest

from tests.core.command_line import subdeck
from tests.factories import make_meta

from ...conversing import write_preset
from ...delegation.delegating import call

AGENT = """\
import json, os, sys
modes = {"availableModes": [{"id": mode} for mode in sys.argv[1:]]}
with open(os.environ["ASKED"], "a") as log:
    for line in sys.stdin:
        asked = json.loads(line)
        print(asked["method"], asked.get("params", {}).get("modeId", ""), file=log, flush=True)
        result = {"stopReason": "end_turn"} if asked["method"] == "session/prompt" else {}
        if asked["method"] == "session/new":
            result = {"sessionId": "s1", "modes": modes}
        if asked["method"] == "session/prompt":
            text = {"type": "text", "text": "Seen."}
            update = {"sessionUpdate": "agent_message_chunk", "content": text, "messageId": "m"}
            params = {"sessionId": "s1", "update": update}
            print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}), flush=True)
        if "id" in asked:
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""An agent with the modes in its arguments, which logs its requests."""


class Agent:
    def __init__(
        self, project: Path, home: Path, *modes: str, tools: str = "tools: [read, grep, find, ls, bash]"
    ) -> None:
        self.project = project
        self.log = home / "asked"
        command = [sys.executable, "-I", "-S", "-c", AGENT, *modes]
        other = {"kind": "acp", "command": command, "env": {"ASKED": str(self.log)}}
        settings = {"agent": "other", "agents": {"other": other}}
        file = home / ".config" / "subdeck" / "config.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(settings))
        write_preset(project, f"{tools}\ninteractive: false")

    @property
    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    @property
    def runs(self) -> list[Path]:
        return list((self.project / ".pi/subagents/runs").glob("2*"))

    def run(self) -> str | None:
        engine = Engine.open(str(self.project))
        (run,) = engine.launch([RunRequest(task="Look.", preset="scout")], background=False)
        (ended,) = engine.wait([run.run_id], timeout=60)
        return ended.reason


@pytest.mark.processes
@pytest.mark.parametrize(
    ("modes", "chosen"),
    [
        (("default", "plan"), "plan"),
        (("plan", "read-only"), "read-only"),
        (("a", "https://x.org/modes#plan"), "https://x.org/modes#plan"),
    ],
)
def test_a_list_that_only_reads_is_a_mode(project_dir: Path, home: Path, modes: tuple[str, ...], chosen: str) -> None:
    """The agent is switched to its read-only mode, or to its plan mode, before it gets the task."""
    agent = Agent(project_dir, home, *modes)
    assert "done" == agent.run()
    opened = ["initialize ", "session/new "]
    assert [*opened, *opened, f"session/set_mode {chosen}", "session/prompt "] == agent.asked
    assert "done" == agent.run()
    assert 10 == len(agent.asked)  # its modes are cached now


@pytest.mark.processes
def test_denied_writers_are_a_mode(project_dir: Path, home: Path) -> None:
    """`denied_tools: [edit, write]` selects the same mode as a read-only tool list."""
    agent = Agent(project_dir, home, "plan", tools="denied_tools: [edit, write]")
    assert "done" == agent.run()
    assert "session/set_mode plan" in agent.asked


@pytest.mark.processes
def test_an_agent_without_such_a_mode_is_refused(project_dir: Path, home: Path) -> None:
    """Without such a mode the launch is refused before anything starts. `presets` and `doctor` report it
    from then on.
    """
    agent = Agent(project_dir, home, "default", "yolo")
    assert "presets   scout cannot start" not in subdeck("doctor", cwd=project_dir).out
    assert [] == agent.asked
    with pytest.raises(UsageError) as caught:
        agent.run()
    what = "tools: other has only default, yolo, but this requires a mode called read-only or plan"
    assert what == caught.value.what
    assert ([], ["initialize ", "session/new "]) == (agent.runs, agent.asked)
    for words in (["presets"], ["presets", "scout"], ["doctor"]):
        done = subdeck(*words, cwd=project_dir, COLUMNS="200")
        assert what in done.out
    assert 2 == len(agent.asked)


@pytest.mark.processes
def test_an_agent_that_tells_no_modes_is_refused(project_dir: Path, home: Path) -> None:
    """A run that needs a mode is refused if the agent cannot list its modes."""
    agent = Agent(project_dir, home)
    file = home / ".config" / "subdeck" / "config.yaml"
    file.write_text(json.dumps({"agent": "other", "agents": {"other": {"kind": "acp", "command": ["/bin/false"]}}}))
    with pytest.raises(
        AgentUnavailable,
        match="require a mode of other, which could not list its modes: /bin/false ended with exit code 1",
    ):
        agent.run()
    assert [] == agent.runs


@pytest.mark.processes
def test_an_agent_that_fails_is_asked_once_for_a_call(project_dir: Path, home: Path) -> None:
    """Tasks launched together ask an agent that cannot list its modes only once."""
    Agent(project_dir, home)
    log = home / "asked"
    command = ["/bin/sh", "-c", f"echo once >> {log}; exit 1"]
    file = home / ".config" / "subdeck" / "config.yaml"
    file.write_text(json.dumps({"agent": "other", "agents": {"other": {"kind": "acp", "command": command}}}))
    tasks = [{"preset": "scout", "task": "look"}] * 3
    answer = call(Engine.open(str(project_dir), session="parent-1"), "subagent", {"tasks": tasks})
    assert answer.is_error and 3 == answer.text.count("could not list its modes")
    assert ["once"] == log.read_text().splitlines()


def test_no_mode_is_none() -> None:
    """A mode whose name only begins like a read-only mode is not used."""
    assert None is read_only_mode(["default", "planning"])


ONLY_READS = Tools(ToolPolicy.ALLOW, resolved=("read", "grep"))
WITH_A_SHELL = Tools(ToolPolicy.ALLOW, resolved=("read", "bash"))
NO_WRITERS = Tools(ToolPolicy.DENY, excluded=("edit", "write"))


@pytest.mark.parametrize(
    ("tools", "kind", "is_denied"),
    [
        (ONLY_READS, "switch_mode", True),
        (ONLY_READS, "edit", True),
        (ONLY_READS, "execute", True),
        (ONLY_READS, "read", False),
        (WITH_A_SHELL, "execute", False),
        (WITH_A_SHELL, "delete", True),
        (NO_WRITERS, "execute", False),
        (NO_WRITERS, "edit", True),
        (NO_WRITERS, "switch_mode", True),
        (Tools(), "switch_mode", False),
        (Tools(), "edit", False),
    ],
)
def test_what_the_tools_rule_out_is_denied(tmp_path: Path, tools: Tools, kind: str, is_denied: bool) -> None:
    """A request to leave the read-only mode, or to use a tool outside the list, is denied without asking you."""
    (tmp_path / "prompt.md").write_text("Look.")
    stream = AcpConversation(Start(make_meta(tools=tools, talk=True), str(tmp_path)))
    call = {"toolCallId": "t1", "kind": kind, "title": "Ready to code?"}
    options = [{"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]
    asked = {"id": 7, "method": "session/request_permission", "params": {"toolCall": call, "options": options}}
    events = stream.feed(json.dumps(asked).encode())
    assert is_denied is not any(isinstance(event, Request) for event in events)
    assert is_denied is any(isinstance(event, Notice) and "only read" in event.text for event in events)
    replies = [json.loads(line) for line in stream.replies().splitlines()]
    assert is_denied is ({"reply": {"id": 7, "answer": "no"}} in replies)
