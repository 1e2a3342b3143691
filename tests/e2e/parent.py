"""The real pi as a parent, driven over its RPC mode."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from subdeck.core import paths
from subdeck.core.pi_parent.installer import installation

from tests.core.command_line import write_preset
from tests.factories import PUPPET
from tests.real.lab import Lab
from tests.real.programs import PI
from tests.waiting import wait_until

PATIENCE = 60.0
Event = dict[str, Any]


class Parent:
    """One pi in RPC mode, and all its output so far."""

    def __init__(self, pi: str, project: Path, *flags: str, **environment: str) -> None:
        words = [pi, "--mode", "rpc", "--model", "fake/test", *flags]
        pipe = subprocess.PIPE
        env = {**os.environ, **environment}
        self._process = subprocess.Popen(words, cwd=project, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
        self.events: list[Event] = []
        self.complaints = ""
        self._readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_complaints)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if not line.startswith(b'{"type":"message_update"'):
                self.events.append(json.loads(line))

    def _read_complaints(self) -> None:
        assert self._process.stderr
        self.complaints = self._process.stderr.read().decode(errors="replace")

    def send(self, **command: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()

    def prompt(self, text: str) -> list[Event]:
        """Send a prompt and wait until pi has handled it; return its output during that time."""
        begin = len(self.events)
        self.begin(text)
        self.until(lambda: self.of("agent_end", since=begin), f"the end of the turn: {text}")
        return self.events[begin:]

    def ready(self) -> None:
        """Wait until pi has opened its session; earlier messages are in the session, but not on stdout."""
        self.send(type="get_state")
        self.until(lambda: self.of("response", command="get_state"), "pi to be ready")

    def begin(self, text: str) -> None:
        self.send(type="prompt", message=text)

    def until(self, predicate: Callable[[], Any], what: str) -> Any:
        def seen() -> Any:
            assert self._process.poll() is None, f"pi has ended: {self.complaints}"
            return predicate()

        return wait_until(seen, what, PATIENCE)

    def of(self, kind: str, since: int = 0, **fields: Any) -> list[Event]:
        """The events of one type with these fields."""
        found = (event for event in self.events[since:] if event["type"] == kind)
        return [event for event in found if all(event.get(name) == value for name, value in fields.items())]

    def footers(self) -> list[str | None]:
        return [event.get("statusText") for event in self.of("extension_ui_request", method="setStatus")]

    def notes(self) -> list[str]:
        return [event["message"] for event in self.of("extension_ui_request", method="notify")]

    def told(self) -> list[Event]:
        """The messages about finished runs in the session."""
        messages = (event["message"] for event in self.of("message_end"))
        return [message for message in messages if message.get("customType") == "pi-subagents:bg-done"]

    def result(self, tool: str) -> Event:
        """The newest result of a tool."""
        return self.of("tool_execution_end", toolName=tool)[-1]

    def close(self) -> None:
        """End pi as its user does."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        for reader in self._readers:
            reader.join()
        for stream in (self._process.stdout, self._process.stderr):
            assert stream
            stream.close()

    def kill(self) -> None:
        self._process.kill()


class ParentLab(Lab):
    """A lab whose pi has the extension, with two presets of agents that need no model."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        (self.project / "notes.md").write_text("The token is checked in auth.py.\n")
        write_preset(self.project, "looker")
        write_preset(self.project, "held", extra="agent: puppet\nmodel: fake/test\ninherit_context: false\n")
        settings = {"agent": "offline", "agents": {"puppet": {"command": PUPPET}}, "grace_seconds": 0.5}
        Path(paths.user_settings_file()).write_text(json.dumps(settings))
        agent_dir = os.environ["PI_CODING_AGENT_DIR"]  # pi knows no other home here
        PI.write(Path(agent_dir), self.model.url, copilot=True)
        installation(agent_dir).install()

    @contextmanager
    def parent(self, session: str | None = "s.jsonl", *flags: str, **environment: str) -> Iterator[Parent]:
        """Start a pi, with a session file of this name or without any, and end it; subdeck may not cause an error."""
        kept = ("--session", str(self.project.parent / session)) if session else ("--no-session",)
        parent = Parent(self.program, self.project, *kept, *flags, **environment)
        try:
            yield parent
        except BaseException:
            parent.kill()
            raise
        finally:
            parent.close()
        assert ([], "") == (parent.of("extension_error"), parent.complaints)

    def ask(self, *flags: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Run pi once, without a UI."""
        return self.by_hand("--mode", "json", *flags, "Go.", **environment)

    def entries(self, session: str = "s.jsonl") -> list[Event]:
        """The subdeck entries in a session file of pi."""
        lines = (self.project.parent / session).read_text().split("\n")
        found = (json.loads(line) for line in lines if line)
        return [entry for entry in found if str(entry.get("customType")).startswith("pi-subagents:")]

    def kinds(self, session: str = "s.jsonl") -> list[str]:
        return [entry["customType"].removeprefix("pi-subagents:") for entry in self.entries(session)]

    @property
    def runs(self) -> list[Path]:
        return sorted((self.project / ".pi/subagents/runs").glob("2*"))

    @property
    def children(self) -> list[Path]:
        """The runs whose child has been started."""
        return [run for run in self.runs if "run_started" in _text(run / "events.jsonl")]

    def release(self) -> None:
        """Let waiting runs end."""
        (self.project / "go").touch()


HELD = "wait-for go\nsay Held no more.\nfinish"
"""The task of a run that ends when released."""


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
