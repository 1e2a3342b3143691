"""Actions, and the conditions under which they are possible; pure."""

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

READONLY = "Not possible: the app was opened with --readonly."


class KeyContext(StrEnum):
    """The place where a key works; the value is the heading in the help."""

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
        """Other places whose keys also work here."""
        if self is KeyContext.SEARCH:
            return (KeyContext.TRANSCRIPT, KeyContext.DECK, KeyContext.APP)
        if self is KeyContext.REQUEST:
            return (KeyContext.DECK, KeyContext.APP)
        if self in PANES:
            return (KeyContext.DECK, KeyContext.APP)
        return () if self is KeyContext.APP else (KeyContext.APP,)


PANES = (KeyContext.PRESETS, KeyContext.RUNS, KeyContext.TRANSCRIPT)
ON_DECK = (KeyContext.APP, KeyContext.DECK, *PANES, KeyContext.SEARCH, KeyContext.REQUEST)
"""Places without a dialog or a text field."""


class ActionContext(Struct, frozen=True):
    """The state that decides whether an action is possible."""

    place: KeyContext = KeyContext.RUNS
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
"""Textual's key names, each with the place where it means something."""


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
    """Rank in the footer, 1 first; 0 keeps it out."""
    do: str = ""
    """Textual's action; empty: the deck's `act`."""
    name_here: Callable[[ActionContext], str] | None = None
    """The footer's label if it depends on the context; empty hides the action."""
    changes: bool = False
    """Whether it changes something outside the screen; a read-only app refuses it."""
    writes: bool = False
    """Whether it opens a text field: keys typed after it, even if it is refused, are text."""

    def refusal(self, context: ActionContext) -> str:
        """Return why it is not possible now; empty if it is."""
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


NO_RUN = "No run is highlighted."
NO_CONVERSATION = "Nothing to continue: this run has no saved conversation (session: none, or it never started)."


def needs_usable_preset(context: ActionContext) -> str:
    """Refuse a broken file; without any preset, a one-off run is launched."""
    return (
        "This preset file is broken. Fix it ({edit_preset}), or start a one-off run ({ad_hoc})."
        if context.problem
        else ""
    )


def needs_run(context: ActionContext) -> str:
    return "" if context.run else NO_RUN


def needs_run_to_search(context: ActionContext) -> str:
    return "" if context.run else f"{NO_RUN} Nothing to search."


def needs_readable_record(context: ActionContext) -> str:
    """Refuse an untrusted run, and a run written by a newer subdeck, whose request could not be read."""
    newer = context.run and context.run.newer_schema
    return needs_own(context) or (f"This run was {newer_schema(newer)}." if newer else "")


def needs_own(context: ActionContext) -> str:
    """Refuse a run that your subdeck did not make."""
    if not context.run:
        return NO_RUN
    if not context.run.foreign:
        return ""
    return f"This run is untrusted: your subdeck did not make it. subdeck adopt {context.run.meta.short_id} trusts it."


def needs_active(context: ActionContext) -> str:
    if context.marked:
        return ""
    if not context.run:
        return NO_RUN
    if context.run.foreign:
        return needs_own(context)
    return f"This run is already finished ({context.run.status})." if context.run.has_ended else ""


def needs_out_of_reach(context: ActionContext) -> str:
    """Refuse a run that is finished or can be stopped: it need not be abandoned."""
    if context.marked:
        return ""
    if obstacle := needs_active(context):
        return obstacle
    run = context.run
    if run is None or run.is_out_of_reach:
        return ""
    where = (
        f"is on {one_line(run.host, 64)}, which is online"
        if run.is_remote and run.host
        else "is not on an unreachable host"
    )
    return f"This run {where}. Stop it with {{stop}}."


def needs_queued(context: ActionContext) -> str:
    """Refuse a run that is not queued."""
    if obstacle := needs_own(context):
        return obstacle
    is_queued = context.run is not None and context.run.status == "queued"
    return "" if is_queued else "This run is not queued."


