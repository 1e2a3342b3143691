"""Writes preset files: from fields, under another name, or as a copy of one that comes with subdeck."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container
from itertools import count
from typing import Any, cast

from msgspec import structs

from ..config.settings import Settings
from ..config.yaml_tree import SIZE_LIMIT, read_text
from ..errors import ContentError, ModelError, PresetError
from ..models.catalog import check_text
from ..models.resolvers import RolesResolver, ask, installed_resolvers
from ..run.model import Permissions, PresetSource, WorktreeFrom
from ..run.tool_policy import checked_tools
from ..spec.fields import TOOLS, RunSpec, table
from ..system import files
from ..text.plain import one_line
from .fields import DENYING
from .file import NAME_LIMIT, SUFFIX, Preset, check_name, parse_preset, read_preset
from .sources import BUNDLED, preset_files
from .text import frontmatter_span, read_preset_text, without_blank_ends

_WORKTREE: dict[WorktreeFrom, bool] = {WorktreeFrom.FILES: True, WorktreeFrom.NONE: False}
"""The usual YAML for the field."""
STEM_LIMIT = 200
"""Most bytes of a file name; file systems allow 255, and temporary names add to it."""


def save_preset(directory: str, name: str, description: str, spec: RunSpec) -> str:
    """Write a preset from fields, as `place_preset` does; blank texts are omitted.

    Raises PresetError, and UsageError for an invalid tool name.
    """
    name, description, model = name.strip(), description.strip(), (spec.model or "").strip()
    if not description:
        raise PresetError("a preset needs a description", hint="describe its purpose in one sentence")
    fields: dict[str, Any] = {field: getattr(spec, field) for field in table()} | {
        "model": model or None,
        "tools": None if spec.tools is None else checked_tools(spec.tools),
        "prompt": without_blank_ends(spec.prompt.replace("\r\n", "\n")),
        "host": spec.host or None,
        "needs": spec.needs or None,
    }
    preset = Preset(name=name, description=description, source=PresetSource.PROJECT, path="", **fields)
    return place_preset(directory, name, stem_of(name), _checked_text(preset))


def place_copy(preset: Preset, name: str, directory: str) -> str:
    """Write another program's preset as a subdeck preset, as `place_preset` does. Raises PresetError."""
    name, description = name.strip(), preset.description or f"From {os.path.basename(preset.path)}"
    ours = structs.replace(
        preset, name=name, description=description, source=PresetSource.PROJECT, path="", form="", warnings=()
    )
    return place_preset(directory, name, stem_of(name), _checked_text(ours))


def place_preset(directory: str, name: str, stem: str, text: str) -> str:
    """Write a preset's text into a directory, which is created if missing; return the path.

    Never replaces a file or adds a second preset of that name to the directory. Raises PresetError.
    """
    path = os.path.join(directory, stem + SUFFIX)
    try:
        files.make_private_directory(directory)
        _refuse_second(directory, name)
        files.write_new(path, text.encode(), durable=True)
    except FileExistsError:
        raise PresetError("the file already exists", where=path, hint="choose another name") from None
    except OSError as error:
        raise PresetError(f"cannot write the preset: {error.strerror}", where=path) from error
    return path


def check_new_name(name: str) -> None:
    """Raise PresetError unless a name can be typed as one word. Files may have any name that `check_name` accepts."""
    if not name.strip():
        raise PresetError("a preset needs a name")
    try:
        check_name(name)
    except ContentError as error:
        raise PresetError(error.what, hint=error.hint) from error
    if re.search(r"\s", name):
        what = f'the preset name "{one_line(name, NAME_LIMIT)}" contains whitespace'
        raise PresetError(what, hint=f'write it as one word, such as "{"-".join(name.split())}"')


def _checked_text(preset: Preset) -> str:
    """Return the preset's text. Raises PresetError if reading it back gives a different preset."""
    import yaml

    if not preset.name:
        raise PresetError("a preset needs a name")
    fields: dict[str, Any] = {"name": preset.name, "description": preset.description}
    defaults = RunSpec()
    for name, field in table().items():
        value = getattr(preset, name)
        if name != "prompt" and field.kind is not TOOLS and value != getattr(defaults, name):
            fields[field.key or name] = _written(value)
    lines: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=SIZE_LIMIT)
    for key, names in (("tools", preset.tools), (DENYING, preset.denied_tools)):
        if names is not None:
            listed = (f'"{tool}"' if ":" in tool else tool for tool in names)
            lines += f"{key}: [{', '.join(listed)}]\n"
    text = f"---\n{lines}---\n{preset.prompt}\n"
    try:
        content = text.encode()
        came_back = parse_preset(text, preset.path, preset.source)
    except UnicodeEncodeError as error:
        raise PresetError(f"cannot write the preset: {error}") from error
    except ContentError as error:
        raise PresetError(f"cannot write the preset: {error.what}", hint=error.hint) from error
    if len(content) > SIZE_LIMIT:
        raise PresetError("the preset is too large (limit 1 MB)")
    if "\0" in text or came_back != preset:
        raise PresetError("cannot write the preset: a value contains a control character")
    return text


def _written(value: Any) -> Any:
    """Return a field's value as YAML has it."""
    match value:
        case WorktreeFrom():
            return _WORKTREE.get(value, str(value))
        case Permissions():
            return {name: list(rules) for name, rules in structs.asdict(value).items() if rules}
        case str():
            return str(value)
        case _:
            return value


