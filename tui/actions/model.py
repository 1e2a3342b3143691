"""What an action of the operator is, and what decides whether it is possible; pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.run.model import PresetSource, RequestKind, newer_schema
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from ...core.presets.catalog import Preset, PresetProblem
    from ...core.run.events import Request
    from ...core.run.snapshot import RunSnapshot

READONLY = "The app was opened with --readonly: it changes nothing."


class KeyContext(StrEnum):
    """Where a key has a meaning; the value is the help's heading."""

    APP = "everywhere"
    DECK = "the deck"
    PRESETS = "presets"
    RUNS = "runs"
    TRANSCRIPT = "transcript"
    SEARCH = "searching a transcript"
    """A mode of the transcript."""
    REQUEST = "answering what a run asks"
    """The block at the foot of the transcript that shows what it asks."""
    TALK = "saying something to a run"
    """The line at the foot of the transcript."""
    FILTER = "writing a filter or a search"
    """The one-line field in which either is written."""
    FIND = "searching all runs"
    LAUNCH = "launching"
    EDIT = "editing a preset"
    COPY = "copying a preset"
    DETAIL = "one run in detail"
    TILES = "runs side by side"
    COMPARE = "comparing runs"
    HOSTS = "the hosts"
    CHANGES = "what a run changed"
    CLEAN_UP = "cleaning up"
    READING = "reading a list"
    """Messages, what doctor says, and other texts that are only read."""
    PALETTE = "the palette"
    PICK = "choosing from a list"
    ASK = "answering a question"
    """A dialog with one field."""
    CONFIRM = "confirming"
    HELP = "help"

    @property
    def around(self) -> tuple[KeyContext, ...]:
        """The places whose keys work here too."""
        if self is KeyContext.SEARCH:
            return (KeyContext.TRANSCRIPT, KeyContext.DECK, KeyContext.APP)
        if self is KeyContext.REQUEST:
            return (KeyContext.DECK, KeyContext.APP)
        if self in PANES:
            return (KeyContext.DECK, KeyContext.APP)
        return () if self is KeyContext.APP else (KeyContext.APP,)


PANES = (KeyContext.PRESETS, KeyContext.RUNS, KeyContext.TRANSCRIPT)
ON_DECK = (KeyContext.APP, KeyContext.DECK, *PANES, KeyContext.SEARCH, KeyContext.REQUEST)
"""Where no dialog is open and no line is typed."""


class ActionContext(Struct, frozen=True):
    """What decides whether an action is possible."""

    place: KeyContext = KeyContext.RUNS
    preset: Preset | None = None
    problem: PresetProblem | None = None
    """The highlighted preset file that cannot be used."""
    run: RunSnapshot | None = None
    """The highlighted run, which is also the one the transcript shows."""
    marked: int = 0
    """Runs that are marked; what acts on runs acts on them instead of the highlighted one."""
    listening: int = 0
    """Of the marked runs: how many can be talked to now."""
    request: Request | None = None
    """What the highlighted run asks, and the block below the transcript shows."""
    undoable: bool = False
    zoomed: bool = False
    shown: frozenset[KeyContext] = frozenset(PANES)
    """The panes on the screen."""
    unseen: int = 0
    """Runs that need the operator."""
    can_suspend: bool = True
    """False in a browser: no terminal to hand over."""
    readonly: bool = False


def _nothing(_: ActionContext) -> str:
    return ""


Keys = tuple[tuple[KeyContext, str], ...]
"""Textual's key names, each with the place where it means something."""


