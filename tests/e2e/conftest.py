"""A small project in the private home, and the app on it in real terminals."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK

from .terminal import Pty, Terminal


def preset(name: str, description: str, *more: str, prompt: str) -> str:
    lines = ("---", f"name: {name}", f"description: {description}", "model: fake/test", *more, "---", prompt, "")
    return "\n".join(lines)


FILES = {
    "src/auth.py": 'def authenticate(request):\n    """Return who asks, by the token."""\n    return request.token\n',
    "src/orders.py": "from .auth import authenticate\n\n\ndef place(request):\n    return authenticate(request)\n",
    ".pi/subagents/repo-scout.md": preset(
        "repo-scout", "Fast repo exploration", "tools: read, grep, find, ls", prompt="You are a scout."
    ),
    ".pi/subagents/watcher.md": preset("watcher", "Stays in a pane", "runner: tmux", prompt="You watch."),
}

READY = re.compile(r" subdeck  ~/src/shop +\S.* {3}\d+ running")
"""The first line, once everything has been read."""

OpenApp = Callable[..., Terminal]


@pytest.fixture
def shop(home: Path) -> Path:
    """A project with two presets, seen as `~/src/shop`."""
    project = home / "src" / "shop"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return project


@pytest.fixture(autouse=True)
def no_program_left() -> Iterator[None]:
    """End programs that a failed test has left on a bare terminal; they would fail the next test."""
    yield
    for program in Pty.running:
        program.kill()
        program.wait()
    Pty.running.clear()


@pytest.fixture
def open_app(shop: Path) -> Iterator[OpenApp]:
    """Start the app in a new terminal, any number of times; return it when it can be used."""
    numbers = itertools.count(1)
    with ExitStack() as stack:

        def opened(size: tuple[int, int] = (120, 30), argv: Sequence[str] = SUBDECK) -> Terminal:
            app = stack.enter_context(Terminal(f"terminal-{next(numbers)}", argv, shop, size))
            app.until(lambda: READY.match(app.screen), "the app to know the agent and the runs")
            return app

        yield opened
