"""The interface of agent file readers, and their common parts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Protocol

from ...config.values import Words, is_blank, read_value, unexpected
from ...config.yaml_tree import Fields, Items, Node, Text, parse_mapping
from ...errors import ContentError, UsageError
from ...models.catalog import LEVELS
from ...run.model import PresetSource
from ...run.tool_policy import checked_tools
from ...text.plain import one_line
from ..file import Preset, check_name
from ..text import Markdown, frontmatter_span, without_blank_ends


class Form(Protocol):
    """The format of another program's agent files."""

    def parse(self, text: str, path: str, agent: str) -> Preset | None:
        """Parse a file's text as a preset for the agent `agent` (empty: any).

        Returns None if it is not an agent's file. Raises ContentError for restrictions that cannot be enforced.
        """
        ...

    def marks(self, fields: Fields) -> bool:
        """Return whether the fields are in this form and no other."""
        ...


def stem_of(path: str) -> str:
    """Return a file's name without its suffix."""
    return os.path.splitext(os.path.basename(path))[0]


class AgentFile:
    """The fields of one file, in its program's terms, and warnings about fields that are not passed on."""

    def __init__(self, fields: Fields, path: str) -> None:
        self.fields = fields
        self.path = path
        self.warnings: list[str] = []
        self._read: set[str] = set()

    def node(self, key: str) -> Node | None:
        """Return the node of a key; None if missing or blank."""
        self._read.add(key)
        node = self.fields.pairs.get(key)
        return None if node is None or is_blank(node) else node

    def value(self, key: str, kind: Any = Words) -> Any:
        """Return the value of a key, None without one. Raises ContentError for another kind."""
        node = self.node(key)
        return None if node is None else read_value(key, kind, node)

    def thinking(self, key: str, words: Mapping[str, str] = {}) -> str | None:
        """Return the thinking level, which any agent treats as advice: an unknown level is dropped with a warning."""
        written: str | None = self.value(key)
        if written is None:
            return None
        level = words.get(written, written)
        if level in LEVELS:
            return level
        self.warnings.append(f'{key}: "{one_line(written, 40)}" is ignored: expected one of {", ".join(LEVELS)}')
        return None

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return the texts of a list, or of one text with commas; None without the field.

        Raises ContentError for anything else, and for a blank field, which might mean all or none.
        """
        self._read.add(key)
        node = self.fields.pairs.get(key)
        if node is None:
            return None
        if is_blank(node):
            self.refuse(key, "it is empty", f'write "{key}: []", or remove the line')
        items = node.items if isinstance(node, Items) else (node,)
        texts = [item.value for item in items if isinstance(item, Text)]
        if len(texts) < len(items):
            raise unexpected(key, "a list of tools", node)
        if isinstance(node, Text):
            texts = re.split(r",(?![^()]*\))", node.value)
        return tuple(text.strip() for text in texts if text.strip())

    def names(self, key: str, names: Iterable[str]) -> tuple[str, ...]:
        """Check the names of tools under a key. Raises ContentError."""
        try:
            return checked_tools(names)
        except UsageError as error:
            self.refuse(key, error.what, error.hint)

    def leave_out(self, key: str, why: str) -> None:
        """Warn that a field is not passed on, if it is present."""
        if self.node(key) is not None:
            self.warnings.append(f"{key} is ignored: {why}")

    def refuse(self, key: str, what: str, hint: str) -> NoReturn:
        """Raise ContentError: the field restricts the agent in a way that the preset's run would not."""
        node = self.fields.pairs.get(key)
        raise ContentError(f"{key}: {what}", line=node.line if node else None, hint=hint)

    def preset(
        self, form: str, prompt: str, *, name: str | None = None, silently: Iterable[str] = (), **values: Any
    ) -> Preset:
        """Make the preset, with a warning for each field that was not read and is not in `silently`. Its name is
        `name`, the name in the file, or the file's stem.
        """
        written = self.value("name") if name is None else None
        called: str = name or written or stem_of(self.path)
        description = self.value("description")
        check_name(called, self.fields.pairs["name"].line if written else None)
        for key in self.fields.pairs:
            if key not in self._read and key not in silently:
                self.warnings.append(f'unknown key "{one_line(key, 40)}" is ignored')
        return Preset(
            name=called,
            description=description or "",
            source=PresetSource.DIR,
            path=self.path,
            form=form,
            prompt=without_blank_ends(prompt),
            warnings=tuple(self.warnings),
            **values,
        )


# --- frontmatter -----------------------------------------------------------------------------------------------------

_PLAIN = re.compile(r"([A-Za-z_][\w-]*):[ \t]+([^\s\"'\[{|>#].*)$")
"""An outermost key with a text beside it that is neither quoted nor a list."""


def read_frontmatter(text: str) -> Markdown:
    """Read the fields between the first two `---` lines, and the text below, as `split_markdown` does.

    If this is not YAML, each unquoted text beside its key is taken literally: Claude Code writes descriptions with `: `
    in them and a bare `*`. Raises ContentError if this also fails.
    """
    span = frontmatter_span(text)
    if span is None:
        return Markdown(None, without_blank_ends(text))
    begin, end = span
    written = text[begin:end]
    try:
        fields = parse_mapping(written, first_line=2)
    except ContentError:
        quoted = "\n".join(map(_quoted, written.split("\n")))
        if quoted == written:
            raise
        fields = parse_mapping(quoted, first_line=2)
    return Markdown(fields, without_blank_ends(text[text.index("---", end) + 3 :]))


def _quoted(line: str) -> str:
    plain = _PLAIN.match(line)
    if plain is None:
        return line
    return f"{plain[1]}: {json.dumps(plain[2].rstrip(), ensure_ascii=False)}"
