"""The project of a trial: its settings and presets, its runs, and the commands that act on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .. import puppet
from ..arena import PUPPET, Arena
from ..plan import Scene

SUBDECK = (sys.executable, "-P", "-m", "subdeck.tui.main")
LAUNCH_GROUP = """
import sys
from subdeck.core.engine import Engine
from subdeck.core.spec.request import RunRequest
Engine.open().launch([RunRequest(task=task, preset="scout") for task in sys.argv[1:]], background=True)
"""
PRESETS = {
    "scout": "timeout: 4s\n",
    "asker": "agent: offline\ntimeout: 20s\npermissions: {ask: [read]}\n",
}
ASKING = "Read open.txt and closed.txt and search for `lantern` and `wick`"
ANSWER_S = 5
"""Time that a request waits for a reply."""
STATUS_S = 30
"""Maximum time of `status` on a busy machine."""


class World(Arena):
    """Lives below `root`; entering it replaces the environment of this process."""

    def __init__(self, root: Path, max_running: int | None) -> None:
        super().__init__(root, Scene.ALONE)
        settings: dict[str, Any] = {
            "agents": {"puppet": {"command": list(PUPPET)}},
            "agent": "puppet",
            "default_model": "fake/puppet",
            "models": ["fake/puppet"],
            "grace_seconds": 0.3,
            "answer_timeout": ANSWER_S,
            "idle_timeout": ANSWER_S,
            "max_parallel": 2,
            "notifications": {"toasts": False},  # they cover the end of the transcript
            "columns": ["state", "id", "preset", "task", "now"],
        }
        if max_running is not None:
            settings["max_running"] = max_running
        Path(os.environ["XDG_CONFIG_HOME"], "subdeck", "config.yaml").write_text(json.dumps(settings, indent=1))
        for name, fields in PRESETS.items():
            text = f"---\nname: {name}\ndescription: looks around\n{fields}---\nBe brief.\n"
            Path(self.project.home, f"{name}.md").write_text(text)
        for name in ("open.txt", "closed.txt"):
            (self.directory / name).write_text("lantern and wick\n" * 20)
        self._started = 0

    def task_of_puppet(self, choice: float) -> str:
        names = list(puppet.BEHAVIOURS)
        self._started += 1
        return self.task(self._started, names[int(choice * len(names))])

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        """Start `subdeck` with these words; its output goes to a file for each command."""
        return self.start(words[0], [*SUBDECK, *words])

    def launch_group(self, tasks: list[str]) -> subprocess.Popen[bytes]:
        return self.start("group", [sys.executable, "-P", "-c", LAUNCH_GROUP, *tasks])

    def status(self) -> dict[str, Any]:
        done = subprocess.run(
            [*SUBDECK, "status", "--all", "--json"],
            cwd=self.directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=STATUS_S,
        )
        if done.returncode or done.stderr:
            raise AssertionError(f"subdeck status: exit code {done.returncode}: {done.stderr.decode()}")
        return json.loads(done.stdout)

    def finished(self) -> list[Path]:
        return [path for path in self.run_dirs() if (path / "result.json").exists()]

    def unfinished(self) -> list[Path]:
        return [path for path in self.run_dirs() if not (path / "result.json").exists()]
