"""The registry of actions is the only source of keys."""

from __future__ import annotations

import pytest
from subdeck.tui.deck._bars import fitting
from subdeck.tui.dialogs.reader import HelpScreen, help_text
from subdeck.tui.keys.actions import ACTIONS, BY_ID
from subdeck.tui.keys.command import MODES, ON_DECK, PANES, ActionContext, KeyContext
from subdeck.tui.keys.help import first_keys
from subdeck.tui.keys.keymap import TEXT_CONTEXTS, bindings, footer_hints, key_of, meanings, with_keys
from subdeck.tui.palette._offers import action_offers, matching
from textual.binding import Binding
from textual.keys import key_to_character
from textual.widgets import Input

from ..fake_engine import FakeEngine, a_preset, a_run
from ..open_deck import Deck, opened


@pytest.mark.parametrize("place", list(KeyContext))
def test_no_key_has_two_meanings(place: KeyContext) -> None:
    """In one place, including its parents, a key has one meaning."""
    meant: dict[str, set[str]] = {}
    for action in ACTIONS:
        for where, key in action.keys:
            if where is place or (where in place.around and place not in MODES):
                meant.setdefault(key, set()).add(action.id)
    assert {key: ids for key, ids in meant.items() if len(ids) > 1} == {}


def test_a_mode_hides_the_keys_around_it() -> None:
    """While a transcript is searched, n and Escape belong to the search; all other keys keep their meaning."""
    searching = {key: action.id for key, action in meanings(KeyContext.SEARCH)}
    reading = {key: action.id for key, action in meanings(KeyContext.TRANSCRIPT)}
    assert {key: searching[key] for key in ("n", "N", "escape")} == {
        "n": "next_match",
        "N": "previous_match",
        "escape": "end_search",
    }
    assert {key: name for key, name in searching.items() if key not in ("n", "N", "escape")} == {
        key: name for key, name in reading.items() if key not in ("n", "N", "escape")
    }


def test_the_deck_has_few_keys() -> None:
    """The deck, its panes and the app have at most 60 default keys; one that does the same in several panes counts
    once. All other actions are in the palette.
    """
    places = {KeyContext.APP, KeyContext.DECK, *PANES}
    assert len({(action.id, key) for action in ACTIONS for place, key in action.keys if place in places}) <= 60
    keyless = [action for action in ACTIONS if not action.keys]
    assert keyless
    assert [] == [action.id for action in keyless if not action.in_palette]
    assert {key_of(action.id) for action in keyless} == {f":{action.name}" for action in keyless}


async def test_a_name_finds_its_action() -> None:
    """The words behind the palette's key find the action of that name first."""
    async with opened(FakeEngine()) as deck:
        offers = list(action_offers((action for action in ACTIONS if action.in_palette), ACTIONS))
        for action in ACTIONS:
            if action.in_palette and not action.keys:
                assert matching(offers, action.name)[0].key == action.id
        await deck.press("colon", *"notifications", "enter")
        await deck.until_text("No notifications yet.")


def test_ids_are_unique() -> None:
    """An action is identified by its id."""
    assert len(BY_ID) == len(ACTIONS)


def test_forbidden_keys() -> None:
    """Keys that terminals and tmux swallow are not used."""
    keys = {key for action in ACTIONS for _, key in action.keys}
    assert not {"ctrl+q", "ctrl+b"} & keys
    assert not [key for key in keys if key.startswith("alt+")]


def test_escape_never_quits() -> None:
    """Escape only ever goes back or cancels."""
    assert {action.id for action in ACTIONS for _, key in action.keys if key == "escape"} == {
        "back",
        "cancel",
        "drop",
        "end_search",
        "later",
        "leave_unsaid",
    }


def test_help_names_every_action() -> None:
    """The help lists every action's sentence."""
    shown = " ".join(help_text().plain.split())
    assert [action.id for action in ACTIONS if " ".join(with_keys(action.help).split()) not in shown] == []


@pytest.mark.parametrize("place", [place for place in KeyContext if place not in TEXT_CONTEXTS or place.around == ()])
def test_the_help_begins_with_twenty_keys(place: KeyContext) -> None:
    """The help of a place first shows at most twenty keys that work there, its own before those around it."""
    group = first_keys(ACTIONS, place)
    reachable = {action.id for _, action in meanings(place)}
    assert 0 < len(group.rows) <= 20
    assert reachable.issuperset(row.action.id for row in group.rows)
    own = [place in row.action.key_contexts for row in group.rows]
    if place in ON_DECK:
        assert own == sorted(own, reverse=True)
        assert place in (KeyContext.APP, KeyContext.DECK) or len(group.rows) == 20


