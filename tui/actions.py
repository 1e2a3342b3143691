"""THE registry of actions: bindings, footer, help, palette and key tables all come from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from textual.binding import Binding, BindingType

from ..core.runs import PresetSource

if TYPE_CHECKING:
    from ..core.presets import Preset
    from ..core.runs import RunSnapshot

TMUX = "tmux"
"""The runner whose runs have a pane to attach to."""


class Place(StrEnum):
    """Where a key has a meaning; the value is the help's heading."""

    APP = "everywhere"
    DECK = "the deck"
    PRESETS = "presets"
    RUNS = "runs"
    TRANSCRIPT = "transcript"
    LAUNCH = "launching"
    COPY = "copying a preset"
    CONFIRM = "confirming"
    HELP = "help"

    @property
    def around(self) -> tuple[Place, ...]:
        """The places whose keys work here too."""
        if self in PANES:
            return (Place.DECK, Place.APP)
        return () if self is Place.APP else (Place.APP,)


PANES = (Place.PRESETS, Place.RUNS, Place.TRANSCRIPT)


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides whether an action is possible."""

    place: Place = Place.RUNS
    preset: Preset | None = None
    run: RunSnapshot | None = None
    """The highlighted run, which is also the one the transcript shows."""
    undoable: bool = False
    zoomed: bool = False
    unseen: int = 0
    """Runs that need the operator."""
    can_suspend: bool = True
    """False in a browser: no terminal to hand over."""


def _always(_: Situation) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Action:
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
    """The footer's word where it depends on the situation."""

    def allowed(self, situation: Situation) -> bool:
        return not self.obstacle(situation)

    def keys_in(self, place: Place) -> tuple[str, ...]:
        return tuple(key for where, key in self.keys if where is place)

    @property
    def command(self) -> str:
        return self.do or f"screen.act('{self.id}')"

    @property
    def in_palette(self) -> bool:
        return not self.do and any(place in (Place.DECK, *PANES) for place, _ in self.keys)


def _at(place: Place, *keys: str) -> tuple[tuple[Place, str], ...]:
    return tuple((place, key) for key in keys)


def _in_panes(*keys: str) -> tuple[tuple[Place, str], ...]:
    return tuple((place, key) for place in PANES for key in keys)


_NO_CONVERSATION = "This run kept no conversation (session: none, or it never began): there is nothing to go on from."


def _needs_preset(situation: Situation) -> str:
    return "" if situation.preset else "No preset is selected: 1 goes to the presets, N runs without one."


def _needs_run(situation: Situation) -> str:
    return "" if situation.run else "No run is selected."


def _needs_active(situation: Situation) -> str:
    if not situation.run:
        return "No run is selected."
    return f"This run has ended already ({situation.run.status})." if situation.run.is_terminal else ""


def _needs_finished(situation: Situation) -> str:
    if not situation.run:
        return "No run is selected."
    return "" if situation.run.is_terminal else f"This run is {situation.run.status}: stop it first (x)."


def _needs_terminal(situation: Situation) -> str:
    return _needs_run(situation) or ("" if situation.can_suspend else "There is no terminal to attach from.")


def _needs_conversation(situation: Situation) -> str:
    if not situation.run:
        return "No run is selected."
    return "" if situation.run.meta.session_path else _NO_CONVERSATION


def _needs_session(situation: Situation) -> str:
    if not situation.run:
        return "No run is selected."
    meta = situation.run.meta
    if not meta.session_path or not meta.child_session_id:
        return _NO_CONVERSATION
    return "" if situation.run.is_terminal else f"This run is {situation.run.status}: it goes on by itself."


def _needs_bundled(situation: Situation) -> str:
    if situation.preset is None or situation.preset.source is PresetSource.BUNDLED:
        return ""
    return "This preset is a file of yours already: only those that come with subdeck are copied."


def _way_in(situation: Situation) -> str:
    return "attach" if situation.run and situation.run.meta.runner == TMUX else "full"


