"""Actions as their features declare them: keys, texts, when they are possible, and the method that does them; pure.

An action of the deck is a method below `command`. One that a screen does itself is an `Action` with `do`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec import Struct

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    from ...core.presets.catalog import Preset, PresetProblem
    from ...core.run.events import Request
    from ...core.run.snapshot import RunSnapshot

    class Further(TypedDict, total=False):
        """The further fields of an action of the deck."""

        footer: int
        do: str
        name_here: Callable[[ActionContext], str] | None
        changes: bool
        guarded: bool
        writes: bool
        after: str


Method = TypeVar("Method", bound=Callable[..., Any])

OWN_PREFIX = "own_"
"""Prefix of the ids of commands from the settings."""
READONLY = "Not possible: the app was opened with --readonly."


class KeyContext(StrEnum):
    """Where a key works; the value is the heading in the help."""

    APP = "everywhere"
    DECK = "deck"
    PRESETS = "presets"
    RUNS = "runs"
    TRANSCRIPT = "transcript"
    SEARCH = "searching a transcript"
    """A mode of the transcript."""
    REQUEST = "answering a request"
    """The block below the transcript that shows the request."""
    TALK = "writing a message"
    """The line below the transcript."""
    FILTER = "typing a filter or a search"
    """The one-line field for both."""
    FIND = "searching all runs"
    LAUNCH = "launching"
    EDIT = "editing a preset"
    COPY = "copying a preset"
    DETAIL = "run details"
    TILES = "grid"
    COMPARE = "comparing runs"
    HOSTS = "hosts"
    CHANGES = "changes"
    CLEAN_UP = "cleaning up"
    READING = "reading a text"
    """Notifications, doctor output and other read-only texts."""
    PALETTE = "palette"
    PICK = "choosing from a list"
    ASK = "entering a value"
    """A dialog with one field."""
    CONFIRM = "confirming"
    HELP = "help"

    @property
    def around(self) -> tuple[KeyContext, ...]:
        """Other contexts whose keys also work here."""
        if self is KeyContext.SEARCH:
            return (KeyContext.TRANSCRIPT, KeyContext.DECK, KeyContext.APP)
        if self is KeyContext.REQUEST:
            return (KeyContext.DECK, KeyContext.APP)
        if self in PANES:
            return (KeyContext.DECK, KeyContext.APP)
        return () if self is KeyContext.APP else (KeyContext.APP,)


DECK = KeyContext.DECK
PRESETS, RUNS, TRANSCRIPT = PANES = (KeyContext.PRESETS, KeyContext.RUNS, KeyContext.TRANSCRIPT)
ON_DECK = (KeyContext.APP, KeyContext.DECK, *PANES, KeyContext.SEARCH, KeyContext.REQUEST)
"""Places without a dialog or a text field."""
VIEWS = (KeyContext.DETAIL, KeyContext.TILES, KeyContext.COMPARE, KeyContext.HOSTS, KeyContext.CHANGES)
"""Places beside the deck without a text field."""
MODES = (KeyContext.SEARCH, KeyContext.REQUEST)
"""Places on the deck whose keys hide those around them."""


class ActionContext(Struct, frozen=True):
    """The state that decides whether an action is possible."""

    key_context: KeyContext = KeyContext.RUNS
    preset: Preset | None = None
    problem: PresetProblem | None = None
    """The highlighted preset file, if it is broken."""
    run: RunSnapshot | None = None
    """The highlighted run, whose transcript is shown."""
    marked: int = 0
    """Number of selected runs; actions apply to them instead of the highlighted run."""
    listening: int = 0
    """Number of selected runs that take messages now."""
    request: Request | None = None
    """The highlighted run's request, shown in the block below the transcript."""
    undoable: bool = False
    zoomed: bool = False
    shown: frozenset[KeyContext] = frozenset(PANES)
    """The panes on the screen."""
    unseen: int = 0
    """Number of runs that need you."""
    can_suspend: bool = True
    """False in a browser: no terminal to hand over."""
    readonly: bool = False


def _nothing(_: ActionContext) -> str:
    return ""


Keys = tuple[tuple[KeyContext, str], ...]
"""Textual's key names, each with the context where it works."""


