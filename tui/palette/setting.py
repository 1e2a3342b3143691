"""A setting as a question whether to edit it, and the line of the settings file that is about it."""

from __future__ import annotations

import os
import re

from ...core.config import renamed
from ...core.config.files import KEYS, example_of, example_settings, value_of
from ...core.config.settings import Settings
from ...core.system.files import write_new
from ...core.text.decoding import encode_shown
from ...core.text.plain import one_line


def setting_facts(settings: Settings, key: str, path: str) -> str:
    """Describe a setting: its meaning, current value, syntax and file."""
    value = value_of(settings, key)
    return "\n".join(
        (
            KEYS[key].setting.meaning,
            "",
            f"current   {'not set' if value is None else one_line(encode_shown(value), 60)}",
            f"example   {one_line(f'{key}: {example_of(key)}', 60)}",
            f"file      {path}",
            "",
            "Changes take effect when subdeck starts again.",
        )
    )


def ready_file(path: str, key: str) -> int:
    """Make the file with every setting commented out where there is none; return the line that is about a setting."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        text = example_settings()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_new(path, [text.encode()])
    return line_of(text, key)


def line_of(text: str, key: str) -> int:
    """Return the number of the line in which a setting is given, else where it is commented out, else the last one."""
    section, _, name = key.rpartition(".")
    old = next((old for old, new in renamed.SETTINGS.items() if new == key), key).rpartition(".")[2]
    lines = text.split("\n")
    for mark in ("", r"#\s*"):
        begin = 0
        if section:
            begin = next((n + 1 for n, line in enumerate(lines) if re.match(rf"{mark}{section}\s*:", line)), len(lines))
        indent = r"\s+" if section else ""
        for number, line in enumerate(lines[begin:], begin + 1):
            if re.match(rf"{mark}{indent}(?:{re.escape(name)}|{re.escape(old)})\s*:", line):
                return number
    return len(text.rstrip("\n").split("\n"))
