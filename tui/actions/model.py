"""What an action of the operator is, and what decides whether it is possible; pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.run.model import PresetSource

if TYPE_CHECKING:
    from ...core.presets.catalog import Preset, PresetProblem
    from ...core.run.model import RunSnapshot

READONLY = "The app was opened with --readonly: nothing is changed from here."


class Place(StrEnum):
    """Where a key has a meaning; the value is the help's heading."""

    APP = "everywhere"
    DECK = "the deck"
    PRESETS = "presets"
    RUNS = "runs"
    TRANSCRIPT = "transcript"
    SEARCH = "searching a transcript"
    """A mode of the transcript."""
    FILTER = "writing a filter or a search"
    """The one-line field in which either is written."""
    LAUNCH = "launching"
    EDIT = "editing a preset"
    COPY = "copying a preset"
    DETAIL = "one run in detail"
    CLEAN_UP = "cleaning up"
    READING = "reading a list"
    """Messages, what doctor says, and other texts that are only read."""
    PICK = "choosing from a list"
    ASK = "answering a question"
    """A dialog with one field."""
    CONFIRM = "confirming"
    HELP = "help"

    @property
    def around(self) -> tuple[Place, ...]:
        """The places whose keys work here too."""
        if self is Place.SEARCH:
            return (Place.TRANSCRIPT, Place.DECK, Place.APP)
        if self in PANES:
            return (Place.DECK, Place.APP)
        return () if self is Place.APP else (Place.APP,)


PANES = (Place.PRESETS, Place.RUNS, Place.TRANSCRIPT)

ALL_PANES = frozenset(PANES)

MODES = frozenset((Place.SEARCH,))
"""Places whose keys come before those of the places around them, for as long as the mode lasts."""


class Situation(Struct, frozen=True):
    """What decides whether an action is possible."""

    place: Place = Place.RUNS
    preset: Preset | None = None
    problem: PresetProblem | None = None
    """The highlighted preset file that cannot be used."""
    run: RunSnapshot | None = None
    """The highlighted run, which is also the one the transcript shows."""
    marked: int = 0
    """Runs that are marked; what acts on runs acts on them instead of the highlighted one."""
    undoable: bool = False
    zoomed: bool = False
    shown: frozenset[Place] = ALL_PANES
    """The panes on the screen."""
    unseen: int = 0
    """Runs that need the operator."""
    can_suspend: bool = True
    """False in a browser: no terminal to hand over."""
    readonly: bool = False


def _always(_: Situation) -> str:
    return ""


class Action(Struct, frozen=True):
    id: str
    keys: tuple[tuple[Place, str], ...]
    """Textual's key names, each with the place where it means this."""
    name: str
    """One or two words for the footer."""
    help: str
    """One sentence."""
    obstacle: Callable[[Situation], str] = _always
    """Why it is not possible now, for a person; empty when it is."""
    footer: int = 0
    """Rank in the footer, 1 first; 0 keeps it out."""
    do: str = ""
    """Textual's action; empty: the deck's `act`."""
    name_here: Callable[[Situation], str] | None = None
    """The footer's word where it depends on the situation; empty leaves it out."""
    changes: bool = False
    """Whether it changes something outside the screen, so that a read-only app refuses it."""

    def refusal(self, situation: Situation) -> str:
        """Say why it is not possible now; empty when it is."""
        return READONLY if self.changes and situation.readonly else self.obstacle(situation)

    def allowed(self, situation: Situation) -> bool:
        return not self.refusal(situation)

    def keys_in(self, place: Place) -> tuple[str, ...]:
        return tuple(key for where, key in self.keys if where is place)

    @property
    def command(self) -> str:
        return self.do or f"screen.act('{self.id}')"

    @property
    def in_palette(self) -> bool:
        return not self.do and any(place in (Place.DECK, *PANES) for place, _ in self.keys)


def at(place: Place, *keys: str) -> tuple[tuple[Place, str], ...]:
    """Answer keys with the one place where they mean something."""
    return tuple((place, key) for key in keys)


def in_panes(*keys: str) -> tuple[tuple[Place, str], ...]:
    return tuple((place, key) for place in PANES for key in keys)


def at_a_run(*keys: str) -> tuple[tuple[Place, str], ...]:
    """Answer keys that are about the highlighted run, in the two panes that show it."""
    return tuple((place, key) for place in (Place.RUNS, Place.TRANSCRIPT) for key in keys)


TMUX = "tmux"
"""The runner whose runs have a pane to attach to."""

NO_PRESET = "No preset is selected: {presets} goes to the presets, {ad_hoc} runs without one."
NO_RUN = "No run is selected."
NO_CONVERSATION = "This run kept no conversation (session: none, or it never began): there is nothing to go on from."


def needs_preset(situation: Situation) -> str:
    return "" if situation.preset else NO_PRESET


def needs_run(situation: Situation) -> str:
    return "" if situation.run else NO_RUN


def needs_active(situation: Situation) -> str:
    if situation.marked:
        return ""
    if not situation.run:
        return NO_RUN
    return f"This run has ended already ({situation.run.status})." if situation.run.is_terminal else ""


def needs_terminal(situation: Situation) -> str:
    return needs_run(situation) or ("" if situation.can_suspend else "There is no terminal to attach from.")


def needs_conversation(situation: Situation) -> str:
    if not situation.run:
        return NO_RUN
    return "" if situation.run.meta.session_path else NO_CONVERSATION


def needs_session(situation: Situation) -> str:
    if not situation.run:
        return NO_RUN
    meta = situation.run.meta
    if not meta.session_path or not meta.child_session_id:
        return NO_CONVERSATION
    return "" if situation.run.is_terminal else f"This run is {situation.run.status}: it goes on by itself."


def needs_preset_file(situation: Situation) -> str:
    return "" if situation.preset or situation.problem else "No preset is selected: {create_preset} creates one."


def needs_own_preset(situation: Situation) -> str:
    if situation.preset and situation.preset.source is PresetSource.BUNDLED:
        return "This preset comes with subdeck: bundled_presets: false in the settings leaves it out."
    return needs_preset_file(situation)


def needs_copyable(situation: Situation) -> str:
    """Where no preset is selected, one that comes with subdeck is copied."""
    return "This file is broken: mend it first ({edit_preset})." if situation.problem else ""


def needs_undoable(situation: Situation) -> str:
    return "" if situation.undoable else "Nothing was deleted that could come back."


def needs_unseen(situation: Situation) -> str:
    return "" if situation.unseen else "No run needs you."


def needs_beside(situation: Situation) -> str:
    if {Place.PRESETS, Place.RUNS} <= situation.shown:
        return ""
    return "Presets and runs are not beside each other now: there is no border to move."


def needs_above(situation: Situation) -> str:
    if Place.TRANSCRIPT in situation.shown and len(situation.shown) > 1:
        return ""
    return "One pane has the whole screen now: there is no border to move."
