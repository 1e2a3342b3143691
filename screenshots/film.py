"""The animated tour: three attempts at one task, a permission request, the comparison, apply and undo.

The runs are real: pi in three worktrees, with a scripted model that does different work in each.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from subdeck.core.engine import Engine
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.app import SubdeckApp
from subdeck.tui.compare.screen import CompareScreen
from subdeck.tui.dialogs.data_screen import DataScreen
from subdeck.tui.launch._screen import LaunchScreen
from textual.widgets import Input

from tests.real.model_server import Script
from tests.tui.open_deck import Deck

from .animation import Animation
from .tour import Picture

SIZE = (110, 30)
TASK = "a coupon must not count twice in one cart"
MODEL = "coder"
TITLE = "subdeck: three attempts at one task in worktrees, a permission request, the comparison, apply and undo"

FILES = {
    ".gitignore": ".pi/\n__pycache__/\n",
    "shop/__init__.py": "",
    "shop/cart.py": '''"""A cart: items, coupons and what they cost together."""


class Cart:
    def __init__(self):
        self.items = []
        self.coupons = []

    def add(self, name, cents):
        self.items.append((name, cents))

    def redeem(self, code, percent):
        self.coupons.append((code, percent))

    def total(self):
        total = sum(cents for _, cents in self.items)
        for _, percent in self.coupons:
            total -= total * percent // 100
        return total
''',
    "tests/__init__.py": "",
    "tests/test_cart.py": """import unittest

from shop.cart import Cart


class CartTest(unittest.TestCase):
    def test_coupons_apply_in_order(self):
        cart = Cart()
        cart.add("lamp", 995)
        cart.redeem("SPRING", 25)
        cart.redeem("TEN", 10)
        self.assertEqual(cart.total(), 673)
""",
}
PRESETS = {
    "implement": f"""---
name: implement
description: Implements a change in its own worktree
model: local/{MODEL}
worktree: head
check: tests
permissions: {{allow: [read, edit, write, grep, find, ls], ask: [bash]}}
---
Make the smallest change that does it, with a test.
""",
    "explore": f"""---
name: explore
description: Answers a question about the code
model: local/{MODEL}
tools: read, grep, find, ls
---
Answer with evidence as path:line.
""",
    "review": f"""---
name: review
description: Reviews a change, cannot edit
model: local/{MODEL}
tools: read, grep, find, ls
---
Correctness first, then tests, then names.
""",
}

GUARD = "Redeeming the same code again should be an error, so I guard `redeem`."
GUARD_DONE = "`redeem` now raises ValueError for a code that is already in the cart. The tests pass."
A_SET = "A set cannot hold a coupon twice, so the cart keeps its coupons in one."
A_SET_DONE = "The cart keeps its coupons in a set, smallest discount first."
ANSWERS = ("now raises", "The cart keeps", "counts each")
"""Words of the three answers."""
SKIP = "I keep `redeem` as it is and skip repeated codes where the total is computed."
SUITE = "python3 -m unittest -q"
TESTED = {
    "error": """
    def test_a_coupon_counts_once(self):
        cart = Cart()
        cart.redeem("TEN", 10)
        with self.assertRaises(ValueError):
            cart.redeem("TEN", 10)
""",
    "once": """
    def test_a_coupon_counts_once(self):
        cart = Cart()
        cart.add("lamp", 1000)
        cart.redeem("TEN", 10)
        cart.redeem("TEN", 10)
        self.assertEqual(cart.total(), 900)
