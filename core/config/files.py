"""The settings files of user and project: their keys, reading and merging them, and an example file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce
from typing import Annotated, Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from ..agent_kinds import KINDS
from ..errors import ContentError, SettingsError, nearest
from ..paths import Project, user_settings_file
from . import renamed
from .host_settings import HostsSettings
from .settings import PresetDir, SettingFault, Settings
from .values import ProjectMay, Setting, is_blank, read_value, unexpected, without_none
from .yaml_tree import Fields, Node, Text, parse_mapping, read_text

# --- the keys --------------------------------------------------------------------------------------------------------


class Key(Struct, frozen=True):
    kind: Any
    """Type of its values, as for `read_value`."""
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
"""By name in the file, such as `tmux.socket`, in the order of the example file."""


def value_of(settings: Settings, key: str) -> Any:
    """Return the effective value of a key, in the files' units."""
    return reduce(getattr, key.split("."), settings)


# --- one file --------------------------------------------------------------------------------------------------------


APP_ONLY = frozenset(("theme", "columns", "keys", "commands"))
"""Keys that only the app reads: it uses their defaults if their values are wrong."""


class Entry(Struct, frozen=True):
    """A value in a settings file."""

    key: str
    value: Any
    line: int
    fault: ContentError | None = None
    """Why there is no value; only for keys in `APP_ONLY`."""


def _read_file(path: str) -> dict[str, Entry]:
    try:
        return {entry.key: entry for entry in read_entries(parse_mapping(read_text(path)))}
    except FileNotFoundError:
        return {}
    except ContentError as error:
        raise SettingsError(error.what, where=error.within(path), hint=error.hint) from error


def trusted_directories() -> tuple[str, ...]:
    """Return `trusted` from the user's own file only. Raises SettingsError."""
    entry = _read_file(user_settings_file()).get("trusted")
    return entry.value if entry else ()


def read_entries(fields: Fields, section: str = "") -> Iterator[Entry]:
    """Read all values that are set; blank ones are absent. Raises ContentError."""
    fields, written = renamed.with_new_names(fields, renamed.SETTINGS, section)
    for name, node in fields.pairs.items():
        key = f"{section}.{name}" if section else name
        if not section and name in SECTIONS:
            if isinstance(node, Fields):
                yield from read_entries(node, name)
            elif not (isinstance(node, Text) and node.is_nothing):
                raise unexpected(name, f"keys below it ({', '.join(_names(name))})", node)
        elif key not in KEYS:
            raise _unknown(key, node, section)
        elif not is_blank(node):
            yield _entry(key, node, f"{section}.{written[name]}".lstrip(".") if name in written else key)


def _entry(key: str, node: Node, written: str) -> Entry:
    try:
        return Entry(key, read_value(written, KEYS[key].kind, node), node.line)
    except ContentError as fault:
        if key not in APP_ONLY:
            raise
        return Entry(key, None, node.line, fault)


def _names(section: str) -> tuple[str, ...]:
    if not section:
        return tuple(sorted({key.partition(".")[0] for key in KEYS}))
    return tuple(key.partition(".")[2] for key in KEYS if key.startswith(f"{section}."))


def _unknown(key: str, node: Node, section: str) -> ContentError:
    known = [other for other in (*KEYS, *SECTIONS) if other.startswith(f"{section}.") or not section]
    hint = nearest(key, known) or f"known here: {', '.join(_names(section))}"
    return ContentError(f'"{key}" is not a setting', line=node.line, hint=hint)


def place_in_file(key: str) -> str:
    """Return where a key such as `keys.stop` is in the user's file: `path:line`, or only the path."""
    path = user_settings_file()
    try:
        node: Node = parse_mapping(read_text(path))
    except (FileNotFoundError, ContentError):
        return path
    line: int | None = None
    for name in key.split("."):
        child = node.pairs.get(name) if isinstance(node, Fields) else None
        if child is None:
            break
        node, line = child, child.line
    return path if line is None else f"{path}:{line}"


# --- both files ------------------------------------------------------------------------------------------------------


