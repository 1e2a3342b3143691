"""MCP clients and servers that leave: foreground calls are cancelled, everything else continues."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.command_line import SUBDECK, run_dirs
from tests.core.mcp.mcp_client import Pipes, make_project
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

HANGING = {"preset": "scout", "task": "touch begun\nhang"}

CLIENT = """
import json, subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(**frame):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\\n")
    server.stdin.flush()
client = {"name": "mortal", "version": "0"}
send(id=1, method="initialize",
     params={"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
server.stdout.readline()
send(method="notifications/initialized")
send(id=2, method="tools/call", params={"name": "subagent", "arguments": json.loads(sys.argv[1])})
server.stdout.read()
"""


@pytest.fixture
def project(project_dir: Path) -> Path:
    return make_project(project_dir)


def begun(project: Path) -> None:
    wait_until((project / "begun").exists, "the child to begin", timeout=60)


def end_of(project: Path) -> RunSnapshot:
    engine = Engine.open(str(project))
    (run,) = engine.snapshots()
    (ended,) = engine.wait([run.run_id], timeout=30)
    return ended


def test_client_that_hangs_up(project: Path) -> None:
    """The end of stdin in the middle of a call cancels its run, and the server ends."""
    with Pipes(project) as client:
        client.ask("tools/call", name="subagent", arguments=HANGING)
        begun(project)
        assert client.server.stdin
        client.server.stdin.close()
        assert 0 == client.server.wait(30)
        run = end_of(project)
    assert ("aborted", "cancelled") == (run.status, run.reason)


def test_client_that_is_killed(project: Path) -> None:
    """A client that dies in the middle of a call leaves no run and no server."""
    command = [sys.executable, "-c", CLIENT, json.dumps(HANGING), *SUBDECK, "mcp"]
    client = subprocess.Popen(command, cwd=project)
    begun(project)
    client.kill()
    client.wait()
    run = end_of(project)
    assert ("aborted", "cancelled") == (run.status, run.reason)


def test_client_that_stops_reading(project: Path) -> None:
    """A closed stdout is noticed even if nothing is written: the run is cancelled and the server ends."""
    with Pipes(project) as client:
        client.ask("tools/call", name="subagent", arguments=HANGING)
        begun(project)
        assert client.server.stdout
        client.server.stdout.close()
        assert 0 == client.server.wait(30)
        run = end_of(project)
    assert ("aborted", "cancelled") == (run.status, run.reason)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_in_order(project: Path, number: signal.Signals) -> None:
    """ctrl-C, TERM and HUP cancel the open call and end the server, even with stdin open."""
    with Pipes(project) as client:
        client.ask("tools/call", name="subagent", arguments=HANGING)
        begun(project)
        client.server.send_signal(number)
        assert 0 == client.server.wait(30)
        run = end_of(project)
    assert ("aborted", "cancelled") == (run.status, run.reason)


def test_killed_server_leaves_the_run(project: Path) -> None:
    """SIGKILL ends only the server: its run is visible with its launcher, and can be stopped."""
    with Pipes(project) as client:
        client.ask("tools/call", name="subagent", arguments=HANGING)
        begun(project)
        client.server.kill()
        client.server.wait()
    engine = Engine.open(str(project))
    wait_until(lambda: ["running"] == [run.status for run in engine.snapshots()], "the run to be seen at work")
    (run,) = engine.snapshots()
    assert "mcp" == run.meta.launched_by.kind
    engine.stop([run.run_id])
    assert "stopped" == end_of(project).reason


def test_settings_that_break_meanwhile(project: Path) -> None:
    """A settings file that breaks is named in every answer and prevents every start, until it is fixed."""
    settings = Path(paths.user_settings_file())
    good = settings.read_text()
    with Pipes(project) as client:
        settings.write_text("agnet: offline\n")
        client.ask("tools/list")
        assert "agnet" in client.answer()["error"]["message"]
        client.ask("tools/call", name="subagent", arguments={"preset": "scout", "task": "answer yes"})
        refused = client.answer()["result"]
        assert refused["isError"]
        assert "agnet" in refused["structuredContent"]["error"]["what"]
        assert [] == run_dirs(project)
        settings.write_text(good)
        client.ask("tools/list")
        assert 4 == len(client.answer()["result"]["tools"])


def test_settings_that_were_broken_at_the_start(project: Path) -> None:
    """A server started with broken settings reports them in its answers, and works once they are fixed."""
    settings = Path(paths.user_settings_file())
    good = settings.read_text()
    settings.write_text("agnet: offline\n")
    with Pipes(project) as client:
        client.ask("tools/list")
        assert "agnet" in client.answer()["error"]["message"]
        client.ask("tools/call", name="subagent", arguments=HANGING)
        assert "agnet" in client.answer()["result"]["structuredContent"]["error"]["what"]
        settings.write_text(good)
        client.ask("tools/list")
        assert 4 == len(client.answer()["result"]["tools"])


def test_garbage_is_answered_or_ignored(project: Path) -> None:
    """Invalid lines do not affect valid ones, and stdout has only frames."""
    with Pipes(project) as client:
        assert client.server.stdin
        client.server.stdin.write(b"no json\n\xff\xfe\n{}\n[]\n")
        client.ask("tools/list")
        assert 4 == len(client.answer()["result"]["tools"])
        client.ask("tools/call", name="subagent", arguments={"preset": "scout", "task": "complain loud\nanswer yes"})
        assert "yes" in str(client.answer()["result"]["structuredContent"])


def test_two_calls_at_once(project: Path) -> None:
    """A waiting call does not delay other calls."""
    with Pipes(project) as client:
        client.ask("tools/call", name="subagent", arguments=HANGING)
        begun(project)
        client.ask("tools/call", name="background_agent_status", arguments={})
        assert "result" in client.answer()


def test_client_that_closes_without_reading(project: Path) -> None:
    """A client that closes our stdin without reading its answers is not waited for."""
    with Pipes(project) as client:
        assert client.server.stdin
        for _ in range(100):
            client.ask("tools/list")
        client.server.stdin.close()
        assert 0 == client.server.wait(10)


def test_answers_arrive_after_the_end_of_stdin(project: Path) -> None:
    """Requests before the end of stdin are all answered for a client that reads."""
    with Pipes(project) as client:
        assert client.server.stdin and client.server.stdout
        for _ in range(100):
            client.ask("tools/list")
        client.server.stdin.close()
        assert 100 == sum("result" in json.loads(line) for line in client.server.stdout)


def test_closed_streams(project: Path) -> None:
    """Without stdin the server fails with the reason."""
    command = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *SUBDECK, "mcp"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert (2, "") == (done.returncode, done.stdout)
    assert "stdin or stdout is closed" in done.stderr


def test_little_is_loaded_before_the_first_call(project: Path) -> None:
    """Before the first list or call neither a protocol library nor an event loop is loaded."""
    code = "import sys, subdeck.core.cli.tool_server as door\ndoor.main()\nprint(*sys.modules, file=sys.stderr)"
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "0"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=project, capture_output=True, text=True, input=asked, check=True
    )
    assert "2025-06-18" == json.loads(done.stdout)["result"]["protocolVersion"]
    loaded = set(done.stderr.split())
    assert "subdeck.core.mcp.server" in loaded
    assert not {"mcp", "mcp_types", "pydantic", "anyio", "asyncio", "click", "subdeck.core.engine"} & loaded


def test_a_person_is_told_what_it_is_for(project: Path) -> None:
    """A person who types the command reads its purpose on stderr; ctrl-D ends it."""
    master, slave = os.openpty()
    server = subprocess.Popen(
        [*SUBDECK, "mcp"], cwd=project, stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    os.close(slave)
    os.write(master, b"\x04")
    out, err = server.communicate(timeout=60)
    os.close(master)
    assert (0, b"") == (server.returncode, out)
    assert b"claude mcp add subdeck -- subdeck mcp" in err
