"""The first minute: a run from one key and a sentence, and misdirected typing does no harm."""

from __future__ import annotations

import errno
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.presets.catalog import PresetCatalog
from subdeck.core.presets.file import PresetProblem
from subdeck.core.run.model import PresetSource
from subdeck.tui.app import SubdeckApp
from subdeck.tui.dialogs.ask import QuitScreen
from subdeck.tui.dialogs.reader import RefusalScreen
from subdeck.tui.feed.messages import PresetsRead
from subdeck.tui.launch._early_screen import EarlyScreen
from subdeck.tui.launch._screen import LaunchScreen

from ..fake_engine import FakeEngine, a_preset, a_run
from ..launch_dialog import dialog_of
from ..open_deck import Deck, opened

SENTENCE = "request what is here"


async def test_the_first_run_needs_no_preset() -> None:
    """Without presets `n`, a sentence and ctrl+s launch a run."""
    engine = FakeEngine()
    async with opened(engine, (80, 24)) as deck:
        await deck.until(lambda: deck.main.presets.known.is_set(), "the presets")
        await dialog_of(deck, "n")
        await deck.until_text("One-off run")
        await deck.type(SENTENCE)
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert [(SENTENCE, None)] == [(request.task, request.preset) for request in engine.launched]


@pytest.mark.parametrize("presets", [[], [a_preset(model=None)]])
async def test_the_only_known_model_is_filled_in(presets: list[object]) -> None:
    """If no model is set and only one is known, the run gets that one."""
    engine = FakeEngine(presets=presets)  # type: ignore[arg-type]
    engine.settings = Settings(models=("fake/only",))
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.known.is_set(), "the presets")
        await dialog_of(deck, "n")
        await deck.type("go")
        await deck.press("ctrl+s")
        await deck.until(lambda: engine.launched, "the launch")
        assert ["fake/only"] == [request.model for request in engine.launched]


async def test_one_of_several_models_is_not_chosen() -> None:
    """Among several known models the user has to choose."""
    engine = FakeEngine()
    engine.settings = Settings(models=("fake/one", "fake/two"))
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.known.is_set(), "the presets")
        dialog = await dialog_of(deck, "n")
        await deck.until_text("↓ 2 known")
        assert "" == dialog.form.first.model


A_BROKEN_ONE = PresetProblem(path="/odd.md", message="bad", line=1, source=PresetSource.PROJECT, name="odd")
REFUSED = [
    (lambda: FakeEngine(problems=[A_BROKEN_ONE]), "n", "preset file is broken"),
    (
        lambda: FakeEngine(a_run(1, meta_session_path="/s", meta_child_session_id="s")),
        "s",
        "takes no messages",
    ),
    (lambda: FakeEngine(a_run(1)), ":with_context", "Nothing to continue"),
    (lambda: FakeEngine(a_run(1, foreign=True)), "R", "This run is untrusted"),
]


@pytest.mark.parametrize(("make", "key", "why"), REFUSED)
async def test_what_is_typed_for_a_refused_dialog_does_nothing(
    make: Callable[[], FakeEngine], key: str, why: str
) -> None:
    """A refused dialog shows the reason in its place until Escape, and no letter typed there acts as a key."""
    engine = make()
    async with opened(engine) as deck:
        await deck.until(lambda: deck.main.presets.known.is_set(), "the presets")
        await deck.press(key)
        await deck.until_text(why)
        await deck.type(f"{SENTENCE} xydru")
        await deck.press("enter", "ctrl+s")
        assert isinstance(deck.app.screen, RefusalScreen)
        assert deck.app.is_running
        assert (engine.launched, engine.stopped, engine.deleted) == ([], [], [])
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert any(why in toast.plain for toast in deck.app.toasts.entries())


async def asked_to_quit(deck: Deck) -> None:
    await deck.press("q")
    await deck.until(lambda: isinstance(deck.app.screen, QuitScreen), "the question")


async def test_quitting_beside_active_runs_asks() -> None:
    """With running runs `q` asks and reports that they continue; Enter stays, `y` quits."""
    engine = FakeEngine(a_run(1), a_run(2, "completed"))
    async with opened(engine, (80, 24)) as deck:
        await asked_to_quit(deck)
        await deck.until_text("1 run continues in the background")
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert deck.app.is_running


async def test_the_answer_quits_and_leaves_runs_alone() -> None:
    """`y` to the question ends the app, and its last line names the runs still running."""
    engine = FakeEngine(a_run(1), a_run(2, "completed"))
    async with opened(engine, (80, 24)) as deck:
        await asked_to_quit(deck)
        await deck.press("y")
    assert "1 run is still running. subdeck status shows it." == deck.app.return_value
    assert engine.stopped == []


async def test_quitting_an_idle_deck_is_one_key() -> None:
    """Without running runs and recent typing, `q` quits."""
    async with opened(FakeEngine(a_run(1, "completed"))) as deck:
        await deck.press("q")
    assert deck.app.return_value == ""


async def test_letters_typed_before_do_not_matter_to_an_idle_deck() -> None:
    """Without running runs `q` quits right after other keys, even after the help, without a question."""
    async with opened(FakeEngine(a_run(1, "completed"))) as deck:
        await deck.press("?")
        await deck.until_text("Keys")
        await deck.press("escape")
        await deck.type("jq")
        await deck.until(lambda: not deck.app.is_running, "the end")
    assert deck.app.return_value == ""


