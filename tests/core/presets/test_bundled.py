"""The bundled tier: turning it on, the preset Explore, and copying it."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.config.settings import Settings
from subdeck.core.config.workspace import Workspace
from subdeck.core.errors import ModelError, PresetError, SubdeckError
from subdeck.core.launch.plan import plan_all
from subdeck.core.paths import Project
from subdeck.core.presets.catalog import discover
from subdeck.core.presets.file import Preset, read_preset
from subdeck.core.presets.sources import BUNDLED, preset_directories
from subdeck.core.presets.write import bundled_presets, copy_bundled, needs_model
from subdeck.core.run.model import PresetSource
from subdeck.core.spec.request import RunRequest

ON = Settings(bundled_presets=True)


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


def explore() -> Preset:
    (preset,) = bundled_presets()
    return preset


def test_off_by_default(project: Project) -> None:
    """By default no bundled preset is listed."""
    assert () == discover(Workspace(project, project.root, Settings())).presets
    assert BUNDLED not in {
        preset_dir.directory for preset_dir in preset_directories(Workspace(project, project.root, Settings()))
    }


def test_an_error_knows_what_is_off(project: Project) -> None:
    """The error for a bundled preset that is off tells how to turn it on; other names are just unknown."""
    presets = discover(Workspace(project, project.root, Settings()))
    with pytest.raises(PresetError, match='the preset "Explore" comes with subdeck and is turned off') as caught:
        presets.get("Explore")
    with pytest.raises(PresetError, match="unknown preset"):
        presets.get("../bundled/Explore")

    assert "set bundled_presets: true" == caught.value.hint


def test_on_by_a_setting(project: Project) -> None:
    """With the setting Explore is listed, with its source."""
    catalog = discover(Workspace(project, project.root, ON))

    assert [("Explore", PresetSource.BUNDLED)] == [(preset.name, preset.source) for preset in catalog.presets]
    assert ((), BUNDLED) == (catalog.problems, catalog.directories[-1])


def test_an_unset_role_names_both_ways_out(project: Project) -> None:
    """Explore without its role is an error that names the role and the copy; with `fast: inherit` it starts."""
    request = RunRequest(task="look", preset="Explore")
    (error,) = _problems(request, project, ON)
    assert 'the model "@fast" is a role, but no roles are configured here' == error.what
    assert "either to inherit (fast: inherit) or to a model" in error.hint
    assert 'copy the preset with "model: inherit" (press b in the app)' in error.hint
    assert () == _problems(request, project, Settings(bundled_presets=True, roles={"fast": "inherit"}))


def _problems(request: RunRequest, project: Project, settings: Settings) -> tuple[SubdeckError, ...]:
    return plan_all([request], Workspace(project, project.root, settings))[0].problems


@pytest.mark.parametrize("nearer", ["project", "dir", "global"])
def test_the_most_specific_wins(project: Project, home: Path, nearer: str) -> None:
    """A preset of that name in any of the user's directories replaces the bundled one."""
    places = {
        "project": Path(project.home),
        "dir": Path(project.root, "agents"),
        "global": home / ".pi" / "agent" / "subagents",
    }
    places[nearer].mkdir(parents=True)
    (places[nearer] / "Explore.md").write_text("---\nname: Explore\ndescription: mine\n---\n")
    settings = Settings(bundled_presets=True, preset_dirs=(str(places["dir"]),))
    (preset,) = discover(Workspace(project, project.root, settings)).presets

    assert (nearer, "mine") == (preset.source, preset.description)


def test_what_explore_is() -> None:
    """Explore has read-only tools, the role for a fast model, no context, and a limited answer in three parts."""
    preset = explore()

    assert ("read", "grep", "find", "ls", "bash") == preset.tools
    assert ("@fast", False, "append", ()) == (
        preset.model, preset.inherit_context, preset.prompt_mode, preset.warnings,
    )  # fmt: skip
    for part in ("## Answer", "## Evidence", "## Notes", "2000 tokens", "Never paste whole\nfiles"):
        assert part in preset.prompt


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (Settings(), True),
        (Settings(roles={"fast": "a/b"}), False),
        (Settings(roles={"fast": "@x"}), True),
        (Settings(roles={"fast": "inherit"}), False),
    ],
)
def test_a_copy_asks_for_a_model(settings: Settings, expected: bool) -> None:
    """A copy needs a model only if the preset's role has none."""
    assert expected is needs_model(explore(), settings)


def test_a_copy_of_one_whose_role_is_set(tmp_path: Path) -> None:
    """With the role set the copy is the same text, in a new directory."""
    path = copy_bundled(explore(), str(tmp_path / "new"), Settings(roles={"fast": "a/b"}))

    assert str(tmp_path / "new" / "Explore.md") == path
    assert Path(explore().path).read_text() == Path(path).read_text()


@pytest.mark.parametrize("model", ["anthropic/haiku", "fake/llama:8b:low", "@slow", "  a/b "])
def test_a_copy_with_a_model(tmp_path: Path, model: str) -> None:
    """A given model replaces the role in the copy; everything else is unchanged."""
    path = copy_bundled(explore(), str(tmp_path), Settings(), model)
    copied = read_preset(path, PresetSource.PROJECT)

    assert isinstance(copied, Preset)
    assert model.strip() == copied.model
    assert (explore().prompt, explore().tools) == (copied.prompt, copied.tools)


def test_a_copy_without_a_model(tmp_path: Path) -> None:
    """Without the role and without a model nothing is written, and the error has a way out."""
    with pytest.raises(ModelError, match='Explore uses the model "@fast", a role that is not set') as caught:
        copy_bundled(explore(), str(tmp_path), Settings(), "  ")

    assert "choose a model for the copy, or set fast under roles in the settings" == caught.value.hint
    assert [] == list(tmp_path.iterdir())


def test_a_copy_replaces_nothing(tmp_path: Path) -> None:
    """A copy never replaces a file or preset of its name."""
    (tmp_path / "other.md").write_text("---\nname: Explore\ndescription: mine\n---\n")
    with pytest.raises(PresetError, match='the preset "Explore" already exists'):
        copy_bundled(explore(), str(tmp_path), Settings(), "a/b")
    (tmp_path / "other.md").rename(tmp_path / "Explore.md")
    with pytest.raises(PresetError):
        copy_bundled(explore(), str(tmp_path), Settings(), "a/b")

    assert "mine" in (tmp_path / "Explore.md").read_text()


@pytest.mark.parametrize("model", ["a\nb: c", "a\x00b", "-a", "a/"])
def test_a_model_that_cannot_be_written(tmp_path: Path, model: str) -> None:
    """An invalid model is refused, and nothing is written."""
    with pytest.raises(ModelError):
        copy_bundled(explore(), str(tmp_path), Settings(), model)

    assert [] == list(tmp_path.iterdir())
