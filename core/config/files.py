"""The settings files of user and project: their keys, reading and merging them, and an example file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce
from typing import Annotated, Any, get_args

from msgspec import Struct
from msgspec.structs import replace

from ..agent_kinds import KINDS
from ..errors import ContentError, SettingsError, nearest, nearest_of
from ..paths import Project, user_settings_file
from ..run.limits import LIMITS, Limits
from .host_settings import HostsSettings
from .renamed import repeated
from .settings import PresetDir, SettingFault, Settings
from .values import OF_UNIT, ProjectMay, Setting, is_blank, read_value, unexpected, without_none
from .yaml_tree import Fields, Node, RepeatedKey, Text, parse_mapping, read_text

# --- the keys --------------------------------------------------------------------------------------------------------


class Key(Struct, frozen=True):
    kind: Any
    """Type of its values, as for `read_value`."""
    setting: Setting
    place: str
    """Where `Settings` has it, such as `worktree_copy`; unless it is the key, an older spelling."""

    @property
    def old_names(self) -> tuple[str, ...]:
        """Older spellings that are still read."""
        return (*((self.place,) if self.setting.key else ()), *self.setting.former)


def _keys(struct: type[Struct], prefix: str = "") -> Iterator[tuple[str, Key]]:
    for name, hint in struct.__annotations__.items():
        if struct is Limits:
            limit = LIMITS[name]
            setting = Setting(limit.setting, limit.example, ProjectMay.LOWERS)
            yield prefix + name, Key(OF_UNIT[limit.unit], setting, prefix + name)
        elif struct is Settings and isinstance(hint, type):
            yield from _keys(hint, f"{name}.")
        elif hasattr(hint, "__metadata__"):
            *notes, setting = hint.__metadata__
            kind = without_none(get_args(hint)[0])
            attribute = prefix + name
            yield setting.key or attribute, Key(Annotated[kind, *notes] if notes else kind, setting, attribute)


KEYS: dict[str, Key] = dict(_keys(Settings))
"""By name in the file, such as `worktree.copy`; the members of a group follow each other."""
OLD_NAMES: dict[str, str] = {old: name for name, key in KEYS.items() for old in key.old_names}
"""Older spelling -> name."""
GROUPS = tuple(dict.fromkeys(name.partition(".")[0] for name in KEYS if "." in name))
_OLD_GROUPS = frozenset(old.partition(".")[0] for old in OLD_NAMES if "." in old)


def value_of(settings: Settings, key: str) -> Any:
    """Return the effective value of a key, in the files' units."""
    return reduce(getattr, KEYS[key].place.split("."), settings)


def changed_keys(before: Settings, after: Settings) -> tuple[str, ...]:
    """Return the keys whose values differ."""
    return tuple(key for key in KEYS if value_of(before, key) != value_of(after, key))


# --- one file --------------------------------------------------------------------------------------------------------


APP_ONLY = frozenset(("app.theme", "app.columns", "app.keys", "app.commands"))
"""Keys that only the app reads: it uses their defaults if their values are wrong."""


class SettingEntry(Struct, frozen=True):
    """A value in a settings file."""

    key: str
    written: str
    """Its spelling in the file."""
    value: Any
    line: int
    fault: ContentError | None = None
    """Why there is no value; only for keys in `APP_ONLY`."""


def _read_file(path: str) -> dict[str, SettingEntry]:
    try:
        return {entry.key: entry for entry in read_entries(parse_settings(read_text(path)))}
    except FileNotFoundError:
        return {}
    except ContentError as error:
        raise SettingsError(error.what, where=error.within(path), hint=error.hint) from error


def parse_settings(text: str) -> Fields:
    """Parse a settings file. Raises ContentError."""
    try:
        return parse_mapping(text)
    except RepeatedKey as error:
        if error.key not in GROUPS:
            raise
        hint = f'write "{error.key}:" once, with all its settings below it'
        if member := OLD_NAMES.get(error.key, "").rpartition(".")[2]:  # `worktree: files` beside `worktree:` with keys
            hint += f'; a single value goes there as "{member}:"'
        raise ContentError(error.what, line=error.line, hint=hint) from error