def _needs_undoable(situation: Situation) -> str:
    return "" if situation.undoable else "Nothing was deleted that could come back."


def _needs_unseen(situation: Situation) -> str:
    return "" if situation.unseen else "No run needs you."


DECK = Place.DECK

ACTIONS: tuple[Action, ...] = (
    Action("presets", _at(DECK, "1"), "presets", "Go to the presets.", footer=1),
    Action(
        "launch",
        (*_at(DECK, "n"), *_at(Place.PRESETS, "enter")),
        "launch",
        "Launch the highlighted preset: asks for the task.",
        _needs_preset,
        footer=2,
    ),
    Action(
        "ad_hoc",
        _at(DECK, "N"),
        "ad hoc",
        "Run a task without a preset: model, tools and prompt as typed.",
        footer=10,
    ),
    Action(
        "open",
        _at(Place.RUNS, "enter"),
        "open",
        "Go to the transcript of the highlighted run.",
        _needs_run,
        footer=6,
    ),
    Action(
        "attach",
        _at(DECK, "a"),
        "attach",
        "Go into the tmux pane of the run; a run without one opens its transcript in full.",
        _needs_terminal,
        footer=4,
        name_here=_way_in,
    ),
    Action("stop", _at(DECK, "x"), "stop", "Stop the run softly; it keeps what it has.", _needs_active, footer=5),
    Action("kill", _at(DECK, "X"), "kill", "Kill the run and all its processes, after asking.", _needs_active),
    Action("rerun", _at(DECK, "r"), "rerun", "Launch the same task again.", _needs_run, footer=11),
    Action(
        "follow_up",
        _at(DECK, "s"),
        "follow up",
        "Go on with the conversation of a finished run: same preset and place, another task.",
        _needs_session,
        footer=8,
    ),
    Action(
        "with_context",
        _at(DECK, "c"),
        "with context",
        "Launch the highlighted preset with the conversation of the highlighted run as context.",
        _needs_conversation,
        footer=9,
    ),
    Action(
        "copy_preset",
        _at(Place.PRESETS, "b"),
        "copy",
        "Copy a preset that comes with subdeck into the project, or for all your projects.",
        _needs_bundled,
        footer=3,
    ),
    Action(
        "delete",
        _at(DECK, "d"),
        "delete",
        "Delete the run and its files, after asking; u brings it back.",
        _needs_finished,
    ),
    Action("undo", _at(DECK, "u"), "undo", "Bring back what was deleted last.", _needs_undoable),
    Action("copy_id", _at(DECK, "y"), "copy id", "Copy the run id to the clipboard.", _needs_run),
    Action("next_unseen", _at(DECK, "]"), "next ✗", "Go to the next run that needs you.", _needs_unseen, footer=7),
    Action("previous_unseen", _at(DECK, "["), "previous ✗", "Go to the previous run that needs you.", _needs_unseen),
    Action("follow", _at(DECK, "f"), "follow", "Follow the end of the transcript, or let go of it.", _needs_run),
    Action("wrap", _at(DECK, "w"), "wrap", "Wrap long lines of the transcript, or cut them."),
    Action(
        "zoom",
        (*_at(DECK, "z"), *_at(Place.TRANSCRIPT, "enter")),
        "zoom",
        "Give the whole screen to one pane, and back.",
    ),
    Action("runs", _at(DECK, "2"), "runs", "Go to the runs."),
    Action("transcript", _at(DECK, "3"), "transcript", "Go to the transcript."),
    Action("next_pane", _at(DECK, "tab"), "next pane", "Go to the next pane."),
    Action("previous_pane", _at(DECK, "shift+tab"), "previous pane", "Go to the previous pane."),
    Action("back", _at(DECK, "escape"), "back", "Leave the zoom, then the pane; never quits."),
    Action("help", _at(DECK, "?"), "help", "Show every key.", footer=3),
    Action("quit", _at(DECK, "q"), "quit", "Quit; runs go on in the background.", footer=12),
    Action(
        "palette",
        (*_at(DECK, ":"), *_at(Place.APP, "ctrl+p")),
        "palette",
        "Find an action by its name.",
        do="app.command_palette",
    ),
    Action("how_to_quit", _at(Place.APP, "ctrl+c"), "", "Say how to quit.", do="app.how_to_quit"),
    Action("down", _in_panes("j", "down"), "down", "One row down.", do="move('down')"),
    Action("up", _in_panes("k", "up"), "up", "One row up.", do="move('up')"),
    Action("page_down", _in_panes("pagedown"), "page down", "One page down.", do="move('page_down')"),
    Action("page_up", _in_panes("pageup"), "page up", "One page up.", do="move('page_up')"),
    Action("first", _in_panes("g", "home"), "first", "To the beginning.", do="move('first')"),
    Action("last", _in_panes("G", "end"), "last", "To the end.", do="move('last')"),
    Action("left", _at(Place.TRANSCRIPT, "left"), "left", "Scroll left in long lines.", do="move('left')"),
    Action("right", _at(Place.TRANSCRIPT, "right"), "right", "Scroll right in long lines.", do="move('right')"),
    Action("start", _at(Place.LAUNCH, "ctrl+s"), "launch", "Launch what is filled in.", do="screen.start", footer=1),
    Action("write_copy", _at(Place.COPY, "ctrl+s"), "copy", "Write the copy.", do="screen.start", footer=1),
    Action(
        "cancel",
        (
            *_at(Place.LAUNCH, "escape"),
            *_at(Place.COPY, "escape"),
            *_at(Place.CONFIRM, "escape", "n"),
            *_at(Place.HELP, "escape"),
        ),
        "cancel",
        "Close the dialog; nothing happens.",
        do="screen.cancel",
        footer=2,
    ),
    Action("confirm", _at(Place.CONFIRM, "y"), "yes", "Do it.", do="screen.confirm", footer=1),
    Action("help_down", _at(Place.HELP, "down"), "down", "One row down.", do="screen.move('down')"),
    Action("help_up", _at(Place.HELP, "up"), "up", "One row up.", do="screen.move('up')"),
    Action("help_page_down", _at(Place.HELP, "pagedown"), "page down", "One page down.", do="screen.move('page_down')"),
    Action("help_page_up", _at(Place.HELP, "pageup"), "page up", "One page up.", do="screen.move('page_up')"),
)

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}

