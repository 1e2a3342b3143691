"""A project with a scripted agent, driven by the command line and observed only through run directories.

This package imports nothing from subdeck, so its tests are independent of the code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.commands import Commands
from tests.core.command_line import Done, run_dirs
from tests.waiting import wait_until

from .kinds import Kind

GRACE = 0.5
SOURCE = '"""Who may do what."""\n\n\ndef check_token(token):\n    return token == "secret"\n'
CALLER = "from auth import check_token\n\nprint(check_token('x'))\n"
TASK = "Where is check_token?"
WAITS = frozenset({"question", "hear", "hang", "wait-for"})
"""Commands at which a script waits for input."""

Event = dict[str, Any]


class Run:
    """One run, and actions on it."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self._lab = lab
        self.directory = directory
        self.id = directory.name

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.directory / "result.json").read_text())

    @property
    def outcome(self) -> tuple[str, str]:
        """Status and reason."""
        return self.result["status"], self.result["reason"]

    @property
    def answer(self) -> str:
        return self.result.get("finalText") or ""

    def events(self, *types: str) -> list[Event]:
        """Return the events so far of these types; all without types."""
        try:
            lines = (self.directory / "events.jsonl").read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        known = map(json.loads, lines)
        return [event for event in known if not types or event["type"] in types]

    def until(self, what: str, *types: str, holds: Callable[[Event], bool] = lambda _: True) -> Event:
        """Wait for an event of one of these types."""
        return wait_until(lambda: next(filter(holds, self.events(*types)), None), what)

    def until_request(self, number: int = 1) -> dict[str, Any]:
        """Wait until the run has made so many requests; return its open one, as the command line shows it."""
        wait_until(lambda: len(self.events("request")) >= number, f"request {number}")
        (request,) = self._lab.cli("requests", self.id, "--json").document["requests"]
        return request

    def until_working(self, text: str = "") -> None:
        """Wait until the agent has begun its turn, written this text, and waits."""
        if not self._lab.kind.program:
            self.until("its question", "request")
            return
        wait_until((self._lab.project / "waiting").exists, "the script to wait")
        if self._lab.kind.kind == "acp":  # a bridge may still hold the text
            wait_until(lambda: text in (self.directory / "stdout.log").read_text(), "the text to be passed on")

    def call(self, command: str, *words: str) -> Done:
        return self._lab.cli(command, self.id, *words)

    def reply(self, *words: str, number: int = 1) -> Done:
        """Answer the one open request, which is the run's `number`th."""
        request = self.until_request(number)
        return self.call("reply", request["id"], *words, "--hash", request["hash"], "--json")

    def until_ended(self) -> None:
        wait_until((self.directory / "result.json").exists, "the run to end")

    def wait(self) -> Done:
        """Wait for its end with the `wait` command."""
        return self.call("wait", "--timeout", "30", "--json")


class Lab:
    def __init__(self, kind: Kind, project: Path, home: Path, commands: Commands) -> None:
        self._commands = commands
        self.kind = kind
        self.project = project
        self.home = home
        (project / "auth.py").write_text(SOURCE)
        (project / "shop.py").write_text(CALLER)
        self.settings()
        self.preset()

    def cli(self, *words: str, **environment: str) -> Done:
        return self._commands.run(*words, cwd=self.project, **{"SUBDECK_OFFLINE_PACE": "0", **environment})

    def settings(self, **fields: Any) -> None:
        file = self.home / ".config" / "subdeck" / "config.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        own: dict[str, Any] = {"agent": "offline"}
        if self.kind.program:
            agent = {"kind": self.kind.kind, "command": self.kind.command}
            own = {"agent": "scripted", "agents": {"scripted": agent}}
        if self.kind.model and self.kind.program:
            own["default_model"] = self.kind.model
        file.write_text(json.dumps({**own, "grace_seconds": GRACE, **fields}))

    def preset(self, **fields: Any) -> None:
        """Write the preset of all runs."""
        if not self.kind.talks:
            fields.setdefault("interactive", False)
        lines = [f"{name}: {json.dumps(value)}" for name, value in fields.items()]
        file = self.project / ".pi" / "subagents" / "scout.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(["---", "name: scout", "description: looks", *lines, "---", ""]))

    def _task(self, script: tuple[str, ...]) -> str:
        """Return a task with this script; for the offline agent, which takes no script, a similar one."""
        if self.kind.program:
            return "\n".join(("parts", *script))
        asks = any(command.partition(" ")[0] in WAITS for command in script)
        return f"{TASK} Ask me which file." if asks else TASK

    @property
    def runs(self) -> list[Path]:
        """The directories of all runs."""
        return run_dirs(self.project)

    def run(self, *script: str, flags: tuple[str, ...] = (), **environment: str) -> tuple[Done, Run]:
        """Run a script to its end, in the foreground."""
        return self.run_task(self._task(script), flags=flags, **environment)

    def run_task(self, task: str, *, flags: tuple[str, ...] = (), **environment: str) -> tuple[Done, Run]:
        """Run any task to its end."""
        before = self.runs
        done = self.cli("run", "--json", *flags, "--", "scout", task, **environment)
        made = [path for path in self.runs if path not in before]
        assert 1 == len(made), done
        return done, Run(self, made[0])

    def start(self, *script: str, flags: tuple[str, ...] = ()) -> Run:
        done = self.cli("bg", *flags, "--", "scout", self._task(script))
        assert 0 == done.code, done
        return Run(self, self.project / ".pi" / "subagents" / "runs" / done.out.strip())

    def refused(self, *flags: str) -> str:
        """Return why a run is refused before it starts."""
        done = self.cli("run", "--json", *flags, "--", "scout", self._task(("say Never.",)))
        assert (2, []) == (done.code, self.runs), done
        return " ".join(done.error.values())

    def is_answer(self, run: Run, text: str) -> bool:
        """Return whether a run has a script's answer; the offline agent has its own answer."""
        return text in run.answer if self.kind.program else "auth.py:4" in run.answer


def environment_in(path: Path) -> dict[str, str]:
    """Wait for the environment that a script wrote."""
    wait_until(path.exists, "the environment")
    return json.loads(path.read_text())


def home_files(home: Path) -> dict[str, bytes]:
    """Return the agents' files in the home directory, by their paths, without subdeck's own."""
    found: dict[str, bytes] = {}
    for directory, _, names in os.walk(home):
        for path in (Path(directory, name) for name in names):
            if "subdeck" not in path.parts:
                found[str(path.relative_to(home))] = path.read_bytes()
    return found
