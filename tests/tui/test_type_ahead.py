"""Keys that come faster than a dialog opens."""

from __future__ import annotations

from subdeck.tui.screens.confirm import ConfirmScreen
from subdeck.tui.screens.launch import LaunchScreen
from textual.events import Key
from textual.widgets import TextArea

from .deck import Deck, opened
from .fake_engine import FakeEngine, a_preset, a_run


def burst(deck: Deck, keys: str) -> None:
    """Keys as they come in one packet: all there before the first has done anything."""
    for character in keys:
        named = {" ": "space", "\r": "enter", "\x1b": "escape"}
        deck.app.post_message(Key(named.get(character, character), character))


async def test_a_task_typed_at_once_reaches_its_field() -> None:
    """Nothing of what follows the launching key is lost, reordered, or done to the deck."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine) as deck:
        burst(deck, "nfix x and quit")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        field = deck.app.screen.query_one("#task", TextArea)
        await deck.until(lambda: field.text == "fix x and quit", "the whole task")
        assert engine.stopped == []


async def test_keys_that_follow_are_in_order() -> None:
    """What is typed while the first keys are held back comes after them."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine) as deck:
        burst(deck, "nabc")
        await deck.press("d", "e", "f")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        field = deck.app.screen.query_one("#task", TextArea)
        await deck.until(lambda: field.text == "abcdef", "the whole task")


async def test_the_deck_gets_its_keys_at_once() -> None:
    """Keys for the deck are held back by nothing."""
    engine = FakeEngine(*(a_run(number) for number in range(1, 6)))
    async with opened(engine) as deck:
        burst(deck, "jjjk")
        await deck.until(lambda: deck.main.runs.cursor == 2, "the cursor")


async def test_a_dialog_without_fields_takes_keys() -> None:
    """Where nothing can have the focus the keys go to the dialog itself."""
    async with opened(FakeEngine(a_run(1))) as deck:
        burst(deck, "i3\x1b")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck again")


async def test_an_answer_typed_with_its_question() -> None:
    """The answer to a question that takes a moment to appear does not act on the deck when it comes first."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        burst(deck, "X")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmScreen), "the question")
        burst(deck, "y")
        await deck.until(lambda: engine.stopped, "the kill")
