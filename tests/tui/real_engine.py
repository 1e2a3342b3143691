"""A real engine on a temporary project with presets, and the deck opened on them."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from subdeck.core.engine import Engine

from .open_deck import Deck, opened

SCOUT = """\
---
# ours
name: scout
description: Finds things   # with care
model: fake/test
tools: read, grep
---
Look.
"""


def project_directory(project: Path) -> Path:
    place = project / ".pi/subagents"
    place.mkdir(parents=True, exist_ok=True)
    return place


def user_place() -> Path:
    place = Path(os.environ["PI_CODING_AGENT_DIR"], "subagents")
    place.mkdir(parents=True, exist_ok=True)
    return place


@asynccontextmanager
async def presets_opened(
    project: Path, *texts: str, size: tuple[int, int] = (120, 30), **settings: object
) -> AsyncIterator[Deck]:
    """Open the deck with these texts as the project's presets, with the first one highlighted and focused."""
    for number, text in enumerate(texts):
        (project_directory(project) / f"{number or 'scout'}.md").write_text(text)
    async with opened(offline_engine(project, **settings), size) as deck:  # type: ignore[arg-type]
        await deck.until(lambda: deck.main.presets.row_count >= len(texts), "the presets")
        await deck.press("1")
        yield deck


def offline_engine(project: Path, **settings: object) -> Engine:
    """Return a real engine with the offline agent."""
    file = Path(os.environ["HOME"], ".config/subdeck/config.yaml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"agent": "offline", **settings}))
    return Engine.open(str(project), kind="app")


async def until_screen(deck: Deck, kind: type) -> None:
    """Wait for a screen that has read its data."""

    def is_there() -> bool:
        screen = deck.app.screen
        return isinstance(screen, kind) and screen.is_mounted and not screen.has_class("-loading")

    await deck.until(is_there, kind.__name__)


__all__ = ["SCOUT", "offline_engine", "presets_opened", "project_directory", "until_screen", "user_place"]
