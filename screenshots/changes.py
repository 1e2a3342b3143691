"""A picture of a real run's changes in its worktree."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from subdeck.core.engine import Engine
from subdeck.core.run.enumerations import WorktreeFrom
from subdeck.core.spec.request import RunRequest
from subdeck.tui.app import SubdeckApp
from subdeck.tui.changes._screen import ChangesScreen

from tests.tui.open_deck import Deck

from . import shop
from .tour import SIZE, Picture


def repository(project: Path) -> Path:
    """Make a repository of the project, with a commit."""
    (project / ".git").rmdir()
    (project / ".gitignore").write_text(".pi/\n")
    author = ("-c", "user.name=Shop", "-c", "user.email=shop@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*author, "commit", "-q", "-m", "Begin")):
        subprocess.run(("git", *words), cwd=project, check=True)
    return project


async def changes(project: Path, picture: Picture) -> None:
    """Take the picture `changes`."""
    engine = Engine.open(str(repository(project)), kind="app")
    request = RunRequest(task=shop.FIX, preset="fixer", worktree=WorktreeFrom.FILES)
    (run,) = await asyncio.to_thread(engine.launch, [request], background=True)
    await asyncio.to_thread(engine.wait, [run.run_id], timeout=60)
    app = SubdeckApp(engine)
    async with app.run_test(size=SIZE) as pilot:
        deck = Deck(app, pilot)
        await deck.until_text("fixer")
        app.clear_notifications()
        await deck.press("2", "c")
        await deck.until(lambda: isinstance(app.screen, ChangesScreen) and app.screen.shown, "the changes")
        await deck.press("}", "space")
        await deck.pilot.pause(0.5)
        picture(app, "changes")
