"""Older spellings of settings and presets still work, but not together with the present one."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from subdeck.core.config.files import (
    GROUPS,
    KEYS,
    OLD_NAMES,
    merged_settings,
    parse_settings,
    place_in_file,
    read_entries,
    user_hosts,
    value_of,
)
from subdeck.core.config.renamed import PRESETS
from subdeck.core.config.settings import Settings
from subdeck.core.errors import ContentError, SettingsError
from subdeck.core.paths import Project, user_settings_file
from subdeck.core.presets.fields import FIELDS, preset_schema
from subdeck.core.presets.file import Preset, parse_preset
from subdeck.core.run.model import PresetSource

from tests.core.command_line import subdeck
from tests.old_records import RECORDS

pytestmark = pytest.mark.usefixtures("forked_commands")

DEFAULTS = Settings()

OF_PRESETS = {"talk": "false", "answer_timeout": "5m", "needs": "{gpu: 1}", "finalize": "true"}
VALUES = {
    "worktree.default": "head",
    "worktree.copy": "[.env]",
    "worktree.link": "[.cache]",
    "worktree.setup": "[make, deps]",
    "worktree.setup_timeout": "5m",
    "budget.day": "7.5",
    "budget.project": "3",
    "budget.projects": "{/srv/shop: 5}",
    "budget.prices": "{m: {input: 1, output: 2}}",
    "interactive.default": "false",
    "interactive.reply_timeout": "5m",
    "interactive.idle_timeout": "6m",
    "parent_context.inherit": "false",
    "parent_context.expose_isolated": "true",
    "parent_context.recent_turns": "3",
    "parent_context.tool_output_window": "0",
    "parent_context.max_chars": "1000",
    "hosts.unreachable_after": "4s",
    "app.theme": "nord",
    "app.columns": "[task, cost]",
    "app.keys": "{stop: ctrl+x}",
    "app.diff_pager": "[delta]",
    "app.commands": "{git: {key: ctrl+g, argv: [lazygit]}}",
    "advanced.max_attempts": "5",
    "advanced.check_timeout": "4m",
    "advanced.grace_seconds": "0.5",
    "advanced.cgroup": "off",
    "advanced.tmux_socket": "mine",
}
"""A value other than the default of each setting with older spellings."""
OLD = [pytest.param(old, new, id=old) for old, new in OLD_NAMES.items()]


def preset(*lines: str) -> Preset:
    return parse_preset("\n".join(("---", "name: x", "description: d", *lines, "---")), "x.md", PresetSource.PROJECT)


def settings(text: str, project_dir: Path) -> dict[str, object]:
    path = Path(user_settings_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return msgspec.to_builtins(merged_settings(Project(str(project_dir))))


def written(key: str, value: str) -> str:
    section, _, name = key.rpartition(".")
    return f"{section}:\n  {name}: {value}" if section else f"{name}: {value}"


def fault_of(text: str) -> ContentError | None:
    """Return what is wrong with the only value of a settings file."""
    try:
        (entry,) = read_entries(parse_settings(text))
    except ContentError as error:
        return error
    return entry.fault


def test_the_names_are_those_of_the_tables() -> None:
    """The new names are keys, also in the schema, and the old ones are not."""
    assert set(OLD_NAMES.values()) == set(VALUES) and KEYS.keys().isdisjoint(OLD_NAMES)
    assert set(PRESETS.values()) <= set(FIELDS) and FIELDS.keys().isdisjoint(PRESETS)
    assert preset_schema()["properties"].keys().isdisjoint(PRESETS)


@pytest.mark.parametrize(("old", "new"), PRESETS.items())
def test_an_old_key_of_a_preset(old: str, new: str) -> None:
    """A preset with a key's old name is the same preset, without a warning."""
    read = preset(f"{old}: {OF_PRESETS[old]}")
    assert preset(f"{new}: {OF_PRESETS[old]}") == read
    assert () == read.warnings
    assert preset() != read


