"""Which model a run gets: who named it, and the agent's spelling of it."""

from __future__ import annotations

import re

from msgspec import Struct

from .errors import ModelError
from .paths import user_settings_file
from .plain import one_line
from .preset_file import Preset
from .settings import Settings

OFFLINE_AGENT = "offline"
OFFLINE_MODEL = "offline/reader"
"""What the offline agent reports of itself: it uses no model, whichever was asked for."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class ResolvedModel(Struct, frozen=True):
    requested: str
    """As written; empty when nobody named one and the agent needs none."""
    resolved: str
    """The agent's spelling."""
    source: str
    """`call`, `preset`, `default_model`, or `agent` when nobody named one."""


class _Reference(Struct, frozen=True):
    text: str
    source: str
    where: str
    """For a person: the file, setting or argument it came from."""


def resolve_model(call: str | None, preset: Preset | None, settings: Settings, agent: str) -> ResolvedModel:
    """Take the model of the call, else of the preset, else of the settings; blank counts as absent.

    `agent` is the agent's name. Raises ModelError that names all three places when none has one, or the place of one
    that cannot be a model.
    """
    reference = _chosen(call, preset, settings)
    if reference is not None:
        return ResolvedModel(reference.text, _spelling(reference, agent), reference.source)
    if agent == OFFLINE_AGENT:
        return ResolvedModel("", OFFLINE_MODEL, "agent")
    of_preset = f'the preset "{one_line(preset.name)}" names none' if preset else "there is no preset"
    raise ModelError(
        f"no model: the call names none, {of_preset}, and default_model is not set",
        where=preset.path if preset else "",
        hint='choose one for this run (--model), add "model: provider/id" to the preset,'
        f" or set default_model in {user_settings_file()}",
    )


def _chosen(call: str | None, preset: Preset | None, settings: Settings) -> _Reference | None:
    candidates = (
        _Reference(call or "", "call", "the model of this call"),
        _Reference((preset and preset.model) or "", "preset", preset.path if preset else ""),
        _Reference(settings.default_model or "", "default_model", "the setting default_model"),
    )
    for candidate in candidates:
        if text := candidate.text.strip():
            return _Reference(text, candidate.source, candidate.where)
    return None


def _spelling(reference: _Reference, agent: str) -> str:
    """Answer what the agent is told. Roles, bare ids and the catalog are asked here, in this order, when they come."""
    text = reference.text
    if _CONTROL.search(text):
        raise _refused(reference, "has a control character or a line break in it", "write it as provider/id")
    if text.startswith("-"):
        raise _refused(reference, 'begins with "-", which an agent reads as an option', "write it as provider/id")
    if text.startswith("@"):
        raise _refused(reference, "names a role, and no role of that name is known", "name a model as provider/id")
    if text == "inherit":
        raise _refused(reference, "would be the parent's, and no parent is known", "name a model as provider/id")
    return OFFLINE_MODEL if agent == OFFLINE_AGENT else text


def _refused(reference: _Reference, why: str, hint: str) -> ModelError:
    return ModelError(f'the model "{one_line(reference.text, 80)}" {why}', where=reference.where, hint=hint)
