"""`subdeck settings`: show the settings in force, or an example file."""

from __future__ import annotations

import os

import click
import msgspec

from ..config.schema import KEYS, example_settings, value_of
from ..engine import Engine
from ..paths import user_settings_file
from ..text.plain import one_line
from .options import json_option
from .output import document, note, say


@click.command("settings")
@click.option("--example", is_flag=True, help="Print a settings file with every key explained and commented out.")
@json_option
def command(example: bool, as_json: bool) -> int:
    """Show the settings in force here, and the files that they come from."""
    if example:
        say(example_settings().rstrip("\n"))
        return 0
    engine = Engine.open()
    values = {key: msgspec.to_builtins(value_of(engine.settings, key)) for key in KEYS}
    files = {"user": user_settings_file(), "project": engine.project.settings_file}
    if as_json:
        document({"files": files, "settings": values, "notices": engine.settings.notices})
        return 0
    for name, path in files.items():
        say(f"# {name}: {one_line(path)}{'' if os.path.isfile(path) else ' (not there)'}")
    for key, value in values.items():
        say(f"{key}: {one_line(msgspec.json.encode(value).decode())}" if value is not None else f"{key}:")
    for notice in engine.settings.notices:
        note(f"! {one_line(notice)}")
    return 0
