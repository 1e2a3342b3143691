"""One preset file: its frontmatter, its prompt, and what is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from .document import DocumentError, Fields, Items, Node, Text, read_text
from .errors import UsageError, nearest
from .frontmatter import split_markdown, without_blank_ends
from .plain import one_line
from .runs import PresetSource
from .tool_policy import checked_tools, parse_tools

SUFFIX = ".md"
NAME_LIMIT = 64
"""Characters."""


class Preset(Struct, frozen=True, kw_only=True):
    name: str
    description: str
    """Free text; empty only where a file of `preset_dirs` gives none."""
    source: PresetSource
    path: str
    model: str | None = None
    """As written; None when absent or blank."""
    tools: tuple[str, ...] | None = None
    """The allowlist; None means the agent's own set, empty means no tools."""
    prompt: str = ""
    runner: str | None = None
    """`process` or `tmux`."""
    agent: str | None = None
    warnings: tuple[str, ...] = ()


class PresetProblem(Struct, frozen=True, kw_only=True):
    """A file that cannot be used."""

    path: str
    message: str
    """What is wrong and what to do, in one line."""
    line: int | None = None
    source: PresetSource
    name: str
    """What the preset would be called: its `name` where that can be read, else the file's stem."""

    @property
    def where(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


_TOOL_KEYS = ("tools", "approved_tools", "allowed_tools")
"""One thing under three names."""

_KEYS = ("name", "description", "model", *_TOOL_KEYS, "prompt", "runner", "agent")

_YES = frozenset({"true", "yes", "on"})
_NO = frozenset({"false", "no", "off"})

_TUNING: dict[str, frozenset[str]] = {
    "thinking": frozenset(),
    "prompt_mode": frozenset({"append"}),
    "context_files": _YES,
    "inherit_context": _NO,
    "finalize": _NO,
    "max_attempts": frozenset(),
    "sticky": _NO,
}
"""Keys that nothing acts on yet, and the values that ask for what happens anyway; the others are warnings."""

_RESTRICTING: dict[str, frozenset[str]] = {
    key: frozenset() for key in ("denied_tools", "session", "timeout", "max_turns", "stall")
}
"""Keys that nothing acts on yet and that hold a child back: without them it would do more than its preset allows, so
such a preset is refused."""


def read_preset(path: str, source: PresetSource) -> Preset | PresetProblem | None:
    """Read one file; None when it is gone."""
    name = os.path.basename(path).removesuffix(SUFFIX)
    try:
        _check_file_name(path)
        text = read_text(path)
    except FileNotFoundError:
        return None
    except DocumentError as error:
        return problem_of(path, source, name, error)
    try:
        return parse_preset(text, path, source)
    except DocumentError as error:
        return problem_of(path, source, _written_name(text) or name, error)


def problem_of(path: str, source: PresetSource, name: str, error: DocumentError) -> PresetProblem:
    message = one_line(f"{error.what}; {error.hint}" if error.hint else error.what, 400)
    shown = os.fsencode(path).decode(errors="replace")
    return PresetProblem(path=shown, message=message, line=error.line, source=source, name=one_line(name, NAME_LIMIT))


def _check_file_name(path: str) -> None:
    try:
        path.encode()
    except UnicodeEncodeError:
        raise DocumentError("the name of the file is not UTF-8", hint="rename it") from None


def parse_preset(text: str, path: str, source: PresetSource) -> Preset:
    """Read the text of a preset file; raise DocumentError for the first thing that is wrong with it.

    A file of `preset_dirs` needs no frontmatter, and is called like its file where it gives no name.
    """
    markdown = split_markdown(text)
    lenient = source is PresetSource.DIR
    if markdown.fields is None and not lenient:
        hint = 'begin the file with "---", name: and description:, and "---" again'
        raise DocumentError("it has no frontmatter", line=1, hint=hint)
    fields = markdown.fields or Fields({}, 1)
    stem = os.path.basename(path).removesuffix(SUFFIX)
    name = _text(fields, "name") or (stem if lenient else _missing("name"))
    if fault := name_fault(name):
        line = fields.pairs["name"].line if "name" in fields.pairs else None
        raise DocumentError(fault, line=line, hint="change its name")
    description = _text(fields, "description") or ("" if lenient else _missing("description"))
    prompt = without_blank_ends(_text(fields, "prompt", strip=False))
    return Preset(
        name=name,
        description=description,
        source=source,
        path=path,
        model=_text(fields, "model") or None,
        tools=_tools(fields),
        prompt=prompt or markdown.body,
        runner=_choice(fields, "runner", "process|tmux", "process or tmux"),
        agent=_choice(fields, "agent", r"[A-Za-z0-9_-]+", "the name of an agent"),
        warnings=(*_ignored(fields), *_unused_body(prompt, markdown.body)),
    )


def name_fault(name: str) -> str | None:
    """Say what keeps a text from being a preset's name, if anything."""
    if len(name) > NAME_LIMIT:
        return f"the name is longer than {NAME_LIMIT} characters"
    if "/" in name or "\\" in name or name in (".", ".."):
        return f'the name "{one_line(name)}" has a path separator in it'
    if not name.isprintable() or name != name.strip():
        return f'the name "{one_line(name)}" has a line break, a blank end or an invisible character'
    return None


def _missing(key: str) -> str:
    raise DocumentError(f"{key} is missing", hint=f'add a line "{key}: …" to the frontmatter')


def _text(fields: Fields, key: str, *, strip: bool = True) -> str:
    node = fields.pairs.get(key)
    if node is None:
        return ""
    if not isinstance(node, Text):
        raise DocumentError(f"{key}: a text was expected, found {_kind(node)}", line=node.line)
    return node.value.strip() if strip else node.value


def _choice(fields: Fields, key: str, pattern: str, words: str) -> str | None:
    value = _text(fields, key)
    if value and not re.fullmatch(pattern, value):
        raise DocumentError(f'{key}: {words} was expected, found "{value}"', line=fields.pairs[key].line)
    return value or None


def _tools(fields: Fields) -> tuple[str, ...] | None:
    present = [key for key in _TOOL_KEYS if key in fields.pairs]
    if not present:
        return None
    key, node = present[0], fields.pairs[present[0]]
    if len(present) > 1:
        line = fields.pairs[present[1]].line
        raise DocumentError(f"{' and '.join(present)} mean the same thing", line=line, hint="keep one of them")
    try:
        if isinstance(node, Items):
            return checked_tools(_names(key, node))
        names = parse_tools(_text(fields, key))
    except UsageError as error:
        raise DocumentError(f"{key}: {error.what}", line=node.line, hint=error.hint) from error
    if not names:
        hint = f'write "{key}: []" for no tools, or remove the line for all that the agent has'
        raise DocumentError(f"{key} is blank", line=node.line, hint=hint)
    return names


def _names(key: str, node: Items) -> Iterator[str]:
    for item in node.items:
        if not isinstance(item, Text):
            raise DocumentError(f"{key}: the name of a tool was expected, found {_kind(item)}", line=item.line)
        yield item.value


def _ignored(fields: Fields) -> Iterator[str]:
    for key, node in fields.pairs.items():
        value = node.value.strip().lower() if isinstance(node, Text) else None
        if key in _KEYS or (key in _TUNING and value in _TUNING[key]):
            continue
        if key in _RESTRICTING:
            hint = "the child could do more than this preset allows: remove the line to run it without"
            raise DocumentError(f'"{key}" is not supported by this version', line=node.line, hint=hint)
        if key in _TUNING:
            yield f'"{key}" is not supported by this version and is ignored'
            continue
        near = nearest(key, (*_KEYS, *_TUNING, *_RESTRICTING))
        ignored = f'the key "{one_line(key, 40)}" is unknown and is ignored'
        yield f"{ignored}; {near}" if near else ignored


def _unused_body(prompt: str, body: str) -> Iterator[str]:
    if prompt and body:
        yield 'the text below the frontmatter is not used: "prompt" goes first'


def _kind(node: Node) -> str:
    return "a list" if isinstance(node, Items) else "keys below it" if isinstance(node, Fields) else "a text"


_NAME_LINE = re.compile(r"^name:[ \t]*[\"']?([^\"'\n#]*)", re.MULTILINE)


def _written_name(text: str) -> str:
    """Find the name in a file that cannot be parsed."""
    written = _NAME_LINE.search(text, 0, 4096) if text.startswith("---") else None
    return written[1].strip() if written else ""
