"""A preset's text on its way between its file and the editor; each function here reads or writes files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import PresetError
from ...core.paths import agent_dir
from ...core.run.model import PresetSource
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from ...core.engine import Engine
    from ...core.launch.preset_check import PresetCheck
    from ...core.presets.file import Preset, PresetProblem
    from ...core.presets.text import PresetText

PROJECT, USER = "this project", "all my projects"

TEMPLATE = "---\nname: \ndescription: \nmodel: \n# tools: read, grep, find, ls\n---\n\n"


@dataclass(frozen=True, slots=True)
class Draft:
    """What the editor begins with."""

    title: str
    source: PresetSource
    path: str | None
    """None for a new preset."""
    own: PresetText


def place_of(engine: Engine, where: str) -> str:
    """Return the directory of presets for this project, the one that is looked into, or for all."""
    from ...core.presets.catalog import project_place

    if where == PROJECT:
        return project_place(engine.workspace)
    return os.path.join(agent_dir(), "subagents")


def source_of(where: str) -> PresetSource:
    return PresetSource.PROJECT if where == PROJECT else PresetSource.GLOBAL


def new_draft() -> Draft:
    from ...core.presets.text import text_of

    return Draft("New preset", PresetSource.PROJECT, None, text_of(TEMPLATE.encode()))


def read_draft(found: Preset | PresetProblem) -> Draft:
    """Read the file of a preset, or of a broken one. Raises PresetError."""
    from ...core.presets.text import read_preset_text
    from ...core.text.placeholders import can_hold

    own = read_preset_text(found.path)
    if not can_hold(own.text):
        raise PresetError("it has characters of the last private plane, which cannot be edited here", where=found.path)
    return Draft(f"Edit {one_line(found.name, 50)}", found.source, found.path, own)


def judge(engine: Engine, draft: Draft, where: str, content: bytes) -> PresetCheck:
    """Check a text as what the draft's file would hold; `where` counts for a new preset."""
    from ...core.launch.preset_check import PresetDraft, check_preset

    if draft.path is None:
        target = PresetDraft(place_of(engine, where), source_of(where))
    else:
        target = PresetDraft(os.path.dirname(draft.path), draft.source, draft.path)
    return check_preset(content, target, engine.workspace)


def save(engine: Engine, draft: Draft, where: str, name: str, content: bytes, before: bytes) -> str:
    """Write a text that was found right, and answer its path. Raises PresetError, FileChanged where it is not
    `before` that the file holds.
    """
    if draft.path is None:
        from ...core.presets.write import place_preset, stem_of

        return place_preset(place_of(engine, where), name, stem_of(name), content.decode())
    from ...core.presets.text import write_preset_text

    write_preset_text(draft.path, content, before=before)
    return draft.path