@pytest.mark.parametrize(("old", "new"), PRESETS.items())
def test_both_keys_of_a_preset(old: str, new: str) -> None:
    """A preset with both names of a key is refused, with both lines. An empty one does not count."""
    with pytest.raises(ContentError, match=rf'"{old}" \(line 5\) and "{new}" \(line 4\) are the same key') as refused:
        preset(f"{new}: {OF_PRESETS[old]}", f"{old}: {OF_PRESETS[old]}")
    assert 5 == refused.value.line
    assert preset(f"{new}: {OF_PRESETS[old]}") == preset(f"{new}: {OF_PRESETS[old]}", f"{old}:")
    assert preset(f"{new}: {OF_PRESETS[old]}") == preset(f"{new}:", f"{old}: {OF_PRESETS[old]}")


def test_every_moved_setting_has_its_flat_name() -> None:
    """Each setting that a group has now is also read under its place in `Settings`, which was its name before."""
    for name, key in KEYS.items():
        assert name == key.place or OLD_NAMES[key.place] == name
    assert {"worktree", "worktree_copy", "day_budget", "reply_timeout", "theme", "tmux.socket"} <= set(OLD_NAMES)


@pytest.mark.parametrize(("old", "new"), OLD)
def test_an_old_setting(old: str, new: str, project_dir: Path) -> None:
    """A settings file with a setting's older spelling has the same effect, without a notice."""
    read = settings(written(old, VALUES[new]), project_dir)
    hosts = user_hosts()
    assert settings(written(new, VALUES[new]), project_dir) == read
    assert user_hosts() == hosts
    assert settings("", project_dir) != read
    assert ([], []) == (list(read["notices"]), list(read["faults"]))  # type: ignore[call-overload]


def test_all_old_settings_at_once(project_dir: Path) -> None:
    """A file with only older spellings has the values of the file with only present ones."""
    tops = {old: new for old, new in OLD_NAMES.items() if old not in ("talk", "answer_timeout")}
    groups: dict[str, list[str]] = {}
    for old, new in tops.items():
        group, _, name = old.rpartition(".")
        groups.setdefault(group, []).append(f"{name}: {VALUES[new]}")
    lines = [*groups.pop(""), *(f"{group}: {{{', '.join(members)}}}" for group, members in groups.items())]
    read = settings("\n".join(lines), project_dir)
    groups = {}
    for name, value in VALUES.items():
        groups.setdefault(name.partition(".")[0], []).append(f"  {name.partition('.')[2]}: {value}")
    assert read == settings("\n".join("\n".join((f"{group}:", *own)) for group, own in groups.items()), project_dir)


@pytest.mark.parametrize(("old", "new"), [each for each in OLD if each.id not in GROUPS])
def test_both_settings(old: str, new: str, project_dir: Path) -> None:
    """A settings file with two spellings of a setting is refused, with both lines. A blank one does not count."""
    name, value = new.rpartition(".")[2], VALUES[new]
    if old.partition(".")[0] == new.partition(".")[0]:
        both = f"{written(new, value)}\n  {old.rpartition('.')[2]}: {value}"
    else:
        both = f"{written(new, value)}\n{written(old, value)}"
    last = both.count("\n") + 1
    with pytest.raises(
        SettingsError, match=rf'"{old}" \(line {last}\) and "{new}" \(line 2\) are the same key'
    ) as refused:
        settings(both, project_dir)
    assert refused.value.where.endswith(f":{last}")
    assert f'keep "{new}"' == refused.value.hint
    assert settings(written(old, value), project_dir) == settings(
        both.replace(f"  {name}: {value}", f"  {name}:", 1), project_dir
    )


@pytest.mark.parametrize("old", [each.id for each in OLD if each.id in GROUPS])
def test_a_single_value_beside_its_group(old: str, project_dir: Path) -> None:
    """A single value and a group of the same name are refused with both lines, and a way to write them together."""
    new = OLD_NAMES[old]
    with pytest.raises(SettingsError, match=rf'"{old}" appears twice, first on line 1') as refused:
        settings(f"{old}: {VALUES[new]}\n{written(new, VALUES[new])}", project_dir)
    assert refused.value.where.endswith(":2")
    assert 'a single value goes there as "default:"' in refused.value.hint


