"""Runs, presets and settings as subdeck 0.1.0 wrote them, and its output about them.

They were made with the offline agent: completed runs, with a check, in a worktree, in one conversation, with a
question, a request and a structured result; a stopped run, a killed one, one whose wrapper died, and a deleted one.
`python -m tests.old_records DIRECTORY` lays them out there and prints the output of the installed subdeck about them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent / "records" / "0.1.0"
EXPECTED = RECORDS / "expected.json"
RUNS = sorted(path.name for path in (RECORDS / "subagents" / "runs").iterdir())
COMMANDS = (
    ("status", "--all", "--json"),
    ("presets", "--json"),
    ("models", "--json"),
    ("settings", "--json"),
    ("requests", "--json"),
    *(("answer", run, "--json") for run in RUNS),
    *(("diff", run, "--json") for run in RUNS),
    *(("presets", name, "--json") for name in ("reader", "old", "private", "everywhere", "short", "broken")),
)


def lay_out(home: Path, project: Path) -> None:
    """Copy the records to a user's places; the only unfinished run becomes one of this boot of this machine."""
    here = {
        "host": os.uname().nodename,
        "machineId": Path("/etc/machine-id").read_text().strip() if os.path.exists("/etc/machine-id") else "",
        "bootId": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "pidNamespace": os.readlink("/proc/self/ns/pid"),
    }
    shutil.copytree(RECORDS / "subagents", project / ".pi" / "subagents")
    shutil.copytree(RECORDS / "files", project / "src")
    shutil.copytree(RECORDS / "global-presets", home / ".pi" / "agent" / "subagents")
    for place, name in ((home / ".config" / "subdeck", "config.yaml"), (home / ".local" / "state" / "subdeck", "key")):
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(RECORDS / name, place / name)
    os.chmod(home / ".local" / "state" / "subdeck", 0o700)
    os.chmod(home / ".local" / "state" / "subdeck" / "key", 0o600)
    for directory, _, names in os.walk(project / ".pi" / "subagents"):
        os.chmod(directory, 0o700)
        for name in names:
            os.chmod(os.path.join(directory, name), 0o600)
            if name == "runner.json":
                path = Path(directory, name)
                path.write_text(json.dumps(json.loads(path.read_text()) | here))


def documents(call: Callable[[tuple[str, ...]], str], home: Path, project: Path) -> dict[str, Any]:
    """Return each command's output, keyed by its words; `call` runs one and returns its output."""
    found: dict[str, Any] = {}
    for words in COMMANDS:
        said = call(words).replace(str(project), "/shop").replace(str(home), "/home/me")
        found[" ".join(words)] = json.loads(said) if said.strip() else None
    del found["status --all --json"]["spending"]["day"]  # today's date
    for run in found["status --all --json"]["runs"]:
        if run["reason"] == "lost":  # its end is the time of this look
            del run["endedAt"], run["lastEventAt"]
    return found


def _record(directory: Path) -> None:
    home, project = directory / "home", directory / "shop"
    home.mkdir(parents=True)
    project.mkdir()
    lay_out(home, project)
    environment = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}

    def call(words: tuple[str, ...]) -> str:
        return subprocess.run(
            ("subdeck", *words), cwd=project, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        ).stdout

    print(json.dumps(documents(call, home, project), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    _record(Path(sys.argv[1]))
