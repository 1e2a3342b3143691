"""Every key of a settings file: what its value must look like and what a project may do with it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator
from enum import Enum

from msgspec import Struct

from .document import DocumentError, Fields, Items, Node, Text
from .errors import nearest


class ProjectMay(Enum):
    """What the project's file may do with a key."""

    NOTHING = "nothing"
    OVERRIDES = "overrides"
    ADDS = "adds"
    """Its list goes with the user's."""
    LOWERS = "lowers"
    """The lower of the two counts."""


class Key(Struct, frozen=True):
    field: str
    """Where in `Settings` the value goes; a dot leads into a struct."""
    read: Callable[[Node], object]
    """Raises _Unexpected, or DocumentError where it has more to say."""
    project: ProjectMay = ProjectMay.NOTHING


class Entry(Struct, frozen=True):
    """One value of a settings file."""

    key: str
    value: object
    line: int


class _Unexpected(Exception):
    """The value is not what this says in words."""


def _text(node: Node) -> str:
    if not isinstance(node, Text):
        raise _Unexpected("a text")
    return node.value.strip()


def _texts(node: Node) -> tuple[str, ...]:
    texts = [item.value.strip() for item in node.items if isinstance(item, Text)] if isinstance(node, Items) else []
    if not isinstance(node, Items) or len(texts) != len(node.items) or "" in texts:
        raise _Unexpected("a list of texts")
    return tuple(texts)


def _matching(pattern: str, words: str) -> Callable[[Node], str]:
    def read(node: Node) -> str:
        value = node.value.strip() if isinstance(node, Text) else ""
        if not re.fullmatch(pattern, value):
            raise _Unexpected(words)
        return value

    return read


def _count(node: Node) -> int:
    value = node.value.strip() if isinstance(node, Text) else ""
    if not re.fullmatch(r"\+?[0-9]{1,9}", value) or int(value) < 1:
        raise _Unexpected("a whole number of at least 1")
    return int(value)


def _number(words: str, *, zero: bool = False) -> Callable[[Node], float]:
    def read(node: Node) -> float:
        try:
            value = float(node.value) if isinstance(node, Text) else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            raise _Unexpected(words)
        return value

    return read


def _megabytes(node: Node) -> int:
    return int(_number("a number of megabytes above 0")(node) * 1024 * 1024)


def _switch(node: Node) -> bool:
    word = node.value.strip().lower() if isinstance(node, Text) else ""
    if word in ("true", "yes", "on"):
        return True
    if word in ("false", "no", "off"):
        return False
    raise _Unexpected("true or false")


def _key_map(node: Node) -> dict[str, str]:
    if not isinstance(node, Fields):
        raise _Unexpected('lines of the form "action: key"')
    for action, key in node.pairs.items():
        if not isinstance(key, Text) or not key.value.strip():
            raise _unexpected(f"keys.{action}", 'a key like "ctrl+r"', key)
    return {action: key.value.strip() for action, key in node.pairs.items() if isinstance(key, Text)}


def _commands(node: Node) -> dict[str, tuple[str, ...]]:
    if not isinstance(node, Fields):
        raise _Unexpected('lines of the form "name:" with a "command:" below each')
    return {name: _command(name, agent) for name, agent in node.pairs.items()}


def _command(name: str, agent: Node) -> tuple[str, ...]:
    if not re.fullmatch(_NAME, name):
        raise DocumentError(
            f'agents: the name "{name}" has other characters than letters, digits, _ and -', line=agent.line
        )
    if not isinstance(agent, Fields) or "command" not in agent.pairs:
        raise _unexpected(f"agents.{name}", 'a "command:" below it', agent)
    for key, node in agent.pairs.items():
        if key != "command":
            raise DocumentError(
                f'"agents.{name}.{key}" is no setting', line=node.line, hint="an agent has one key: command"
            )
    words = agent.pairs["command"]
    argv = tuple(word.value for word in words.items if isinstance(word, Text)) if isinstance(words, Items) else ()
    if not isinstance(words, Items) or len(argv) != len(words.items) or not argv or not argv[0].strip():
        raise _unexpected(f"agents.{name}.command", 'a list like ["/opt/bin/pi", "--flag"]', words)
    return (os.path.expanduser(argv[0]), *argv[1:])