class Action(Struct, frozen=True):
    id: str
    keys: Keys
    name: str
    """One or two words for the footer."""
    help: str
    """One sentence."""
    needs: Callable[[ActionContext], str] = _nothing
    """Returns what is missing for it, for a person; empty when it is possible."""
    footer: int = 0
    """Rank in the footer, 1 first; 0 keeps it out."""
    do: str = ""
    """Textual's action; empty: the deck's `act`."""
    name_here: Callable[[ActionContext], str] | None = None
    """The footer's word where it depends on the context; empty leaves it out."""
    changes: bool = False
    """Whether it changes something outside the screen, so that a read-only app refuses it."""
    writes: bool = False
    """Whether it leads to a field: what is typed after it, even if it is refused, is text and no key."""

    def refusal(self, context: ActionContext) -> str:
        """Say why it is not possible now; empty when it is."""
        return READONLY if self.changes and context.readonly else self.needs(context)

    def allowed(self, context: ActionContext) -> bool:
        return not self.refusal(context)

    def keys_in(self, place: KeyContext) -> tuple[str, ...]:
        return tuple(key for where, key in self.keys if where is place)

    @property
    def places(self) -> tuple[KeyContext, ...]:
        """Where it has keys, each once."""
        return tuple(dict.fromkeys(place for place, _ in self.keys))

    @property
    def command(self) -> str:
        return self.do or f"screen.act('{self.id}')"

    @property
    def in_palette(self) -> bool:
        return not self.do and any(place in (KeyContext.DECK, *PANES, KeyContext.REQUEST) for place in self.places)


NO_RUN = "No run is selected."
NO_CONVERSATION = "This run kept no conversation (session: none, or it never began): there is nothing to continue."


def needs_usable_preset(context: ActionContext) -> str:
    """Refuse a broken file; where there is no preset at all, a run without one is launched."""
    return (
        "This file is broken: fix it first ({edit_preset}), or run without a preset ({ad_hoc})."
        if context.problem
        else ""
    )


def needs_run(context: ActionContext) -> str:
    return "" if context.run else NO_RUN


def needs_run_to_search(context: ActionContext) -> str:
    return "" if context.run else f"{NO_RUN} There is nothing to search."


def needs_readable_record(context: ActionContext) -> str:
    """Refuse a run that a newer subdeck wrote, of whose request nothing was read, and one that is foreign."""
    newer = context.run and context.run.newer_schema
    return needs_own(context) or (f"This run was {newer_schema(newer)}." if newer else "")


def needs_own(context: ActionContext) -> str:
    """Refuse a run that this user's subdeck did not make."""
    if not context.run:
        return NO_RUN
    if not context.run.foreign:
        return ""
    return (
        f"This run is foreign: your subdeck did not make it. subdeck adopt {context.run.meta.short_id} takes it over."
    )


def needs_active(context: ActionContext) -> str:
    if context.marked:
        return ""
    if not context.run:
        return NO_RUN
    if context.run.foreign:
        return needs_own(context)
    return f"This run has already ended ({context.run.status})." if context.run.has_ended else ""


def needs_out_of_reach(context: ActionContext) -> str:
    """Refuse a run that nobody needs to give up: it has ended, or can be stopped."""
    if context.marked:
        return ""
    if obstacle := needs_active(context):
        return obstacle
    run = context.run
    if run is None or run.is_out_of_reach:
        return ""
    where = (
        f"is in reach, on {one_line(run.host, 64)}" if run.is_remote and run.host else "is not on a host out of reach"
    )
    return f"This run {where}: {{stop}} ends it."


def needs_queued(context: ActionContext) -> str:
    """Refuse a run that waits in no queue."""
    if obstacle := needs_own(context):
        return obstacle
    is_queued = context.run is not None and context.run.status == "queued"
    return "" if is_queued else "This run is not waiting in the queue."


def needs_terminal(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "There is no terminal to attach from.")


def needs_pager(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "No terminal is available for a pager.")


def needs_terminal_to_lend(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "No terminal is available for another program.")


def needs_conversation(context: ActionContext) -> str:
    if not context.run or context.run.foreign:
        return needs_own(context)
    meta = context.run.meta
    if meta.agent_session:
        agent = one_line(meta.agent, 40)
        return f"{agent} keeps the conversation of this run itself: it can be followed up, but not handed over."
    return "" if meta.session_path else NO_CONVERSATION


