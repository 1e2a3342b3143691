"""`subdeck import`: convert an agent file of another program to a preset."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click

from ..config.settings import PresetDir
from ..config.yaml_tree import read_content, read_text
from ..engine import Engine
from ..errors import ContentError, PresetError
from ..launch.preview import check_preset
from ..paths import agent_dir
from ..presets.file import Preset
from ..presets.recognition import recognised_form
from ..presets.sources import FORMS, form_and_agent, form_of, project_directory
from ..presets.write import place_copy
from ..run.model import PresetSource
from ..text.plain import one_line
from ._command import Document, command
from ._options import OneOf
from .output import Note, Output, Piece


class Imported(Document, frozen=True):
    """The written preset."""

    path: str
    name: str | None
    """Null if the preset cannot be used."""
    form: str
    """Format of the converted file."""
    left_out: tuple[str, ...]
    """Warnings about dropped parts of the file."""
    warnings: tuple[str, ...]
    """Warnings about the preset."""
    notes: tuple[str, ...]
    """Remarks, such as the preset that it hides."""


@command(
    "import",
    "subdeck import .claude/agents/security.md",
    "subdeck import security.md --from claude --as careful --global",
)
@click.argument("file", metavar="FILE")
@click.option("--as", "name", metavar="NAME", help="Name of the preset (default: the name in the file).")
@click.option("--global", "for_all", is_flag=True, help="Write it for all your projects instead of only this one.")
@click.option("--from", "form", type=OneOf(list(FORMS)), help="Program that the file was written for.")
@click.option(
    "--agent", metavar="A", default="", help="Agent that runs it (default: the one that the file was written for)."
)
def import_(file: str, name: str | None, for_all: bool, form: str | None, agent: str) -> Output[Imported]:
    """Convert another program's agent file to a preset, for example .claude/agents/*.md.

    The format is detected from the file's location and content. Unsupported grants are dropped with a warning; a
    restriction that a preset can't enforce is an error. Existing files are never replaced, and FILE is not changed.
    """
    engine = Engine.open()
    path = os.path.abspath(os.path.expanduser(file))
    preset = _read(path, form, agent, engine)
    workspace = engine.workspace
    directory = os.path.join(agent_dir(), "subagents") if for_all else project_directory(workspace)
    written = place_copy(preset, preset.name if name is None else name, directory)
    source = PresetSource.GLOBAL if for_all else PresetSource.PROJECT
    checked = check_preset(read_content(written), workspace, directory, source, written)
    called = checked.preset and checked.preset.name
    imported = Imported(written, called, preset.form, preset.warnings, checked.warnings, checked.notes)
    return Output(imported, _text(imported))


def _text(imported: Imported) -> Iterator[Piece]:
    yield f"Written to {one_line(imported.path)}"
    for warning in (*imported.left_out, *imported.warnings):
        yield Note(f"! {one_line(warning)}")
    for remark in imported.notes:
        yield Note(one_line(f"It is {remark}." if remark.startswith("hidden") else f"It {remark}."))


def _read(path: str, form: str | None, agent: str, engine: Engine) -> Preset:
    """Read the file as a preset. Raises PresetError."""
    try:
        text = read_text(path)
        preset_dir = PresetDir(path, agent, form or recognised_form(path, text))
        preset = form_of(preset_dir.form).parse(text, path, form_and_agent(preset_dir, engine.settings)[1])
    except FileNotFoundError:
        raise PresetError("the file does not exist", where=one_line(path)) from None
    except ContentError as error:
        raise PresetError(error.what, where=one_line(error.within(path)), hint=error.hint) from error
    if preset is None:
        raise PresetError("not an agent file: it has no frontmatter", where=one_line(path))
    return preset