def trusted_directories() -> tuple[str, ...]:
    """Return `trusted` from the user's own file only. Raises SettingsError."""
    entry = _read_file(user_settings_file()).get("trusted")
    return entry.value if entry else ()


def read_entries(fields: Fields) -> Iterator[SettingEntry]:
    """Read all values that are set, in any spelling; blank ones are absent. Raises ContentError."""
    for item in _items(fields):
        if isinstance(item, ContentError):
            raise item
        yield item


def _items(fields: Fields) -> Iterator[SettingEntry | ContentError]:
    """Yield the values and the errors of a file in its order."""
    earlier: dict[str, SettingEntry] = {}
    for written, node in _written(fields):
        key = OLD_NAMES.get(written, written)
        if isinstance(node, ContentError):
            yield node
        elif key not in KEYS:
            yield _unknown(written, node)
        elif is_blank(node):
            continue
        elif other := earlier.get(key):
            first, second = sorted(
                (other, SettingEntry(key, written, None, node.line)), key=lambda each: each.written == key
            )
            yield repeated(first.written, first.line, second.written, second.line, key)
        else:
            item = _entry(key, node, written)
            earlier[key] = item if isinstance(item, SettingEntry) else SettingEntry(key, written, None, node.line)
            yield item


def _written(fields: Fields) -> Iterator[tuple[str, Node | ContentError]]:
    """Yield the values by their spelling in the file, such as `worktree.copy` or `worktree_copy`."""
    for name, node in fields.pairs.items():
        if name not in GROUPS and name not in _OLD_GROUPS:
            yield name, node
        elif isinstance(node, Fields):
            yield from ((f"{name}.{member}", child) for member, child in node.pairs.items())
        elif name in OLD_NAMES:  # `worktree: files`
            yield name, node
        elif not (isinstance(node, Text) and node.is_nothing):
            yield name, unexpected(name, f"keys below it ({', '.join(_members(name))})", node)


def _entry(key: str, node: Node, written: str) -> SettingEntry | ContentError:
    try:
        return SettingEntry(key, written, read_value(written, KEYS[key].kind, node), node.line)
    except ContentError as fault:
        return SettingEntry(key, written, None, node.line, fault) if key in APP_ONLY else fault


def _members(group: str) -> tuple[str, ...]:
    """Return the names of a group, or of all top-level keys for an empty one."""
    if not group:
        return tuple(sorted({key.partition(".")[0] for key in KEYS}))
    names = KEYS if group in GROUPS else OLD_NAMES
    return tuple(key.partition(".")[2] for key in names if key.startswith(f"{group}."))


def _unknown(written: str, node: Node) -> ContentError:
    group = written.rpartition(".")[0]
    known = [name for name in (*KEYS, *GROUPS, *OLD_NAMES) if name.startswith(f"{group}.") or not group]
    near = nearest_of(written, known, cutoff=0.6, count=3)
    close = dict.fromkeys(name if name in GROUPS else OLD_NAMES.get(name, name) for name in near)
    hint = f"did you mean {', '.join(close)}?" if close else f"known here: {', '.join(_members(group))}"
    return ContentError(f'"{written}" is not a setting', line=node.line, hint=hint)


def place_in_file(key: str) -> str:
    """Return where a key such as `app.keys.stop` is in the user's file: `path:line`, or only the path."""
    path = user_settings_file()
    try:
        fields = parse_mapping(read_text(path))
    except (FileNotFoundError, ContentError):
        return path
    setting = next((name for name in KEYS if f"{key}.".startswith(f"{name}.")), key)
    spellings = (setting, *(KEYS[setting].old_names if setting in KEYS else ()))
    positions = (_nearest(fields, name + key.removeprefix(setting)) for name in spellings)
    _, line = min(positions, key=lambda position: (position[0], not position[1]))
    return f"{path}:{line}" if line else path