class Action(Struct, frozen=True):
    id: str
    keys: Keys
    name: str
    """One or two words for the footer."""
    help: str
    """One sentence."""
    needs: Callable[[ActionContext], str] = _nothing
    """Returns the obstacle for display; empty if the action is possible."""
    footer: int = 0
    """Rank in the footer, 1 first; 0 hides it."""
    do: str = ""
    """Textual's action; empty: the deck's `act`."""
    name_here: Callable[[ActionContext], str] | None = None
    """The footer's label if it depends on the context; empty hides the action."""
    changes: bool = False
    """Whether it changes something outside the screen; a read-only app refuses it."""
    guarded: bool = False
    """Whether it writes to git or to your files, or deletes: its key does nothing else anywhere."""
    writes: bool = False
    """Whether it opens a text field: keys typed after it, even if it is refused, are text."""
    key_context: KeyContext | None = None
    """Where a key from the settings works, for an action without a default key."""
    first: bool = False
    """Whether its key works in a text field, although it is a character."""
    after: str = ""
    """The action that it follows in footer, help and reference; empty: the one declared before it."""

    def refusal(self, context: ActionContext) -> str:
        """Return why it is not possible now; empty if it is."""
        return READONLY if self.changes and context.readonly else self.needs(context)

    def allowed(self, context: ActionContext) -> bool:
        return not self.refusal(context)

    def keys_in(self, key_context: KeyContext) -> tuple[str, ...]:
        return tuple(key for where, key in self.keys if where is key_context)

    @property
    def key_contexts(self) -> tuple[KeyContext, ...]:
        """The contexts of its keys, each once; without default keys, where a key from the settings works."""
        return tuple(
            dict.fromkeys(
                (*(key_context for key_context, _ in self.keys), *((self.key_context,) if self.key_context else ()))
            )
        )

    @property
    def is_movement(self) -> bool:
        return "move('" in self.do

    @property
    def command(self) -> str:
        return self.do or f"screen.act('{self.id}')"

    @property
    def in_palette(self) -> bool:
        of_deck = (KeyContext.DECK, *PANES, KeyContext.REQUEST, KeyContext.DETAIL)
        return not self.do and any(key_context in of_deck for key_context in self.key_contexts)


def at(key_context: KeyContext, *keys: str) -> Keys:
    """Return the keys, all in one context."""
    return tuple((key_context, key) for key in keys)


def unbound(key_context: KeyContext) -> Keys:
    """Return the keys of an action that the palette does and you may give a key, which works in this context."""
    return ((key_context, ""),)


_MOVES = {
    "down": (("j", "down"), "One row down."),
    "up": (("k", "up"), "One row up."),
    "page_down": (("pagedown",), "One page down."),
    "page_up": (("pageup",), "One page up."),
    "first": (("g", "home"), "Go to the top."),
    "last": (("G", "end"), "Go to the bottom."),
}


def moves(
    key_contexts: tuple[KeyContext, ...], do: str, prefix: str = "", *, in_text: bool = False, ends: bool = True
) -> tuple[Action, ...]:
    """Return the movements in these contexts, done by `do`; in a text field only without letters, Home and End.

    Without `ends`, Home and End are left to g and G.
    """
    return tuple(
        Action(
            prefix + where,
            tuple(
                (key_context, key)
                for key_context in key_contexts
                for key in (keys[-1:] if in_text else keys)
                if ends or key not in ("home", "end")
            ),
            where.replace("_", " "),
            sentence,
            do=f"{do}('{where}')",
        )
        for where, (keys, sentence) in _MOVES.items()
        if not (in_text and where in ("first", "last"))
    )


class Declared(Struct, frozen=True):
    """An action of the deck, and its method."""

    action: Action
    method: str
    """Name in its class of commands."""
    about: str
    """The method's first parameter: `run`, `runs`, `preset`, or empty."""
    args: tuple[object, ...]


def command(
    action_id: str,
    keys: Keys,
    name: str,
    help_text: str = "",
    needs: Callable[[ActionContext], str] = _nothing,
    *,
    args: tuple[object, ...] = (),
    **more: Unpack[Further],
) -> Callable[[Method], Method]:
    """Declare an action that the method below does, called with `args`; `more` are further fields of `Action`.

    Without `help_text` the docstring is the help. A first parameter named `run`, `runs` or `preset` gets the
    highlighted run, the selected runs, or the highlighted preset file; without any, nothing is done. A coroutine runs
    beside the event loop. Several on one method are several actions, each with its `args`.
    """

    def declare(method: Method) -> Method:
        sentence = help_text or " ".join((method.__doc__ or "").split())
        code = method.__code__
        first = code.co_varnames[1] if code.co_argcount > 1 else ""
        about = first if first in ("run", "runs", "preset") else ""
        bound = tuple(each for each in keys if each[1])
        key_context = keys[0][0] if not bound else None
        action = Action(action_id, bound, name, sentence, needs, key_context=key_context, **more)
        declared = Declared(action, method.__name__, about, args)
        cast(Any, method).declared = (declared, *getattr(method, "declared", ()))
        return method

    return declare


def declarations(feature: type) -> Iterator[Declared | Action]:
    """Return the actions of a class in the order of their declarations, including those done by a screen."""
    for member in vars(feature).values():
        if isinstance(member, tuple):
            yield from (each for each in cast("tuple[object, ...]", member) if isinstance(each, Action))
        else:
            yield from getattr(member, "declared", ())


def action_of(method: Callable[..., Any]) -> Action:
    """Return the first action that a method was declared for."""
    return cast(Any, method).declared[0].action


NO_RUN = "No run is highlighted."


def needs_run(context: ActionContext) -> str:
    return "" if context.run else NO_RUN


def needs_own(context: ActionContext) -> str:
    """Refuse a run that your subdeck did not make."""
    if not context.run:
        return NO_RUN
    if not context.run.foreign:
        return ""
    return f"This run is untrusted: your subdeck did not make it. subdeck adopt {context.run.meta.short_id} trusts it."


def needs_terminal_to_lend(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "No terminal is available for another program.")
