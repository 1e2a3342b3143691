"""The official Python client for a real `subdeck mcp`, and a client of bare pipes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio

from tests import factories

from ..command_line import SUBDECK, write_preset

if TYPE_CHECKING:
    from mcp import Client

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""The client's mode and the resulting protocol version: with a handshake, and without one."""

LIMIT = 60.0
"""Time limit in seconds for an expected event."""

TOOLS = {"subagent", "background_agent", "background_agent_status", "background_agent_send"}


def make_project(project: Path) -> Path:
    """Set up one preset whose agent is the puppet: the task is its script."""
    factories.write_settings(models=["fake/puppet"])
    write_preset(project)
    return project


@asynccontextmanager
async def connected(project: Path, mode: str, *, handler: Any = None, **environment: str) -> AsyncIterator[Client]:
    """Start a private server, which ends with the block."""
    from mcp import Client, StdioServerParameters  # imported late: it takes most of a second

    command, *words = SUBDECK
    started = StdioServerParameters(
        command=command, args=[*words, "mcp"], cwd=project, env={**os.environ, **environment}
    )
    with anyio.fail_after(LIMIT):
        async with Client(started, mode=mode, message_handler=handler) as client:
            assert ERAS[mode] == client.protocol_version
            yield client


class Pipes:
    """A client that sends single frames; it can leave in ways that a library never would."""

    def __init__(self, project: Path) -> None:
        pipe = subprocess.PIPE
        self.server = subprocess.Popen([*SUBDECK, "mcp"], cwd=project, stdin=pipe, stdout=pipe, stderr=pipe)
        self._frames = 0

    def __enter__(self) -> Pipes:
        client = {"name": "pipes", "version": "0"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.answer()
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up, and let the server end on its own; kill it if it does not."""
        assert self.server.stdin and self.server.stdout and self.server.stderr
        self.server.stdin.close()
        try:
            self.server.wait(30)
        finally:
            self.server.kill()
            self.server.wait()
            self.server.stdout.close()
            self.server.stderr.close()

    def ask(self, method: str, **params: Any) -> None:
        self._frames += 1
        self.send({"jsonrpc": "2.0", "id": self._frames, "method": method, "params": params})

    def send(self, frame: dict[str, Any]) -> None:
        assert self.server.stdin
        self.server.stdin.write(json.dumps(frame).encode() + b"\n")
        self.server.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """Read the answer to the last request; every line on stdout must be a frame of the protocol."""
        assert self.server.stdout
        while True:
            frame = json.loads(self.server.stdout.readline())
            assert "2.0" == frame["jsonrpc"]
            if frame.get("id") == self._frames:
                return frame
