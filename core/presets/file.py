"""A preset file: its frontmatter, its prompt, and its faults."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, structs

from ..config import renamed
from ..config.values import is_blank, read_value, unexpected
from ..config.yaml_tree import Fields, Items, Node, Text, read_text
from ..errors import ContentError, UsageError, nearest
from ..run.model import Permissions, PresetSource, PromptMode
from ..run.tool_policy import checked_tools, parse_tools
from ..spec.fields import TOOLS, RunSpec, table
from ..text.plain import one_line
from .fields import ALLOWING, DENYING, FIELDS
from .text import split_markdown, without_blank_ends


def read_tools(fields: Fields) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the preset's allowed and denied tools; at most one of the two is not None.

    Raises ContentError also for several of these fields, because choosing one would be a guess.
    """
    present = [key for key in (*ALLOWING, DENYING) if key in fields.pairs]
    if len(present) > 1:
        line = max(fields.pairs[key].line for key in present)
        contrary = "contradict each other" if DENYING in present else "mean the same thing"
        raise ContentError(f"{' and '.join(present)} {contrary}", line=line, hint="keep one of them")
    if not present:
        return None, None
    names = _listed(present[0], fields.pairs[present[0]])
    return (None, names) if present[0] == DENYING else (names, None)


def _listed(key: str, node: Node) -> tuple[str, ...]:
    if isinstance(node, Fields):
        raise unexpected(key, "a list of tools", node)
    try:
        if isinstance(node, Items):
            return checked_tools(_names(key, node))
        names = () if is_blank(node) else parse_tools(node.value)
    except ContentError:
        raise
    except UsageError as error:
        raise ContentError(f"{key}: {error.what}", line=node.line, hint=error.hint) from error
    if not names:
        effect = "deny no tools" if key == DENYING else "allow no tools"
        hint = f'write "{key}: []" to {effect}, or remove the line'
        raise ContentError(f"{key} is empty", line=node.line, hint=hint)
    return names


def _names(key: str, node: Items) -> Iterator[str]:
    for item in node.items:
        if not isinstance(item, Text):
            raise unexpected(key, "the name of a tool", item)
        yield item.value


SUFFIX = ".md"
NAME_LIMIT = 64
"""Characters."""
OWN_SET = "the agent's own set"
"""Shown as the tools of a preset without a list."""


class Preset(RunSpec, frozen=True, kw_only=True):
    """A preset as written in its file."""

    name: str
    description: str
    """Free text; empty only for a file of `preset_dirs` without one."""
    source: PresetSource
    path: str
    form: str = ""
    """Program of the agent file, as in `sources.FORMS`; empty for a subdeck preset."""
    warnings: tuple[str, ...] = ()

    def __hash__(self) -> int:
        """Hash the file, because required resources have no hash."""
        return hash((self.name, self.path))

    @property
    def tools_words(self) -> str:
        """Its tools as written, for a person."""
        if self.denied_tools:
            return f"all but {', '.join(self.denied_tools)}"
        return OWN_SET if self.tools is None else ", ".join(self.tools) or "none"