def test_two_old_spellings(project_dir: Path) -> None:
    """Two older spellings of a setting are refused; the hint has the present one."""
    with pytest.raises(SettingsError, match=r'"talk" \(line 1\) and "interactive" \(line 2\)') as refused:
        settings("talk: true\ninteractive: false\n", project_dir)
    assert 'keep "interactive.default"' == refused.value.hint


def test_the_place_of_a_setting(project_dir: Path) -> None:
    """A part of a setting is found in the user's file in either spelling, or else the nearest key above it."""
    path = user_settings_file()
    settings("runner: process\nkeys:\n  stop: x\n  kill: y\napp:\n  theme: nord\n", project_dir)
    keys = ("app.keys.kill", "app.theme", "app.columns", "app.keys.launch", "budget.day")
    assert [f"{path}:4", f"{path}:6", f"{path}:5", f"{path}:2", path] == [place_in_file(key) for key in keys]


def test_a_wrong_value_is_named_as_written() -> None:
    """A wrong value is reported with the name in the file."""
    with pytest.raises(ContentError, match=r"^talk: "):
        preset("talk: maybe")
    for old, new in OLD_NAMES.items():
        for name in (old, new):
            fault = fault_of(written(name, "[[wrong]]"))
            assert fault is not None and fault.what.startswith(f"{name}: ")
            assert fault.line == name.count(".") + 1


def test_each_file_has_its_own_names(project_dir: Path) -> None:
    """The user's old name and the project's new one are the same setting, which the project may lower."""
    (project_dir / ".pi" / "subagents").mkdir(parents=True, exist_ok=True)
    (project_dir / ".pi" / "subagents" / "config.yaml").write_text("reply_timeout: 5\n")
    assert 5 == settings("answer_timeout: 7", project_dir)["reply_timeout"]


@pytest.mark.processes
def test_documents_keep_the_old_names(project_dir: Path) -> None:
    """Programs that read `--json` find the values under the old names."""
    (project_dir / ".pi" / "subagents").mkdir(parents=True, exist_ok=True)
    (project_dir / ".pi" / "subagents" / "x.md").write_text(
        "---\nname: x\ndescription: d\ninteractive: false\nreply_timeout: 5\nrequires: {gpu: 1}\n---\n"
    )
    shown = subdeck("settings", "--json", cwd=project_dir).document["settings"]
    assert {new: shown[new] for new in OLD_NAMES.values()} == {new: shown[old] for old, new in OLD_NAMES.items()}
    assert set(shown) == {*KEYS, *OLD_NAMES}
    (read,) = subdeck("presets", "x", "--json", cwd=project_dir).document["presets"]
    assert (False, 5, {"gpu": 1}, False) == (read["talk"], read["answerTimeout"], read["needs"], read["finalize"])


def test_a_file_with_every_setting_of_an_earlier_version(home: Path, tmp_path: Path) -> None:
    """A file with every setting of 0.1.0, none with its default, has the values that 0.1.0 gave it."""
    expected: dict[str, object] = json.loads((RECORDS / "every-setting.json").read_text(encoding="utf-8"))
    path = Path(user_settings_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((RECORDS / "every-setting.yaml").read_text(encoding="utf-8"))
    read = merged_settings(Project(str(tmp_path)))
    values = {old: value_of(read, OLD_NAMES.get(old, old)) for old in expected}
    text = msgspec.json.encode(values).decode().replace(str(home), "/home/me").replace(str(tmp_path), "/shop")
    assert expected == json.loads(text)
    assert [] == [
        old
        for old in expected
        if value_of(read, OLD_NAMES.get(old, old)) == value_of(DEFAULTS, OLD_NAMES.get(old, old))
    ]
