"""Drafts of presets: read, checked and saved; each function here reads or writes files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import PresetError
from ...core.paths import agent_dir
from ...core.run.model import PresetSource
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from ...core.launch.preview import PresetCheck
    from ...core.presets.file import Preset, PresetProblem
    from ...core.presets.text import PresetText
    from ..engine_api import EngineApi

PROJECT, USER = "this project", "all my projects"

TEMPLATE = "---\nname: \ndescription: \nmodel: \n# tools: read, grep, find, ls\n---\n\n"


@dataclass(frozen=True, slots=True)
class Draft:
    """The editor's initial text and target."""

    title: str
    source: PresetSource
    path: str | None
    """None for a new preset."""
    own: PresetText


def preset_dir(engine: EngineApi, where: str) -> str:
    """Return the directory for presets of this project, or of all projects."""
    from ...core.presets.sources import project_directory

    if where == PROJECT:
        return project_directory(engine.workspace)
    return os.path.join(agent_dir(), "subagents")


def new_draft() -> Draft:
    from ...core.presets.text import text_of

    return Draft("New preset", PresetSource.PROJECT, None, text_of(TEMPLATE.encode()))


def read_draft(entry: Preset | PresetProblem) -> Draft:
    """Read the file of a preset, or of a broken one. Raises PresetError."""
    from ...core.presets.text import read_preset_text
    from ...core.text.plain import can_encode_unsafe

    preset_text = read_preset_text(entry.path)
    if not can_encode_unsafe(preset_text.text):
        raise PresetError("private-use characters (U+100000 and above) cannot be edited here", where=entry.path)
    return Draft(f"Edit {one_line(entry.name, 50)}", entry.source, entry.path, preset_text)


def check(engine: EngineApi, draft: Draft, where: str, content: bytes) -> PresetCheck:
    """Check a text as the content of the draft's file; `where` is for a new preset."""
    from ...core.launch.preview import check_preset

    if draft.path is not None:
        return check_preset(content, engine.workspace, os.path.dirname(draft.path), draft.source, draft.path)
    source = PresetSource.PROJECT if where == PROJECT else PresetSource.GLOBAL
    return check_preset(content, engine.workspace, preset_dir(engine, where), source)


def save(engine: EngineApi, draft: Draft, where: str, name: str, content: bytes, before: bytes) -> str:
    """Write a text that passed the check, and return its path.

    Raises PresetError, and FileChanged if the file no longer holds `before`.
    """
    if draft.path is None:
        from ...core.presets.write import place_preset, stem_of

        return place_preset(preset_dir(engine, where), name, stem_of(name), content.decode())
    from ...core.presets.text import write_preset_text

    write_preset_text(draft.path, content, before=before)
    return draft.path