_NAME = r"[A-Za-z0-9_-]+"
_SECONDS = _number("a number of seconds above 0")

KEYS: dict[str, Key] = {
    "agent": Key("agent", _matching(_NAME, "the name of an agent")),
    "agents": Key("agents", _commands),
    "default_model": Key("default_model", _text, ProjectMay.OVERRIDES),
    "models": Key("models", _texts, ProjectMay.ADDS),
    "preset_dirs": Key("preset_dirs", _texts, ProjectMay.ADDS),
    "runner": Key("runner", _matching("process|tmux", "process or tmux")),
    "tmux.socket": Key("tmux.socket", _matching(_NAME, "a name of letters, digits, _ and -")),
    "max_parallel": Key("max_parallel", _count, ProjectMay.LOWERS),
    "max_running": Key("max_running", _count, ProjectMay.LOWERS),
    "grace_seconds": Key("grace_seconds", _number("a number of seconds", zero=True)),
    "limits.timeout": Key("limits.timeout", _SECONDS, ProjectMay.LOWERS),
    "limits.max_turns": Key("limits.max_turns", _count, ProjectMay.LOWERS),
    "limits.stall": Key("limits.stall", _SECONDS, ProjectMay.LOWERS),
    "logs.stdout_mb": Key("log_caps.stdout", _megabytes, ProjectMay.LOWERS),
    "logs.stderr_mb": Key("log_caps.stderr", _megabytes, ProjectMay.LOWERS),
    "theme": Key("theme", _text),
    "keys": Key("keys", _key_map),
    "notifications.toasts": Key("notifications.toasts", _switch),
    "notifications.bell": Key("notifications.bell", _switch),
    "retention.days": Key("retention.days", _number("a number of days", zero=True)),
    "retention.keep": Key("retention.keep", _count),
    "retention.max_mb": Key("retention.max_mb", _number("a number of megabytes", zero=True)),
}

SECTIONS = frozenset(key.partition(".")[0] for key in KEYS if "." in key)

LATER = frozenset({"roles", "bundled_presets", "inherit_context", "inheritance"})
"""Keys with a meaning already decided that nothing here acts on yet: refused, for nobody should rely on them."""


def read_entries(fields: Fields, section: str = "") -> Iterator[Entry]:
    """Read every value that is there; what was left blank is absent. Raises DocumentError."""
    for name, node in fields.pairs.items():
        key = f"{section}.{name}" if section else name
        if not section and name in SECTIONS:
            yield from _read_section(name, node)
        elif key in KEYS:
            if not (isinstance(node, Text) and (node.is_nothing or not node.value.strip())):
                yield Entry(key, _read(key, node), node.line)
        elif key in LATER:
            raise DocumentError(f'"{key}" is not supported by this version', line=node.line, hint="remove it")
        else:
            raise _unknown(key, node, section)


def _read_section(name: str, node: Node) -> Iterator[Entry]:
    if isinstance(node, Fields):
        yield from read_entries(node, name)
    elif not (isinstance(node, Text) and node.is_nothing):
        raise _unexpected(name, f"keys below it ({', '.join(_keys_of(name))})", node)


def _read(key: str, node: Node) -> object:
    try:
        return KEYS[key].read(node)
    except _Unexpected as expected:
        raise _unexpected(key, str(expected), node) from None


def _keys_of(section: str) -> tuple[str, ...]:
    if not section:
        return tuple(sorted({key.partition(".")[0] for key in KEYS}))
    return tuple(key.partition(".")[2] for key in KEYS if key.startswith(f"{section}."))


def _unknown(key: str, node: Node, section: str) -> DocumentError:
    known = [other for other in (*KEYS, *SECTIONS) if other.startswith(f"{section}.") or not section]
    hint = nearest(key, known) or f"known here: {', '.join(_keys_of(section))}"
    return DocumentError(f'"{key}" is no setting', line=node.line, hint=hint)


def _unexpected(key: str, expected: str, node: Node) -> DocumentError:
    match node:
        case Text(value=""):
            found = "nothing"
        case Text(value=value):
            found = f'"{value}"'
        case Items():
            found = "a list"
        case Fields():
            found = "keys below it"
    return DocumentError(f"{key}: {expected} was expected, found {found}", line=node.line)
