"""The way through the app in the pictures, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from subdeck.core.engine import Engine
from subdeck.core.run.events import ToolResult
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest
from subdeck.tui.app import SubdeckApp
from subdeck.tui.cleanup._screen import CleanUpScreen
from subdeck.tui.detail._screen import RunDetailScreen
from subdeck.tui.detail.page import Tab
from subdeck.tui.presets._editor import PresetEditorScreen
from subdeck.tui.theme import DARK, LIGHT, TERMINAL
from subdeck.tui.widgets.prompt_input import PromptInput
from textual.screen import Screen
from textual.widgets import Input

from tests.tui.open_deck import Deck
from tests.waiting import wait_until

from . import shop

SIZE = (120, 30)
SMALL = (80, 24)

AnyScreen = TypeVar("AnyScreen", bound=Screen[object])
Picture = Callable[[SubdeckApp, str], None]


def earlier_runs(engine: Engine) -> None:
    """Make answers of both agents, a stopped run, a failed one, and a group with two running."""
    start(engine, "reviewer", "list the public functions of src/")
    start(engine, "offline-scout", "which environment variables are read?")
    stopped = start(engine, "reviewer", "review the token signatures", wait=False)
    wait_for_tool(engine, stopped)
    engine.stop([stopped.run_id])
    engine.wait([stopped.run_id], timeout=30)
    requests = [RunRequest(task=task, preset="reviewer") for task in shop.REVIEWS]
    first, second, third = engine.launch(requests, background=True)
    engine.wait([second.run_id], timeout=60)
    for run in (first, third):
        wait_for_tool(engine, run)
    start(engine, "docs-writer", "write the migration guide for 2.0")


def start(engine: Engine, preset: str, task: str, *, wait: bool = True) -> RunSnapshot:
    (run,) = engine.launch((RunRequest(task=task, preset=preset),), background=True)
    if wait:
        (run,) = engine.wait([run.run_id], timeout=60)
    return run


def wait_for_tool(engine: Engine, run: RunSnapshot) -> None:
    events = engine.events(run.run_id)
    wait_until(lambda: any(isinstance(event, ToolResult) for event in events.read()), "a child to have used a tool")


async def tour(engine: Engine, picture: Picture) -> None:
    """Take each picture; stop running runs."""
    await asyncio.to_thread(earlier_runs, engine)
    app = SubdeckApp(engine)
    async with app.run_test(size=SIZE) as pilot:
        deck = Deck(app, pilot)
        await deck.until(lambda: deck.main._begun and deck.main._header._agent, "the first update")
        await launching(deck, engine, picture)
        await watching(deck, picture)
        await looking_closer(deck, picture)
        await keeping_order(deck, picture)
        running = [run.run_id for run in engine.snapshots() if not run.has_ended]
        await asyncio.to_thread(engine.stop, running, force=True)
        await asyncio.to_thread(engine.wait, running, timeout=30)


async def launching(deck: Deck, engine: Engine, picture: Picture) -> None:
    await deck.press("1")
    while not (preset := deck.main.presets.preset) or preset.name != "repo-scout":
        await deck.press("j")
    await deck.press("n")
    await deck.until_text("Launch repo-scout")
    await deck.type(shop.QUESTION)
    await deck.until_text(shop.QUESTION)
    await deck.pilot.pause(0.5)  # the fields are checked after a moment of rest
    picture(deck.app, "launch")
    await deck.press("ctrl+s")
    await deck.until_text("so I look at▋")
    await asyncio.to_thread(start, engine, "reviewer", shop.QUEUED, wait=False)
    await deck.until_text("queued")


async def watching(deck: Deck, picture: Picture) -> None:
    picture(deck.app, "deck")
    await deck.pilot.resize_terminal(*SMALL)
    await deck.until_text("so I look at▋")
    picture(deck.app, "narrow")
    await deck.pilot.resize_terminal(*SIZE)
    await deck.until_text("today")
    for theme in (LIGHT, TERMINAL):
        await in_theme(deck, theme.name)
        picture(deck.app, theme.name.removeprefix("subdeck-"))
    await in_theme(deck, DARK.name)


async def in_theme(deck: Deck, name: str) -> None:
    while deck.app.theme != name:
        await deck.act("theme")
    await deck.until_text("so I look at▋")


async def looking_closer(deck: Deck, picture: Picture) -> None:
    await deck.press("3", "z", "g", "j", "j", "enter", "j", "j", "j", "enter")
    await deck.until_text("src/auth.py:")
    await deck.press("g", "slash")
    await deck.until(lambda: isinstance(deck.app.focused, PromptInput), "the search")
    deck.main.query_one("PromptInput:focus", PromptInput).value = "authenticate"
    await deck.press("enter")
    await deck.until_text("match 1/")
    picture(deck.app, "transcript")
    await deck.press("escape")
    await deck.act("open_all", "open_all")
    await deck.press("escape", "i")
    screen = await until_screen(deck, RunDetailScreen)
    await deck.press("4")
    await deck.until(lambda: screen._shown and screen._shown[0] is Tab.OVERVIEW, "the overview")
    await deck.pilot.pause()
    picture(deck.app, "detail")
    await back(deck)


async def keeping_order(deck: Deck, picture: Picture) -> None:
    await deck.press("1", "e")
    await until_screen(deck, PresetEditorScreen)
    await deck.pilot.pause(0.5)
    picture(deck.app, "preset")
    await back(deck)
    await deck.act("clean_up")
    screen = await until_screen(deck, CleanUpScreen)
    await deck.until(lambda: screen._stock is not None, "the look at the runs")
    screen.query_one("#keep", Input).value = "2"
    await deck.until_text("Would delete ")
    await deck.pilot.pause()
    picture(deck.app, "clean-up")
    await back(deck)


async def until_screen(deck: Deck, kind: type[AnyScreen]) -> AnyScreen:
    await deck.until(lambda: isinstance(deck.app.screen, kind), kind.__name__)
    assert isinstance(deck.app.screen, kind)
    return deck.app.screen


async def back(deck: Deck) -> None:
    await deck.press("escape")
    await deck.until(lambda: deck.app.screen is deck.main, "the deck")
