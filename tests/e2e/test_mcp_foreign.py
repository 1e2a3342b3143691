"""`subdeck mcp` with other projects' clients: the inspector and the TypeScript SDK, with the node they need."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine

from tests.core.command_line import SUBDECK
from tests.core.mcp.mcp_client import TOOLS, make_project
from tests.factories import CHILDREN
from tests.house.set_up import MCP_CLIENTS_HOME

pytestmark = pytest.mark.npm

MODULES = MCP_CLIENTS_HOME / "node_modules"
LIMIT = 90
"""Seconds for one program of node."""


@pytest.fixture
def project(project_dir: Path) -> Path:
    if not MODULES.is_dir():
        pytest.fail(f"there are no clients in {MODULES}; `sh tests/house/set_up.sh test` installs them", pytrace=False)
    return make_project(project_dir)


def node(*words: str | Path, cwd: Path) -> Any:
    """Run a program of node to its end; return the JSON document that it printed."""
    path = f"{MODULES / '.bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["node", *words],
        cwd=cwd,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def inspector(project: Path, *words: str) -> Any:
    program = MODULES / "@modelcontextprotocol" / "inspector" / "cli" / "build" / "cli.js"
    return node(program, "--cli", *SUBDECK, "mcp", *words, cwd=project)


def test_inspector_lists_the_tools(project: Path) -> None:
    """The inspector accepts the four tools with both their schemas."""
    tools = inspector(project, "--method", "tools/list")["tools"]
    assert TOOLS == {tool["name"] for tool in tools}
    assert all("object" == tool[schema]["type"] for tool in tools for schema in ("inputSchema", "outputSchema"))


def test_inspector_calls_a_tool(project: Path) -> None:
    """The inspector starts a run and gets its answer, which it validates against the output schema."""
    words = ("--tool-name", "subagent", "--tool-arg", "preset=scout", "--tool-arg", "task=answer from afar")
    result = inspector(project, "--method", "tools/call", *words)
    assert ["from afar"] == [run["answer"] for run in result["structuredContent"]["runs"]]
    (run,) = Engine.open(str(project)).snapshots()
    assert ("mcp", "completed") == (run.meta.launched_by.kind, run.status)


def test_inspector_lists_the_prompts(project: Path) -> None:
    """The presets are in the inspector's list of prompts."""
    assert ["scout"] == [prompt["name"] for prompt in inspector(project, "--method", "prompts/list")["prompts"]]


def test_typescript_sdk(project: Path) -> None:
    """The TypeScript SDK lists, calls with progress, polls, cancels, and is notified of a new preset."""
    told = node(CHILDREN / "mcp_client.mjs", MODULES, project, *SUBDECK, "mcp", cwd=project)
    assert TOOLS == {tool["name"] for tool in told["tools"]}
    assert ["scout"] == [prompt["name"] for prompt in told["prompts"]]
    assert ["from afar"] == [run["answer"] for run in told["answer"]["structuredContent"]["runs"]]
    assert told["progress"]
    background = told["background"]["structuredContent"]["runId"]
    assert [background] == [run["runId"] for run in told["status"]["structuredContent"]["runs"]]
    assert "cancelled" == told["cancelled"]
    assert "critic" in told["later"]
    (project / "go").touch()
    engine = Engine.open(str(project))
    ended = engine.wait([run.run_id for run in engine.snapshots()], timeout=30)
    assert {"done", "cancelled"} == {run.reason for run in ended}
    assert ["completed"] == [run.status for run in ended if run.run_id == background]
