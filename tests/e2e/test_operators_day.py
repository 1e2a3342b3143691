"""Tasks of an operator with 300 runs, 30 of them running; and the number of keys for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from subdeck.core.demo import _deck as made_deck
from subdeck.core.demo._deck import MadeDeck
from subdeck.core.paths import Project

from tests.factories import write_settings

from .acts import quit_after
from .conftest import OpenApp
from .terminal import Terminal

pytestmark = pytest.mark.tmux


@pytest.fixture(autouse=True)
def puppet(home: Path) -> None:
    """The agent does what its task says, so that it is still running when it is stopped."""
    write_settings()


@pytest.fixture
def deck(shop: Path) -> Iterator[MadeDeck]:
    made = MadeDeck(Project(str(shop)))
    yield made
    made.close()


class Operator:
    """Presses keys, and counts them; typed words do not count."""

    def __init__(self, app: Terminal) -> None:
        self.app = app
        self._pressed = 0

    @contextmanager
    def wants(self, what: str, *, keys: int) -> Iterator[None]:
        self._pressed = 0
        yield
        assert keys == self._pressed, f"{what}: {self._pressed} keys instead of {keys}"

    def press(self, *keys: str) -> None:
        self._pressed += len(keys)
        self.app.press(*keys)

    def type(self, words: str) -> None:
        self.app.type(words)
        self.app.until_shown(words)

    def sees(self, *texts: str) -> None:
        self.app.until_shown(*texts)


@pytest.mark.parametrize("size", [(160, 44), (80, 24)], ids=["wide", "narrow"])
def test_a_day(open_app: OpenApp, shop: Path, deck: MadeDeck, size: tuple[int, int]) -> None:
    """One after the other, in one window; runs that were seen stay seen for the next one."""
    app = open_app(size)
    operator = Operator(app)
    operator.sees("✗ 3 failed  ? 1 question  ◐ 2 idle", "bg: 30 running / 300 total")
    with operator.wants("to know why a run failed", keys=1):
        operator.press("]")
        operator.sees("its wrapper died unexpectedly")
    with operator.wants("to be done with it", keys=1):
        operator.press("m")
        operator.sees("✗ 2 failed  ? 1 question  ◐ 2 idle")
    with operator.wants("to read what a run asks", keys=3):
        operator.press("]", "]", "]")
        operator.sees(made_deck.QUESTION.partition(" Shall")[0])
    with operator.wants("to know that a run is idle, and after what", keys=1):
        operator.press("]")
        operator.sees("◐", "idle 6:", made_deck.LAST_WORDS)
    with operator.wants("to find what was said nine days ago", keys=2):
        operator.press("C-f")
        operator.sees("Search")
        operator.type(made_deck.NEEDLE)
        operator.sees("job reads", "1 hit")
        operator.press("Enter")
        operator.sees("The nightly job reads", "match 1/1")
    with operator.wants("to read what a run has changed", keys=6):
        operator.press("Escape")  # with a key right behind it, it would be another one
        app.until_hidden("match 1/1")
        operator.press("C-p")
        operator.sees("Find")
        operator.type("make refunds")
        operator.sees("make refunds idempotent")
        operator.press("Enter")
        operator.sees("fixer ▸ make refunds idempotent")
        operator.press("3", "}")
        app.until(lambda: re.search("▌.*Editing src/refunds.py", app.screen), "the cursor on the edit")
        operator.press("Enter")
        operator.sees("key = order.refund_key or new_key()", "raise AlreadyRefunded")
    with operator.wants("to hand an answer to a program", keys=3):
        operator.press("|")
        operator.sees("Pipe")
        operator.type("cat >answer.txt")
        operator.press("Enter")
        answer = shop / "answer.txt"
        app.until(lambda: answer.exists() and made_deck.FIXED in answer.read_text(), "the answer in the file")
        operator.sees("Press Enter to return")
        operator.press("Enter")
        operator.sees("bg: 30 running")
    with operator.wants("to know what it has cost", keys=2):
        operator.press("$")
        operator.sees("by preset", "by agent")
        operator.press("Escape")
        app.until_hidden("by preset")
    with operator.wants("to see only the failures of a preset", keys=2):
        operator.press("2", "/")
        operator.type("status:failed preset:fixer")
        operator.sees("fixer", "✗")
        app.press("Escape")
        app.until_hidden("status:failed")
    with operator.wants("to know which run costs most", keys=2):
        operator.press("o", "g")
        operator.sees("Runs · by cost")
    with operator.wants("to watch six runs at once", keys=2):
        operator.press("W")
        operator.sees("esc close", "▋")
        operator.press("Escape")
        operator.sees("bg: 30 running")
    with operator.wants("to have something done", keys=2):
        operator.press("n")
        operator.sees("Launch repo-scout")
        operator.type("wait-for go")
        operator.press("C-s")
        operator.sees("bg: 31 running / 301 total")
        app.until_hidden("Launch repo-scout")  # the run may be counted before the dialog closes
    with operator.wants("to stop it", keys=1):
        operator.press("x")
        operator.sees("bg: 30 running / 301 total")
    assert 0 == quit_after(app)
    again = open_app(size)
    again.until_shown("bg: 30 running / 301 total", "✗ 2 failed  ? 1 question  ◐ 2 idle")
    assert 0 == quit_after(again)
