"""Run the offline agent as its wrapper does, and read its output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

COMMAND = (sys.executable, "-P", "-E", "-m", "subdeck.core.offline_agent")


class Reading(NamedTuple):
    """One finished run of the offline agent."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stdout.split(b"\n") if line]

    @property
    def said(self) -> list[str]:
        """The assistant's texts, in order."""
        return [
            event["message"]["content"][0]["text"]
            for event in self.events
            if event["type"] == "message_end" and event["message"]["role"] == "assistant"
        ]

    @property
    def answer(self) -> str:
        return self.said[-1]

    @property
    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        return [(e["toolName"], e["args"]) for e in self.events if e["type"] == "tool_execution_start"]

    @property
    def results(self) -> list[tuple[str, bool, str]]:
        """Each result: the tool, whether it failed, and its text."""
        return [
            (e["toolName"], e["isError"], e["result"]["content"][0]["text"])
            for e in self.events
            if e["type"] == "tool_execution_end"
        ]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]


def read(
    cwd: Path, task: str | bytes, *flags: str, mode: tuple[str, ...] = ("--mode", "json"), **popen: Any
) -> Reading:
    """Run the offline agent on a directory with the task on stdin."""
    if not any(flag in ("--session", "--session-dir") for flag in flags):
        flags = ("--no-session", *flags)
    ended = subprocess.run(
        [*COMMAND, *mode, *flags],
        input=task.encode() if isinstance(task, str) else task,
        capture_output=True,
        cwd=cwd,
        env=environment(),
        timeout=60,
        **popen,
    )
    return Reading(ended.returncode, ended.stdout, ended.stderr.decode())


@contextmanager
def talking(
    cwd: Path, *flags: str, **variables: str
) -> Iterator[tuple[Callable[..., None], Callable[[str], dict[str, Any]]]]:
    """Run the offline agent in rpc mode; yield a function to send a command, and one to await a line of a type."""
    with subprocess.Popen(
        [*COMMAND, "--mode", "rpc", "--no-session", *flags],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=cwd,
        env=environment(**variables),
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        said, heard = child.stdin, child.stdout

        def say(**command: Any) -> None:
            said.write(json.dumps(command).encode() + b"\n")
            said.flush()

        def hear(kind: str) -> dict[str, Any]:
            lines = map(json.loads, iter(heard.readline, b""))
            return next(line for line in lines if line["type"] == kind)

        try:
            yield say, hear
            said.close()
            assert 0 == child.wait(30)
        finally:
            child.kill()


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "SUBDECK_OFFLINE_PACE": "0", **more}


def write_tree(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


SHOP: dict[str, str | bytes] = {
    "README.md": "# Shop\n\nA small shop.\n\n## Auth\n\nRequests are authenticated by a token.\n",
    "src/auth.py": (
        "import hmac\n\n\ndef check_token(request):\n"
        '    """Requests are authenticated here."""\n'
        '    token = request.headers["Authorization"]\n'
        "    return hmac.compare_digest(token, SECRET)\n"
    ),
    "src/app.py": "from .auth import check_token\n\n\ndef handle(request):\n    return check_token(request)\n",
    "src/prices.py": "def total(items):\n    return sum(item.price for item in items)\n",
    "tests/test_auth.py": "def test_requests_are_authenticated():\n    assert True\n",
}
