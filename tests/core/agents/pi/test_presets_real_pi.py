"""Presets with pi: what each key changes in the requests to the model."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.pi.program import EXCLUDES_SINCE, NO_SERVERS_SINCE, TRUST_SINCE, pi_version
from subdeck.core.agents.program import is_since
from subdeck.core.run.outcome import FINALIZE_TOOL
from subdeck.core.run.snapshot import RunSnapshot

from tests.real.lab import NEWER_PI, Lab
from tests.real.model_server import offered, said

from ...conversing import write_preset

pytestmark = [pytest.mark.pi, NEWER_PI]

Ask = Callable[[str, str], tuple[RunSnapshot, dict[str, Any]]]


@pytest.fixture
def ask(pi: Lab) -> Ask:
    """Run one preset with the real pi. Return the run and the agent's first request."""
    (pi.project / "AGENTS.md").write_text("Context of the project.")
    pi.configure(models=({"id": "org/think:8b", "reasoning": True},))
    pi.command(pi.program, roles={"deep": "org/think:8b:high"})

    def run(fields: str, body: str) -> tuple[RunSnapshot, dict[str, Any]]:
        write_preset(pi.project, fields, prompt=body)
        pi.script(said("Seen."))
        ended = pi.run("look", preset="scout")
        return ended, pi.requests[0]

    return run


def system_text(request: dict[str, Any]) -> str:
    return json.dumps([message for message in request["messages"] if message["role"] in ("system", "developer")])


def test_a_role_thinks_as_it_says(ask: Ask) -> None:
    """A model role can name an id with a slash and a colon, and its thinking level overrides the preset's."""
    run, request = ask('model: "@deep"\nthinking: low', "Read.")

    assert "completed" == run.status, run
    assert ("org/think:8b", "high") == (request["model"], request["reasoning_effort"])
    assert ("@deep", "fake/org/think:8b", ()) == (run.meta.requested_model, run.meta.resolved_model, run.warnings)


def test_a_denial_and_a_replaced_prompt(ask: Ask) -> None:
    """`denied_tools` removes tools, `prompt_mode: replace` sends only the preset's prompt, and `context_files: true`
    adds context files.
    """
    run, request = ask(
        "model: fake/test\ndenied_tools: [bash, write]\nprompt_mode: replace\ncontext_files: true", "You are a scout."
    )

    assert "completed" == run.status, run
    assert {"read", "edit"} == offered(request)
    assert "You are a scout." in system_text(request)
    assert "Context of the project." in system_text(request)
    assert "operating inside pi" not in system_text(request)


def test_an_allowlist_and_an_appended_prompt(ask: Ask) -> None:
    """`tools` turns on tools that are off by default, and `context_files: false` omits only the context files."""
    run, request = ask("model: test\ntools: grep, find\ncontext_files: false", "You are a scout.")

    assert "completed" == run.status, run
    assert ("test", {"grep", "find"}) == (request["model"], offered(request))
    assert "You are a scout." in system_text(request)
    assert "Context of the project." not in system_text(request)


def test_no_tools_and_no_session(ask: Ask) -> None:
    """With an empty tool list, the agent has no tools. With `session: none`, no session is stored."""
    run, request = ask("model: fake/test\ntools: []\nsession: none", "You are a scout.")

    assert "completed" == run.status, run
    assert set() == offered(request)
    assert None is run.meta.session_path
    assert [] == list(Path(os.environ["PI_CODING_AGENT_DIR"]).rglob("*.jsonl"))


USER_TOOL = """
export default function (pi) {
	pi.registerTool({ name: "usertool", label: "Mine", description: "d", parameters: { type: "object", properties: {} },
		async execute() { return { content: [{ type: "text", text: "used" }] }; } });
}
"""

SERVER = """
import json, sys
open({started!r}, "a").write("started\\n")
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method, result = asked["method"], {{}}
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        about = {{"name": "db", "version": "1"}}
        result = {{"protocolVersion": version, "capabilities": {{"tools": {{}}}}, "serverInfo": about}}
    elif method == "tools/list":
        result = {{"tools": [{{"name": "query", "description": "d", "inputSchema": {{"type": "object"}}}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": result}}), flush=True)
"""


@pytest.fixture
def agent_dir() -> Path:
    return Path(os.environ["PI_CODING_AGENT_DIR"])


def test_a_denial_takes_nothing_else_away(ask: Ask, agent_dir: Path, pi_executable: str) -> None:
    """`denied_tools` keeps the tools of your extensions, in pi versions that can remove single tools."""
    (agent_dir / "extensions").mkdir()
    (agent_dir / "extensions" / "mine.ts").write_text(USER_TOOL)
    (agent_dir / "settings.json").write_text('{"defaultTools": ["+grep"]}')
    run, request = ask(
        "model: fake/test\ndenied_tools: [edit, write]\nstructured_result: true\nmax_attempts: 1", "Look."
    )

    if is_since(pi_version((pi_executable,)), EXCLUDES_SINCE):
        assert {"read", "bash", "grep", "usertool", FINALIZE_TOOL} == offered(request)
    else:
        assert {"read", "bash", FINALIZE_TOOL} == offered(request)
    assert () == run.meta.all_warnings


def test_servers_of_mcp(ask: Ask, agent_dir: Path, tmp_path: Path, pi_executable: str) -> None:
    """pi starts your MCP servers only if the tool list can reach one of them."""
    if not is_since(pi_version((pi_executable,)), NO_SERVERS_SINCE):
        pytest.skip("not for this agent: this pi knows of no servers")
    started = tmp_path / "started"
    (tmp_path / "server.py").write_text(SERVER.format(started=str(started)))
    server = {"command": sys.executable, "args": [str(tmp_path / "server.py")], "exposure": "direct"}
    (agent_dir / "mcp.json").write_text(json.dumps({"mcpServers": {"db": server}}))
    for fields in ("tools: read", "tools: []", "tools: []\nstructured_result: true\nmax_attempts: 1"):
        ask(f"model: fake/test\n{fields}", "Look.")
    assert not started.exists()
    run, _ = ask("model: fake/test\ntools: read, codemode", "Look.")
    assert started.exists()
    assert () == run.meta.all_warnings


def test_what_a_project_brings_along(
    ask: Ask, agent_dir: Path, project_dir: Path, tmp_path: Path, pi_executable: str
) -> None:
    """pi before 0.79 runs a project's extensions without asking, newer versions only if you trust the project. A preset
    can turn that off, and structured results still work.
    """
    ran = tmp_path / "ran"
    (project_dir / ".pi" / "extensions").mkdir(parents=True)
    theirs = "import { appendFileSync } from 'node:fs';\nexport default () => appendFileSync(FILE, 'x');\n"
    (project_dir / ".pi" / "extensions" / "theirs.ts").write_text(theirs.replace("FILE", json.dumps(str(ran))))
    is_gated = is_since(pi_version((pi_executable,)), TRUST_SINCE) is True
    ask("model: fake/test", "Look.")
    assert is_gated is not ran.exists()
    (agent_dir / "settings.json").write_text('{"defaultProjectTrust": "always"}')
    ask("model: fake/test", "Look.")
    assert ran.exists()
    ran.unlink()
    run, request = ask("model: fake/test\nproject_resources: false\nstructured_result: true\nmax_attempts: 1", "Look.")
    assert not ran.exists()
    assert FINALIZE_TOOL in offered(request)
    assert "Context of the project." in system_text(request)
    assert is_gated is not any("settings.json" in warning for warning in run.meta.all_warnings)
