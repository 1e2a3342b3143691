"""The real Codex behind an engine, asking a scripted model server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subdeck.core.engine import Engine
from subdeck.core.run.model import RunRequest
from subdeck.core.run.snapshot import RunSnapshot

from tests.mock_models import MockModels

from .conversing import write_preset

PATIENCE = 90
CONFIG = """\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
{settings}
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = {retries}
{tables}
"""


def said(text: str, **turn: Any) -> dict[str, Any]:
    return {"steps": [{"text": text}], **turn}


def called(name: str, text: str = "", **arguments: Any) -> dict[str, Any]:
    """A turn of the model that calls a tool."""
    spoken = [{"text": text}] if text else []
    return {"steps": [*spoken, {"tool_calls": [{"name": name, "arguments": arguments}]}]}


def command(words: str, text: str = "") -> dict[str, Any]:
    """A turn of the model that runs a command."""
    return called("exec_command", text, cmd=words)


class RealCodex:
    """An engine whose agent is Codex, and what its children asked the model server."""

    def __init__(self, project: Path, home: Path, server: MockModels, log: Path) -> None:
        self.project = project
        self.home = home
        self._server = server
        self._log = log
        self.configure()

    def configure(self, settings: str = "", tables: str = "", retries: int = 0) -> None:
        """Write the user's own settings of Codex."""
        file = self.home / ".codex" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CONFIG.format(url=self._server.url, settings=settings, tables=tables, retries=retries))

    def preset(self, *fields: str, **others: Any) -> None:
        write_preset(self.project, "model: openai/mock-model", *fields, **others)

    def script(self, *turns: dict[str, Any]) -> None:
        """Say how the model answers the next requests, in their order."""
        self._log.write_text("")
        self._server.script = {"turns": list(turns)}
        self._server.counters.clear()

    @property
    def engine(self) -> Engine:
        return Engine.open(str(self.project))

    def begin(self, task: str = "Look.", **request: Any) -> RunSnapshot:
        (launched,) = self.engine.launch([RunRequest(task=task, preset="scout", **request)], background=False)
        return launched

    def launch(self, *tasks: str, **request: Any) -> list[RunSnapshot]:
        """Run the preset for these tasks, together, and wait until all have ended."""
        engine = self.engine
        wanted = [RunRequest(task=task, preset="scout", **request) for task in tasks]
        launched = engine.launch(wanted, background=False)
        return list(engine.wait([run.run_id for run in launched], timeout=PATIENCE))

    def run(self, task: str = "Look.", **request: Any) -> RunSnapshot:
        (ended,) = self.launch(task, **request)
        return ended

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of all requests since the script was given."""
        records = map(json.loads, self._log.read_text().splitlines())
        return [record["body"] for record in records if record["event"] == "request"]


@contextmanager
def real_codex(project: Path, home: Path, program: str) -> Iterator[RealCodex]:
    """Set up Codex and its model server; both directories are private to the test."""
    config = home / ".config" / "subdeck" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    own = {"command": [program], "env": {"MOCK_KEY": "sk-fake"}}
    config.write_text(json.dumps({"agent": "codex", "agents": {"codex": own}}))
    log = home / "requests.jsonl"
    log.write_text("")
    with MockModels({"turns": []}, log_path=str(log)) as server:
        yield RealCodex(project, home, server, log)


def texts(request: dict[str, Any], *roles: str) -> list[str]:
    """What was said in a request by these roles (default: the user), without the words of Codex itself."""
    found: list[str] = []
    for item in request["input"]:
        if item.get("role") in (roles or ("user",)):
            found += [
                part["text"] for part in item["content"] if not part.get("text", "").startswith(("<", "# AGENTS"))
            ]
    return found


def offered(request: dict[str, Any]) -> set[str]:
    return {tool.get("name") or tool["type"] for tool in request.get("tools", ())}