def needs_terminal(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "No terminal is available to attach from.")


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
        return f"{agent} stores this run's conversation. You can follow up, but not use it as context for another run."
    return "" if meta.session_path else NO_CONVERSATION


def needs_session(context: ActionContext) -> str:
    """Refuse a finished run without a conversation, and a running one that takes no messages."""
    if context.listening:
        return ""
    if not context.run or context.run.foreign:
        return needs_own(context)
    if not context.run.has_ended:
        return _deafness(context.run)
    return "" if context.run.meta.keeps_session and context.run.child_session_id else NO_CONVERSATION


def _deafness(run: RunSnapshot) -> str:
    """Return why an unfinished run takes no messages; empty if it does."""
    if run.can_talk:
        return ""
    later = " You can follow up when it is finished." if run.meta.keeps_session else ""
    if run.newer_schema:
        return f"This run was {newer_schema(run.newer_schema)}."
    if run.elsewhere and not run.is_remote:
        return f"This run belongs to another machine and takes no messages from here.{later}"
    if run.meta.talk is None:
        return f"This run was started by an older subdeck and takes no messages.{later}"
    return f"This run is non-interactive: it takes no messages while it runs.{later}"


def needs_turn(context: ActionContext) -> str:
    """Refuse a run without a turn to interrupt."""
    if context.listening:
        return ""
    if (obstacle := needs_own(context)) or context.run is None:
        return obstacle
    if context.run.has_ended:
        return f"This run is already finished ({context.run.status})."
    if context.run.status == "queued":
        return "This run has not started yet. {stop} removes it from the queue."
    if context.run.is_interrupted:
        return "This run is already interrupted. {follow_up} sends the message it is waiting for."
    return _deafness(context.run)


def needs_request(context: ActionContext) -> str:
    """Refuse a run without a request."""
    return needs_own(context) or ("" if context.request else "This run has no open request.")


def needs_permission_request(context: ActionContext) -> str:
    if obstacle := needs_request(context):
        return obstacle
    is_permission = context.request is not None and context.request.kind is RequestKind.PERMISSION
    return "" if is_permission else "This is a question. {answer} writes a reply, {deny_request} declines."


def needs_run_rule(context: ActionContext) -> str:
    if obstacle := needs_permission_request(context):
        return obstacle
    return "" if context.request and context.request.run_rule else "This request cannot be allowed for the whole run."


def needs_hand(context: ActionContext) -> str:
    """Refuse a run that cannot be opened in the agent."""
    if (obstacle := needs_own(context) or needs_terminal_to_lend(context)) or context.run is None:
        return obstacle
    if context.run.newer_schema:
        return "This run was written by a newer subdeck. Open it with that version."
    why = context.run.why_not_by_hand
    return f"Cannot open this run in the agent: {why}." if why else ""


def needs_preset_file(context: ActionContext) -> str:
    return "" if context.preset or context.problem else "No preset is highlighted. {create_preset} creates one."


def needs_own_preset(context: ActionContext) -> str:
    if context.preset and context.preset.source is PresetSource.BUNDLED:
        return "This preset is part of subdeck. To hide it, set bundled_presets: false."
    return needs_preset_file(context)


def needs_copyable(context: ActionContext) -> str:
    """Allow it without a highlighted preset: a bundled preset is copied then."""
    return "This preset file is broken. Fix it first ({edit_preset})." if context.problem else ""


def needs_undoable(context: ActionContext) -> str:
    return "" if context.undoable else "Nothing to undo."


def needs_unseen(context: ActionContext) -> str:
    return "" if context.unseen else "No run needs you."


def needs_beside(context: ActionContext) -> str:
    if {KeyContext.PRESETS, KeyContext.RUNS} <= context.shown:
        return ""
    return "Presets and runs are not side by side: no border to move."


def needs_above(context: ActionContext) -> str:
    if KeyContext.TRANSCRIPT in context.shown and len(context.shown) > 1:
        return ""
    return "Only one pane is shown: no border to move."
