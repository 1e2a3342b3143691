"""The keys of a settings file, as the table of settings has them: reading their values, and the example file."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Annotated, Any, get_args

from msgspec import Struct

from ..errors import ContentError, nearest
from .settings import ProjectMay, Setting, Settings
from .values import is_blank, read_value, unexpected, without_none
from .yaml_tree import Fields, Node, Text


class Key(Struct, frozen=True):
    kind: Any
    """The type of its values, as `read_value` takes it."""
    setting: Setting


SECTIONS: dict[str, type[Struct]] = {
    name: hint for name, hint in Settings.__annotations__.items() if isinstance(hint, type)
}


def _keys(struct: type[Struct], prefix: str = "") -> Iterator[tuple[str, Key]]:
    for name, hint in struct.__annotations__.items():
        if struct is Settings and name in SECTIONS:
            yield from _keys(SECTIONS[name], f"{name}.")
        elif hasattr(hint, "__metadata__"):
            *notes, setting = hint.__metadata__
            kind = without_none(get_args(hint)[0])
            yield prefix + name, Key(Annotated[kind, *notes] if notes else kind, setting)


KEYS: dict[str, Key] = dict(_keys(Settings))
"""By their names in the file, such as `tmux.socket`; in the order of the example file."""


class Entry(Struct, frozen=True):
    """One value of a settings file."""

    key: str
    value: Any
    line: int


def read_entries(fields: Fields, section: str = "") -> Iterator[Entry]:
    """Read every value that is there; what was left blank is absent. Raises ContentError."""
    for name, node in fields.pairs.items():
        key = f"{section}.{name}" if section else name
        if not section and name in SECTIONS:
            yield from _read_section(name, node)
        elif key not in KEYS:
            raise _unknown(key, node, section)
        elif not is_blank(node):
            yield Entry(key, read_value(key, KEYS[key].kind, node), node.line)


def _read_section(name: str, node: Node) -> Iterator[Entry]:
    if isinstance(node, Fields):
        yield from read_entries(node, name)
    elif not (isinstance(node, Text) and node.is_nothing):
        raise unexpected(name, f"keys below it ({', '.join(_names(name))})", node)


def _names(section: str) -> tuple[str, ...]:
    """Return the names that may stand at one level of the file."""
    if not section:
        return tuple(sorted({key.partition(".")[0] for key in KEYS}))
    return tuple(key.partition(".")[2] for key in KEYS if key.startswith(f"{section}."))


def _unknown(key: str, node: Node, section: str) -> ContentError:
    known = [other for other in (*KEYS, *SECTIONS) if other.startswith(f"{section}.") or not section]
    hint = nearest(key, known) or f"known here: {', '.join(_names(section))}"
    return ContentError(f'"{key}" is not a setting', line=node.line, hint=hint)


def value_of(settings: Settings, key: str) -> Any:
    """Return what is in force for a key of the files, in the units of the files."""
    return reduce(getattr, key.split("."), settings)


_HEAD = """\
## Settings of subdeck. Yours: ~/.config/subdeck/config.yaml (below XDG_CONFIG_HOME where that is set);
## a project's: .pi/subagents/config.yaml, which may set only what is marked so here.
## They are read at start and again at each launch. Remove "# " before a line to set it.
"""

_PROJECT = {
    ProjectMay.NOTHING: "",
    ProjectMay.OVERRIDES: " [project: overrides yours]",
    ProjectMay.ADDS: " [project: is added to yours]",
    ProjectMay.LOWERS: " [project: may lower it]",
}


def example_settings() -> str:
    """Return the text of the file; without the "# " before each line of YAML it is a valid one."""
    return _HEAD + "\n".join(_lines()) + "\n"


def example_of(key: str) -> str:
    """Return a value as it is written in a file: the default, or something useful where that says nothing."""
    if KEYS[key].setting.example:
        return KEYS[key].setting.example
    default = value_of(Settings(), key)
    return str(default).lower() if isinstance(default, bool | str) else f"{default:g}"


def _lines() -> Iterator[str]:
    last = ""
    for key, setting in ((key, entry.setting) for key, entry in KEYS.items()):
        section, _, name = key.rpartition(".")
        if not section or section != last:
            yield ""
        if section and section != last:
            yield f"# {section}:"
        yield f"## {setting.meaning}{_PROJECT[setting.project]}"
        yield f"# {'  ' if section else ''}{name}: {example_of(key)}"
        last = section
