"""Pictures of a busy deck: 300 runs, 30 of them running, and some need you. They are made up, not real."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from subdeck.core.demo import _deck as made_deck
from subdeck.core.demo._deck import MadeDeck
from subdeck.core.engine import Engine
from subdeck.core.paths import Project
from subdeck.tui.app import SubdeckApp
from subdeck.tui.tiles.screen import TilesScreen

from tests.tui.open_deck import Deck

SIZE = (160, 44)
Picture = Callable[[SubdeckApp, str], None]


def write(home: Path) -> Path:
    """Make a project with its presets below a home; return it."""
    project = home / "src" / "orders"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    made_deck.write_presets(Project(str(project)))
    return project


async def day(project: Path, picture: Picture) -> None:
    """Take each picture."""
    made = MadeDeck(Project(os.path.realpath(project)))
    app = SubdeckApp(Engine.open(str(project), kind="app"))
    try:
        async with app.run_test(size=SIZE) as pilot:
            deck = Deck(app, pilot)
            await deck.until_text("✗ 3 failed  ? 1 question  ◐ 2 idle")
            await deck.press("]", "]", "]", "]", "]")
            await deck.until_text(made_deck.LAST_WORDS)
            picture(app, "day")
            await deck.press("ctrl+p")
            await deck.until_text("Find anything")
            await deck.type("make refunds")
            await deck.until_text("make refunds idempotent")
            await deck.press("enter")
            await deck.until_text("fixer ▸ make refunds idempotent")
            await deck.press("3", "}")
            await deck.until_text("▌")
            await deck.pilot.pause(0.2)
            await deck.press("enter")
            await deck.until_text("raise AlreadyRefunded")
            picture(app, "diff")
            await deck.press("2", "g", "W")
            await deck.until(lambda: isinstance(app.screen, TilesScreen), "the tiles")
            await deck.until_text("comes fir")
            await deck.pilot.pause(0.5)
            picture(app, "tiles")
    finally:
        made.close()
