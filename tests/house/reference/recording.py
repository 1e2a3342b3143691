"""Run every command that prints a JSON document once, in a separate world, and keep its output.

`recorded.json` has the documents; `docs/reference/json.md` is made of them, and a test compares their fields with those
of a new recording.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests import isolation
from tests.core.command_line import Done, subdeck
from tests.core.offline_agent.offline_reader import SHOP, write_tree
from tests.repositories import IDENTITY
from tests.waiting import wait_until

PATIENCE_S = 120.0
"""Maximum time for a command, or a request of a run, on a busy machine."""

FILE = Path(__file__).with_name("recorded.json")
REPOSITORY = Path(__file__).resolve().parents[3]

Recorded = dict[str, list[dict[str, Any]]]
"""By command: each recorded call, as `call` and `document`."""

PRESETS = {
    "scout": "description: Finds where something is done\ntools: read, grep, find, ls\n",
    "editor": "description: Edits files in a worktree\nworktree: true\npermissions: {allow: [edit]}\n",
    "limited": "description: Works within limits\ncheck: tests\ntimeout: 10m\nmax_turns: 20\nthinking: low\n",
    "pane": "description: Works in a tmux pane\nrunner: tmux\n",
}
AGENT_FILE = "---\nname: reviewer\ndescription: Reviews a change\ntools: Read, Grep\nmodel: inherit\n---\nReview.\n"
ASKS = "Where is the token checked? Ask me which file."
EDIT = 'replace "Requests are authenticated here" with "Checks the token of a request" in src/auth.py'
STREAM = '{"type": "text", "text": "Done."}\n'


def record() -> Recorded:
    """Make a project, run all commands in it, and return their documents without varying parts."""
    root = Path(tempfile.mkdtemp(prefix="sd-", dir="/tmp"))
    environment = isolation.variables(root) | IDENTITY | {"SUBDECK_OFFLINE_PACE": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    if isolation.MARKER in os.environ:
        environment[isolation.MARKER] = os.environ[isolation.MARKER]
    environment["PATH"] = isolation.search_path(environment.get("PATH", os.defpath), root / "bin")
    before = dict(os.environ)
    isolation.enter(environment)
    session = _Session(root)
    try:
        session.make_project()
        session.play()
        return {name: [session.cleaned(call) for call in calls] for name, calls in sorted(session.recorded.items())}
    finally:
        isolation.enter(before)
        isolation.end_tmux_servers(root)
        shutil.rmtree(root, ignore_errors=True)


def encoded(recorded: Recorded) -> str:
    return json.dumps(recorded, indent=1, ensure_ascii=False, sort_keys=False) + "\n"


class _Session:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "shop"
        self.recorded: Recorded = {}

    def make_project(self) -> None:
        write_tree(self.project, SHOP)
        (self.project / ".gitignore").write_text(".pi/\n")
        for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "Begin the shop")):
            subprocess.run(("git", *words), cwd=self.project, check=True)
        presets = self.project / ".pi" / "subagents"
        presets.mkdir(parents=True)
        for name, keys in PRESETS.items():
            (presets / f"{name}.md").write_text(f"---\nname: {name}\n{keys}---\nBe brief.\n")
        settings = self.root / "home" / ".config" / "subdeck" / "config.yaml"
        settings.parent.mkdir(parents=True)
        settings.write_text(
            "agent: offline\nday_budget: 20\nproject_budget: 10\nchecks: {tests: [test, -f, README.md]}\n"
        )
        (self.project / ".git" / "info" / "exclude").write_text("reviewer.md\nstream.jsonl\n")
        (self.project / "reviewer.md").write_text(AGENT_FILE)

    def play(self) -> None:
        self.keep("init", "init", "--dry-run")
        self.keep("presets", "presets")
        self.keep("presets", "presets", "scout")
        self.keep("import", "import", "reviewer.md", "--from", "claude")
        for name in ("models", "settings", "doctor"):
            self.keep(name, name)
        self.keep("completion", "completion", "bash")
        self.keep("connect", "connect")
        self.keep("connect", "connect", "pi")
        self.keep("connect", "connect", "claude")
        self.keep("disconnect", "disconnect", "pi")
        self.keep("hosts", "hosts")
        self.keep("hosts keys", "hosts", "keys", str(self.root / "home" / "keys"))

        first = self.keep("run", "run", "scout", "Where is the token checked?")["runId"]
        checked = self.keep("run", "run", "limited", "Where is the token checked?")["runId"]
        self.keep("status", "status", checked)
        self.keep("logs", "logs", first)
        self.keep("logs", "logs", first, "--answer")
        self.keep("grep", "grep", "token")
        self.keep("report", "report")

        edited = [self.keep("run", "run", "editor", EDIT)["runId"] for _ in range(2)]
        self.keep("diff", "diff", edited[0])
        self.keep("compare", "compare", *edited)
        self.keep("compare", "compare", "--diff", *edited)
        self.keep("worktrees", "worktrees")
        self.keep("apply", "apply", edited[0], "--dry-run")
        self.keep("apply", "apply", edited[0], "--yes")
        self.keep("undo", "undo", "--yes")
        self.keep("merge", "merge", edited[0], "--yes")
        self.keep("merge", "merge", edited[1], "--commit", "-m", "Explain the check", "--yes")
        self.keep("apply", "apply", edited[1], "--to-branch", "ticket")
        self.keep("discard", "discard", edited[1], "--yes")

        pane = self.keep("bg", "bg", "pane", ASKS)["runId"]
        self.wait_for_request(pane)
        self.keep("open", "open", pane)
        self.keep("requests", "requests")
        self.keep("status", "status", pane)
        (sent,) = self.keep("send", "send", pane, "And where is `total`?")["sent"]
        self.keep("stop", "stop", pane, "--turn")
        self.wait_for_delivery(pane, sent["id"])
        self.keep("stop", "stop", pane)
        self.keep("wait", "wait", pane)
        waiting = self.keep("bg", "bg", "scout", ASKS)["runId"]
        self.wait_for_request(waiting)
        self.keep("stop", "stop", waiting)
        self.keep("wait", "wait", waiting)
        self.keep("stop", "stop", waiting)
        asking = self.keep("bg", "bg", "scout", ASKS)["runId"]
        self.wait_for_request(asking)
        self.keep("reply", "reply", asking, "src/auth.py")
        self.keep("wait", "wait", asking)
        self.keep("queue", "queue")
        self.keep("notify", "notify")
        self.keep("status", "status")
        self.keep("adopt", "adopt", first)
        self.keep("rm", "rm", first)
        self.keep("rm", "rm", "--undo", first)
        self.keep("rm", "rm", "--keep", "1", "--dry-run")
        stdout = self.project / ".pi" / "subagents" / "runs" / first / "stdout.log"
        self.keep("replay", "replay", str(stdout), "--agent", "offline")
        self.keep_lines("tool register", "tool", "register", stdin="{}\n", most=1)
        self.keep_error("errors", "status", "nosuchrun")

    def keep(self, name: str, *words: str) -> Any:
        """Call a command and keep its document."""
        done = self.call((*words, "--json"))
        if not done.out:
            raise RuntimeError(f"{' '.join(words)}: no document\n{done.err}")
        return self._kept(name, (*words, "--json"), done.document)

    def keep_error(self, name: str, *words: str) -> None:
        self._kept(name, (*words, "--json"), json.loads(self.call((*words, "--json")).err))

    def keep_lines(self, name: str, *words: str, stdin: str, most: int) -> None:
        """Call a command that prints a document on each line, and keep the first ones."""
        for line in self.call(words, stdin).out.splitlines()[:most]:
            self._kept(name, words, json.loads(line))

    def _kept(self, name: str, words: tuple[str, ...], document: Any) -> Any:
        call = {"call": " ".join(("subdeck", *map(_quoted, words))), "document": document}
        self.recorded.setdefault(name, []).append(call)
        return document

    def call(self, words: tuple[str, ...], stdin: str = "") -> Done:
        return subdeck(*words, cwd=self.project, stdin=stdin.encode())

    def wait_for_request(self, run_id: str) -> None:
        wait_until(
            lambda: any(
                request["runId"] == run_id for request in self.call(("requests", "--json")).document["requests"]
            ),
            "its request",
            timeout=PATIENCE_S,
        )

    def wait_for_delivery(self, run_id: str, message_id: str) -> None:
        """Wait until the agent has a message: the result of a run stopped earlier lists it as undelivered."""
        events = self.project / ".pi" / "subagents" / "runs" / run_id / "events.jsonl"

        def is_delivered() -> bool:
            messages = [
                event for event in map(json.loads, events.read_text().split("\n")[:-1]) if event["type"] == "message"
            ]
            return any(event["id"] == message_id and event["state"] == "delivered" for event in messages)

        wait_until(is_delivered, "the delivery of its message", timeout=PATIENCE_S)

    def cleaned(self, call: dict[str, Any]) -> dict[str, Any]:
        """Return a call with this machine's paths replaced."""
        places = {
            str(self.project): "/home/me/shop",
            str(self.root / "home"): "/home/me",
            str(self.root): "/tmp",
            str(Path(sys.executable).parent): "/usr/bin",
            str(REPOSITORY): "/usr/lib/subdeck",
        }
        return _cleaned(call, places)


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else f"'{word}'"


def _cleaned(value: Any, places: dict[str, str]) -> Any:
    match value:
        case dict():
            return {_cleaned(name, places): _cleaned(member, places) for name, member in value.items()}
        case list():
            return [_cleaned(member, places) for member in value]
        case str():
            for place, instead in places.items():
                value = value.replace(place, instead)
            return value
        case _:
            return value


def fields(document: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each field of a document by its path, `runs[].runId`, with the type of its value."""
    match document:
        case dict():
            if path:
                yield path, "object"
            for name, member in document.items():
                shown = name if re.fullmatch(r"\w+", name) else f'"{name}"'
                yield from fields(member, f"{path}.{shown}" if path else shown)
        case list():
            yield path, "array"
            for member in document:
                yield from fields(member, f"{path}[]")
        case bool():
            yield path, "boolean"
        case int() | float():
            yield path, "number"
        case str():
            yield path, "string"
        case _:
            yield path, "null"