async def test_a_second_press_shows_all_keys() -> None:
    """`?` shows the keys of the focused pane, a second press all, a third the first ones again; words search all."""
    async with opened(FakeEngine(a_run(1), presets=[a_preset()]), (120, 60)) as deck:
        await deck.press("2", "?")
        await deck.until_text("Go to the highlighted run's transcript.")
        assert "Open the transcript at the highlighted hit." not in text_of_help(deck)
        await deck.press("?")
        await deck.until(lambda: "Open the transcript at the highlighted hit." in text_of_help(deck), "all keys", 8)
        await deck.press("?")
        await deck.until(
            lambda: "Open the transcript at the highlighted hit." not in text_of_help(deck), "fewer keys", 8
        )
        await deck.type("hit.")
        await deck.until(lambda: "Open the transcript at the highlighted hit." in text_of_help(deck), "the words", 8)


def text_of_help(deck: Deck) -> str:
    screen = deck.app.screen
    assert isinstance(screen, HelpScreen)
    return " ".join(screen.matching(screen.query_one(Input).value.split()).plain.split())


def test_help_can_be_filtered() -> None:
    """The help keeps only actions that contain all typed words."""
    assert "Kill the run" in help_text(["kill", "run"]).plain
    assert "Copy the run id" not in help_text(["kill", "run"]).plain


def test_footer_offers_only_what_is_possible() -> None:
    """The footer does not offer to stop a finished run."""
    running = footer_hints(ActionContext(run=a_run(1)))
    over = footer_hints(ActionContext(run=a_run(1, "completed")))
    assert "stop" in [hint.name for hint in running]
    assert "stop" not in [hint.name for hint in over]


def test_narrow_footer_keeps_the_way_to_help() -> None:
    """With room for a few hints, help is among them."""
    hints = footer_hints(ActionContext(preset=a_preset(), run=a_run(1), unseen=1))
    assert "help" in [hint.name for hint in fitting(hints, 34)]
    assert len(fitting(hints, 34)) < len(hints)


def bound(place: KeyContext) -> list[Binding]:
    return [binding for binding in bindings(place) if isinstance(binding, Binding)]


def test_each_pane_moves_alike() -> None:
    """The keys that move are the same in all panes."""
    moving = [
        {binding.key for binding in bound(place) if binding.action.startswith("move") and "ft" not in binding.action}
        for place in PANES
    ]
    assert moving[0] == moving[1]
    assert {"j", "k", "g", "G", "down", "up", "pagedown", "pageup"} <= moving[0] & moving[2]


async def test_bindings_of_the_app_come_from_the_registry() -> None:
    """Every key of the deck and its panes is from the registry, except those needed by Textual."""
    async with opened(FakeEngine(a_run(1), presets=[a_preset()])) as deck:
        known = {b.key for place in (KeyContext.APP, KeyContext.DECK, *PANES) for b in bound(place)}
        active = {printed(key) for key in deck.main.active_bindings}
        assert active - known <= {"super+c"}


async def test_an_impossible_action_says_why() -> None:
    """A key that cannot act shows the reason."""
    async with opened(FakeEngine(a_run(1, "completed"))) as deck:
        await deck.press("x")
        assert deck.toasts == ["This run is already finished (completed)."]


async def test_palette_offers_actions_and_runs_them() -> None:
    """The palette lists possible actions by name and runs them."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        await deck.press(":")
        await deck.type("stop")
        await deck.until_text("Stop the run, or all selected runs")
        assert "Delete the run" not in deck.screen_text
        await deck.type(" the run")
        await deck.until(lambda: "rerun  (r)" not in deck.screen_text, "the list to be narrowed")
        await deck.press("enter")
        await deck.until_text("Stop this run?")
        await deck.press("y")
        await deck.until(lambda: engine.stopped, "the engine to be asked")


def printed(key: str) -> str:
    """Return the registry's spelling of a key with a name in Textual."""
    character = {"minus": "-", "plus": "+", "slash": "/"}.get(key) or key_to_character(key) or ""
    return character if character.isprintable() and character not in ("", " ") else key


async def test_the_palette_tells_like_names_apart() -> None:
    """Actions with the same name are distinguished by their pane."""
    async with opened(FakeEngine(a_run(1, "completed"), presets=[a_preset()])) as deck:
        await deck.press(":")
        await deck.type("delete")
        await deck.until_text("delete · presets  (d)")
        await deck.until_text("delete · runs  (d)")
