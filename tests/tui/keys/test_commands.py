"""Actions are declared on their methods and collected from the features."""

from __future__ import annotations

from importlib import import_module

import pytest
from subdeck.tui.commands import Commands
from subdeck.tui.keys.actions import ACTIONS, BY_ID, FEATURES, METHODS
from subdeck.tui.keys.command import (
    DECK,
    RUNS,
    Action,
    Declared,
    KeyContext,
    action_of,
    at,
    command,
    declarations,
    needs_run,
)

from ..fake_engine import FakeEngine, a_preset, a_run, run_id
from ..open_deck import opened


class ShipCommands(Commands):
    """Commands of a feature that exists only in these tests."""

    @command("sail", at(DECK, "x"), "sail", needs=needs_run, footer=3, changes=True)
    def sail(self) -> None:
        """Sail to
        the island.
        """

    on_board = (Action("row", at(KeyContext.TILES, "y"), "row", "Row.", do="screen.row"),)

    @command("left", at(RUNS, "left"), "port", "Turn left.", args=(-1,))
    @command("right", at(RUNS, "right"), "starboard", "Turn right.", args=(1,), after="sail")
    def turn(self, by: int) -> None: ...

    async def dock(self, runs: object) -> None: ...


def test_a_method_declares_its_actions() -> None:
    """The docstring is the default help, and a method's actions keep their order."""
    declared = [*declarations(ShipCommands)]
    assert ["sail", "row", "left", "right"] == [
        each.action.id if isinstance(each, Declared) else each.id for each in declared
    ]
    sail = action_of(ShipCommands.sail)
    assert ("Sail to the island.", 3, True, needs_run) == (sail.help, sail.footer, sail.changes, sail.needs)
    assert [("sail", ()), ("turn", (-1,)), ("turn", (1,))] == [
        (each.method, each.args) for each in declared if isinstance(each, Declared)
    ]


def test_every_action_is_collected() -> None:
    """No action is lost because the action it follows is missing, and each has a help."""
    declared = [each for feature in FEATURES for each in declarations(feature)]
    ids = [each.action.id if isinstance(each, Declared) else each.id for each in declared]
    assert sorted(ids) == sorted(BY_ID)
    assert [] == [action.id for action in ACTIONS if not action.help]


def test_an_action_stands_behind_the_one_that_it_names() -> None:
    """In footer and help an action comes right after the one it follows, even of another feature."""
    order = [action.id for action in ACTIONS]
    for action in ACTIONS:
        if action.after and sum(each.after == action.after for each in ACTIONS) == 1:
            assert order[order.index(action.after) + 1] == action.id


def test_the_deck_can_do_all_that_is_its_own() -> None:
    """Every action without a Textual action has a method in one of the features."""
    assert [] == [action.id for action in ACTIONS if not action.do and action.id not in METHODS]


@pytest.mark.parametrize("feature", [Commands, *FEATURES], ids=lambda feature: feature.__name__)
def test_what_a_feature_opens_is_there(feature: type) -> None:
    """Modules loaded after the first paint exist."""
    for name in vars(feature).get("opens", ()):
        assert import_module(name, feature.__module__.rpartition(".")[0])


async def test_a_method_gets_what_its_first_parameter_is_named_after() -> None:
    """A method gets the run, the runs or the preset by its first parameter's name, and is not called without."""
    engine = FakeEngine(a_run(1), a_run(2), presets=[a_preset()])
    async with opened(engine) as deck:
        commands = deck.main.commands[ShipCommands]
        got: list[object] = []
        await deck.until(lambda: len(deck.main.run_store) == 2, "the runs")
        deck.main.runs.select(run_id(2))
        commands.do(got.append, "run", ())
        commands.do(got.append, "runs", ())
        deck.main.runs.mark([run_id(1), run_id(2)], marked=True)
        commands.do(got.append, "runs", ())
        commands.do(got.append, "", ("this",))
        run, one, both, this = got
        assert (run_id(2), "this") == (getattr(run, "run_id", ""), this)
        assert [1, 2] == [len(each) for each in (one, both) if isinstance(each, tuple)]
    async with opened(FakeEngine()) as deck:
        deck.main.commands[ShipCommands].do(got.append, "run", ())
        assert len(got) == 4
