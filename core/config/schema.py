"""Every key of a settings file: what its value must look like, what it means, what a project may do with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from ..errors import ContentError, nearest
from ..run.model import RunnerKind
from .values import (
    COUNT,
    DURATION,
    NAME,
    SWITCH,
    TEXT,
    TEXTS,
    Kind,
    Unexpected,
    is_blank,
    matching,
    number,
    one_of,
    read_value,
    unexpected,
    word,
)
from .yaml_tree import Fields, Items, Node, Text


class ProjectMay(Enum):
    """What the project's file may do with a key."""

    NOTHING = "nothing"
    OVERRIDES = "overrides"
    ADDS = "adds"
    """Its list or its names go with the user's."""
    LOWERS = "lowers"
    """The lower of the two counts."""


class Key(Struct, frozen=True):
    field: str
    """Where in `Settings` the value goes; a dot leads into a struct."""
    kind: Kind
    meaning: str
    example: str
    """As it is written in a file: the default, or something useful where there is none."""
    project: ProjectMay = ProjectMay.NOTHING


class Entry(Struct, frozen=True):
    """One value of a settings file."""

    key: str
    value: object
    line: int


def _key_map(node: Node) -> dict[str, str]:
    if not isinstance(node, Fields):
        raise Unexpected('lines of the form "action: key"')
    for action, key in node.pairs.items():
        if not word(key):
            raise unexpected(f"keys.{action}", 'a key like "ctrl+r"', key)
    return {action: word(key) for action, key in node.pairs.items()}


def _role_map(node: Node) -> dict[str, str]:
    if not isinstance(node, Fields):
        raise Unexpected('lines of the form "role: provider/id"')
    roles: dict[str, str] = {}
    for written, model in node.pairs.items():
        role = written.removeprefix("@")
        if not re.fullmatch(ROLE, role):
            raise ContentError(
                f'roles: the name "{written}" has other characters than letters, digits, _, . and -', line=model.line
            )
        if role in roles:
            raise ContentError(f'roles: "{role}" is there twice, with and without @', line=model.line)
        if not word(model):
            raise unexpected(f"roles.{written}", "a model like provider/id", model)
        roles[role] = word(model)
    return roles


def _commands(node: Node) -> dict[str, tuple[str, ...]]:
    if not isinstance(node, Fields):
        raise Unexpected('lines of the form "name:" with a "command:" below each')
    return {name: _command(name, agent) for name, agent in node.pairs.items()}


def _command(name: str, agent: Node) -> tuple[str, ...]:
    if not re.fullmatch(NAME, name):
        raise ContentError(
            f'agents: the name "{name}" has other characters than letters, digits, _ and -', line=agent.line
        )
    if not isinstance(agent, Fields) or "command" not in agent.pairs:
        raise unexpected(f"agents.{name}", 'a "command:" below it', agent)
    for key, node in agent.pairs.items():
        if key != "command":
            raise ContentError(
                f'"agents.{name}.{key}" is no setting', line=node.line, hint="an agent has one key: command"
            )
    words = agent.pairs["command"]
    argv = tuple(item.value for item in words.items if isinstance(item, Text)) if isinstance(words, Items) else ()
    if not isinstance(words, Items) or len(argv) != len(words.items) or not argv or not argv[0].strip():
        raise unexpected(f"agents.{name}.command", 'a list like ["/opt/bin/pi", "--flag"]', words)
    return (os.path.expanduser(argv[0]), *argv[1:])


ROLE = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"

_MEGABYTES = number("a number of megabytes above 0", factor=1024 * 1024)
_OVERRIDES, _ADDS, _LOWERS = ProjectMay.OVERRIDES, ProjectMay.ADDS, ProjectMay.LOWERS

