"""The real pi behind an engine, asking a scripted model server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.model import RunRequest
from subdeck.core.run.snapshot import RunSnapshot

from tests.fake_llm import FakeLLM
from tests.house.set_up import NEW_PI_HOME, NEW_PI_VERSION, PI_VERSION
from tests.killing import IS_WHOLE

from .conversing import write_preset

EITHER_PI = pytest.mark.parametrize("pi_executable", [PI_VERSION, NEW_PI_VERSION], indirect=True)
"""The test runs with both versions of pi, if the newer one is there."""
_IS_EITHER = IS_WHOLE or not NEW_PI_HOME.exists()
NEWER_PI = EITHER_PI if _IS_EITHER else pytest.mark.parametrize("pi_executable", [NEW_PI_VERSION], indirect=True)
"""It runs with the newer one, and with both in `make soak`: what it shows is hardly a matter of the version."""

PATIENCE = 90
NO_RETRIES = {"retry": {"enabled": False, "provider": {"maxRetries": 0}}}


def said(text: str) -> dict[str, Any]:
    return {"steps": [{"text": text}]}


def called(*calls: tuple[str, dict[str, Any]], text: str = "", **turn: Any) -> dict[str, Any]:
    """A turn of the model that calls tools, each by name and arguments."""
    spoken = [{"text": text}] if text else []
    return {"steps": [*spoken, {"tool_calls": [{"name": name, "arguments": args} for name, args in calls]}], **turn}


class RealPi:
    """An engine whose agent is pi, and what its children asked the model server."""

    def __init__(self, project: Path, command: str, server: FakeLLM, log: Path) -> None:
        self.project = project
        self.command = command
        self._server = server
        self._log = log

    def preset(self, *fields: str, **others: Any) -> None:
        write_preset(self.project, "model: fake/test", *fields, **others)

    def script(self, *turns: dict[str, Any]) -> None:
        """Say how the model answers the next requests, in their order."""
        self._log.write_text("")
        self._server.scenario = {"turns": list(turns), "index_by": "requests"}
        self._server.counters.clear()

    def launch(self, *tasks: str, **request: Any) -> list[RunSnapshot]:
        """Run the preset for these tasks, together, and wait until all have ended."""
        engine = Engine.open(str(self.project))
        wanted = [RunRequest(task=task, preset="scout", **request) for task in tasks]
        launched = engine.launch(wanted, background=False)
        return list(engine.wait([run.run_id for run in launched], timeout=PATIENCE))

    def start(self, task: str) -> RunSnapshot:
        """Run the preset for this task, and do not wait."""
        (started,) = self.engine.launch([RunRequest(task=task, preset="scout")], background=False)
        return started

    def run(self, task: str = "Look.", **request: Any) -> RunSnapshot:
        (ended,) = self.launch(task, **request)
        return ended

    def bare(self, *flags: str, **environment: str) -> None:
        """Run pi as a user does, without us."""
        words = [self.command, "--mode", "json", "--model", "fake/test", "--no-session", *flags, "Look."]
        given = {**os.environ, **environment}
        subprocess.run(words, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=given)

    @property
    def engine(self) -> Engine:
        return Engine.open(str(self.project))

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of all requests since the script was given."""
        records = map(json.loads, self._log.read_bytes().splitlines())
        return [record["body"] for record in records if record["event"] == "request"]


@contextmanager
def real_pi(project: Path, home: Path, command: str) -> Iterator[RealPi]:
    """Set up pi and its model server; both directories are private to the test."""
    agent_dir = Path(os.environ["PI_CODING_AGENT_DIR"])
    agent_dir.mkdir(parents=True, exist_ok=True)
    config = home / ".config" / "subdeck" / "config.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"agent": "pi", "agents": {"pi": {"command": [command]}}}))
    log = home / "requests.jsonl"
    log.write_text("")
    with FakeLLM({"turns": []}, log_path=str(log)) as server:
        models: Sequence[dict[str, Any]] = ({"id": "test", "contextWindow": 10_000_000},)
        provider = {"baseUrl": server.base_url, "api": "openai-completions", "apiKey": "sk-fake", "models": models}
        (agent_dir / "models.json").write_text(json.dumps({"providers": {"fake": provider}}))
        (agent_dir / "settings.json").write_text(json.dumps(NO_RETRIES))
        yield RealPi(project, command, server, log)


def texts(request: dict[str, Any], *roles: str) -> list[str]:
    """What was said in a request by these roles (default: the user)."""
    found: list[str] = []
    for message in request["messages"]:
        if message["role"] in (roles or ("user",)):
            content = message.get("content") or ""
            found.append(content if isinstance(content, str) else "".join(part.get("text", "") for part in content))
    return found


def offered(request: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in request.get("tools", ())}