def stem_of(name: str) -> str:
    """Return a file name's stem with only letters and digits of any script, `_` and `-`."""
    stem = re.sub(r"[^\w]+", "-", name.lower()).strip("-")
    return stem.encode()[:STEM_LIMIT].decode(errors="ignore").strip("-") or "preset"


def _refuse_second(directory: str, name: str) -> None:
    for path in sorted(preset_files(directory)):
        other = read_preset(path, PresetSource.DIR)
        if isinstance(other, Preset) and other.name == name:
            raise PresetError(f'the preset "{one_line(name)}" already exists', where=path, hint="choose another name")


def _renamed(text: str, preset: Preset, name: str) -> str:
    """Return the preset's text with its name replaced by `name`; comments and order stay.

    A missing description is added, because only `preset_dirs` allow that. Raises PresetError for an invalid name, and
    for text in a form that only its author can change.
    """
    if not name:
        raise PresetError("a preset needs a name")
    try:
        check_name(name)
    except ContentError as error:
        raise PresetError(error.what, hint=error.hint) from error
    expected = structs.replace(preset, name=name, description=preset.description or f"A copy of {preset.name}")
    for written in (name, json.dumps(name, ensure_ascii=False)):
        changed = _with_name(text, written, expected.description if not preset.description else "")
        if _reads_as(changed, expected):
            return changed
    raise PresetError(
        f'cannot replace the name "{one_line(preset.name)}" in its present form',
        where=preset.path,
        hint="change it in the editor",
    )


def _with_name(text: str, written: str, description: str) -> str:
    span = frontmatter_span(text)
    added = f"description: {json.dumps(description, ensure_ascii=False)}\n" if description else ""
    if span is None:
        return f"---\nname: {written}\n{added}---\n{text}"
    begin, end = span
    named = _name_span(text[begin:end])
    if named is None:
        return f"{text[:begin]}name: {written}\n{added}{text[begin:]}"
    start, stop = begin + named[0], begin + named[1]
    # A block (`name: >`) includes its line break, which the line needs.
    ending = "\n" if text[start:stop].endswith("\n") else ""
    return f"{text[:begin]}{added}{text[begin:start]}{written}{ending}{text[stop:]}"


def _name_span(frontmatter: str) -> tuple[int, int] | None:
    """Return the span of the outermost `name`'s value; the frontmatter is known to be valid."""
    import yaml

    mapping = cast("Any", yaml.compose(frontmatter, Loader=yaml.BaseLoader))
    for key, value in mapping.value if isinstance(mapping, yaml.MappingNode) else ():
        if key.value == "name" and isinstance(value, yaml.ScalarNode):
            return value.start_mark.index, value.end_mark.index
    return None


def _reads_as(text: str, expected: Preset) -> bool:
    try:
        read = parse_preset(text, expected.path, PresetSource.PROJECT)
    except ContentError:
        return False
    return read == structs.replace(expected, source=PresetSource.PROJECT, warnings=read.warnings)


def bundled_presets() -> tuple[Preset, ...]:
    """Return the presets that come with subdeck, sorted by file, even if turned off."""
    found = (read_preset(path, PresetSource.BUNDLED) for path in sorted(preset_files(BUNDLED)))
    return tuple(preset for preset in found if isinstance(preset, Preset))


def needs_model(preset: Preset, settings: Settings) -> bool:
    """Return whether a copy needs a model: its role is unset, or it and the settings have none."""
    if preset.model is None or not preset.model.startswith("@"):
        return preset.model is None and settings.default_model is None
    return not ask(preset.model, (RolesResolver(settings.roles, None), *installed_resolvers())).is_answered


def copy_bundled(preset: Preset, directory: str, settings: Settings, model: str = "") -> str:
    """Write a bundled preset as `place_preset` does; `model` replaces its model unless blank.

    Raises PresetError, and ModelError if it needs a model and none is given.
    """
    model = model.strip()
    if not model and needs_model(preset, settings):
        raise ModelError(
            f'{preset.name} uses the model "{preset.model}", a role that is not set',
            where=preset.path,
            hint=f"choose a model for the copy, or set {(preset.model or '')[1:]} under roles in the settings",
        )
    text = read_text(preset.path)
    if model:
        check_text(model)
        line = f"model: {json.dumps(model, ensure_ascii=False)}"
        text = re.sub(r"^model:.*$", lambda _: line, text, count=1, flags=re.MULTILINE)
    return place_preset(directory, preset.name, os.path.basename(preset.path).removesuffix(SUFFIX), text)


def free_name(name: str, taken: Container[str]) -> str:
    """Return `<name>-2`, or the next free name, for a copy."""
    base = name[: NAME_LIMIT - 4].rstrip()
    return next(free for number in count(2) if (free := f"{base}-{number}") not in taken)


def duplicate(preset: Preset, name: str, directory: str) -> str:
    """Write a copy of a preset's file under another name, as `place_preset` does; another program's file becomes a
    subdeck preset. Raises PresetError.
    """
    if preset.form:
        return place_copy(preset, name, directory)
    now = read_preset(preset.path, preset.source)
    if not isinstance(now, Preset):
        why = "its file no longer exists" if now is None else f"its file is invalid now: {now.message}"
        raise PresetError(f"cannot copy the preset: {why}", where=preset.path)
    original = read_preset_text(preset.path)
    text = original.bytes_of(_renamed(original.text, now, name.strip())).decode()
    return place_preset(directory, name.strip(), stem_of(name.strip()), text)