_KEY_NAMES = {
    "enter": "⏎",
    "escape": "esc",
    "tab": "tab",
    "shift+tab": "shift+tab",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def key_label(key: str) -> str:
    """How a key is written on the screen: `^s`, `⏎`, `pgdn`."""
    return _KEY_NAMES.get(key, key.replace("ctrl+", "^"))


def binding_id(action: Action, place: Place) -> str:
    """By which Textual's keymap finds the bindings of an action in a place."""
    return f"{action.id}@{place.name}"


def bindings(place: Place) -> list[BindingType]:
    """Answer the bindings of a place, not those of the places around it."""
    return [
        Binding(key, action.command, action.name, show=False, id=binding_id(action, place))
        for action in ACTIONS
        for key in action.keys_in(place)
    ]


class Hint(NamedTuple):
    """A key of the footer."""

    rank: int
    """The smaller, the longer it stays when there is little room."""
    key: str
    name: str


def footer_hints(situation: Situation, actions: Sequence[Action] = ACTIONS) -> list[Hint]:
    """Answer what is possible here, in the order of the registry."""
    places = (situation.place, *situation.place.around)
    return [
        Hint(
            action.footer,
            key_label(next(key for where, key in action.keys if where in places)),
            action.name_here(situation) if action.name_here else action.name,
        )
        for action in actions
        if action.footer
        and action.id != situation.place
        and any(where in places for where, _ in action.keys)
        and action.allowed(situation)
    ]


def keys_line(place: Place, actions: Sequence[Action] = ACTIONS) -> str:
    """Say which keys end a dialog."""
    return "   ".join(f"{hint.key} {hint.name}" for hint in footer_hints(Situation(place=place), actions))
