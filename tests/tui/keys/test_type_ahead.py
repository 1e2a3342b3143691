"""Keys that come faster than a dialog opens."""

from __future__ import annotations

import threading

import pytest
from subdeck.core.errors import UnknownRun
from subdeck.tui.dialogs.ask import ConfirmScreen
from subdeck.tui.launch._screen import LaunchScreen
from subdeck.tui.palette._screen import PaletteScreen
from textual.events import Key, Paste
from textual.widgets import TextArea

from ..fake_engine import FakeEngine, a_preset, a_run
from ..open_deck import Deck, opened


def burst(deck: Deck, keys: str) -> None:
    """Send keys like one packet: all arrive before the first has taken effect."""
    for character in keys:
        named = {" ": "space", "\r": "enter", "\x1b": "escape", "\x13": "ctrl+s", "\x10": "ctrl+p"}
        deck.app.post_message(Key(named.get(character, character), character))


async def test_a_task_typed_at_once_reaches_its_field() -> None:
    """Keys after the launch key are not lost, reordered, or handled by the deck."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine) as deck:
        burst(deck, "nfix x and quit")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        field = deck.app.screen.query_one("#task", TextArea)
        await deck.until(lambda: field.text == "fix x and quit", "the whole task")
        assert engine.stopped == []


async def test_keys_that_follow_are_in_order() -> None:
    """Keys typed while the first ones are delayed come after them."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine) as deck:
        burst(deck, "nabc")
        await deck.press("d", "e", "f")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        field = deck.app.screen.query_one("#task", TextArea)
        await deck.until(lambda: field.text == "abcdef", "the whole task")


async def test_the_deck_gets_its_keys_at_once() -> None:
    """Keys for the deck are never delayed."""
    engine = FakeEngine(*(a_run(number) for number in range(1, 6)))
    async with opened(engine) as deck:
        burst(deck, "jjjk")
        await deck.until(lambda: deck.main.runs.cursor == 2, "the cursor")


async def test_a_dialog_without_fields_takes_keys() -> None:
    """If a dialog has nothing to focus, it gets the keys itself."""
    async with opened(FakeEngine(a_run(1))) as deck:
        burst(deck, "i3\x1b")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck again")


async def test_an_answer_typed_with_its_question() -> None:
    """An answer typed before its question appears does not act on the deck."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        burst(deck, "X")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmScreen), "the question")
        burst(deck, "y")
        await deck.until(lambda: engine.stopped, "the kill")


@pytest.mark.parametrize("keys", ["Xy", "dy"])
async def test_a_question_and_its_answer_in_one_packet(keys: str) -> None:
    """The answer waits for the question, however long that takes, and does not act on the deck."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        burst(deck, keys)
        await deck.until(lambda: engine.stopped, "the run's end")
        assert not [told for told in deck.toasts if "Copied" in told]


async def test_a_dialog_is_there_before_its_data() -> None:
    """A question is shown while its detail is read, and typed keys wait for it."""
    engine, disk = FakeEngine(a_run(1)), threading.Event()

    def slow(_run_id: str) -> dict[str, str]:
        disk.wait()
        return {}

    engine.artifacts = slow  # type: ignore[method-assign]
    async with opened(engine) as deck:
        burst(deck, "dy")
        await deck.until_text("Delete this run?")
        assert (engine.stopped, engine.deleted) == ([], [])
        disk.set()
        await deck.until(lambda: engine.deleted, "the deletion")


async def test_keys_for_a_dialog_that_does_not_come() -> None:
    """If the dialog fails to open, the keys typed for it do not act on the deck."""
    engine = FakeEngine(a_run(1))

    def fails(_run_id: str) -> dict[str, str]:
        raise UnknownRun("no such run")

    engine.artifacts = fails  # type: ignore[method-assign]
    async with opened(engine) as deck:
        burst(deck, "dxxx")
        await deck.until(lambda: deck.toasts, "what went wrong")
        await deck.pilot.pause()
        await deck.press("j")
        assert engine.stopped == []


async def test_launching_in_one_packet() -> None:
    """The launch key takes the whole of a long task from its packet."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    task = "fix " * 100 + "it"
    async with opened(engine) as deck:
        burst(deck, f"n{task}\x13")
        await deck.until(lambda: engine.launched, "the launch")
        assert [task] == [request.task for request in engine.launched]


async def test_leaving_in_one_packet() -> None:
    """Escape comes after the text typed before it: nothing is launched, and the text is kept."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    task = "fix " * 50 + "it"
    async with opened(engine) as deck:
        shown: list[object] = []
        push = deck.app.push_screen
        deck.app.push_screen = lambda screen, *more: (shown.append(screen), push(screen, *more))[1]
        burst(deck, f"n{task}\x1b")
        await deck.until(lambda: shown and deck.app.screen is deck.main, "the deck again")
        await deck.press("n")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        field = deck.app.screen.query_one("#task", TextArea)
        await deck.until(lambda: field.text == task, "the draft")
        assert engine.launched == []


async def test_what_is_pasted_right_after_the_key() -> None:
    """A paste in the packet of the key that opens the dialog is not lost and keeps its order."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine) as deck:
        burst(deck, "nab")
        deck.app.post_message(Paste("one\rtwo"))
        burst(deck, "cd")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        field = deck.app.screen.query_one("#task", TextArea)
        await deck.until(lambda: field.text == "abone\ntwocd", "the whole task")


async def test_a_task_typed_with_the_palette() -> None:
    """Keys after a palette command go to the dialog that it opens, not to the deck."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened(engine) as deck:
        burst(deck, "\x10launch ")
        await deck.until(lambda: isinstance(deck.app.screen, PaletteScreen), "the palette")
        await deck.until_text("Launch the")
        burst(deck, "\rx")
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
        assert engine.stopped == []
