"""Launching by keyboard in a real terminal: three keys, the editor, a file, a new preset, and again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .acts import quit_app, status
from .conftest import OpenApp
from .terminal import Terminal

pytestmark = pytest.mark.tmux

EDITOR = """\
#!/bin/sh
printf ' in\\nthe editor\\n' >> "$1"
"""


@pytest.fixture(autouse=True)
def own_editor(home: Path) -> None:
    """The offline agent writes without pauses, and the editor needs no person."""
    os.environ["SUBDECK_OFFLINE_PACE"] = "0"
    script = home / "editor.sh"
    script.write_text(EDITOR)
    script.chmod(0o755)
    os.environ["EDITOR"] = str(script)
    os.environ.pop("VISUAL", None)


def write(app: Terminal, label: str, text: str) -> None:
    """Write into a field once the cursor is in its line."""

    def in_line() -> bool:
        row = int(app._tmux("display-message", "-p", "#{cursor_y}"))
        return f"│ {label} " in app.screen.splitlines()[row]

    app.until(in_line, f"the cursor in {label}")
    app.type(text)
    app.until_shown(text)


def tasks(project: Path) -> list[str]:
    return [run["task"] for run in status(project)["runs"]]


@pytest.mark.parametrize("size", [(120, 30), (80, 24)], ids=["wide", "narrow"])
def test_three_keys_from_start_to_a_run(open_app: OpenApp, shop: Path, size: tuple[int, int]) -> None:
    """With presets and no runs: n, the task, ctrl+s."""
    app = open_app(size)
    app.until_shown("repo-scout", "n launch")
    app.press("n")
    app.until_shown("What should the agent do?")
    app.type("where is authenticate?")
    app.until_shown("where is authenticate?")
    app.press("C-s")
    app.until_shown("▸ where is authenticate?", "bg: 0 running / 1 total")
    assert tasks(shop) == ["where is authenticate?"]


def test_the_task_from_editor_and_file(open_app: OpenApp, shop: Path) -> None:
    """ctrl+e lends the terminal to $EDITOR and takes its text; ctrl+o another from a file, by completion."""
    (shop / "docs").mkdir()
    (shop / "docs" / "task.md").write_text("a task\nfrom a file\n")
    app = open_app((80, 24))
    app.until_shown("repo-scout", "n launch")
    app.press("n")
    app.until_shown("What should the agent do?")
    app.type("written")
    app.until_shown("written")
    app.press("C-e")
    app.until_shown("written in", "the editor", "Launch repo-scout")
    app.press("C-o")
    app.until_shown("Load the task from a file")
    app.type("do")
    app.until_shown("docs/")
    app.press("Tab")
    app.type("ta")
    app.until_shown("docs/task.md")
    app.press("Tab", "Enter")
    app.until_shown("from a file", "Where")
    app.until_hidden("the editor")
    app.press("C-z")
    app.until_shown("written in", "the editor")
    app.press("C-s")
    app.until_shown("bg: 0 running / 1 total")
    assert tasks(shop) == ["written in\nthe editor"]


def test_an_ad_hoc_run_becomes_a_preset_and_is_run_again(open_app: OpenApp, shop: Path) -> None:
    """Saved with model, tools and prompt, launched as that preset, and rerun with another task."""
    app = open_app()
    app.until_shown("repo-scout", "N one-off")
    app.press("N")
    app.until_shown("One-off run")
    app.type("look around")
    app.until_shown("look around")
    app.press("Tab")
    write(app, "Model", "fake/test")
    app.press(*["Enter"] * 7)
    write(app, "Tools", "read, ls")
    app.press("Enter")
    write(app, "Prompt", "Be brief.")
    app.press("Tab")
    write(app, "Save as", "worker")
    app.until_shown("Purpose")  # the name makes its line appear
    app.press("Tab", "Tab")
    app.until_shown("needs a description")  # it moves the line below it, and the cursor with it
    write(app, "Purpose", "Works.")
    app.press("C-s")
    app.until_shown("▸ look around", "bg: 0 running / 1 total")
    preset = shop / ".pi/subagents/worker.md"
    assert preset.read_text().endswith("model: fake/test\ntools: [read, ls]\n---\nBe brief.\n")
    app.press("R")
    app.until_shown("Rerun worker (", "from the preset")
    app.type(" again")
    app.until_shown("look around again")
    app.press("C-s")
    app.until_shown("▸ look around again", "bg: 0 running / 2 total")
    newest, first = status(shop)["runs"]
    assert (newest["preset"], newest["origin"]) == ("worker", {"rerun": first["runId"]})


def test_a_draft_and_last_values_outlive_the_app(open_app: OpenApp, shop: Path) -> None:
    """Choices and an unsent text are there after a restart."""
    app = open_app((80, 24))
    app.until_shown("repo-scout", "n launch")
    app.press("n")
    app.until_shown("What should the agent do?")
    app.type("count the tests")
    app.until_shown("count the tests")
    app.press("Tab")
    write(app, "Model", "fake/other")
    app.until_shown("for this run")
    app.press("C-s")
    app.until_shown("bg: 0 running / 1 total")
    app.press("n")
    app.until_shown("from last launch: model")
    app.type("half a thought")
    app.until_shown("half a thought")
    app.press("Escape")
    app.until_hidden("half a thought")
    assert 0 == quit_app(app)
    again = open_app((80, 24))
    again.until_shown("n launch")
    again.press("n")
    again.until_shown("half a thought", "Unsent draft", "fake/other", "from last launch: model")
