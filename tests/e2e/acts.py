"""What an operator does, in keys; and what the files say of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.core.command_line import subdeck

from .terminal import Terminal

PRESETS = ("repo-scout", "watcher")
"""In the order of the list."""

SLOW = "update I am looking at the shop\nwait-for go\nanswer The shop is fine"
"""A task for the puppet: it writes half a sentence, and goes on when a file `go` appears in its cwd."""


def launch(app: Terminal, task: str, preset: str = "repo-scout") -> None:
    """Launch a preset by keyboard alone."""
    app.press("1", "g")
    app.until(lambda: re.search(rf"{preset} .*project", app.screen), f"the preset {preset} in the list")
    app.press(*"j" * PRESETS.index(preset), "n")
    app.until_shown(f"Launch {preset}")
    if "\n" in task:
        app.paste(task)
    else:
        app.type(task)
    app.until_shown(task.splitlines()[-1])
    app.press("C-s")
    app.until_hidden(f"Launch {preset}")


def quit_after(app: Terminal) -> int:
    """Quit after many keys in a row, and answer the exit code.

    What is typed in one packet with a key that is refused is dropped, for it was meant for a dialog; so is this key.
    """

    def quits() -> bool:
        app.press("q")
        return app.has_ended

    app.until(quits, "the app to take its last key")
    return app.exit_code()


def status(project: Path) -> dict[str, Any]:
    """What another shell is told."""
    return subdeck("status", "--json", cwd=project).document


def only_run(project: Path) -> dict[str, Any]:
    (run,) = status(project)["runs"]
    return run


def session_entries(project: Path, kind: str) -> list[dict[str, Any]]:
    """The entries of one kind in the session that the operator's apps and shells share."""
    lines = (project / ".pi/subagents/sessions/operator.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return [entry for entry in entries if entry["customType"] == f"pi-subagents:{kind}"]
