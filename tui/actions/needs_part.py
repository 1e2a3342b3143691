"""What actions need, each answered by the sentence that says what is missing; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.model import PresetSource
from .model import Place

if TYPE_CHECKING:
    from .model import Situation

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