async def test_a_letter_of_a_word_is_no_answer() -> None:
    """With a running run, a `q` right after other letters asks, and a `y` among letters does not confirm."""
    async with opened(FakeEngine(a_run(1))) as deck:
        await deck.type("jq")
        await deck.until(lambda: isinstance(deck.app.screen, QuitScreen), "the question")
        await deck.type("uery")
        assert isinstance(deck.app.screen, QuitScreen)
        assert deck.app.is_running


async def test_quitting_with_an_unsent_text_asks() -> None:
    """An unsent message is named before quitting discards it, even without running runs."""
    run = a_run(1, "completed", meta_child_session_id="s", meta_session_path="x")
    engine = FakeEngine(run, presets=[a_preset()])
    async with opened(engine) as deck:
        await deck.until(deck.main.presets.known.is_set, "the presets")
        await deck.press("3", "s")
        await deck.until_text("follow up on repo-scout")
        await deck.type("and the tests")
        await deck.press("escape")
        await asked_to_quit(deck)
        await deck.until_text("Unsent draft, lost if you quit: follow up on repo-scout")
        assert "run" not in deck.rows(deck.app.screen.query_one("#detail"))[0].partition(":")[0]


# --- before the presets are read -------------------------------------------------------------------------------------


@asynccontextmanager
async def opened_before_presets(engine: FakeEngine) -> AsyncIterator[tuple[Deck, threading.Event]]:
    """Open the app while its presets are still being read; setting the event ends that."""
    disk, read = threading.Event(), engine.presets

    def slow() -> PresetCatalog:
        disk.wait(30)
        return read()

    engine.presets = slow  # type: ignore[method-assign]
    app = SubdeckApp(engine)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        try:
            yield Deck(app, pilot), disk
        finally:
            disk.set()


async def test_launching_waits_for_the_presets() -> None:
    """`n` before the presets are read opens a dialog whose text and launch key go to the highlighted preset; the cursor
    goes to the run.
    """
    engine = FakeEngine(presets=[a_preset()])
    async with opened_before_presets(engine) as (deck, disk):
        await deck.press("n")
        await deck.until(lambda: isinstance(deck.app.screen, EarlyScreen), "the dialog")
        await deck.type(SENTENCE)
        await deck.press("ctrl+s")
        await deck.until_text("The run launches when they are ready")
        assert [] == engine.launched
        disk.set()
        await deck.until(lambda: engine.launched, "the launch")
        assert [(SENTENCE, "repo-scout")] == [(request.task, request.preset) for request in engine.launched]


async def test_presets_that_are_read_while_the_dialog_opens() -> None:
    """The waiting dialog is also replaced if presets arrive before it has its fields."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened(engine) as deck:
        await deck.until(deck.main.presets.known.is_set, "the presets")
        deck.main.presets.known.clear()
        deck.main.action_act("launch")
        assert isinstance(deck.app.screen, EarlyScreen)
        assert not deck.app.screen.is_mounted
        deck.main.show_presets(PresetsRead(engine.catalog))
        await deck.until_text("Launch repo-scout")


async def test_presets_that_cannot_be_read() -> None:
    """If presets cannot be read, the waiting dialog is replaced by one for a one-off task with the same text."""
    engine = FakeEngine()

    def refuse() -> PresetCatalog:
        raise PermissionError(errno.EACCES, "Permission denied")

    engine.presets = refuse  # type: ignore[method-assign]
    async with opened_before_presets(engine) as (deck, disk):
        await deck.press("n")
        await deck.type("one")
        await deck.until_text("^s launch   esc cancel")
        disk.set()
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the launch dialog")
        await deck.until_text("one")


async def test_what_is_typed_while_presets_are_read_stays() -> None:
    """The dialog that replaces the waiting one has its text, accepts further typing, and launches."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    async with opened_before_presets(engine) as (deck, disk):
        await deck.press("n")
        await deck.type("one ")
        disk.set()
        await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the launch dialog")
        await deck.type("two")
        await deck.until_text("one two")
        await deck.until_text("Launch repo-scout")
        await deck.press("ctrl+s")
        await deck.until(lambda: deck.main.run and deck.main.run.meta.task == "one two", "the cursor on the new run")


async def test_leaving_before_the_presets_are_read_keeps_the_text() -> None:
    """Escape closes the waiting dialog; its text begins the next launch without a preset."""
    engine = FakeEngine(presets=[a_preset()])
    async with opened_before_presets(engine) as (deck, disk):
        await deck.press("n")
        await deck.type(SENTENCE)
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        disk.set()
        await deck.until(deck.main.presets.known.is_set, "the presets")
        await deck.press("N")
        await deck.until_text(SENTENCE)


async def test_a_follow_up_waits_for_the_presets() -> None:
    """A preset that was not read yet is not reported as gone."""
    run = a_run(1, "completed", meta_child_session_id="s", meta_session_path="x")
    engine = FakeEngine(run, presets=[a_preset()])
    async with opened(engine) as deck:
        deck.main.presets.known.clear()
        await deck.press("2", "s")
        await deck.until(lambda: isinstance(deck.app.screen, EarlyScreen), "the waiting dialog")
        await deck.type("more")
        deck.main.show_presets(PresetsRead(engine.catalog))
        await deck.until_text("Follow up with repo-scout")
        await deck.until_text("more")
