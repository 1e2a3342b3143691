"""`subdeck import`: a preset of ours made of an agent file that is written for another program."""

from __future__ import annotations

import os

import click

from ..config.settings import PresetDir
from ..config.yaml_tree import read_content, read_text
from ..engine import Engine
from ..errors import ContentError, PresetError
from ..launch.preview import check_preset
from ..paths import agent_dir
from ..presets.file import Preset
from ..presets.places import FORMS, form_and_agent, form_of, project_place
from ..presets.recognition import recognised_form
from ..presets.write import place_copy
from ..run.model import PresetSource
from ..text.plain import one_line
from ._options import OneOf, json_option
from .output import document, note, say


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--as", "name", metavar="NAME", help="Name of the preset (default: the name in the file).")
@click.option("--global", "for_all", is_flag=True, help="Write it for all your projects instead of only this one.")
@click.option("--from", "form", type=OneOf(list(FORMS)), help="Program that the file was written for.")
@click.option(
    "--agent", metavar="A", default="", help="Agent that runs it (default: the one that the file was written for)."
)
@json_option
def import_(file: str, name: str | None, for_all: bool, form: str | None, agent: str, as_json: bool) -> None:
    """Convert another program's agent file to a preset, for example .claude/agents/*.md.

    The format is detected from the file's location and content. Unsupported grants are dropped with a warning; a
    restriction that a preset can't enforce is an error. Existing files are never replaced, and FILE is not changed.
    """
    engine = Engine.open()
    path = os.path.abspath(os.path.expanduser(file))
    preset = _read(path, form, agent, engine)
    workspace = engine.workspace
    directory = os.path.join(agent_dir(), "subagents") if for_all else project_place(workspace)
    written = place_copy(preset, preset.name if name is None else name, directory)
    source = PresetSource.GLOBAL if for_all else PresetSource.PROJECT
    checked = check_preset(read_content(written), workspace, directory, source, written)
    if as_json:
        found = {"path": written, "name": checked.preset and checked.preset.name, "form": preset.form}
        document({**found, "leftOut": preset.warnings, "warnings": checked.warnings, "notes": checked.notes})
        return
    say(f"Written to {one_line(written)}")
    for warning in (*preset.warnings, *checked.warnings):
        note(f"! {one_line(warning)}")
    for told in checked.notes:
        note(one_line(f"It is {told}." if told.startswith("hidden") else f"It {told}."))


def _read(path: str, form: str | None, agent: str, engine: Engine) -> Preset:
    """Read the file as a preset. Raises PresetError."""
    try:
        text = read_text(path)
        wanted = PresetDir(path, agent, form or recognised_form(path, text))
        preset = form_of(wanted.form).parse(text, path, form_and_agent(wanted, engine.settings)[1])
    except FileNotFoundError:
        raise PresetError("the file does not exist", where=one_line(path)) from None
    except ContentError as error:
        raise PresetError(error.what, where=one_line(error.within(path)), hint=error.hint) from error
    if preset is None:
        raise PresetError("not an agent file: it has no frontmatter", where=one_line(path))
    return preset