def needs_session(context: ActionContext) -> str:
    """Refuse a finished run whose conversation cannot go on, and one that takes no messages while it runs."""
    if context.listening:
        return ""
    if not context.run or context.run.foreign:
        return needs_own(context)
    if not context.run.has_ended:
        return _deafness(context.run)
    return "" if context.run.meta.keeps_session and context.run.child_session_id else NO_CONVERSATION


def _deafness(run: RunSnapshot) -> str:
    """Say why nothing can be said to a run that has not ended; empty where something can."""
    if run.can_talk:
        return ""
    later = "; you can follow up when it has ended." if run.meta.keeps_session else "."
    if run.newer_schema:
        return f"This run was {newer_schema(run.newer_schema)}."
    if run.elsewhere and not run.is_remote:
        return f"Another machine holds this run: it takes no messages from here{later}"
    if run.meta.talk is None:
        return f"This run was started by an earlier subdeck: it takes no messages{later}"
    return f"This run is one-way: its child takes no messages while it runs{later}"


def needs_turn(context: ActionContext) -> str:
    """Refuse a run that has no turn to be interrupted."""
    if context.listening:
        return ""
    if (obstacle := needs_own(context)) or context.run is None:
        return obstacle
    if context.run.has_ended:
        return f"This run has already ended ({context.run.status})."
    if context.run.status == "queued":
        return "This run has not started yet: {stop} takes it out of the queue."
    if context.run.is_interrupted:
        return "This run is interrupted already: {follow_up} says what it goes on with."
    return _deafness(context.run)


def needs_request(context: ActionContext) -> str:
    """Refuse a run that asks nothing."""
    return needs_own(context) or ("" if context.request else "This run asks nothing now.")


def needs_permission_request(context: ActionContext) -> str:
    if obstacle := needs_request(context):
        return obstacle
    is_permission = context.request is not None and context.request.kind is RequestKind.PERMISSION
    return "" if is_permission else "It asks for an answer: {answer} writes one, {deny_request} declines."


def needs_run_rule(context: ActionContext) -> str:
    if obstacle := needs_permission_request(context):
        return obstacle
    return "" if context.request and context.request.run_rule else "This cannot be allowed for the whole run."


def needs_hand(context: ActionContext) -> str:
    """Refuse a run that nobody can go on with in the agent's own program."""
    if (obstacle := needs_own(context) or needs_terminal_to_lend(context)) or context.run is None:
        return obstacle
    if context.run.newer_schema:
        return "This run was written by a newer subdeck: take it over with that version."
    why = context.run.why_not_by_hand
    return f"This run cannot be taken over: {why}." if why else ""


def needs_preset_file(context: ActionContext) -> str:
    return "" if context.preset or context.problem else "No preset is selected: {create_preset} creates one."


def needs_own_preset(context: ActionContext) -> str:
    if context.preset and context.preset.source is PresetSource.BUNDLED:
        return "This preset comes with subdeck; bundled_presets: false in the settings hides it."
    return needs_preset_file(context)


def needs_copyable(context: ActionContext) -> str:
    """Allow it where no preset is selected too: then one that comes with subdeck is copied."""
    return "This file is broken: fix it first ({edit_preset})." if context.problem else ""


def needs_undoable(context: ActionContext) -> str:
    return "" if context.undoable else "There is nothing to undo."


def needs_unseen(context: ActionContext) -> str:
    return "" if context.unseen else "No run needs your attention."


def needs_beside(context: ActionContext) -> str:
    if {KeyContext.PRESETS, KeyContext.RUNS} <= context.shown:
        return ""
    return "Presets and runs are not side by side now: there is no border to move."


def needs_above(context: ActionContext) -> str:
    if KeyContext.TRANSCRIPT in context.shown and len(context.shown) > 1:
        return ""
    return "One pane has the whole screen now: there is no border to move."
