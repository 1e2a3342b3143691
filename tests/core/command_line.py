"""Run the real command line in its own process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SUBDECK = (sys.executable, "-P", "-m", "subdeck.tui.main")


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """The one JSON document on stderr."""
        return json.loads(self.err)["error"]


def subdeck(*words: str | bytes, cwd: Path, stdin: bytes = b"", **environment: str) -> Done:
    """Run one command to its end; with the fixture `forked_commands`, in a fork of a process that has loaded it."""
    return _run(*words, cwd=cwd, stdin=stdin, **environment)


def _run(*words: str | bytes, cwd: Path, stdin: bytes, **environment: str) -> Done:
    done = subprocess.run(
        [*SUBDECK, *words], cwd=cwd, input=stdin, capture_output=True, timeout=60, env={**os.environ, **environment}
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def start(*words: str, cwd: Path) -> subprocess.Popen[bytes]:
    """Start one command and leave it running; the caller ends it."""
    pipe = subprocess.PIPE
    return subprocess.Popen([*SUBDECK, *words], cwd=cwd, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)


def write_preset(project: Path, name: str = "scout", *, extra: str = "", prompt: str = "Be brief.") -> Path:
    path = project / ".pi" / "subagents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: looks around\n{extra}---\n{prompt}\n")
    return path


def write_settings(home: Path, **agents: str) -> None:
    """Configure agents, each a shell script that ignores pi's flags."""
    path = home / ".config" / "subdeck" / "config.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ["default_model: fake/test", "grace_seconds: 0.5"]
    if agents:
        lines.append("agents:")
    for name, script in agents.items():
        lines += [f"  {name}:", f"    command: {json.dumps(['/bin/sh', '-c', script])}"]
    path.write_text("\n".join(lines) + "\n")


def run_dirs(project: Path) -> list[Path]:
    """Return the run directories, including unfinished ones."""
    runs = project / ".pi" / "subagents" / "runs"
    return sorted(path for path in runs.iterdir() if path.name != ".slots") if runs.is_dir() else []
