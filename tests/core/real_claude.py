"""The real Claude Code behind an engine, asking a scripted model server on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.events import Decision, Event, Notice, Request, decode_event
from subdeck.core.run.model import RunRequest, RunResult, Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import events_of, result_of, write_settings
from tests.mock_models import MockModels
from tests.waiting import wait_until

E = TypeVar("E", bound=Event)

MODEL = "anthropic/claude-sonnet-4-5"


def call(name: str, **arguments: object) -> dict[str, Any]:
    return {"steps": [{"tool_calls": [{"name": name, "arguments": arguments}]}]}


def text(words: str) -> dict[str, Any]:
    return {"steps": [{"text": words}]}


@dataclass
class Lab:
    """A project in which presets run on Claude Code, answered by a script."""

    root: Path
    engine: Engine
    script: dict[str, Any]
    env: dict[str, str]

    def command(self, *words: str) -> None:
        """Have the program started with these words."""
        write_settings(agents={"claude": {"command": list(words), "env": self.env}}, agent="claude")
        self.engine = Engine.open(str(self.root))

    def answers(self, *turns: dict[str, Any]) -> None:
        self.script["turns"][:] = turns

    def preset(self, name: str, **fields: object) -> str:
        lines = [f"{key}: {json.dumps(value)}" for key, value in fields.items() if key != "prompt"]
        head = "\n".join(["---", f"name: {name}", "description: x", f"model: {MODEL}", *lines, "---"])
        directory = self.root / ".pi" / "subagents"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"{name}.md").write_text(f"{head}\n{fields.get('prompt', '')}\n")
        return name

    def start(self, task: str = "- @do it", **request: Any) -> RunSnapshot:
        if "preset" not in request:
            request.setdefault("model", MODEL)
        (run,) = self.engine.launch([RunRequest(task=task, **request)], background=True)
        return run

    def run(self, task: str = "- @do it", **request: Any) -> RunResult:
        """Run it to its end; what it asks is denied."""
        return self.end(self.start(task, **request))

    def end(self, run: RunSnapshot, verdict: Verdict = Verdict.DENY, word: str = "") -> RunResult:
        """Wait for the end of a run, and reply to all that it asks meanwhile."""

        def ended() -> bool:
            now = self.now(run)
            for request in now.requests:
                with suppress(SubdeckError):  # its reply is on the way already
                    self.engine.reply(run.run_id, request.id, verdict, word)
            return now.has_ended

        wait_until(ended, "the run to end", timeout=30)
        return result_of(self.engine, run)

    def now(self, run: RunSnapshot) -> RunSnapshot:
        return next(known for known in self.engine.snapshots() if known.run_id == run.run_id)

    def asked(self, run: RunSnapshot) -> Request:
        """Wait until it asks something."""
        return wait_until(lambda: next(iter(self.now(run).requests), None), "a request", timeout=30)

    def said(self, run: RunSnapshot, kind: type[E]) -> list[E]:
        """Return its events of one kind."""
        return [event for event in events_of(self.engine, run) if isinstance(event, kind)]

    def until(self, run: RunSnapshot, what: str, holds: Callable[[Event], bool]) -> None:
        """Wait for an event."""
        wait_until(lambda: any(map(holds, events_of(self.engine, run))), what, timeout=30)

    def events(self, result: RunResult) -> list[Event]:
        path = Path(self.engine.project.run_dir(result.run_id), "events.jsonl")
        return [event for line in path.read_bytes().splitlines() if (event := decode_event(line))]

    def warnings(self, result: RunResult) -> str:
        return "\n".join(event.text for event in self.events(result) if isinstance(event, Notice))

    def denied(self, result: RunResult) -> list[str]:
        """Return the tools whose calls were denied when the child asked."""
        decisions = [event for event in self.events(result) if isinstance(event, Decision)]
        return [decision.tool_name for decision in decisions if decision.verdict is Verdict.DENY]

    @property
    def requests(self) -> list[dict[str, Any]]:
        log = (self.root.parent / "requests.jsonl").read_text().split("\n")[:-1]
        return [record["body"] for record in map(json.loads, log) if record["event"] == "request"]


@contextmanager
def real_claude(project: Path, directory: Path, program: str) -> Iterator[Lab]:
    script: dict[str, Any] = {"turns": [text("Hello.")], "after": "error", "models": ["claude-sonnet-4-5"]}
    (project / "notes.md").write_text("a note\n")
    with MockModels(script, log_path=str(directory / "requests.jsonl")) as mock:
        env = {
            "ANTHROPIC_BASE_URL": mock.url,
            "ANTHROPIC_API_KEY": "sk-fake",
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "IS_SANDBOX": "1",
        }
        lab = Lab(project, Engine.open(str(project)), script, env)
        lab.command(program)
        yield lab
