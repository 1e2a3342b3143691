"""Launching from an earlier run in a real terminal, and your own keys."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.core.command_line import SUBDECK

from .acts import choose, launch, quit_app, status
from .conftest import OpenApp
from .terminal import Terminal

pytestmark = pytest.mark.tmux

FIRST, SECOND = "where is authenticate?", "and who calls it?"


@pytest.fixture(autouse=True)
def quick_writing() -> None:
    """The offline agent writes without pauses."""
    os.environ["SUBDECK_OFFLINE_PACE"] = "0"


def run_of(project: Path, task: str) -> dict[str, Any]:
    (run,) = (run for run in status(project)["runs"] if task in run["task"])
    return run


def prompt_of(project: Path, run: dict[str, Any]) -> str:
    return (project / ".pi/subagents/runs" / run["runId"] / "prompt.md").read_text()


def launch_on(app: Terminal, said: str) -> None:
    """Give the second task in the dialog that is open, or is about to open."""
    app.until_shown(said)
    app.type(SECOND)
    app.until_shown(SECOND)
    app.press("C-s")
    app.until_hidden(said)
    app.until_shown("✓ completed: done", f"▸ {SECOND}", "bg: 0 running / 2 total")


@pytest.mark.parametrize("size", [(120, 30), (80, 24)], ids=["wide", "narrow"])
def test_following_up(open_app: OpenApp, shop: Path, size: tuple[int, int]) -> None:
    """s continues the agent session of the highlighted run, and the agent knows the task before."""
    app = open_app(size)
    launch(app, FIRST)
    app.until_shown("✓ completed: done", "bg: 0 running / 1 total")
    app.press("s")
    launch_on(app, "Follow up with repo-scout")
    first, second = run_of(shop, FIRST), run_of(shop, SECOND)
    assert first["childSessionId"] == second["childSessionId"]
    assert "This session holds 1 earlier task" in second["finalText"]
    assert SECOND == prompt_of(shop, second)


def test_handing_context_over(open_app: OpenApp, shop: Path) -> None:
    """`use as context` passes the conversation of the highlighted run on, in the agent's prompt and not in its task."""
    app = open_app()
    launch(app, FIRST)
    app.until_shown("✓ completed: done", "bg: 0 running / 1 total")
    choose(app, "use as context")
    launch_on(app, "the conversation of")
    second = run_of(shop, SECOND)
    prompt = prompt_of(shop, second)
    assert prompt.startswith("<parent-context>\n[user]\n" + FIRST)
    assert prompt.endswith(SECOND)
    assert SECOND == second["task"]


def test_own_keys(open_app: OpenApp, shop: Path, home: Path) -> None:
    """A key of the settings works; if two actions have the same one, the app opens with the defaults and the reason."""
    settings = home / ".config/subdeck/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"keys": {"quit": "f10"}}))
    app = open_app()
    app.press("q")
    app.until_shown("f10 quit")
    app.press("F10")
    assert 0 == app.exit_code()
    settings.write_text(json.dumps({"keys": {"quit": "f10", "stop": "f10"}}))
    with Terminal("terminal-usual", SUBDECK, shop) as usual:
        usual.until_shown('"f10" is already used for "stop"', "q quit")
        assert 0 == quit_app(usual)