class PresetProblem(Struct, frozen=True, kw_only=True):
    """An unusable file."""

    path: str
    message: str
    """Fault and fix, in one line."""
    line: int | None = None
    source: PresetSource
    name: str
    """Its `name` if readable, otherwise the file's stem."""

    @property
    def where(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


def read_preset(
    path: str, source: PresetSource, parse: Callable[[str], Preset | None] | None = None
) -> Preset | PresetProblem | None:
    """Read a file; return None if it is gone. `parse` makes a preset of its text, or returns None; without `parse`, the
    file is a subdeck preset.
    """
    name = os.path.splitext(os.path.basename(path))[0]
    try:
        path.encode()
        text = read_text(path)
    except FileNotFoundError:
        return None
    except UnicodeEncodeError:
        return problem_of(path, source, name, ContentError("the file name is not UTF-8", hint="rename it"))
    except ContentError as error:
        return problem_of(path, source, name, error)
    try:
        return parse(text) if parse else parse_preset(text, path, source)
    except ContentError as error:
        return problem_of(path, source, _written_name(text) or name, error)


def problem_of(path: str, source: PresetSource, name: str, error: ContentError) -> PresetProblem:
    message = one_line(f"{error.what}; {error.hint}" if error.hint else error.what, 400)
    shown = os.fsencode(path).decode(errors="replace")
    return PresetProblem(path=shown, message=message, line=error.line, source=source, name=one_line(name, NAME_LIMIT))


def parse_preset(text: str, path: str, source: PresetSource) -> Preset:
    """Parse a preset file's text.

    Raises ContentError for its first fault. A file of `preset_dirs` needs no frontmatter; without a name it is named
    after its file.
    """
    markdown = split_markdown(text)
    lenient = source is PresetSource.DIR
    if markdown.fields is None and not lenient:
        hint = 'begin the file with "---", name: and description:, then "---" again'
        raise ContentError("the file has no frontmatter", line=1, hint=hint)
    fields, written = renamed.with_new_names(markdown.fields or Fields({}, 1), renamed.PRESETS)
    values = _values(fields, written)
    stem = os.path.basename(path).removesuffix(SUFFIX)
    for key, usual in (("name", stem), ("description", "")):
        # As written: `null` and `~` are words here.
        text = read_value(key, FIELDS[key].kind, fields.pairs[key]) if key in fields.pairs else ""
        values[key] = text or (usual if lenient else "")
        if not values[key] and not lenient:
            raise ContentError(f"{key} is missing", hint=f'add a line "{key}: …" to the frontmatter')
    check_name(values["name"], fields.pairs["name"].line if "name" in fields.pairs else None)
    prompt = without_blank_ends(values.get("prompt", ""))
    values["prompt"] = prompt or markdown.body
    preset = Preset(source=source, path=path, **values)
    _refuse_unkept(preset, fields)
    return structs.replace(preset, warnings=(*_unknown(fields), *_ineffective(preset, prompt, markdown.body)))


def _values(fields: Fields, written: Mapping[str, str]) -> dict[str, Any]:
    """Read the fields into a preset's attributes; blank ones are absent. `written` maps new keys to old ones in the
    file.
    """
    values: dict[str, Any] = {}
    for name, field in table().items():
        key = field.key or name
        node = fields.pairs.get(key)
        if node is not None and field.kind is not TOOLS and not is_blank(node):
            values[name] = read_value(written.get(key, key), field.kind, node)
    values["keeps_session"] = "keeps_session" not in values
    values["tools"], values["denied_tools"] = read_tools(fields)
    if rules := values.get("permissions"):
        values["permissions"] = Permissions(*structs.astuple(rules))
    return values


def _refuse_unkept(preset: Preset, fields: Fields) -> None:
    """Raise ContentError if the session is never saved but must be continued or asked again for its result."""
    for key, is_set in (("sticky", preset.sticky), ("structured_result", preset.structured_result)):
        if is_set and not preset.keeps_session:
            line = max(fields.pairs["session"].line, fields.pairs[key].line)
            raise ContentError(
                f'"session: none" and {key} cannot be combined', line=line, hint="remove one of the two lines"
            )


def check_name(name: str, line: int | None = None) -> None:
    """Raise ContentError if a preset cannot have this name; `line` is its line in the file."""
    if len(name) > NAME_LIMIT:
        what = f"the name is longer than {NAME_LIMIT} characters"
    elif "/" in name or "\\" in name or name in (".", ".."):
        what = f'the name "{one_line(name)}" contains a path separator'
    elif not name.isprintable() or name != name.strip():
        what = f'the name "{one_line(name)}" has a line break, whitespace at an end or an invisible character'
    else:
        return
    raise ContentError(what, line=line, hint="choose another name")


def _unknown(fields: Fields) -> Iterator[str]:
    for key in fields.pairs:
        if key not in FIELDS:
            near = nearest(key, FIELDS)
            ignored = f'unknown key "{one_line(key, 40)}" is ignored'
            yield f"{ignored}; {near}" if near else ignored


def _ineffective(preset: Preset, prompt: str, body: str) -> Iterator[str]:
    if prompt and body:
        yield 'the text below the frontmatter is ignored because "prompt" is set'
    if preset.prompt_mode == PromptMode.REPLACE and not preset.prompt.strip():
        yield '"prompt_mode: replace" has no effect: there is no prompt'
    if preset.max_attempts is not None and not preset.structured_result:
        yield '"max_attempts" has no effect without "structured_result: true"'


_NAME_LINE = r"(?m)^(?:name:|name *= *)[ \t]*[\"']?([^\"'\n#]*)"
"""In frontmatter or TOML."""


def _written_name(text: str) -> str:
    """Return the name in a file that cannot be parsed."""
    written = _name_line(text)
    return written[1].strip() if written else ""


def name_line(text: str) -> int | None:
    """Return the line, counted from 1, with a file's name; None if not found."""
    written = _name_line(text)
    return text.count("\n", 0, written.start()) + 1 if written else None


def _name_line(text: str) -> re.Match[str] | None:
    match = re.search(_NAME_LINE, text[:4096])
    return match if match and (text.startswith("---") or not match[0].startswith("name:")) else None
