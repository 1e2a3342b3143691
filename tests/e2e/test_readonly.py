"""A read-only app changes nothing, whichever keys are pressed."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from subdeck.core import paths

from tests.core.command_line import SUBDECK
from tests.factories import make_finished, make_meta, make_run

from .acts import ESCAPE, back_on_deck, choose, quit_after
from .terminal import Terminal

pytestmark = pytest.mark.tmux

PI = """\
#!/bin/sh
case "$1" in --version) echo 0.73.1 ;; *) echo "provider  model" ; echo "fake  one" ;; esac
"""
QUESTIONS = {"X", "d", "D", "S", "N", "n", "R", "C", "s", "c", "e", "E", "b", "?", "M", "!", "i", "/", "@", "a", "v"}
"""Keys after which Escape is pressed, in case there is a dialog."""


def snapshot(root: Path) -> dict[str, tuple[int, int, int]]:
    """Return every file and directory below with its time of change, its size and its mode."""
    found: dict[str, tuple[int, int, int]] = {}
    for directory, _, names in os.walk(root):
        for path in (directory, *(os.path.join(directory, name) for name in names)):
            facts = os.lstat(path)
            found[path] = (facts.st_mtime_ns, 0 if stat.S_ISDIR(facts.st_mode) else facts.st_size, facts.st_mode)
    return found


@pytest.mark.parametrize("agent", ["offline", "pi"])
def test_nothing_is_written(shop: Path, home: Path, world: Path, agent: str) -> None:
    """No file or directory of home, project and caches is made, changed or touched, with and without a pi."""
    if agent == "pi":
        program = world / "bin" / "pi"
        program.parent.mkdir()
        program.write_text(PI)
        program.chmod(0o755)
        os.environ["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    settings = home / ".config/subdeck/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"retention": {"keep": 1}}))
    project = paths.find_project(str(shop))
    meta = make_finished(project, make_meta(task="ended unseen", background=True, cwd=str(shop)))
    ended = Path(project.run_dir(meta.run_id))
    (ended / paths.EVENTS).write_text("garbage\n")
    _, lock = make_run(project, make_meta(task="lost", background=True, cwd=str(shop)))
    os.close(lock)
    os.environ |= {"PAGER": "true", "EDITOR": "true", "VISUAL": "true"}
    before = snapshot(home)
    with Terminal("reading", (*SUBDECK, "--readonly"), shop) as app:
        app.until_shown("read-only", "ended unseen")
        for pane in "213":
            app.press(pane)
            for key in "jknNrRsCcbdeEXxuyYMiSvDTozwtOfz<>-+= *?!@/a][)({}PFQpLhl":
                app.press("Space" if key == " " else key)
                if key in QUESTIONS:
                    app.type(ESCAPE)
                    app.until(lambda: back_on_deck(app), "the deck")
        app.press("2")
        for action in ("notifications", "theme", "reset layout", "doctor"):
            choose(app, action)
            app.type(ESCAPE)
            app.until(lambda: back_on_deck(app), "the deck")
        assert 0 == quit_after(app)
    after = snapshot(home)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()
