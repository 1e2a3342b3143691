"""`docs/reference/settings.md`: every key of the settings files, from the table that reads them."""

from __future__ import annotations

from itertools import groupby

import msgspec
from msgspec import Struct
from subdeck.core.config.files import KEYS, example_line, value_of
from subdeck.core.config.settings import Settings
from subdeck.core.config.values import ProjectMay, expected

from . import markdown

PROJECT = {
    ProjectMay.NOTHING: "no",
    ProjectMay.OVERRIDES: "overrides yours",
    ProjectMay.ADDS: "adds to yours",
    ProjectMay.LOWERS: "may lower yours",
}
HEADS = ("Key", "Value", "Default", "In a project", "Description")


def page() -> str:
    parts: list[str] = []
    for group, keys in groupby(KEYS, key=lambda key: key.partition(".")[0] if "." in key else ""):
        parts.append(f"## {markdown.code(group) if group else 'Settings without a group'}\n\n{_table(list(keys))}")
    return markdown.page(
        "Settings",
        "Look up a key of the settings files. Your own file is `~/.config/subdeck/config.yaml` (below"
        " `XDG_CONFIG_HOME` if it is set). A project's file is `.pi/subagents/config.yaml`; it may only set the keys"
        " whose column “In a project” allows it. `subdeck settings --example` prints a file with the most used keys"
        " commented out, `subdeck settings` the effective values of all.",
        "A key such as `worktree.copy` belongs to a group. In the file, write `copy:` below `worktree:`, indented."
        " Earlier spellings still work; [the changes in 0.2](changes-0.2.md) lists them.",
        *parts,
    )


def _table(keys: list[str]) -> str:
    return markdown.table(HEADS, [_row(key) for key in keys])


def _row(key: str) -> tuple[str, ...]:
    entry = KEYS[key]
    meaning = markdown.text(entry.setting.meaning)
    if entry.setting.example:
        meaning += f" Example: {markdown.code(example_line(key))}"
    if entry.setting.needs_restart:
        meaning += " An open app applies a change when it starts again."
    return f"`{key}`", markdown.text(expected(entry.kind)), _default(key), PROJECT[entry.setting.project], meaning


def _time(seconds: float) -> str:
    """Return a time as written in a file: `90s`, `10m`, `2h`, `7d`."""
    units = (("d", 86400), ("h", 3600), ("m", 60))
    return next((f"{seconds / size:g}{unit}" for unit, size in units if not seconds % size), f"{seconds:g}s")


def _default(key: str) -> str:
    value = value_of(Settings(), key)
    if isinstance(value, Struct):
        value = msgspec.to_builtins(value)
        parts = [f"{name}: {_time(part) if isinstance(part, float) else part}" for name, part in value.items() if part]
        return markdown.code(f"{{{', '.join(parts)}}}") if parts else ""
    if value is None or value == () or value == {}:
        return ""
    if isinstance(value, float) and "a time such as" in expected(KEYS[key].kind):
        return markdown.code(_time(value))
    if isinstance(value, bool | int | float | str):
        return markdown.code(str(value).lower() if isinstance(value, bool | str) else f"{value:g}")
    return markdown.code(msgspec.json.encode(value).decode())
