"""The app on real records with hostile text in every field: no screen has a terminal control character."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine

from tests.factories import make_finished, make_meta, open_engine
from tests.hostile import controls, hostile_preset, hostile_run
from tests.killing import IS_WHOLE

from ..open_deck import Deck, opened


@pytest.fixture
def engine(project_dir: Path) -> Iterator[Engine]:
    """Open a project with a hostile preset, a finished hostile run and a locked one."""
    engine = open_engine(project_dir)
    hostile_preset(project_dir)
    _, lock = hostile_run(engine, ended=True)
    os.close(lock)
    _, lock = hostile_run(engine, ended=False)
    yield Engine.open(str(project_dir), kind=cast("Any", "app"))
    os.close(lock)


BROKEN_FILES = {
    paths.META: b'{"runId": "\xff"}',
    paths.RESULT: b"[" * 5000,
    paths.EVENTS: b'{"type": "assistant_text", "text": "\xff"}\n\x00\n',
}


async def look(deck: Deck, *keys: str, until: str = "") -> None:
    """Press keys, wait for their effect, and check every character of the screen."""
    await deck.press(*keys)
    if until:
        await deck.until_text(until)
    await deck.pilot.pause()
    assert [] == controls(deck.screen_text), keys
    assert [] == [found for toast in deck.toasts for found in controls(toast)]


@pytest.mark.parametrize("size", [(80, 24), (120, 40)] if IS_WHOLE else [(120, 40)])
async def test_every_screen(engine: Engine, size: tuple[int, int]) -> None:
    """The list, all views of transcript and detail, dialogs, questions, clean-up, messages and palette are safe."""
    async with opened(cast("Any", engine), size) as deck:
        await look(deck, until="scout")
        for row in (("g", "j"), ("G",)):  # the first is the head of their group
            await look(deck, "2", *row)
            await look(deck, "3", until="follow")
            for keys in (":open_all", "G", "g", "t", ":open_all", "t", "t"):
                await look(deck, keys)
            await look(deck, "i", until="esc close")
            for tab in "12345678":
                await look(deck, tab)
                for _ in range(3):
                    await look(deck, "pagedown")
            await look(deck, "escape")
            await look(deck, "2", "R", until="esc cancel")
            await look(deck, "ctrl+r")
            await look(deck, "escape")
            await look(deck, "escape")
            await look(deck, "y")
            await look(deck, "a")
            await look(deck, "escape")
        await look(deck, "2", "G", "X", until="Kill this run?")
        await look(deck, "escape")
        await look(deck, "g", "j", "s")
        await look(deck, "escape")
        await look(deck, "d")
        await look(deck, "escape")
        await look(deck, ":mark_all", "d", until="Delete")
        await look(deck, "escape", ":mark_all")
        await look(deck, "slash", *"scout", "enter")
        await look(deck, "escape", "o", "o", "o", ":messages", until="otifications")
        await look(deck, "escape", ":clean_up", until="lean up")
        await look(deck, "escape", "ctrl+p")
        await look(deck, "escape", ":doctor")
        await look(deck, "escape")
        for keys in (("1", "g"), ("j",), ("G",)):
            await look(deck, *keys)
            await look(deck, "e")
            await look(deck, "escape")
            await look(deck, "n")
            await look(deck, "escape")
            await look(deck, ":copy_preset")
            await look(deck, "escape")
            await look(deck, "d")
            await look(deck, "escape")
        await look(deck, "N", until="One-off run")
        await look(deck, "escape")
        assert deck.app.is_running


async def test_broken_runs(project_dir: Path) -> None:
    """Runs with empty or broken records have rows with the reason, and each can be opened and deleted."""
    engine = open_engine(project_dir)
    make_finished(engine.project, make_meta(task="a whole run"))
    for name, content in BROKEN_FILES.items():
        run_id = make_finished(engine.project, make_meta(task=f"without {name}")).run_id
        Path(engine.project.run_dir(run_id), name).write_bytes(content)
    async with opened(cast("Any", Engine.open(str(project_dir), kind=cast("Any", "app"))), (120, 40)) as deck:
        await look(deck, until="a whole run")
        for text in ("meta.json is damaged: ", "lost: the run's result", "without events"):
            assert text in deck.screen_text
        await look(deck, "2", "g")
        for _ in range(4):
            await look(deck, "i", until="esc close")
            for tab in "12345678":
                await look(deck, tab)
            await look(deck, "escape", "j")
        await look(deck, ":mark_all", "d", until="Delete")
        await look(deck, "y")
        await deck.until(lambda: not os.listdir(engine.project.runs), "all runs to be deleted")
