"""Keys from the settings: they work, the screen shows them, and an invalid one is a warning when the app opens."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.config._app_names import keys
from subdeck.core.config.settings import OwnCommand, SettingFault, Settings
from subdeck.core.errors import ContentError, SettingsError
from subdeck.core.paths import user_settings_file
from subdeck.tui.dialogs.reader import help_text
from subdeck.tui.keys.actions import ACTIONS, BY_ID
from subdeck.tui.keys.command import PANES, KeyContext
from subdeck.tui.keys.keymap import keymap, meanings, with_own_keys

from ..fake_engine import FakeEngine, a_preset, a_run, run_id
from ..open_deck import opened


def keys_of(keys: dict[str, str], name: str) -> dict[KeyContext, list[str]]:
    (action,) = (action for action in with_own_keys(keys) if action.id == name)
    found: dict[KeyContext, list[str]] = {}
    for place, key in action.keys:
        found.setdefault(place, []).append(key)
    return found


def test_without_keys_nothing_changes() -> None:
    """Without own keys the registry is unchanged, and Textual gets no keymap."""
    assert with_own_keys({}) == ACTIONS
    assert keymap(ACTIONS) == {}


def test_an_own_key_replaces_the_letter() -> None:
    """An action may have several own keys, and its former letter is free again."""
    assert keys_of({"stop": "ctrl+x, K"}, "stop") == {KeyContext.DECK: ["ctrl+x", "K"]}
    assert keys_of({"stop": "r", "rerun": "x"}, "stop") == {KeyContext.DECK: ["r"]}


def test_keys_that_everybody_expects_stay() -> None:
    """Enter, Escape and arrows keep their meaning beside an own key, in every place of the action."""
    assert keys_of({"open": "l"}, "open") == {pane: ["l", "enter"] for pane in PANES}
    assert keys_of({"down": "ctrl+n"}, "down")[KeyContext.TRANSCRIPT] == ["ctrl+n", "down"]


def test_spellings() -> None:
    """Textual's names for characters, and shift with a letter, mean the written character."""
    assert keys_of({"stop": "percent_sign"}, "stop") == {KeyContext.DECK: ["%"]}
    assert keys_of({"stop": "shift+z"}, "stop") == {KeyContext.DECK: ["Z"]}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"stpo": "k"}, "did you mean stop"),
        ({"stop": "ctlr+x"}, '"ctlr+x" is not a key'),
        ({"stop": ""}, "is not a key"),
        ({"stop": "f9", "edit_preset": "f9"}, '"f9" is already used for'),
        ({"stop": "o", "kill": "o"}, '"o" is already used for'),
        ({"start": "l"}, "would be typed into a text field"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, str], words: str) -> None:
    """An unknown action or key, or one of your keys for two actions, is an error that names file and action."""
    with pytest.raises(SettingsError) as caught:
        with_own_keys(keys)
    assert words in str(caught.value)
    assert caught.value.what.startswith("app.keys.")
    assert caught.value.where.endswith("config.yaml")


def test_a_wrong_key_is_named_with_its_line(home: Path) -> None:
    """A key with two meanings is named with file and line."""
    path = Path(user_settings_file())
    path.parent.mkdir(parents=True)
    path.write_text("theme: nord\nkeys:\n  stop: K\n  kill: K\n")
    with pytest.raises(SettingsError) as caught:
        with_own_keys({"stop": "K", "kill": "K"})
    assert (f"{path}:4", True) == (caught.value.where, caught.value.what.startswith("app.keys.kill: "))


@pytest.mark.parametrize(
    ("keys", "loser", "left"),
    [
        ({"stop": "d"}, "delete", {}),
        ({"stop": "d"}, "delete_preset", {}),
        ({"stop": "f9, ctrl+p"}, "palette", {KeyContext.DECK: [":"], KeyContext.APP: ["ctrl+p"]}),
        ({"edit_preset": "x"}, "stop", {KeyContext.DECK: ["x"]}),
        ({"stop": "y"}, "allow", {KeyContext.REQUEST: ["y"]}),
        ({"palette": "ctrl+s"}, "start", {KeyContext.LAUNCH: ["ctrl+s"]}),
    ],
)
def test_your_key_wins(keys: dict[str, str], loser: str, left: dict[KeyContext, list[str]]) -> None:
    """A default key that is yours for something else is gone where yours works, and only there."""
    assert keys_of(keys, loser) == left
    for place in (KeyContext.PRESETS, KeyContext.RUNS, KeyContext.TRANSCRIPT):
        meant = meanings(place, with_own_keys(keys))
        assert len({key for key, _ in meant}) == len({(key, action.id) for key, action in meant})


