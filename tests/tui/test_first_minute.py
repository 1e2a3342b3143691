"""The first minute: a run from one key and a sentence, and nothing typed into the wrong place does harm."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.presets.file import PresetProblem
from subdeck.core.run.model import PresetSource
from subdeck.tui.dialogs.ask import QuitScreen
from subdeck.tui.dialogs.reading import RefusalScreen

from .deck import Deck, opened
from .fake_engine import FakeEngine, a_preset, a_run
from .launching import dialog_of

SENTENCE = "request what is here"


async def test_the_first_run_needs_no_preset() -> None:
    """Where there is no preset `n`, a sentence and ctrl+s launch a run."""
    engine = FakeEngine()
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.is_known, "the presets")
        await dialog_of(deck, "n")
        await deck.until_text("Run without a preset")
        await deck.type(SENTENCE)
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert [(SENTENCE, None)] == [(request.task, request.preset) for request in engine.launched]


@pytest.mark.parametrize("presets", [[], [a_preset(model=None)]])
async def test_the_only_known_model_is_filled_in(presets: list[object]) -> None:
    """Where nobody names a model and one is known, the run gets that one."""
    engine = FakeEngine(presets=presets)  # type: ignore[arg-type]
    engine.settings = Settings(models=("fake/only",))
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.is_known, "the presets")
        await dialog_of(deck, "n")
        await deck.type("go")
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert ["fake/only"] == [request.model for request in engine.launched]


async def test_one_of_several_models_is_not_chosen() -> None:
    """Which of several models is meant is for the operator to say."""
    engine = FakeEngine()
    engine.settings = Settings(models=("fake/one", "fake/two"))
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.is_known, "the presets")
        dialog = await dialog_of(deck, "n")
        await deck.until_text("↓ 2 known")
        assert "" == dialog.form.first.model


A_BROKEN_ONE = PresetProblem(path="/odd.md", message="bad", line=1, source=PresetSource.PROJECT, name="odd")
REFUSED = [
    (lambda: FakeEngine(problems=[A_BROKEN_ONE]), "n", "This file is broken"),
    (
        lambda: FakeEngine(a_run(1, meta_session_path="/s", meta_child_session_id="s")),
        "s",
        "takes no messages",
    ),
    (lambda: FakeEngine(a_run(1)), "C", "is nothing to continue"),
    (lambda: FakeEngine(a_run(1, foreign=True)), "R", "This run is foreign"),
]


@pytest.mark.parametrize(("make", "key", "why"), REFUSED)
async def test_what_is_typed_for_a_refused_dialog_does_nothing(
    make: Callable[[], FakeEngine], key: str, why: str
) -> None:
    """In the place of the dialog stands why it does not come, until Escape: no letter is taken for a key."""
    engine = make()
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.is_known, "the presets")
        await deck.press(key)
        await deck.until_text(why)
        await deck.type(f"{SENTENCE} xydru")
        await deck.press("enter", "ctrl+s")
        assert isinstance(deck.app.screen, RefusalScreen)
        assert deck.app.is_running
        assert (engine.launched, engine.stopped, engine.deleted) == ([], [], [])
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert any(why in notice.plain for notice in deck.app.notices.entries())


async def asked_to_quit(deck: Deck) -> None:
    await deck.press("q")
    await deck.until(lambda: isinstance(deck.app.screen, QuitScreen), "the question")


async def test_quitting_beside_active_runs_asks() -> None:
    """With runs alive `q` asks and says that they go on; Enter stays, `y` quits."""
    engine = FakeEngine(a_run(1), a_run(2, "completed"))
    async with opened(engine, (80, 24)) as deck:
        await asked_to_quit(deck)
        await deck.until_text("1 run goes on in the background")
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert deck.app.is_running


async def test_the_answer_quits_and_leaves_runs_alone() -> None:
    """`y` to the question ends the app; the line that it leaves says what still runs."""
    engine = FakeEngine(a_run(1), a_run(2, "completed"))
    async with opened(engine, (80, 24)) as deck:
        await asked_to_quit(deck)
        await deck.press("y")
    assert "1 run is still running; subdeck status shows it" == deck.app.return_value
    assert engine.stopped == []


async def test_quitting_an_idle_deck_is_one_key() -> None:
    """Where nothing runs and nothing was typed just before, `q` quits."""
    async with opened(FakeEngine(a_run(1, "completed"))) as deck:
        await deck.press("q")
    assert deck.app.return_value == ""


async def test_a_letter_of_a_word_does_not_quit() -> None:
    """A `q` right after other letters asks, and a `y` among letters is no answer."""
    async with opened(FakeEngine(a_run(1, "completed"))) as deck:
        await deck.type("jq")
        await deck.until(lambda: isinstance(deck.app.screen, QuitScreen), "the question")
        await deck.type("uery")
        assert isinstance(deck.app.screen, QuitScreen)
        assert deck.app.is_running
