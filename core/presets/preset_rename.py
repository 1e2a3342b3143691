"""Give the text of a preset another name and leave every other character of it alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from msgspec import structs

from ..config.yaml_tree import DocumentError
from ..errors import PresetError
from ..run.model import PresetSource
from ..text.plain import one_line
from .file import Preset, name_fault, parse_preset
from .frontmatter import frontmatter_span


def renamed(text: str, preset: Preset, name: str) -> str:
    """Answer the text of this preset with `name` in the place of its name; comments and order stay.

    What a file of `preset_dirs` may leave out is added, because other places want it. Raises PresetError for what
    cannot be a name, and where the text is written so that nobody but its author can change it.
    """
    if not name:
        raise PresetError("a preset needs a name")
    if fault := name_fault(name):
        raise PresetError(fault, hint="choose another name")
    wanted = structs.replace(preset, name=name, description=preset.description or _described(preset))
    for written in (name, json.dumps(name, ensure_ascii=False)):
        changed = _with_name(text, written, wanted.description if not preset.description else "")
        if _reads_as(changed, wanted):
            return changed
    raise PresetError(
        f'the name "{one_line(preset.name)}" is written so that it cannot be replaced',
        where=preset.path,
        hint="change it in the editor",
    )


def _described(preset: Preset) -> str:
    return f"A copy of {preset.name}"


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
    # A block (`name: >`) ends behind its line break, which the line needs.
    ending = "\n" if text[start:stop].endswith("\n") else ""
    return f"{text[:begin]}{added}{text[begin:start]}{written}{ending}{text[stop:]}"


def _name_span(frontmatter: str) -> tuple[int, int] | None:
    """Find where the value of the outermost `name` begins and ends; its parse has succeeded before."""
    import yaml

    events = cast("Iterator[Any]", yaml.parse(frontmatter, Loader=yaml.BaseLoader))
    depth, is_key, follows_name = 0, True, False
    for event in events:
        kind = type(event).__name__
        opens, closes = kind.endswith(("MappingStartEvent", "SequenceStartEvent")), kind.endswith("EndEvent")
        if depth == 1 and (opens or kind == "ScalarEvent"):
            if follows_name:
                return None if opens else (event.start_mark.index, event.end_mark.index)
            follows_name = is_key and not opens and event.value == "name"
            is_key = not is_key
        depth += 1 if opens else -1 if closes and kind.startswith(("Mapping", "Sequence")) else 0
    return None


def _reads_as(text: str, wanted: Preset) -> bool:
    try:
        read = parse_preset(text, wanted.path, PresetSource.PROJECT)
    except DocumentError:
        return False
    return read == structs.replace(wanted, source=PresetSource.PROJECT, warnings=read.warnings)
