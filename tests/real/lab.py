"""A project in which presets run on a real agent, whose model is a script."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.model import RunResult, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.core.conversing import write_preset
from tests.factories import result_of
from tests.house.set_up import NEW_PI_HOME, NEW_PI_VERSION, PI_VERSION
from tests.killing import IS_WHOLE
from tests.waiting import wait_until

from .model_server import Body, ModelServer, Turn, said
from .programs import Program

EITHER_PI = pytest.mark.parametrize("pi_executable", [PI_VERSION, NEW_PI_VERSION], indirect=True)
"""The test runs with both versions of pi, if the newer one is installed."""
_IS_EITHER = IS_WHOLE or not NEW_PI_HOME.exists()
NEWER_PI = EITHER_PI if _IS_EITHER else pytest.mark.parametrize("pi_executable", [NEW_PI_VERSION], indirect=True)
"""The test runs with the newer one, and with both in `make soak`: it hardly depends on the version."""

PATIENCE = 90
"""Seconds until a run has to have ended."""


P = TypeVar("P", bound=Program)


class Lab(Generic[P]):
    """A project, a private home, an agent configured in it, and the model server of this agent."""

    def __init__(self, agent: P, program: str, project: Path, home: Path, model: ModelServer) -> None:
        self.agent, self.program = agent, program
        self.project, self.home, self.model = project, home, model
        self._preset = ""
        self._environment = self.configure()
        self.command(program)
        self.script(said("Hello."))

    # --- what is before a run ---

    def configure(self, **more: Any) -> dict[str, str]:
        """Write the agent's own settings, with the address of its model; `programs` defines further settings."""
        return self.agent.configure(self.home, self.model.url, **more)

    def command(self, *words: str, **settings: Any) -> None:
        """Start the agent with these words from now on; `settings` are further ones of subdeck."""
        own = {"command": words, "env": self._environment, **self.agent.entry}
        file = self.home / ".config" / "subdeck" / "config.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"agent": self.agent.name, "agents": {self.agent.name: own}, **settings}))

    def preset(self, *lines: str, name: str = "scout", prompt: str = "Look.", **fields: Any) -> str:
        """Write a preset with literal lines, and with fields; the following runs use it."""
        model = (f"model: {self.agent.model}",) if self.agent.model else ()
        written = (f"{key}: {json.dumps(value)}" for key, value in fields.items())
        write_preset(self.project, *model, *lines, *written, name=name, prompt=prompt)
        self._preset = name
        return name

    def script(self, *turns: Turn, **how: bool) -> None:
        """Set the model's answers to the next requests, in order."""
        self.model.script(*turns, *self.agent.besides, **{"repeats": self.agent.repeats, **how})

    def shell(self, command: str, text: str = "", **turn: Any) -> Turn:
        """A turn of the model that runs a command."""
        return self.agent.shell(command, text, **turn)

    # --- runs ---

    @property
    def engine(self) -> Engine:
        return Engine.open(str(self.project))

    def launch(self, *tasks: str, **request: Any) -> list[RunSnapshot]:
        """Run the preset, or without one only the model, for these tasks, together."""
        if "preset" not in request:
            request |= {"preset": self._preset} if self._preset else {"model": self.agent.model}
        return list(self.engine.launch([RunRequest(task=task, **request) for task in tasks], background=False))

    def start(self, task: str = "Look.", **request: Any) -> RunSnapshot:
        (started,) = self.launch(task, **request)
        return started

    def wait(self, run: RunSnapshot) -> RunSnapshot:
        """Return a run once it has ended."""
        (ended,) = self.engine.wait([run.run_id], timeout=PATIENCE)
        return ended

    def run(self, task: str = "Look.", **request: Any) -> RunSnapshot:
        return self.wait(self.start(task, **request))

    def end(self, run: RunSnapshot, verdict: Verdict = Verdict.DENY) -> RunResult:
        """Reply to all requests of a run until it has ended; return its result."""
        engine = self.engine

        def ended() -> bool:
            (now,) = engine.snapshots([run.run_id])
            for request in now.requests:
                with suppress(SubdeckError):  # its reply is already being sent
                    engine.reply(run.run_id, request.id, verdict)
            return now.has_ended

        wait_until(ended, "the run to end", timeout=PATIENCE)
        return result_of(engine, run)

    def by_hand(self, *words: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Run the agent with these words, without subdeck, as a user does."""
        given = {"cwd": cwd or self.project, "env": {**os.environ, **environment}, "timeout": PATIENCE}
        return subprocess.run([self.program, *words], stdin=subprocess.DEVNULL, capture_output=True, **given)

    @property
    def requests(self) -> list[Body]:
        """The requests to the model since the script was set."""
        return [asked.body for asked in self.model.requests]


@contextmanager
def lab(agent: P, program: str, project: Path, home: Path) -> Iterator[Lab[P]]:
    """Set everything up; both directories are private to the test."""
    with ModelServer(models=[agent.model.rpartition("/")[2] or "mock-model"]) as model:
        yield Lab(agent, program, project, home, model)
