"""Open a run in the agent, in a window of the tmux around the app and in its own terminal, and return it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK, subdeck
from tests.factories import CHILDREN, write_settings

from .acts import launch, quit_after, reply
from .conftest import OpenApp
from .terminal import Terminal
from .test_attaching import OUTSIDE

pytestmark = pytest.mark.tmux


@pytest.fixture(autouse=True)
def interactive(home: Path) -> None:
    write_settings((sys.executable, "-I", "-S", str(CHILDREN / "interactive.py")))


@pytest.mark.parametrize("before", [OUTSIDE, ()], ids=["outside tmux", "inside tmux"])
def test_there_and_back(open_app: OpenApp, shop: Path, before: tuple[str, ...]) -> None:
    """The conversation in the agent's own program is in the transcript, and the operator chooses how the run
    continues.
    """
    app = open_app(argv=(*before, *SUBDECK))
    launch(app, "parts\nsay I am looking at the shop\nhang", preset="repo-scout")
    app.until(lambda: re.search("● repo-scout .*I am looking at the shop", app.screen), "the agent's text in the list")
    app.press("A")
    app.until_shown("in the agent?")
    app.press("y")
    app.until_shown("by hand 2")
    app.type("Say it.")
    app.until_shown("Say it.")
    app.press("Enter")
    app.until_shown("said")
    app.type("leave")
    app.until_shown("leave")
    app.press("Enter")
    app.until_shown("subdeck  ~/src/shop", "You said: Say it.", "? was returned", "1  finish here")
    app.press("]")
    reply(app, "1", "✓ completed: done")
    assert 0 == quit_after(app)


@pytest.mark.parametrize(
    ("typed", "told", "text"),
    [("", "is finished", "You said: Say it."), ("Now you.", "continues", "Gone on.")],
    ids=["finished", "gone on"],
)
def test_at_the_command_line(shop: Path, typed: str, told: str, text: str) -> None:
    """After the program's end the user chooses at once how the run continues."""
    task = "parts\nsay I am looking at the shop\nhang\nthen\nsay Gone on.\nfinish"
    run_id = subdeck("bg", "repo-scout", task, cwd=shop).out.strip()
    with Terminal("by-hand", (*SUBDECK, "open", "--agent", "--yes", run_id), shop) as terminal:
        terminal.until_shown("by hand 2")
        terminal.type("Say it.")
        terminal.until_shown("Say it.")
        terminal.press("Enter")
        terminal.until_shown("said")
        terminal.type("leave")
        terminal.until_shown("leave")
        terminal.press("Enter")
        terminal.until_shown("was returned. Press Enter to finish it here")
        terminal.type(typed)
        terminal.until_shown(typed)
        terminal.press("Enter")
        terminal.until_shown(told)
        assert 0 == terminal.exit_code()
    assert 0 == subdeck("wait", run_id, cwd=shop).code
    assert text in subdeck("logs", "--answer", run_id, cwd=shop).out
