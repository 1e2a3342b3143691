"""The settings of the user and of the project, merged; read at start and again at each launch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from msgspec import Struct, structs

from ..errors import ContentError, SettingsError, nearest
from ..paths import Project, user_settings_file
from ..run.model import Limits, LogCaps, RunnerKind
from .schema import KEYS, ProjectMay, read_entries
from .yaml_tree import parse_mapping, read_text


class AgentSettings(Struct, frozen=True):
    command: tuple[str, ...]
    """The program and its leading arguments, never empty; a leading `~` of the program is already expanded."""


class TmuxSettings(Struct, frozen=True):
    socket: str = "subdeck"
    """Name of the private tmux server: letters, digits, `_` and `-`."""


class Notifications(Struct, frozen=True):
    toasts: bool = True
    bell: bool = False
    desktop: str = "off"
    """How the terminal is asked for a desktop notification: `osc9`, `osc777`, or not at all."""
    title: bool = True
    """Whether the terminal's window is named after what runs."""


class Inheritance(Struct, frozen=True):
    """How much of a parent's conversation is handed over; a matter of the operator alone."""

    recent_turns: int = 6
    """Pairs of a user's and an assistant's turn."""
    tool_output_window: int = 2
    """Newest turns whose tool outputs stay whole."""
    max_chars: int = 24_000


class Retention(Struct, frozen=True):
    """What a clean-up leaves of finished runs; all None means that nothing is ever taken."""

    days: float | None = None
    """Those that ended longer ago go."""
    keep: int | None = None
    """All but the newest so many go."""
    max_mb: float | None = None
    """The oldest go until all runs take no more than this."""

    @property
    def is_set(self) -> bool:
        return (self.days, self.keep, self.max_mb) != (None, None, None)


class Settings(Struct, frozen=True, kw_only=True):
    agent: str = "auto"
    """`auto` (pi when found, else the offline agent), `pi`, `offline` or a name in `agents`."""
    agents: dict[str, AgentSettings] = {}
    default_model: str | None = None
    models: tuple[str, ...] = ()
    """Model ids to offer beside what the agent knows; the user's first, then the project's."""
    roles: dict[str, str] = {}
    """Role name without its `@` -> the model it stands for; the project's go before the user's."""
    bundled_presets: bool = False
    """Whether the presets that come with subdeck are offered."""
    inherit_context: bool = True
    """Whether a known parent's conversation is handed over where the preset does not say."""
    expose_isolated: bool = False
    """Whether the tools offer `isolated`, by which a parent decides that per call."""
    inheritance: Inheritance = Inheritance()
    max_attempts: int = 3
    """How often a finalization is asked for in all, where the preset does not say."""
    preset_dirs: tuple[str, ...] = ()
    """Absolute; the project's first, then the user's."""
    runner: RunnerKind = RunnerKind.PROCESS
    tmux: TmuxSettings = TmuxSettings()
    max_parallel: int = 4
    max_running: int | None = None
    grace_seconds: float = 3.0
    limits: Limits = Limits()
    log_caps: LogCaps = LogCaps()
    """In bytes; `logs.stdout_mb` and `logs.stderr_mb` in the files."""
    theme: str | None = None
    keys: dict[str, str] = {}
    """Action name -> key, or several keys with commas between them."""
    notifications: Notifications = Notifications()
    retention: Retention = Retention()
    notices: tuple[str, ...] = ()
    """What of the project's file has no effect, and why: a cap above the user's."""


_AGENTS = ("auto", "pi", "offline")
"""Names of `agent` that need no entry in `agents`."""


class _Sourced(Struct, frozen=True):
    """A value and the file and line it was read from."""

    value: Any
    where: str