def merged_settings(project: Project) -> Settings:
    """Read and merge both files; a missing file sets nothing. Raises SettingsError."""
    user_file, project_file = user_settings_file(), project.settings_file
    user, own = _read_file(user_file), _read_file(project_file)
    values = {key: entry.value for key, entry in user.items() if entry.fault is None}
    wrong = [entry.fault for entry in user.values() if entry.fault is not None]
    faults = tuple(SettingFault(fault.what, fault.within(user_file), fault.hint) for fault in wrong)
    if "preset_dirs" in user:
        values["preset_dirs"] = _directories(
            values["preset_dirs"], lambda named: _absolute(project, os.path.expanduser(named))
        )
    notices: list[str] = []
    for key, entry in own.items():
        where, value = f"{project_file}:{entry.line}", entry.value
        if key == "preset_dirs":
            value = _directories(value, partial(_inside, project, where=where))
        match KEYS[key].setting.project:
            case ProjectMay.NOTHING:
                hint = f"set it in {user_file} instead"
                raise SettingsError(f'"{key}" cannot be set by a project', where=where, hint=hint)
            case ProjectMay.OVERRIDES:
                values[key] = value
            case ProjectMay.ADDS:
                values[key] = _added(key, values.get(key), value)
            case ProjectMay.LOWERS:
                cap = values.get(key, value_of(Settings(), key))
                if cap is None or value <= cap:
                    values[key] = value
                else:
                    notices.append(f"{where}: {key} is above your own limit, so your limit applies")
    settings = _built(values, tuple(notices), faults)
    known = ("auto", *KINDS, *settings.agents)
    if settings.agent not in known:
        hint = nearest(settings.agent, known, cutoff=0.5) or 'add it under "agents", with its command'
        where = f"{user_file}:{user['agent'].line}"
        raise SettingsError(f'agent: "{settings.agent}" is not configured', where=where, hint=hint)
    return settings


def _directories(written: Iterable[str | PresetDir], located: Callable[[str], str]) -> tuple[str | PresetDir, ...]:
    """Make the paths absolute; an entry without agent or form becomes its path, a directory of subdeck presets."""
    return tuple(
        replace(entry, path=located(entry.path))
        if isinstance(entry, PresetDir) and (entry.agent or entry.form)
        else located(entry.path if isinstance(entry, PresetDir) else entry)
        for entry in written
    )


def _absolute(project: Project, named: str) -> str:
    return os.path.normpath(os.path.join(project.root, named))


def _inside(project: Project, named: str, where: str) -> str:
    """Resolve a project's own directory: a checkout must not make subdeck read files elsewhere, even through a link."""
    root = os.path.realpath(project.root)
    real = os.path.realpath(os.path.join(root, named))
    if named.startswith("~") or os.path.commonpath((root, real)) != root:
        raise SettingsError(
            f'preset_dirs: "{named}" is outside the project',
            where=where,
            hint=f"use a directory below {project.root}, or set it in {user_settings_file()}",
        )
    return _absolute(project, named)


def _added(key: str, users: Any, own: Any) -> Any:
    """Combine the project's list or names with the user's (None for none)."""
    if isinstance(own, dict):
        named: dict[str, Any] = {**(users or {}), **own}
        return named
    first, second = (users or (), own) if key == "models" else (own, users or ())
    return tuple(dict.fromkeys((*first, *second)))


def _built(values: Mapping[str, Any], notices: tuple[str, ...] = (), faults: tuple[SettingFault, ...] = ()) -> Settings:
    tops: dict[str, Any] = {key: value for key, value in values.items() if "." not in key}
    for section, struct in SECTIONS.items():
        members = {key.partition(".")[2]: value for key, value in values.items() if key.startswith(f"{section}.")}
        tops[section] = struct(**members)
    return Settings(**tops, notices=notices, faults=faults)


def user_hosts() -> HostsSettings:
    """Return the hosts in the user's own file, for any project. Raises SettingsError."""
    entries = _read_file(user_settings_file())
    return _built({key: entry.value for key, entry in entries.items() if key.startswith("hosts.")}).hosts


# --- the example -----------------------------------------------------------------------------------------------------

_HEAD = (
    "## Settings of subdeck. Your file: ~/.config/subdeck/config.yaml (or below "
    "XDG_CONFIG_HOME, if set).\n## A project's file: .pi/subagents/config.yaml, for the "
    "settings marked with [project: ...].\n## Both are read at start and again at each "
    'launch. Remove "# " before a line to set it.\n'
)

_PROJECT = {
    ProjectMay.NOTHING: "",
    ProjectMay.OVERRIDES: " [project: overrides yours]",
    ProjectMay.ADDS: " [project: added to yours]",
    ProjectMay.LOWERS: " [project: can lower it]",
}


def example_settings() -> str:
    """Return a settings file's text with every setting commented out."""
    return _HEAD + "\n".join(_lines()) + "\n"


def example_of(key: str) -> str:
    """Return a value as written in a file: the setting's example, or else its default."""
    if KEYS[key].setting.example:
        return KEYS[key].setting.example
    default = value_of(Settings(), key)
    return str(default).lower() if isinstance(default, bool | str) else f"{default:g}"


def _lines() -> Iterator[str]:
    last = ""
    for key, entry in KEYS.items():
        section, _, name = key.rpartition(".")
        if not section or section != last:
            yield ""
        if section and section != last:
            yield f"# {section}:"
        yield f"## {entry.setting.meaning}{_PROJECT[entry.setting.project]}"
        yield f"# {'  ' if section else ''}{name}: {example_of(key)}"
        last = section