def _nearest(node: Node, path: str) -> tuple[int, int]:
    """Return how many keys at the end of a path are missing, and the line of the last one that is there; 0 for none."""
    names, line = path.split("."), 0
    for number, name in enumerate(names):
        child = node.pairs.get(name) if isinstance(node, Fields) else None
        if child is None:
            return len(names) - number, line
        node, line = child, child.line
    return 0, line


# --- both files ------------------------------------------------------------------------------------------------------


class Reading(Struct, frozen=True):
    """Both files, merged."""

    settings: Settings
    """Without the values that are wrong."""
    errors: tuple[SettingsError, ...]
    """The user's, then the project's, each in the order of the file."""


def merged_settings(project: Project) -> Settings:
    """Read and merge both files; a missing file sets nothing. Raises SettingsError, for the first of several errors."""
    reading = read_both(project)
    if reading.errors:
        raise reading.errors[0]
    return reading.settings


def read_both(project: Project) -> Reading:
    """Read and merge both files, and collect every error in them."""
    user_file, project_file = _File(user_settings_file()), _File(project.settings_file)
    values = {key: entry.value for key, entry in user_file.entries.items() if entry.fault is None}
    faults = tuple(
        SettingFault(entry.fault.what, entry.fault.within(user_file.path), entry.fault.hint, key)
        for key, entry in user_file.entries.items()
        if entry.fault is not None
    )
    if "preset_dirs" in values:
        values["preset_dirs"] = _directories(
            values["preset_dirs"], lambda named: _absolute(project, os.path.expanduser(named))
        )
    notices: list[str] = []
    for entry in project_file.entries.values():
        try:
            _merge(project, project_file, entry, values, notices)
        except ContentError as error:
            project_file.add(error)
    settings = _built(values, tuple(notices), faults)
    known = ("auto", *KINDS, *settings.agents)
    if settings.agent not in known:
        hint = nearest(settings.agent, known, cutoff=0.5) or 'add it under "agents", with its command'
        line = user_file.entries["agent"].line
        user_file.add(ContentError(f'agent: "{settings.agent}" is not configured', line=line, hint=hint))
    return Reading(settings, (*user_file.errors, *project_file.errors))


class _File:
    """A settings file: its values, and what is wrong with it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.entries: dict[str, SettingEntry] = {}
        """By key."""
        self._faults: list[ContentError] = []
        try:
            items = list(_items(parse_settings(read_text(path))))
        except FileNotFoundError:
            items = []
        except ContentError as error:
            items = [error]
        for item in items:
            if isinstance(item, ContentError):
                self.add(item)
            else:
                self.entries[item.key] = item

    def add(self, fault: ContentError) -> None:
        self._faults.append(fault)

    @property
    def errors(self) -> list[SettingsError]:
        faults = sorted(self._faults, key=lambda fault: fault.line or 0)
        return [SettingsError(fault.what, where=fault.within(self.path), hint=fault.hint) for fault in faults]


def _merge(project: Project, file: _File, entry: SettingEntry, values: dict[str, Any], notices: list[str]) -> None:
    """Add a value of the project's file to the user's. Raises ContentError if the project may not set it."""
    key, value = entry.key, entry.value
    may = KEYS[key].setting.project
    if may is ProjectMay.NOTHING:
        what, hint = f'"{entry.written}" cannot be set by a project', f"set it in {user_settings_file()} instead"
        raise ContentError(what, line=entry.line, hint=hint)
    if key == "preset_dirs":
        value = _directories(value, partial(_inside, project, line=entry.line))
    cap = values.get(key, value_of(Settings(), key)) if may is ProjectMay.LOWERS else None
    if may is ProjectMay.ADDS:
        values[key] = _added(key, values.get(key), value)
    elif cap is None or value <= cap:
        values[key] = value
    else:
        where = f"{file.path}:{entry.line}"
        notices.append(f"{where}: {entry.written} is above your own limit, so your limit applies")


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


def _inside(project: Project, named: str, line: int) -> str:
    """Resolve a project's own directory: a checkout must not make subdeck read files elsewhere, even through a link."""
    root = os.path.realpath(project.root)
    real = os.path.realpath(os.path.join(root, named))
    if named.startswith("~") or os.path.commonpath((root, real)) != root:
        raise ContentError(
            f'preset_dirs: "{named}" is outside the project',
            line=line,
            hint=f"use a directory below {project.root}, or set it in {user_settings_file()}",
        )
    return _absolute(project, named)


