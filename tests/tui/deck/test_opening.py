"""The app opened at one run, or read-only."""

from __future__ import annotations

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.run.snapshot import Counts
from subdeck.tui.keys.actions import ACTIONS, BY_ID
from subdeck.tui.keys.command import READONLY, ActionContext, KeyContext
from subdeck.tui.terminal.escapes import has_title, title

from ..fake_engine import FakeEngine, a_preset, a_run, run_id, some_events
from ..open_deck import Deck, opened

CHANGING = {
    "launch", "ad_hoc", "rerun", "follow_up", "with_context", "start", "stop", "kill", "delete", "undo", "copy_preset",
    "write_copy",
}  # fmt: skip


def two_runs() -> FakeEngine:
    engine = FakeEngine(a_run(1, "completed"), a_run(2), presets=[a_preset()])
    engine.write(run_id(1), *some_events())
    return engine


def alone(deck: Deck) -> bool:
    return deck.main.transcript.display and not deck.main.runs.display and not deck.main.presets.display


# --- one run -----------------------------------------------------------------------------------------------------


async def test_a_run_by_itself() -> None:
    """The run's transcript fills the screen and is followed; Escape goes to the deck, with the cursor on that run."""
    async with opened(two_runs(), run_id=run_id(1)) as deck:
        await deck.until_text("Finished reading src/file_2.py")
        assert alone(deck)
        assert deck.main.transcript.following
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.display, "the deck")
        assert deck.main.run is not None and deck.main.run.run_id == run_id(1)
        assert deck.main.transcript.run_id == run_id(1)


async def test_an_old_run_by_itself() -> None:
    """Until the engine reports the run, no other run takes its place, and no key acts on another."""
    engine = FakeEngine(a_run(2))
    async with opened(engine, run_id=run_id(1)) as deck:
        await deck.press("x")
        assert engine.stopped == []
        assert deck.main.transcript.run_id is None
        engine.tell(a_run(1, "completed"))
        await deck.until(lambda: deck.main.transcript.run_id == run_id(1), "the run's transcript")
        assert alone(deck)


async def test_a_run_by_itself_that_goes_away() -> None:
    """If the run is deleted, the header keeps reporting that, keys act on no other run, and Escape goes to the deck."""
    engine = two_runs()
    async with opened(engine, run_id=run_id(1)) as deck:
        await deck.until_text("Finished reading src/file_2.py")
        engine.tell(removed=[run_id(1)])
        await deck.until_text("this run no longer exists · esc goes to the deck")
        assert alone(deck)
        await deck.press("x")
        assert engine.stopped == []
        await deck.press("escape")
        await deck.until(lambda: deck.main.transcript.run_id == run_id(2), "the other run")
        assert "no longer" not in deck.screen_text


async def test_a_run_by_itself_that_comes_back() -> None:
    """If the run is restored, the screen is as before."""
    engine = two_runs()
    async with opened(engine, run_id=run_id(1)) as deck:
        await deck.until_text("Finished reading src/file_2.py")
        engine.tell(removed=[run_id(1)])
        await deck.until_text("no longer exists")
        engine.tell(a_run(1, "completed"))
        await deck.until(lambda: "no longer" not in deck.screen_text, "the note to go")
        assert deck.main.run is not None and deck.main.run.run_id == run_id(1)


# --- read-only ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CHANGING & BY_ID.keys()))
def test_what_changes_something_is_refused(name: str) -> None:
    """Every action that launches, stops, deletes or writes is marked, and a read-only deck refuses it."""
    assert BY_ID[name].changes
    assert BY_ID[name].refusal(ActionContext(run=a_run(1), preset=a_preset(), readonly=True)) == READONLY


def test_every_key_that_ends_a_form_changes_something() -> None:
    """Every ctrl+s in a dialog writes or launches, except in a dialog for reading only."""
    ends = [
        action.id
        for action in ACTIONS
        for place, key in action.keys
        if key == "ctrl+s" and place is not KeyContext.DECK
    ]
    assert ends and [name for name in ends if not BY_ID[name].changes] == []


async def test_a_readonly_app() -> None:
    """The header of a read-only app says read-only, no result becomes read, and refused keys give the reason."""
    engine = two_runs()
    engine.untold = (a_run(1, "completed"),)
    async with opened(engine, readonly=True) as deck:
        await deck.until_text("subdeck  read-only  ")
        await deck.press("x", "r", "n", "escape", "N", "escape")
        refused = lambda: sum(READONLY in toast.plain for toast in deck.app.toasts.entries())  # noqa: E731
        await deck.until(lambda: refused() == 4, "four refusals")
        assert len(deck.app.screen_stack) == 1
        engine.tell(a_run(2, "completed"))
        await deck.until(lambda: deck.main.counts.running == 0, "the end")
        assert any("While you were away, 1 run finished" in toast.plain for toast in deck.app.toasts.entries())
    assert (engine.claimed, engine.stopped, engine.launched) == ([], [], [])


async def test_a_readonly_footer_and_palette() -> None:
    """A read-only footer and palette do not offer refused actions."""
    async with opened(two_runs(), readonly=True) as deck:
        assert "launch" not in deck.screen_text.split("\n")[-1]
        await deck.press(":")
        await deck.until_text("Go to the highlighted run's transcript")
        assert "Launch the highlighted preset" not in deck.screen_text


# --- the window's title ------------------------------------------------------------------------------------------


def test_a_title_is_plain() -> None:
    """The title has the count and the project, and neither can end the sequence."""
    assert title(Counts(running=2, total=3), "/src/shop") == "subdeck – 2 running – /src/shop"
    assert title(Counts(), "/src/\x1b]0;x\x07sh\nop").isprintable()


@pytest.mark.parametrize("term", ["", "dumb", "linux", "vt100"])
def test_terminals_without_a_title(term: str) -> None:
    """Terminals that might print the title's sequence do not get it."""
    assert not has_title({"TERM": term})
    assert has_title({"TERM": "tmux-256color"}) and has_title({"TERM": "xterm"})


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_title_follows_the_count(monkeypatch: pytest.MonkeyPatch, wanted: bool) -> None:
    """The title is sent only when the count changes, and a setting disables it."""
    from subdeck.core.config.settings import Notifications
    from subdeck.tui.terminal import escapes

    told: list[str] = []
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(escapes, "write_to_terminal", lambda _, sequence: told.append(sequence))
    engine = two_runs()
    engine.settings = Settings(notifications=Notifications(title=wanted))
    async with opened(engine) as deck:
        engine.tell(a_run(2, activity="Reading"))
        await deck.until_text("Reading")
        engine.tell(a_run(2, "completed"))
        await deck.until_text("0 running")
    names = [f"\x1b]2;subdeck – {count} running – /src/shop\x07" for count in (1, 0)]
    assert told == (names if wanted else [])