async def test_your_key_works_instead_of_the_default() -> None:
    """Your key, also that of your own command, acts instead of a default of the same pane or another one."""
    engine = FakeEngine(a_run(1), presets=[a_preset()])
    mine = OwnCommand(key="o", argv=("true",), title="mine", where="runs")
    engine.settings = Settings(keys={"stop": "d", "kill": "r"}, commands={"mine": mine})
    engine.cwd = "/"
    async with opened(engine) as deck:
        await deck.press("2", "d")
        await deck.until_text("Stop this run?")
        await deck.press("y")
        await deck.until(lambda: engine.stopped, "a stop")
        await deck.press("o")
        await deck.until(lambda: any("mine: done" in toast for toast in deck.toasts), "the own command")
        assert (deck.main.runs.listing.sort.name, engine.launched) == ("age", [])
        await deck.press("r")
        await deck.until_text("Kill this run?")
        await deck.press("escape", "colon", *"rerun")
        await deck.until_text("Launch the run again.")


async def test_an_action_without_a_key_can_get_one() -> None:
    """An action of the palette gets your key, in its place only, and the help shows it as yours."""
    engine = FakeEngine(a_run(1), a_run(2))
    engine.settings = Settings(keys={"messages": "f9", "mark_all": "*"})
    async with opened(engine) as deck:
        await deck.press("3", "*")
        assert not deck.main.run_store.marked
        await deck.press("2", "*")
        assert len(deck.main.run_store.marked) == 2
        await deck.press("f9")
        await deck.until_text("Notifications")
    text = " ".join(help_text(actions=with_own_keys(engine.settings.keys)).plain.split())
    assert "f9 Show all notifications since the app was opened. Your key." in text
    assert "notifications: Show all notifications since the app was opened." in " ".join(help_text().plain.split())


def test_the_help_marks_your_keys() -> None:
    """The help shows which keys are yours, and which defaults they replace; an action without a key stays listed."""
    text = " ".join(help_text(actions=with_own_keys({"stop": "d", "kill": "f9"})).plain.split())
    assert "Stop the run, or all selected runs, gracefully. Their work is kept. Your key. Default: x" in text
    assert "delete: Delete the run, or all selected runs, with all their files. Asks first; undo" in text
    assert 'd is your key for "stop".' in text
    assert "your key" not in help_text().plain.lower()


@pytest.mark.parametrize(
    "settings",
    [
        Settings(keys={"stop": "d", "kill": "d"}),
        Settings(keys={"stop": "k"}, commands={"mine": OwnCommand(key="k", argv=("a",))}),
    ],
)
async def test_the_app_opens_with_wrong_keys(settings: Settings) -> None:
    """The app opens with the default keys and warns about unusable ones."""
    engine = FakeEngine(a_run(1))
    engine.settings = settings
    async with opened(engine) as deck:
        assert any('is already used for "' in toast and "Using the default." in toast for toast in deck.toasts)
        await deck.until_text("? help")
        assert BY_ID["stop"] in deck.app._actions


async def test_the_app_opens_with_wrong_settings() -> None:
    """A wrong name in the app's settings is a warning with file, line and the nearest name."""
    engine = FakeEngine(a_run(1))
    fault = SettingFault('columns: unknown column "stat"', "/home/x/config.yaml:3", "did you mean state?")
    engine.settings = Settings(faults=(fault,))
    async with opened(engine) as deck:
        (told,) = [toast for toast in deck.toasts if "stat" in toast]
        assert all(part in told for part in ("config.yaml:3", 'unknown column "stat"', "did you mean state?"))


@pytest.mark.parametrize(
    "key", ["k", "X", "ctrl+x", "f5", "percent_sign", "shift+z", "space", "ctlr+x", "nonsense", ""]
)
def test_the_engine_knows_the_keys(key: str) -> None:
    """The engine and the app accept the same keys."""
    try:
        assert key == keys(key)
    except ContentError:
        with pytest.raises(SettingsError, match="is not a key"):
            with_own_keys({"hold_queue": key})


async def test_own_keys_act_and_are_shown() -> None:
    """The own key stops, the former does nothing; footer, help and palette show the own one."""
    engine = FakeEngine(a_run(1), a_run(2), presets=[a_preset()])
    engine.settings = Settings(keys={"stop": "k", "up": "ctrl+t"})
    async with opened(engine) as deck:
        await deck.until_text("k stop")
        await deck.press("x", "j", "k", "y")
        await deck.until(lambda: engine.stopped, "a stop")
        assert engine.stopped == [((run_id(1),), False)]
        await deck.press("?")
        await deck.type("stop")
        await deck.until_text("k           Stop the run, or all selected runs")
        await deck.press("escape", ":")
        await deck.type("stop the run")
        await deck.until_text("stop  (k)")


def test_help_without_own_keys() -> None:
    """Without own keys the help shows the default keys."""
    assert "x           Stop the run, or all selected runs" in help_text(["stop"]).plain