""",
}
CHECKS = {"tests": [sys.executable, "-m", "unittest", "-q"]}
LAST_TEST = "        self.assertEqual(cart.total(), 673)\n"


def _edit(path: str, *changes: tuple[str, str]) -> dict[str, Any]:
    edits = [{"oldText": old, "newText": new} for old, new in changes]
    return {"name": "edit", "arguments": {"path": path, "edits": edits}}


def _test(words: str) -> dict[str, Any]:
    return _edit("tests/test_cart.py", (LAST_TEST, LAST_TEST + TESTED[words]))


def _turn(text: str, *calls: dict[str, Any], tokens: int, **more: Any) -> dict[str, Any]:
    usage = {"input": tokens, "output": len(text)}
    steps = [{"text": text}, *([{"tool_calls": list(calls)}] if calls else [])]
    return {"steps": steps, "usage": usage, "chunk_size": 6, "chunk_delay": 0.05, **more}


def _then(first: str, answer: dict[str, Any], **when: str) -> dict[str, Any]:
    """Return a turn of the conversation that began with a text."""
    return {**answer, "when": {"any_contains": first, "last_role": "tool", **when}}


SCRIPT = Script(
    _turn(
        GUARD,
        _edit(
            "shop/cart.py",
            (
                "        self.coupons.append((code, percent))",
                "        if any(code == known for known, _ in self.coupons):\n"
                '            raise ValueError(f"coupon {code} is already in the cart")\n'
                "        self.coupons.append((code, percent))",
            ),
        ),
        _test("error"),
        tokens=3100,
    ),
    _turn(
        A_SET,
        _edit(
            "shop/cart.py",
            ("self.coupons = []", "self.coupons = set()"),
            ("self.coupons.append((code, percent))", "self.coupons.add((percent, code))"),
            ("for _, percent in self.coupons:", "for percent, _ in sorted(self.coupons):"),
        ),
        _test("once"),
        tokens=2800,
    ),
    _turn(
        SKIP,
        _edit(
            "shop/cart.py",
            (
                "        for _, percent in self.coupons:\n",
                "        for percent in dict(self.coupons).values():\n",
            ),
        ),
        _test("once"),
        tokens=2900,
    ),
    _then(
        GUARD,
        _turn(
            GUARD_DONE,
            tokens=4200,
        ),
        last_contains="OK",
    ),
    _then(
        GUARD,
        _turn(
            "Now the tests.",
            {"name": "bash", "arguments": {"command": SUITE}},
            tokens=3600,
        ),
    ),
    _then(
        A_SET,
        _turn(A_SET_DONE, tokens=3300),
    ),
    _then(
        SKIP,
        _turn("`total` counts each code once; redeeming twice is still possible.", tokens=3400),
    ),
)


def write(home: Path) -> Path:
    """Write the project with its presets and a commit; return its root."""
    project = home / "src" / "shop-cart"
    texts = FILES | {f".pi/subagents/{name}.md": text for name, text in PRESETS.items()}
    for name, text in texts.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    author = ("-c", "user.name=Shop", "-c", "user.email=shop@example.org")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), (*author, "commit", "-q", "-m", "Begin")):
        subprocess.run(("git", *words), cwd=project, check=True)
    return project


class Film:
    """Takes the frames of the tour while it goes through the app."""

    def __init__(self, deck: Deck, engine: Engine, project: Path, picture: Picture) -> None:
        self.deck = deck
        self.engine = engine
        self.project = project
        self.picture = picture
        self.animation = Animation(*SIZE, TITLE)
        self.winner = ""
        """The run whose changes are applied; it asked to run the tests."""

    def shot(self, seconds: float, caption: str) -> None:
        self.animation.add(self.deck.strips, seconds, caption)

    async def go(self) -> None:
        await self.launch()
        await self.work()
        await self.compare()
        await self.undo()

    async def launch(self) -> None:
        deck = self.deck
        self.shot(0.9, "One preset, one task, three attempts")
        await deck.press("1")
        while not (preset := deck.main.presets.preset) or preset.name != "implement":
            await deck.press("j")
        await deck.press("n")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        await deck.pilot.pause(0.3)
        self.shot(0.6, "n  launch")
        for begin in range(0, len(TASK), 6):
            await deck.type(TASK[begin : begin + 6])
            await deck.pilot.pause(0.02)
            self.shot(0.12, "n  launch: what should the agent do?")
        deck.app.screen.query_one("#copies", Input).value = "3"
        await deck.pilot.pause(0.6)
        self.shot(1.6, "Three attempts, each in its own git worktree")
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")

    async def work(self) -> None:
        deck = self.deck
        caption = "Three agents work at the same time"
        while not (asking := [run.run_id for run in self.runs if run.requests]):
            await asyncio.sleep(0.1)
            await deck.pilot.pause()
            self.shot(0.07, caption)
        (self.winner,) = asking
        await deck.until_text(SUITE)
        self.shot(0.9, "One attempt needs your permission")
        await deck.press("]")
        await deck.until(lambda: deck.main.request.is_shown, "the request")
        deck.app.clear_notifications()
        await asyncio.sleep(1)  # so that an earlier key does not count as a reply
        self.shot(2.2, "]  next request: nothing runs before you reply")
        await deck.press("y")
        await deck.until(lambda: not deck.main.request.is_shown, "the reply")
        self.shot(0.6, "y  allow")
        while not all(run.has_ended for run in self.runs):
            await asyncio.sleep(0.1)
            await deck.pilot.pause()
            self.shot(0.07, "The check runs your tests on each result")
        await deck.until_text("0 running")
        deck.app.clear_notifications()
        await deck.pilot.pause(0.3)
        self.shot(1.2, "The check runs your tests on each result")

    async def compare(self) -> None:
        deck = self.deck
        await deck.press("2", "V")
        await deck.until(lambda: isinstance(deck.app.screen, CompareScreen), "the comparison")
        screen = deck.app.screen
        assert isinstance(screen, CompareScreen)
        await deck.until(lambda: any(words in deck.screen_text for words in ANSWERS), "an answer")
        await deck.pilot.pause(0.5)
        self.shot(2.0, "V  compare answers, checks, changes and costs")
        while screen.run.run_id != self.winner:
            await deck.press("tab")
            await deck.pilot.pause(0.3)
            self.shot(0.5, "V  compare answers, checks, changes and costs")
        self.picture(deck.app, "compare")
        self.shot(0.5, "V  compare answers, checks, changes and costs")
        await deck.press("T")
        await self.confirm("T  choose the winner: the plan first, then one key", 2.0)
        await deck.until(lambda: self.is_applied, "the apply")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        await deck.pilot.pause(0.5)
        self.shot(1.8, "The winner's changes are in your working tree")

    async def undo(self) -> None:
        deck = self.deck
        deck.app.clear_notifications()
        await deck.press("u")
        await self.confirm("u  undo", 1.2)
        await deck.until(lambda: not self.is_applied, "the undo")
        await deck.pilot.pause(0.5)
        self.shot(2.0, "Your files are as they were before")

    async def confirm(self, caption: str, seconds: float) -> None:
        """Show a plan, and carry it out."""
        deck = self.deck
        await deck.until(lambda: isinstance(deck.app.screen, DataScreen), "the plan")
        screen = deck.app.screen
        assert isinstance(screen, DataScreen)
        await deck.until(lambda: not screen.is_loading, "what the plan is")
        await deck.pilot.pause(0.3)
        self.shot(seconds, caption)
        await deck.press("y")
        await deck.until(lambda: deck.app.screen is not screen, "the act")

    @property
    def runs(self) -> tuple[RunSnapshot, ...]:
        return self.engine.snapshots()

    @property
    def is_applied(self) -> bool:
        """Whether the winner's change is in the user's own file."""
        return "already in the cart" in (self.project / "shop/cart.py").read_text()


async def film(project: Path, picture: Picture) -> Animation:
    """Make the tour; stop runs that are still running."""
    engine = Engine.open(str(project), kind="app")
    app = SubdeckApp(engine)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        deck = Deck(app, pilot)
        app.clock = time.monotonic
        await deck.until(lambda: deck.main._begun and deck.main._header._agent, "the first update")
        made = Film(deck, engine, project, picture)
        try:
            await made.go()
        finally:
            running = [run.run_id for run in engine.snapshots() if not run.has_ended]
            if running:
                await asyncio.to_thread(engine.stop, running, force=True)
    return made.animation
