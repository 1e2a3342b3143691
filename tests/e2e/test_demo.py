"""`subdeck demo` in a real terminal: a busy deck to try, which leaves nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.demo import playground

from tests.core.command_line import SUBDECK

from .acts import quit_app, reply
from .terminal import Terminal

pytestmark = pytest.mark.tmux


@pytest.fixture(params=[(140, 40), (80, 24)], ids=["wide", "narrow"])
def app(request: pytest.FixtureRequest, home: Path) -> Iterator[Terminal]:
    settings = home / ".config" / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("theme: [no, such")  # would keep any other app from starting
    with Terminal("demo", (*SUBDECK, "demo"), home, request.param) as terminal:
        yield terminal


def test_a_first_look(app: Terminal, home: Path) -> None:
    """Filters, views and replies work, a launch is refused with the reason, and after quitting nothing is left."""
    before = sorted(home.rglob("*"))
    app.until_shown("30 running", "1 needs input", "push origin refunds-idempotent")
    app.press("2", "/")
    app.type("status:failed preset:fixer")
    app.until_shown("✗ fixer")
    app.press("Escape")
    app.until_hidden("status:failed")
    app.press("$")
    app.until_shown("by preset")
    app.press("Escape")
    app.until_hidden("by preset")
    app.press("n")
    app.until_shown("Launch docs-writer", "! this is a demo with simulated runs")
    app.press("Escape")
    app.until_hidden("Launch docs-writer")
    app.press("]")
    app.until_shown("y allow")

    reply(app, "y", "Allowed by the user")
    app.until_shown("The branch is pushed. CI runs on it now.")
    assert 0 == quit_app(app)
    assert "still running" not in app.screen
    assert not [name for name in os.listdir(os.environ["TMPDIR"]) if playground.PREFIX in name]
    assert before == sorted(home.rglob("*"))
