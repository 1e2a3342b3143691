"""The settings files of the user and of the project, read and merged."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ..errors import ContentError, SettingsError, nearest
from ..paths import Project, user_settings_file
from .schema import KEYS, SECTIONS, read_entries, value_of
from .settings import ProjectMay, Settings
from .yaml_tree import parse_mapping, read_text

_AGENTS = ("auto", "pi", "offline")
"""Names of `agent` that need no entry in `agents`."""


class _Sourced(Struct, frozen=True):
    """A value and the file and line it was read from."""

    value: Any
    where: str


def merged_settings(project: Project) -> Settings:
    """Read both files and merge them; one that is missing sets nothing. Raises SettingsError."""
    user_file = user_settings_file()
    user = _read_file(user_file)
    own = _read_file(project.settings_file)
    for key, sourced in own.items():
        if KEYS[key].setting.project is ProjectMay.NOTHING:
            raise SettingsError(
                f'"{key}" cannot be set by a project', where=sourced.where, hint=f"set it in {user_file} instead"
            )
    values = {key: sourced.value for key, sourced in user.items()}
    if "preset_dirs" in user:
        values["preset_dirs"] = tuple(_absolute(project, named) for named in values["preset_dirs"])
    if "preset_dirs" in own:
        own["preset_dirs"] = _inside(project, own["preset_dirs"])
    notices = tuple(_merge(values, own))
    settings = _built(values, notices)
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
    """Resolve a project's own directories; a checkout must not make us read files elsewhere, not even by a link."""
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
        match KEYS[key].setting.project:
            case ProjectMay.ADDS if isinstance(sourced.value, dict):
                values[key] = {**values.get(key, {}), **sourced.value}
            case ProjectMay.ADDS:
                others: tuple[str, ...] = values.get(key, ())
                first, second = (others, sourced.value) if key == "models" else (sourced.value, others)
                values[key] = tuple(dict.fromkeys((*first, *second)))
            case ProjectMay.LOWERS:
                cap = values.get(key, value_of(Settings(), key))
                if cap is None or sourced.value <= cap:
                    values[key] = sourced.value
                else:
                    yield f"{sourced.where}: {key} is above yours, which counts"
            case _:
                values[key] = sourced.value


def _built(values: Mapping[str, Any], notices: tuple[str, ...]) -> Settings:
    """Put the values where they belong, below the defaults of everything else."""
    tops: dict[str, Any] = {key: value for key, value in values.items() if "." not in key}
    for section, struct in SECTIONS.items():
        members = {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{section}.")}
        tops[section] = struct(**members)
    return Settings(**tops, notices=notices)
