"""The presets of a project: which one of a name is used, and which files are broken."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct, structs

from ..config.workspace import Workspace
from ..errors import ContentError, PresetError, nearest
from ..run.model import PresetSource
from ..text.plain import one_line
from .file import SUFFIX, Preset, PresetProblem, parse_preset, problem_of, read_preset
from .sources import BUNDLED, Place, form_of, preset_places


class PresetCatalog(Struct, frozen=True):
    presets: tuple[Preset, ...]
    """Sorted by name."""
    problems: tuple[PresetProblem, ...]
    """By directory, then by file name."""
    places: tuple[str, ...]
    """The searched directories, nearest first, existing or not."""
    patterns: str = f"*{SUFFIX}"
    """File name patterns searched for."""

    def get(self, name: str) -> Preset:
        """Return the preset of that name. Raises PresetError with similar names, or with the fault of its file."""
        for preset in self.presets:
            if preset.name == name:
                return preset
        for problem in self.problems:
            if problem.name == name:
                raise PresetError(
                    f'the preset "{one_line(name, 80)}" cannot be used: {problem.message}', where=problem.where
                )
        if BUNDLED not in self.places and name + SUFFIX in os.listdir(BUNDLED):
            what = f'the preset "{name}" comes with subdeck and is turned off'
            raise PresetError(what, hint="set bundled_presets: true", code="preset.not_found")
        none = "no presets yet; subdeck init writes four;"
        near = nearest(name, [preset.name for preset in self.presets]) if self.presets else none
        looked = f"searched for {self.patterns} in {', '.join(self.places)}"
        raise PresetError(
            f'unknown preset "{one_line(name, 80)}"',
            hint=f"{near} {looked}" if near else looked,
            code="preset.not_found",
        )


def discover(workspace: Workspace) -> PresetCatalog:
    """Read all presets now; broken files are listed and do not affect others."""
    places = preset_places(workspace)
    presets: dict[str, Preset] = {}
    problems: list[PresetProblem] = []
    for place in places:
        broken_nearer = {problem.name: problem for problem in reversed(problems)}
        for found in _read_place(place):
            if isinstance(found, PresetProblem):
                problems.append(found)
            elif found.name not in presets:
                if broken := broken_nearer.get(found.name):
                    warning = f"a preset of this name with higher precedence is invalid: {broken.where}"
                    found = structs.replace(found, warnings=(*found.warnings, warning))
                presets[found.name] = found
    by_name = tuple(presets[name] for name in sorted(presets))
    patterns = " and ".join(sorted({f"*{place.suffix}" for place in places}))
    return PresetCatalog(by_name, tuple(problems), tuple(place.directory for place in places), patterns)


def _read_place(place: Place) -> Iterator[Preset | PresetProblem]:
    if place.fault is not None:
        yield problem_of(place.directory, place.source, "", place.fault)
        return
    try:
        paths = place.files()
    except FileNotFoundError:
        return
    except OSError as error:
        fault = ContentError(f"cannot read the directory: {error.strerror}")
        yield problem_of(place.directory, place.source, "", fault)
        return
    first_with: dict[str, str] = {}
    for path in paths:
        found = read_in(place, path)
        if isinstance(found, Preset) and first_with.setdefault(found.name, path) != path:
            other = os.path.relpath(first_with[found.name], os.path.dirname(path))
            fault = ContentError(
                f'the name "{found.name}" is already used by {other} in the same directory', hint="rename one of them"
            )
            yield problem_of(path, place.source, found.name, fault)
        elif found is not None:
            yield found


def read_in(place: Place, path: str) -> Preset | PresetProblem | None:
    """Read a file in the form of its place; return None if it is gone or not an agent file."""
    return read_preset(path, place.source, lambda text: _parsed(place, text, path))


def parsed_in(place: Place, text: str, path: str) -> Preset:
    """Parse a text as a file of a place. Raises ContentError."""
    preset = _parsed(place, text, path)
    if preset is None:
        raise ContentError("not an agent file: it has no frontmatter", line=1, hint='begin the file with "---"')
    return preset


def _parsed(place: Place, text: str, path: str) -> Preset | None:
    if not place.form:
        return parse_preset(text, path, place.source)
    return form_of(place.form).parse(text, path, place.agent)


class Tier(Struct, frozen=True):
    rank: int
    """Rank of its directory; 0 is the nearest."""
    source: PresetSource
    path: str
    usable: bool


def tiers(name: str, workspace: Workspace) -> tuple[Tier, ...]:
    """Return the files with a preset of this name, broken ones included, in search order."""
    found: list[Tier] = []
    for rank, place in enumerate(preset_places(workspace)):
        try:
            paths = place.files()
        except OSError:
            continue
        for path in paths:
            preset = read_in(place, path)
            if preset is not None and preset.name == name:
                found.append(Tier(rank, place.source, path, isinstance(preset, Preset)))
    return tuple(found)


def next_after(path: str, name: str, workspace: Workspace) -> Tier | None:
    """Return the preset that is used once this file is gone; None if no other has its name."""
    others = (tier for tier in tiers(name, workspace) if tier.path != path)
    return next((tier for tier in others if tier.usable), None)
