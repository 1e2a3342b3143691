"""An operator's actions, in keys; and their effect in the files."""

from __future__ import annotations

import json
import re
from itertools import count, cycle
from pathlib import Path
from typing import Any

from tests.core.command_line import subdeck

from .terminal import Terminal

PRESETS = ("repo-scout", "watcher")
"""In the order of the list."""

ESCAPE = "\x1b[27u"
"""A lone byte would be read together with the next key."""

LOOKS_APART = 80
"""Looks at the screen between two keys of `quit_after`: enough that they do not count as a text."""

SLOW = "update I am looking at the shop\nwait-for go\nanswer The shop is fine"
"""A task for the puppet: it writes half a sentence, and continues when a file `go` appears in its cwd."""


def launch(app: Terminal, task: str, preset: str = "repo-scout") -> None:
    """Launch a preset with the keyboard only."""
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


def back_on_deck(app: Terminal) -> bool:
    """Close everything above the deck; it may have appeared after the key that should close it."""
    if "bg: " in app.screen:
        return True
    app.type(ESCAPE)
    return False


def choose(app: Terminal, action: str) -> None:
    """Do an action by its name in the palette. Its key is pressed again if it was dropped behind a refused one, or if a
    dialog that an earlier key opened took it.
    """
    looks = count()

    def is_open() -> bool:
        if "Find anything" in app.screen:
            return True
        look = next(looks)
        if look and not look % LOOKS_APART:
            app.type(ESCAPE)
        if not look % LOOKS_APART:
            app.press(":")
        return False

    app.until(is_open, "the palette")
    app.press("C-u")  # the key may have come twice
    app.type(action)
    app.until_shown(action)
    app.press("Enter")
    app.until_hidden("Find anything")


def reply(app: Terminal, key: str, shown: str) -> None:
    """Reply to the request on the screen by a key, until its outcome is shown: an unread one takes no key."""
    looks = count()

    def came() -> bool:
        if shown in app.screen:
            return True
        if not next(looks) % LOOKS_APART:
            app.press(key)
        return False

    app.until(came, repr(shown))


def quit_app(app: Terminal) -> int:
    """Quit, confirm if runs are active, and return the exit code."""
    app.press("q")

    def ended() -> bool:
        if "Quit subdeck?" in app.screen:
            app.press("y")
        return app.has_ended

    app.until(ended, "the program to end")
    return app.exit_code()


def quit_after(app: Terminal) -> int:
    """Quit after many keys in a row, even if they have left a dialog open, and return the exit code.

    The terminal joins keys that arrive together: an Escape with a key right behind it is another key, and keys behind a
    refused one are dropped with it. So Escape, the key that quits and the yes to its question alternate, some looks
    apart.
    """
    keys = ("Escape", "q", "y")
    turns = cycle(turn for key in keys for turn in (key, *[None] * LOOKS_APART))

    def quits() -> bool:
        if key := next(turns):
            app.press(key)
        return app.has_ended

    app.until(quits, "the app to take its last key")
    return app.exit_code()


def status(project: Path) -> dict[str, Any]:
    """Return another shell's status."""
    return subdeck("status", "--json", cwd=project).document


def only_run(project: Path) -> dict[str, Any]:
    (run,) = status(project)["runs"]
    return run


def session_entries(project: Path, kind: str) -> list[dict[str, Any]]:
    """Return the entries of one kind in the session shared by the operator's apps and shells."""
    lines = (project / ".pi/subagents/sessions/operator.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    return [entry for entry in entries if entry["customType"] == f"pi-subagents:{kind}"]
