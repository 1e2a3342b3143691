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
from .sources import BUNDLED, PresetDirectory, form_of, preset_directories


class PresetCatalog(Struct, frozen=True):
    presets: tuple[Preset, ...]
    """Sorted by name."""
    problems: tuple[PresetProblem, ...]
    """By directory, then by file name."""
    directories: tuple[str, ...]
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
        if BUNDLED not in self.directories and name + SUFFIX in os.listdir(BUNDLED):
            what = f'the preset "{name}" comes with subdeck and is turned off'
            raise PresetError(what, hint="set bundled_presets: true", code="preset.not_found")
        none = "no presets yet; subdeck init writes four;"
        near = nearest(name, [preset.name for preset in self.presets]) if self.presets else none
        looked = f"searched for {self.patterns} in {', '.join(self.directories)}"
        raise PresetError(
            f'unknown preset "{one_line(name, 80)}"',
            hint=f"{near} {looked}" if near else looked,
            code="preset.not_found",
        )


def discover(workspace: Workspace) -> PresetCatalog:
    """Read all presets now; broken files are listed and do not affect others."""
    directories = preset_directories(workspace)
    presets: dict[str, Preset] = {}
    problems: list[PresetProblem] = []
    for preset_dir in directories:
        broken_nearer = {problem.name: problem for problem in reversed(problems)}
        for entry in _read_all(preset_dir):
            if isinstance(entry, PresetProblem):
                problems.append(entry)
            elif entry.name not in presets:
                if broken := broken_nearer.get(entry.name):
                    warning = f"a preset of this name with higher precedence is invalid: {broken.where}"
                    entry = structs.replace(entry, warnings=(*entry.warnings, warning))
                presets[entry.name] = entry
    by_name = tuple(presets[name] for name in sorted(presets))
    patterns = " and ".join(sorted({f"*{preset_dir.suffix}" for preset_dir in directories}))
    return PresetCatalog(by_name, tuple(problems), tuple(preset_dir.directory for preset_dir in directories), patterns)


def _read_all(preset_dir: PresetDirectory) -> Iterator[Preset | PresetProblem]:
    if preset_dir.fault is not None:
        yield problem_of(preset_dir.directory, preset_dir.source, "", preset_dir.fault)
        return
    try:
        paths = preset_dir.files()
    except FileNotFoundError:
        return
    except OSError as error:
        fault = ContentError(f"cannot read the directory: {error.strerror}")
        yield problem_of(preset_dir.directory, preset_dir.source, "", fault)
        return
    first_with: dict[str, str] = {}
    for path in paths:
        entry = read_in(preset_dir, path)
        if isinstance(entry, Preset) and first_with.setdefault(entry.name, path) != path:
            other_file = os.path.relpath(first_with[entry.name], os.path.dirname(path))
            fault = ContentError(
                f'the name "{entry.name}" is already used by {other_file} in the same directory',
                hint="rename one of them",
            )
            yield problem_of(path, preset_dir.source, entry.name, fault)
        elif entry is not None:
            yield entry


def read_in(preset_dir: PresetDirectory, path: str) -> Preset | PresetProblem | None:
    """Read a file in the form of its directory; return None if it is gone or not an agent file."""
    return read_preset(path, preset_dir.source, lambda text: _parsed(preset_dir, text, path))


def parsed_in(preset_dir: PresetDirectory, text: str, path: str) -> Preset:
    """Parse a text as a file of a preset directory. Raises ContentError."""
    preset = _parsed(preset_dir, text, path)
    if preset is None:
        raise ContentError("not an agent file: it has no frontmatter", line=1, hint='begin the file with "---"')
    return preset


def _parsed(preset_dir: PresetDirectory, text: str, path: str) -> Preset | None:
    if not preset_dir.form:
        return parse_preset(text, path, preset_dir.source)
    return form_of(preset_dir.form).parse(text, path, preset_dir.agent)


class Tier(Struct, frozen=True):
    rank: int
    """Rank of its directory; 0 is the nearest."""
    source: PresetSource
    path: str
    usable: bool


def tiers(name: str, workspace: Workspace) -> tuple[Tier, ...]:
    """Return the files with a preset of this name, broken ones included, in search order."""
    found: list[Tier] = []
    for rank, preset_dir in enumerate(preset_directories(workspace)):
        try:
            paths = preset_dir.files()
        except OSError:
            continue
        for path in paths:
            preset = read_in(preset_dir, path)
            if preset is not None and preset.name == name:
                found.append(Tier(rank, preset_dir.source, path, isinstance(preset, Preset)))
    return tuple(found)


def next_after(path: str, name: str, workspace: Workspace) -> Tier | None:
    """Return the preset that is used once this file is gone; None if no other has its name."""
    others = (tier for tier in tiers(name, workspace) if tier.path != path)
    return next((tier for tier in others if tier.usable), None)
