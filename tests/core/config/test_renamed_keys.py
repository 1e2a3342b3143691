"""Renamed keys of settings and presets: the old name still works, but not together with the new one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from subdeck.core.config.files import KEYS, merged_settings, user_hosts
from subdeck.core.config.renamed import PRESETS, SETTINGS
from subdeck.core.errors import ContentError, SettingsError
from subdeck.core.paths import Project, user_settings_file
from subdeck.core.presets.fields import FIELDS, preset_schema
from subdeck.core.presets.file import Preset, parse_preset
from subdeck.core.run.model import PresetSource

from tests.core.command_line import subdeck

pytestmark = pytest.mark.usefixtures("forked_commands")

VALUES = {"talk": "false", "answer_timeout": "5m", "needs": "{gpu: 1}", "finalize": "true", "hosts.reach": "4s"}


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


def test_the_names_are_those_of_the_tables() -> None:
    """The new names are keys, also in the schema, and the old ones are not."""
    assert set(SETTINGS.values()) <= set(KEYS) and KEYS.keys().isdisjoint(SETTINGS)
    assert set(PRESETS.values()) <= set(FIELDS) and FIELDS.keys().isdisjoint(PRESETS)
    assert preset_schema()["properties"].keys().isdisjoint(PRESETS)


@pytest.mark.parametrize(("old", "new"), PRESETS.items())
def test_an_old_key_of_a_preset(old: str, new: str) -> None:
    """A preset with a key's old name is the same preset, without a warning."""
    read = preset(f"{old}: {VALUES[old]}")
    assert preset(f"{new}: {VALUES[old]}") == read
    assert () == read.warnings
    assert preset() != read


@pytest.mark.parametrize(("old", "new"), PRESETS.items())
def test_both_keys_of_a_preset(old: str, new: str) -> None:
    """A preset with both names of a key is refused, with both lines. An empty one does not count."""
    with pytest.raises(ContentError, match=rf'"{old}" \(line 5\) and "{new}" \(line 4\) are the same key') as refused:
        preset(f"{new}: {VALUES[old]}", f"{old}: {VALUES[old]}")
    assert 5 == refused.value.line
    assert preset(f"{new}: {VALUES[old]}") == preset(f"{new}: {VALUES[old]}", f"{old}:")
    assert preset(f"{new}: {VALUES[old]}") == preset(f"{new}:", f"{old}: {VALUES[old]}")


@pytest.mark.parametrize(("old", "new"), SETTINGS.items())
def test_an_old_setting(old: str, new: str, project_dir: Path) -> None:
    """A settings file with a key's old name has the same effect, without a notice."""
    read = settings(written(old, VALUES[old]), project_dir)
    hosts = user_hosts()
    assert settings(written(new, VALUES[old]), project_dir) == read
    assert user_hosts() == hosts
    assert settings("", project_dir) != read
    assert [] == list(read["notices"])  # type: ignore[call-overload]


@pytest.mark.parametrize(("old", "new"), SETTINGS.items())
def test_both_settings(old: str, new: str, project_dir: Path) -> None:
    """A settings file with both names of a key is refused, with both lines."""
    both = f"{written(new, VALUES[old])}\n{written(old, VALUES[old]).rpartition(chr(10))[2]}"
    first = 2 if "." in new else 1
    with pytest.raises(SettingsError, match=rf'"{old}" \(line {first + 1}\) and "{new}" \(line {first}\)') as refused:
        settings(both, project_dir)
    assert refused.value.where.endswith(f":{first + 1}")


def test_a_wrong_value_is_named_as_written(project_dir: Path) -> None:
    """A wrong value is reported with the name in the file."""
    with pytest.raises(ContentError, match=r"^talk: "):
        preset("talk: maybe")
    with pytest.raises(SettingsError, match=r"hosts\.reach: "):
        settings("hosts: {reach: soon}", project_dir)


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
    assert {new: shown[new] for new in SETTINGS.values()} == {new: shown[old] for old, new in SETTINGS.items()}
    (read,) = subdeck("presets", "x", "--json", cwd=project_dir).document["presets"]
    assert (False, 5, {"gpu": 1}, False) == (read["talk"], read["answerTimeout"], read["needs"], read["finalize"])
