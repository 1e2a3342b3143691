"""What actions need, each answered by the sentence that says what is missing; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.runs import PresetSource

if TYPE_CHECKING:
    from .model import Situation

TMUX = "tmux"
"""The runner whose runs have a pane to attach to."""

NO_RUN = "No run is selected."
NO_CONVERSATION = "This run kept no conversation (session: none, or it never began): there is nothing to go on from."


def needs_preset(situation: Situation) -> str:
    return "" if situation.preset else "No preset is selected: 1 goes to the presets, N runs without one."


def needs_run(situation: Situation) -> str:
    return "" if situation.run else NO_RUN


def needs_active(situation: Situation) -> str:
    if situation.marked:
        return ""
    if not situation.run:
        return NO_RUN
    return f"This run has ended already ({situation.run.status})." if situation.run.is_terminal else ""


def needs_finished(situation: Situation) -> str:
    if situation.marked:
        return ""
    if not situation.run:
        return NO_RUN
    return "" if situation.run.is_terminal else f"This run is {situation.run.status}: stop it first (x)."


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


def needs_bundled(situation: Situation) -> str:
    if situation.preset is None or situation.preset.source is PresetSource.BUNDLED:
        return ""
    return "This preset is a file of yours already: only those that come with subdeck are copied."


def needs_undoable(situation: Situation) -> str:
    return "" if situation.undoable else "Nothing was deleted that could come back."


def needs_unseen(situation: Situation) -> str:
    return "" if situation.unseen else "No run needs you."