def load_settings(project: Project) -> Settings:
    """Read both files and merge them; without files there is nothing to parse.

    Raises SettingsError that names file, line, key and the nearest known key.
    """
    user_file = user_settings_file()
    user = _read_file(user_file)
    own = _read_file(project.settings_file)
    for key, sourced in own.items():
        if KEYS[key].project is ProjectMay.NOTHING:
            raise SettingsError(
                f'"{key}" cannot be set by a project', where=sourced.where, hint=f"set it in {user_file} instead"
            )
    values = {key: sourced.value for key, sourced in user.items()}
    if "preset_dirs" in user:
        values["preset_dirs"] = tuple(_absolute(project, named) for named in values["preset_dirs"])
    if "preset_dirs" in own:
        own["preset_dirs"] = _inside(project, own["preset_dirs"])
    notices = tuple(_merge(values, own))
    settings = structs.replace(_built(values), notices=notices)
    if settings.agent not in (*_AGENTS, *settings.agents):
        hint = nearest(settings.agent, (*_AGENTS, *settings.agents)) or 'name it under "agents", with its command'
        raise SettingsError(f'agent: "{settings.agent}" is not set up', where=user["agent"].where, hint=hint)
    return settings


def _read_file(path: str) -> dict[str, _Sourced]:
    try:
        entries = read_entries(parse_mapping(read_text(path)))
        return {entry.key: _Sourced(entry.value, f"{path}:{entry.line}") for entry in entries}
    except FileNotFoundError:
        return {}
    except ContentError as error:
        raise SettingsError(error.what, where=error.within(path), hint=error.hint) from error


def _absolute(project: Project, named: str) -> str:
    return os.path.normpath(os.path.join(project.root, os.path.expanduser(named)))


def _inside(project: Project, dirs: _Sourced) -> _Sourced:
    """Resolve a project's own directories; a checkout must not make us read files elsewhere, by a link neither."""
    root = os.path.realpath(project.root)
    for named in dirs.value:
        real = os.path.realpath(os.path.join(root, named))
        if named.startswith("~") or os.path.commonpath((root, real)) != root:
            raise SettingsError(
                f'preset_dirs: "{named}" is outside the project',
                where=dirs.where,
                hint=f"name a directory below {project.root}, or set it in {user_settings_file()}",
            )
    return _Sourced(tuple(os.path.normpath(os.path.join(project.root, named)) for named in dirs.value), dirs.where)


def _merge(values: dict[str, Any], own: Mapping[str, _Sourced]) -> Iterator[str]:
    """Put the project's values into the user's; yield what has no effect."""
    for key, sourced in own.items():
        match KEYS[key].project:
            case ProjectMay.ADDS if isinstance(sourced.value, dict):
                values[key] = {**values.get(key, {}), **sourced.value}
            case ProjectMay.ADDS:
                others: tuple[str, ...] = values.get(key, ())
                first, second = (others, sourced.value) if key == "models" else (sourced.value, others)
                values[key] = tuple(dict.fromkeys((*first, *second)))
            case ProjectMay.LOWERS:
                cap = values.get(key, _default(KEYS[key].field))
                if cap is None or sourced.value <= cap:
                    values[key] = sourced.value
                else:
                    yield f"{sourced.where}: {key} is above yours, which counts"
            case _:
                values[key] = sourced.value


def value_of(settings: Settings, key: str) -> Any:
    """Return what a key of the files has come to, in the units of the files."""
    value: Any = settings
    for part in KEYS[key].field.split("."):
        value = getattr(value, part)
    return value / (1024 * 1024) if key.startswith("logs.") else value


def _default(field: str) -> Any:
    return reduce(getattr, field.split("."), Settings())


def _built(values: Mapping[str, Any]) -> Settings:
    """Put the values where they belong, below the defaults of everything else."""
    tops: dict[str, Any] = {}
    for key, value in values.items():
        top, _, member = KEYS[key].field.partition(".")
        if member:
            tops[top] = structs.replace(tops.get(top, _default(top)), **{member: value})
        elif key == "agents":
            tops[top] = {name: AgentSettings(command) for name, command in value.items()}
        else:
            tops[top] = value
    return structs.replace(Settings(), **tops)
