"""Write a new preset file."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence

from ..config.yaml_tree import SIZE_LIMIT, DocumentError
from ..errors import PresetError
from ..run.model import PresetSource
from ..run.tool_policy import checked_tools
from ..text.plain import one_line
from .catalog import preset_files
from .file import SUFFIX, Preset, parse_preset, read_preset
from .frontmatter import without_blank_ends

STEM_LIMIT = 200
"""Bytes of a file name; file systems take 255, with what stands around it for a moment."""


def save_preset(
    directory: str, name: str, description: str, model: str | None, tools: Sequence[str] | None, prompt: str
) -> str:
    """Write a preset into a directory, made when missing, and answer its path; blank `model` and None `tools` are
    left out.

    Never replaces a file, and never makes a second preset of one name in a directory. Raises PresetError, or
    UsageError for what cannot be the name of a tool.
    """
    name, description, model = name.strip(), description.strip(), (model or "").strip()
    if not name:
        raise PresetError("a preset needs a name")
    if not description:
        raise PresetError("a preset needs a description", hint="say in one sentence what it is for")
    checked = None if tools is None else checked_tools(tools)
    text = _checked_text(
        Preset(
            name=name,
            description=description,
            model=model or None,
            tools=checked,
            prompt=without_blank_ends(prompt.replace("\r\n", "\n")),
            source=PresetSource.PROJECT,
            path="",
        )
    )
    return place_preset(directory, name, stem_of(name), text)


def place_preset(directory: str, name: str, stem: str, text: str) -> str:
    """Write the text of a preset into a directory, made when missing, and answer its path.

    Never replaces a file, and never makes a second preset of one name in a directory. Raises PresetError.
    """
    path = os.path.join(directory, stem + SUFFIX)
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _refuse_second(directory, name)
        _write_new(path, text)
    except FileExistsError:
        raise PresetError("the file is there already", where=path, hint="choose another name") from None
    except OSError as error:
        raise PresetError(f"the preset cannot be written: {error.strerror}", where=path) from error
    return path


def _checked_text(preset: Preset) -> str:
    """Write the preset as text, and read that again: what would not come back as it was is refused."""
    import yaml

    fields = {"name": preset.name, "description": preset.description}
    if preset.model:
        fields["model"] = preset.model
    lines: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=SIZE_LIMIT)
    if preset.tools is not None:
        tools = (f'"{tool}"' if ":" in tool else tool for tool in preset.tools)
        lines += f"tools: [{', '.join(tools)}]\n"
    text = f"---\n{lines}---\n{preset.prompt}\n"
    try:
        content = text.encode()
        came_back = parse_preset(text, preset.path, preset.source)
    except (UnicodeEncodeError, DocumentError) as error:
        raise PresetError(f"the preset cannot be written: {error}") from error
    if len(content) > SIZE_LIMIT:
        raise PresetError("the preset is too large: at most 1 MB is read")
    if "\0" in text or came_back != preset:
        raise PresetError("the preset cannot be written: a text in it has a control character")
    return text


def stem_of(name: str) -> str:
    """Make the beginning of a file name of letters and digits of any script, `_` and `-`."""
    stem = re.sub(r"[^\w]+", "-", name.lower()).strip("-")
    return stem.encode()[:STEM_LIMIT].decode(errors="ignore").strip("-") or "preset"


def _refuse_second(directory: str, name: str) -> None:
    for path in sorted(preset_files(directory)):
        other = read_preset(path, PresetSource.DIR)
        if isinstance(other, Preset) and other.name == name:
            raise PresetError(f'there is a preset "{one_line(name)}" already', where=path, hint="choose another name")


def _write_new(path: str, text: str) -> None:
    """Write beside, make durable, then link: nobody sees half a preset, and no file is replaced."""
    directory, name = os.path.split(path)
    descriptor, beside = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.link(beside, path)
    finally:
        os.unlink(beside)
