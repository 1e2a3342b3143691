"""Make a bundled preset one's own, or a second one of one's own."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container
from itertools import count

from ..config.settings import Settings
from ..errors import ModelError, PresetError, nearest
from ..models.references import UnknownModel, check_text
from ..models.resolvers import ask, installed_resolvers
from ..models.roles import RolesResolver
from ..run.model import PresetSource
from ..text.plain import one_line
from .bundled import BUNDLED
from .catalog import preset_files
from .file import NAME_LIMIT, SUFFIX, Preset, read_preset
from .preset_rename import renamed
from .text import read_preset_text
from .write import place_preset, stem_of

_MODEL = re.compile(r"^model:.*$", re.MULTILINE)


def bundled_presets() -> tuple[Preset, ...]:
    """Answer the presets that come along, by name, whether they are offered or not."""
    found = (read_preset(path, PresetSource.BUNDLED) for path in sorted(preset_files(BUNDLED)))
    return tuple(preset for preset in found if isinstance(preset, Preset))


def needs_model(preset: Preset, settings: Settings) -> bool:
    """Whether a copy asks for a model: its own is a role that is not set."""
    if preset.model is None or not preset.model.startswith("@"):
        return preset.model is None and settings.default_model is None
    return not ask(preset.model, (RolesResolver(settings.roles, None), *installed_resolvers())).is_answered


def copy_bundled(name: str, directory: str, settings: Settings, model: str | None = None) -> str:
    """Write a bundled preset into a directory of presets and answer its path; `model` stands in for its own.

    Never replaces a file. Raises PresetError, and ModelError where it needs a model and none is given.
    """
    bundled = {preset.name: preset for preset in bundled_presets()}
    if name not in bundled:
        hint = nearest(name, bundled) or f"there are {', '.join(bundled)}"
        raise PresetError(f'no preset "{one_line(name, 80)}" comes along', hint=hint)
    preset, chosen = bundled[name], (model or "").strip()
    if not chosen and needs_model(preset, settings):
        raise ModelError(
            f'the model "{preset.model}" of {preset.name} is a role that is not set',
            where=preset.path,
            hint=f"name a model for the copy, or set {(preset.model or '')[1:]} below roles in the settings",
        )
    with open(preset.path, encoding="utf-8") as file:
        text = file.read()
    if chosen:
        text = _with_model(text, chosen)
    return place_preset(directory, preset.name, os.path.basename(preset.path).removesuffix(SUFFIX), text)


def free_name(name: str, taken: Container[str]) -> str:
    """Propose `<name>-2`, or the next that is not taken, for a copy."""
    base = name[: NAME_LIMIT - 4].rstrip()
    return next(free for number in count(2) if (free := f"{base}-{number}") not in taken)


def duplicate(preset: Preset, name: str, directory: str) -> str:
    """Write a preset's file once more under another name, into a directory of presets, and answer its path.

    Never replaces a file, and never makes a second preset of one name in a directory. Raises PresetError.
    """
    now = read_preset(preset.path, preset.source)
    if not isinstance(now, Preset):
        why = "its file is gone" if now is None else f"its file is broken by now: {now.message}"
        raise PresetError(f"it cannot be copied: {why}", where=preset.path)
    own = read_preset_text(preset.path)
    text = own.bytes_of(renamed(own.text, now, name.strip())).decode()
    return place_preset(directory, name.strip(), stem_of(name.strip()), text)


def _with_model(text: str, model: str) -> str:
    try:
        check_text(model)
    except UnknownModel as fault:
        raise ModelError(f'the model "{one_line(model, 80)}" {fault.why}', where="model", hint=fault.hint) from fault
    line = f"model: {json.dumps(model, ensure_ascii=False)}"
    return _MODEL.sub(lambda _: line, text, count=1)