KEYS: dict[str, Key] = {
    "agent": Key(
        "agent",
        matching(NAME, "the name of an agent"),
        "The child program: auto (pi when it is found, else offline), pi, offline, or a name below agents.",
        "auto",
    ),
    "agents": Key(
        "agents",
        Kind(_commands, {"type": "object"}),
        "Programs that speak pi's JSON mode; each a list of words, never a line for a shell.",
        '{my-pi: {command: [~/bin/pi, "--offline"]}}',
    ),
    "default_model": Key(
        "default_model",
        TEXT,
        "The model where neither the call nor the preset names one; inherit: the parent's, else the agent's default.",
        "anthropic/claude-haiku-4-5",
        _OVERRIDES,
    ),
    "models": Key("models", TEXTS, "Models to offer beside those the agent knows.", "[my-provider/my-model]", _ADDS),
    "roles": Key(
        "roles",
        Kind(_role_map, {"type": "object"}),
        'What "@fast" and the like stand for; goes before providers.json in the agent\'s directory.',
        "{fast: anthropic/claude-haiku-4-5, deep: anthropic/claude-opus-4-5:high}",
        _ADDS,
    ),
    "preset_dirs": Key(
        "preset_dirs", TEXTS, "More directories with presets, relative to the project.", "[.pi/agents, prompts]", _ADDS
    ),
    "bundled_presets": Key(
        "bundled_presets", SWITCH, "Whether the presets that come with subdeck are offered.", "false", _OVERRIDES
    ),
    "runner": Key("runner", one_of(*RunnerKind), "How children are run.", "process"),
    "tmux.socket": Key(
        "tmux.socket",
        matching(NAME, "a name of letters, digits, _ and -"),
        "The name of the private tmux server.",
        "subdeck",
    ),
    "max_parallel": Key("max_parallel", COUNT, "How many runs of one group go at the same time.", "4", _LOWERS),
    "max_running": Key("max_running", COUNT, "How many runs of the project go at the same time.", "8", _LOWERS),
    "grace_seconds": Key(
        "grace_seconds",
        number("a number of seconds", zero=True),
        "How long a child may take to go away before it is killed.",
        "3",
    ),
    "limits.timeout": Key(
        "limits.timeout", DURATION, "Ends a run after this time; a preset may only ask for less.", "30m", _LOWERS
    ),
    "limits.max_turns": Key("limits.max_turns", COUNT, "Ends a run after this many turns.", "100", _LOWERS),
    "limits.stall": Key(
        "limits.stall", DURATION, "Ends a run whose child is silent that long while no tool runs.", "10m", _LOWERS
    ),
    "max_attempts": Key(
        "max_attempts", COUNT, "How often a finalization is asked for in all, with finalize: true.", "3", _LOWERS
    ),
    "inherit_context": Key(
        "inherit_context",
        SWITCH,
        "Whether a known parent's conversation is handed over where the preset does not say.",
        "true",
        _OVERRIDES,
    ),
    "expose_isolated": Key(
        "expose_isolated",
        SWITCH,
        'Whether the tools have the argument "isolated", for a parent to decide that.',
        "false",
    ),
    "inheritance.recent_turns": Key("inheritance.recent_turns", COUNT, "How many pairs of turns are handed over.", "6"),
    "inheritance.tool_output_window": Key(
        "inheritance.tool_output_window",
        number("a whole number", zero=True, whole=True),
        "In how many of the newest turns tool outputs stay whole.",
        "2",
    ),
    "inheritance.max_chars": Key(
        "inheritance.max_chars", COUNT, "How many characters are handed over at most.", "24000"
    ),
    "logs.stdout_mb": Key("log_caps.stdout", _MEGABYTES, "How much of a child's stdout is kept.", "64", _LOWERS),
    "logs.stderr_mb": Key("log_caps.stderr", _MEGABYTES, "How much of a child's stderr is kept.", "8", _LOWERS),
    "theme": Key(
        "theme",
        TEXT,
        "The app's theme: subdeck-dark, subdeck-light, terminal (its own colours), or one of Textual's, such as nord.",
        "subdeck-light",
    ),
    "keys": Key("keys", Kind(_key_map, {"type": "object"}), "Keys of the app, by action.", '{stop: "ctrl+x"}'),
    "notifications.toasts": Key("notifications.toasts", SWITCH, "Whether the app tells of ends in toasts.", "true"),
    "notifications.bell": Key("notifications.bell", SWITCH, "Whether the terminal's bell rings too.", "false"),
    "notifications.desktop": Key(
        "notifications.desktop",
        one_of("off", "osc9", "osc777"),
        "How the terminal is asked for a desktop notification: off, osc9 (iTerm2, Windows Terminal, kitty)"
        " or osc777 (foot, Ghostty, urxvt).",
        "osc9",
    ),
    "notifications.title": Key("notifications.title", SWITCH, "Whether the window's title says what runs.", "true"),
    "retention.days": Key(
        "retention.days",
        number("a number of days above 0"),
        "Runs that ended longer ago go to the trash, at each start of the app; so with the next two rules.",
        "30",
    ),
    "retention.keep": Key("retention.keep", COUNT, "All finished runs but the newest so many go to the trash.", "500"),
    "retention.max_mb": Key(
        "retention.max_mb",
        number("a number of megabytes above 0"),
        "The oldest finished runs go to the trash until all runs take no more room than this.",
        "2000",
    ),
}

SECTIONS = frozenset(key.partition(".")[0] for key in KEYS if "." in key)


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
        raise unexpected(name, f"keys below it ({', '.join(_keys_of(name))})", node)


def _keys_of(section: str) -> tuple[str, ...]:
    if not section:
        return tuple(sorted({key.partition(".")[0] for key in KEYS}))
    return tuple(key.partition(".")[2] for key in KEYS if key.startswith(f"{section}."))


def _unknown(key: str, node: Node, section: str) -> ContentError:
    known = [other for other in (*KEYS, *SECTIONS) if other.startswith(f"{section}.") or not section]
    hint = nearest(key, known) or f"known here: {', '.join(_keys_of(section))}"
    return ContentError(f'"{key}" is no setting', line=node.line, hint=hint)


_HEAD = """\
## Settings of subdeck. Yours: ~/.config/subdeck/config.yaml (below XDG_CONFIG_HOME where that is set);
## a project's: .pi/subagents/config.yaml, which may set only what is marked so here.
## They are read at start and again at each launch. Remove "# " before a line to set it.
"""

_PROJECT = {
    ProjectMay.NOTHING: "",
    ProjectMay.OVERRIDES: " [project: goes before yours]",
    ProjectMay.ADDS: " [project: is added to yours]",
    ProjectMay.LOWERS: " [project: may lower it]",
}


def example_settings() -> str:
    """Return the text of the file; without the two signs before each line of YAML it is a valid one."""
    return _HEAD + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    last = ""
    for name, key in KEYS.items():
        section, _, member = name.rpartition(".")
        if not section or section != last:
            yield ""
        if section and section != last:
            yield f"# {section}:"
        yield f"## {key.meaning}{_PROJECT[key.project]}"
        yield f"#   {member}: {key.example}" if section else f"# {name}: {key.example}"
        last = section
