"""The message of a run whose ACP agent could not be started."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.acp._stream import AcpStream
from subdeck.core.agents.acp.child import CHILD
from subdeck.core.engine import Engine
from subdeck.core.run.outcome import ChildExit, decide
from subdeck.core.spec.request import RunRequest

from tests.factories import make_meta, result_of

from ...command_line import subdeck

ASKED = {"sent": {"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {}}}


def message(error: dict[str, Any], stderr: str = "") -> str:
    """Return the message of a run whose agent answered its first request with an error."""
    stream = AcpStream()
    for line in (ASKED, {"jsonrpc": "2.0", "id": 7, "error": error}):
        stream.feed(json.dumps(line).encode())
    stderr += f"Error: {error['message']}\n"
    words = CHILD.explain(make_meta(), stderr) or stderr
    outcome = decide(stream.facts, exit=ChildExit(code=1), stderr=words)
    assert "start_failed" == outcome.reason
    return (outcome.message or "").removeprefix("the agent could not be started: ")


@pytest.mark.parametrize(
    ("data", "cause"),
    [
        ({"details": "GEMINI_API_KEY is not set"}, "GEMINI_API_KEY is not set"),
        ({"details": 'got 403: {"error":{"message":"Key was revoked","code":403}}'}, "got 403 Key was revoked"),
        ("no such workspace", "no such workspace"),
        ({"error": {"name": "ConfigError", "message": "bad config.toml"}}, "bad config.toml"),
        ([{"message": "first"}, {"message": "second"}], "first"),
        ({"cwd": {"_errors": ["Required"]}}, '{"cwd":{"_errors":["Required"]}}'),
        ({"details": "Error: boom\x1b[31m\n    at run (file.js:1:2)\n    at main"}, "Error: boom"),
    ],
)
def test_data_of_the_error_names_the_cause(data: Any, cause: str) -> None:
    """The data of an "Internal error" is part of the run's message, without control characters or a stack trace."""
    noise = "(node:7) DeprecationWarning: punycode\n"
    assert f"Internal error: {cause}" == message({"code": -32603, "message": "Internal error", "data": data}, noise)


def test_a_long_cause_is_cut() -> None:
    """The error stays one short line, however long the agent's message is."""
    said = message({"code": -32603, "message": "Internal error", "data": {"details": "x" * 1_000_000}})
    assert said.startswith("Internal error: xxx") and len(said) <= 600


@pytest.mark.parametrize(
    ("error", "stderr", "said"),
    [
        ("Internal error", "loading\nTypeError: no login\n    at x (x.js:1)\n", "Internal error: TypeError: no login"),
        ("Internal error", "", "Internal error"),
        ("Log in first", "TypeError: something else\n", "Log in first"),
    ],
)  # fmt: skip
def test_stderr_is_quoted_if_the_error_names_no_cause(error: str, stderr: str, said: str) -> None:
    """The last line of stderr is added only to an error without a cause."""
    assert said == message({"code": -32603, "message": error}, stderr)


def test_details_that_repeat_nothing_new_are_left_out() -> None:
    """The kind of an error is not a cause, and details already in the message are not repeated."""
    error = {"code": -32603, "message": "Internal error: API Error: 400", "data": {"errorKind": "unknown"}}
    assert "Internal error: API Error: 400" == message(error)
    assert "Not now: busy" == message({"code": 1, "message": "Not now: busy", "data": {"details": "busy"}})


AGENT = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        answer = {"result": {"protocolVersion": 1, "agentCapabilities": {}}}
    elif sys.argv[1] == "exit":
        sys.exit("fatal: no login found, run agent login")
    else:
        answer = {"error": {"code": -32603, "message": "Internal error", "data": {"details": "no login found"}}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("how", "said"),
    [("data", "could not be started: Internal error: no login found"), ("exit", "no login found, run agent login")],
)
def test_status_names_the_cause(project_dir: Path, home: Path, how: str, said: str) -> None:
    """A run that fails at its start shows the cause in its result and in `status`."""
    command = [sys.executable, "-I", "-S", "-c", AGENT, how]
    settings = home / ".config" / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"agent": "other", "agents": {"other": {"kind": "acp", "command": command}}}))
    engine = Engine.open(str(project_dir))
    (run,) = engine.launch([RunRequest(task="Look.")], background=True)
    (run,) = engine.wait([run.run_id], timeout=60)
    assert "start_failed" == run.reason
    assert said in (result_of(engine, run).error_message or "")
    assert said in subdeck("status", run.run_id, cwd=project_dir).out
