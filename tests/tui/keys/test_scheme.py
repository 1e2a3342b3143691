"""One key means one thing in every view, and a key that writes to git or deletes does nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from msgspec.structs import replace
from subdeck.core.config.settings import Settings
from subdeck.tui.dialogs.reader import HelpScreen
from subdeck.tui.keys.actions import ACTIONS, BY_ID
from subdeck.tui.keys.command import Action, KeyContext, at
from subdeck.tui.keys.help import key_groups
from subdeck.tui.keys.keymap import with_own_keys
from subdeck.tui.keys.scheme import GUARDED, QUESTIONS, SCHEME, SCHEME_CONTEXTS, SEARCHES, Meaning

from ..fake_engine import FakeEngine, a_run
from ..open_deck import opened

WRITES = (
    "Apply",
    "Merge",
    "Squash",
    "Commit",
    "Save the run's commits",
    "Remove",
    "Delete",
    "Choose the winner",
    "Undo",
)
"""How the help of an action begins that writes to git or deletes."""


def faults(actions: Iterable[Action]) -> Iterator[str]:
    """Yield where default keys differ from the scheme, a sentence each.

    Questions, searches and text fields own their keys, but none of them may have a guarded one.
    """
    for action in actions:
        for key in sorted({key for _, key in action.keys}):
            meaning = next((meaning for meaning in (*SCHEME, *GUARDED) if key in meaning.keys), None)
            is_guarded = meaning in GUARDED
            is_free = action.id in SEARCHES or SCHEME_CONTEXTS.isdisjoint(
                place for place, own in action.keys if own == key
            )
            if is_free and not is_guarded:
                continue
            if meaning is None:
                yield f"{action.id} has the key {key}, which has no meaning yet: give it a line in tui/keys/scheme.py"
            elif not meaning.includes(action.id):
                yield f"{action.id} has the key {key}, which means “{meaning.words}” in every view: choose another key"
            elif action.guarded != is_guarded:
                yield (
                    f"{action.id} is guarded, and its key {key} is not"
                    if action.guarded
                    else (f"{action.id} is not guarded, and its key {key} is")
                )


def test_each_key_means_one_thing() -> None:
    """In every view a default key has the meaning of the scheme, and none that writes or deletes has a second one."""
    assert list(faults(ACTIONS)) == []


@pytest.mark.parametrize(
    ("action_id", "place", "key", "words"),
    [
        ("notes", KeyContext.CHANGES, "x", "notes has the key x, which means “stop”"),
        ("notes", KeyContext.HOSTS, "u", "notes has the key u, which means “undo”"),
        ("notes", KeyContext.RUNS, "#", "notes has the key #, which has no meaning"),
        ("notes", KeyContext.CONFIRM, "D", "notes has the key D, which means “discard the worktree”"),
        ("notes", KeyContext.REQUEST, "y", ""),
        ("copy_notes", KeyContext.HOSTS, "y", ""),
    ],
)
def test_a_second_meaning_is_a_fault(action_id: str, place: KeyContext, key: str, words: str) -> None:
    """A new action that takes a key with another meaning is named, with that meaning; questions own their keys."""
    new = replace(BY_ID["spaces"], id=action_id, keys=at(place, key))
    assert [fault.partition(" in every")[0].partition(" yet")[0] for fault in faults((*ACTIONS, new))] == [
        *filter(None, (words,))
    ]


def test_actions_that_write_are_guarded() -> None:
    """An action that writes to git or deletes, by its help, is declared so, and has a key of its own."""
    assert [
        action.id
        for action in ACTIONS
        if action.keys and action.help.startswith(WRITES) and action.changes and not action.guarded
    ] == []
    guarded = {action.id for action in ACTIONS if action.guarded and SCHEME_CONTEXTS.intersection(action.key_contexts)}
    assert guarded == {action_id for meaning in GUARDED for action_id in meaning.actions}
    assert all(BY_ID[action_id].changes for action_id in guarded)


def test_a_guarded_action_without_its_declaration_is_a_fault() -> None:
    """Keys that write or delete are only for actions that are declared so, and the other way round."""
    changed = [replace(action, guarded=not action.guarded) for action in (BY_ID["merge_changes"], BY_ID["stop"])]
    assert list(faults(changed)) == [
        "merge_changes is not guarded, and its key M is",
        "stop is guarded, and its key x is not",
    ]


def test_each_key_has_one_line() -> None:
    """No key has two lines in the scheme."""
    keys = [key for meaning in (*SCHEME, *GUARDED) for key in meaning.keys]
    assert sorted(set(keys)) == sorted(keys)


@pytest.mark.parametrize("meaning", [*SCHEME, *GUARDED], ids=lambda meaning: meaning.words)
def test_each_key_is_used(meaning: Meaning) -> None:
    """Each key of the scheme does an action of its line in some view; the digits are kept for parts to come."""
    bound = {
        key
        for action in ACTIONS
        if meaning.includes(action.id)
        for place, key in action.keys
        if place in SCHEME_CONTEXTS
    }
    assert {key for key in meaning.keys if key not in bound and not key.isdigit()} == set()


def test_the_exceptions_are_few() -> None:
    """A question owns y, Y, n, e and the digits, and a search n and N; all their other keys follow the scheme."""
    characters = {
        key
        for action in ACTIONS
        for place, key in action.keys
        if len(key) == 1 and not action.is_movement and (place in QUESTIONS or action.id in SEARCHES)
    }
    assert characters == {*"yYneN123456789"}


@pytest.mark.parametrize("name", ["apply_changes", "stop_tile", "difference", "ask_hosts"])
def test_a_view_takes_your_letter(name: str) -> None:
    """A letter from the settings also works in the views beside the deck, and hides a default there."""
    (action,) = (action for action in with_own_keys({name: "y"}) if action.id == name)
    assert action.keys == at(BY_ID[name].key_contexts[0], "y")


def test_the_help_shows_a_replaced_default() -> None:
    """The help of a view marks your own key, and names it at the action whose default it replaces."""
    groups = key_groups(with_own_keys({"merge_changes": "P", "apply_file": "a"}), KeyContext.CHANGES)
    (changes,) = (group for group in groups if group.heading == KeyContext.CHANGES)
    shown = {row.action.id: (row.keys, *row.remarks) for row in changes.rows}
    assert shown["merge_changes"] == ("P", "Your key. Default: M")
    assert shown["apply_file"] == ("a", "Your key. Default: F")
    assert shown["apply_changes"] == ("", 'P is your key for "merge".')


async def test_your_letter_works_in_the_changes() -> None:
    """A letter from the settings acts in a view beside the deck, and its foot shows it."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.settings = Settings(keys={"apply_changes": "a"})
    async with opened(engine, readonly=True) as deck:
        await deck.press("c")
        await deck.until_text("a apply ")
        await deck.press("a")
        await deck.until_text("Not possible: the app was opened with --readonly.")


@pytest.mark.parametrize("key", ["c", "i"])
async def test_a_question_mark_helps_in_views(key: str) -> None:
    """`?` shows the keys of a view, as on the deck."""
    async with opened(FakeEngine(a_run(1, "completed"))) as deck:
        await deck.press(key)
        await deck.until(lambda: deck.app.screen is not deck.main, "the view")
        await deck.press("?")
        await deck.until(lambda: isinstance(deck.app.screen, HelpScreen), "the help")
        await deck.until_text("Close the dialog without changing anything.")