def _added(key: str, of_user: Any, of_project: Any) -> Any:
    """Combine the project's list or names with the user's (None for none)."""
    if isinstance(of_project, dict):
        named: dict[str, Any] = {**(of_user or {}), **of_project}
        return named
    first, second = (of_user or (), of_project) if key == "models" else (of_project, of_user or ())
    return tuple(dict.fromkeys((*first, *second)))


def _built(values: Mapping[str, Any], notices: tuple[str, ...] = (), faults: tuple[SettingFault, ...] = ()) -> Settings:
    tops: dict[str, Any] = {}
    members: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        struct, _, name = KEYS[key].place.rpartition(".")
        (members.setdefault(struct, {}) if struct else tops)[name] = value
    tops |= {struct: Settings.__annotations__[struct](**fields) for struct, fields in members.items()}
    return Settings(**tops, notices=notices, faults=faults)


def user_hosts() -> HostsSettings:
    """Return the hosts in the user's own file, for any project. Raises SettingsError."""
    entries = _read_file(user_settings_file())
    return _built({key: entry.value for key, entry in entries.items() if key.startswith("hosts.")}).hosts


def user_settings() -> Settings | None:
    """Return the settings in the user's own file, for any project; None if it cannot be parsed. Wrong values count as
    absent.
    """
    file = _File(user_settings_file())
    if file.errors and not file.entries:
        return None
    return _built({key: entry.value for key, entry in file.entries.items() if entry.fault is None})


# --- the example -----------------------------------------------------------------------------------------------------

_HEAD = (
    "## The most used settings of subdeck. Your file: ~/.config/subdeck/config.yaml (or below "
    "XDG_CONFIG_HOME, if set).\n## A project's file: .pi/subagents/config.yaml, for the "
    "settings marked with [project: ...].\n## Both are read again when they change. "
    'To set a line, remove "# " before it and before its group.\n'
    "## subdeck settings prints every setting; the app's palette and docs/reference/settings.md explain them.\n"
)

_PROJECT = {
    ProjectMay.NOTHING: "",
    ProjectMay.OVERRIDES: " [project: overrides yours]",
    ProjectMay.ADDS: " [project: added to yours]",
    ProjectMay.LOWERS: " [project: can lower it]",
}


def example_settings() -> str:
    """Return a settings file's text with the most used settings commented out, by group."""
    return _HEAD + "\n".join(_lines()) + "\n"


def example_of(key: str) -> str:
    """Return a value as written in a file: the setting's example, or else its default."""
    if KEYS[key].setting.example:
        return KEYS[key].setting.example
    default = value_of(Settings(), key)
    return str(default).lower() if isinstance(default, bool | str) else f"{default:g}"


def example_line(key: str) -> str:
    """Return a setting as one line of a file: `worktree: {copy: [.env]}`."""
    group, _, name = key.rpartition(".")
    line = f"{name}: {example_of(key)}"
    return f"{group}: {{{line}}}" if group else line


def _lines() -> Iterator[str]:
    last = ""
    for key, entry in KEYS.items():
        if entry.setting.is_rare:
            continue
        group, _, name = key.rpartition(".")
        if not group or group != last:
            yield ""
        if group and group != last:
            yield f"# {group}:"
        yield f"## {entry.setting.meaning}{_PROJECT[entry.setting.project]}"
        yield f"# {'  ' if group else ''}{name}: {example_of(key)}"
        last = group
