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
from .options import OneOf, json_option
from .output import document, note, say


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option("--as", "name", metavar="NAME", help="What the preset is called, instead of the name in the file.")
@click.option("--global", "for_all", is_flag=True, help="For all your projects, instead of only this one.")
@click.option("--from", "form", type=OneOf(list(FORMS)), help="For which program the file was written.")
@click.option("--agent", metavar="A", default="", help="Which agent runs it, if not that of the file's program.")
@json_option
def import_(file: str, name: str | None, for_all: bool, form: str | None, agent: str, as_json: bool) -> None:
    """Make a preset of an agent file of another program: .claude/agents/*.md, for example.

    Its form is told by where it lies and what is in it. What cannot be passed on is left out and named; a file that
    forbids something that a preset cannot forbid is refused. No file is ever replaced, and FILE stays as it is.
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
        raise PresetError("there is no such file", where=one_line(path)) from None
    except ContentError as error:
        raise PresetError(error.what, where=one_line(error.within(path)), hint=error.hint) from error
    if preset is None:
        raise PresetError("it is not an agent file: it has no frontmatter", where=one_line(path))
    return preset
