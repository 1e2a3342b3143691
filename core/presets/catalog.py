"""The presets of a project: where they are looked for, which one wins, what is broken."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct, structs

from ..config.workspace import Workspace
from ..errors import ContentError, PresetError, nearest
from ..paths import Project, agent_dir
from ..run.model import PresetSource
from ..system.directory import opened
from ..system.files import is_directory
from ..text.plain import one_line
from ..trust import fault_of
from .file import SUFFIX, Preset, PresetProblem, problem_of, read_preset

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")
"""The directory of the presets that come along; they are offered where the setting `bundled_presets` says so."""


class PresetCatalog(Struct, frozen=True):
    presets: tuple[Preset, ...]
    """By name."""
    problems: tuple[PresetProblem, ...]
    """In the order of their places, then by file name."""
    places: tuple[str, ...]
    """The directories looked at, nearest first, whether they exist or not."""

    def get(self, name: str) -> Preset:
        """Return the preset of that name; raise PresetError with near names, or with what is wrong with its file."""
        for preset in self.presets:
            if preset.name == name:
                return preset
        for problem in self.problems:
            if problem.name == name:
                raise PresetError(
                    f'the preset "{one_line(name, 80)}" cannot be used: {problem.message}', where=problem.where
                )
        if BUNDLED not in self.places and name + SUFFIX in os.listdir(BUNDLED):
            raise PresetError(f'the preset "{name}" comes with subdeck, and is off', hint="set bundled_presets: true")
        near = nearest(name, [preset.name for preset in self.presets]) if self.presets else "there are none yet;"
        looked = f"looked for *.md in {', '.join(self.places)}"
        raise PresetError(f'no preset is called "{one_line(name, 80)}"', hint=f"{near} {looked}" if near else looked)


def preset_places(workspace: Workspace) -> tuple[tuple[PresetSource, str], ...]:
    """List the directories that may hold presets, nearest first, each once, whether they exist or not."""
    places = (
        (PresetSource.PROJECT, project_place(workspace)),
        *((PresetSource.DIR, directory) for directory in workspace.settings.preset_dirs),
        (PresetSource.GLOBAL, os.path.join(agent_dir(), "subagents")),
        *(((PresetSource.BUNDLED, BUNDLED),) if workspace.settings.bundled_presets else ()),
    )
    nearest_of: dict[str, tuple[PresetSource, str]] = {}
    for source, directory in places:
        nearest_of.setdefault(os.path.realpath(directory), (source, directory))
    return tuple(nearest_of.values())


def project_place(workspace: Workspace) -> str:
    """Find the nearest `.pi/subagents` with a preset in it, from the launcher's directory up, never in HOME or above.

    One without presets is passed over: every first launch makes one in the project, and that must not hide the
    presets of a directory above.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    directory = os.path.realpath(workspace.cwd)
    while not f"{home}/".startswith(f"{directory.rstrip('/')}/"):
        place = os.path.join(directory, ".pi", "subagents")
        if _has_presets(place):
            return place if fault_of(Project(directory)) is None else workspace.project.home
        directory = os.path.dirname(directory)
    return workspace.project.home


def _has_presets(directory: str) -> bool:
    try:
        return any(True for _ in preset_files(directory))
    except OSError:
        return is_directory(directory)


def preset_files(directory: str) -> Iterator[str]:
    """Yield the paths of what looks like a preset by its name; raises OSError when the directory cannot be read."""
    with opened(directory) as place:
        yield from (
            os.path.join(directory, name)
            for name in place.names()
            if name.endswith(SUFFIX) and not name.startswith(".")
        )


def discover(workspace: Workspace) -> PresetCatalog:
    """Read every preset now; what is broken is listed and keeps nothing else from loading."""
    places = preset_places(workspace)
    presets: dict[str, Preset] = {}
    problems: list[PresetProblem] = []
    for source, directory in places:
        broken_nearer = {problem.name: problem for problem in reversed(problems)}
        for found in _read_place(source, directory):
            if isinstance(found, PresetProblem):
                problems.append(found)
            elif found.name not in presets:
                if broken := broken_nearer.get(found.name):
                    warning = f"a nearer preset of this name is broken: {broken.where}"
                    found = structs.replace(found, warnings=(*found.warnings, warning))
                presets[found.name] = found
    by_name = tuple(presets[name] for name in sorted(presets))
    return PresetCatalog(by_name, tuple(problems), tuple(directory for _, directory in places))


def _read_place(source: PresetSource, directory: str) -> Iterator[Preset | PresetProblem]:
    try:
        paths = sorted(preset_files(directory))
    except FileNotFoundError:
        return
    except OSError as error:
        yield problem_of(directory, source, "", ContentError(f"the directory cannot be read: {error.strerror}"))
        return
    first_with: dict[str, str] = {}
    for path in paths:
        found = read_preset(path, source)
        if isinstance(found, Preset) and first_with.setdefault(found.name, path) != path:
            other = os.path.basename(first_with[found.name])
            fault = ContentError(
                f'the name "{found.name}" is taken by {other} of the same directory', hint="rename one"
            )
            yield problem_of(path, source, found.name, fault)
        elif found is not None:
            yield found


class Tier(Struct, frozen=True):
    rank: int
    """Of its directory, the nearest one 0."""
    source: PresetSource
    path: str
    usable: bool


def tiers(name: str, workspace: Workspace) -> tuple[Tier, ...]:
    """Return the files whose preset has this name, broken ones too, in the order in which they are looked for."""
    found: list[Tier] = []
    for rank, (source, directory) in enumerate(preset_places(workspace)):
        try:
            paths = sorted(preset_files(directory))
        except OSError:
            continue
        for path in paths:
            preset = read_preset(path, source)
            if preset is not None and preset.name == name:
                found.append(Tier(rank, source, path, isinstance(preset, Preset)))
    return tuple(found)


def next_after(path: str, name: str, workspace: Workspace) -> Tier | None:
    """Return the preset that counts once this file is gone; None where there is none of its name."""
    others = (tier for tier in tiers(name, workspace) if tier.path != path)
    return next((tier for tier in others if tier.usable), None)
