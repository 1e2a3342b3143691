"""Where presets are searched for: the directories, their files, and the form of these files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from stat import S_ISDIR
from typing import TYPE_CHECKING

from msgspec import Struct

from ..agent_kinds import KINDS
from ..config.settings import PresetDir, Settings
from ..config.workspace import Workspace
from ..errors import ContentError
from ..paths import Project, agent_dir
from ..run.model import PresetSource
from ..system.directory import opened
from ..system.files import is_directory
from ..system.imports import load
from ..trust import fault_of
from .file import SUFFIX

if TYPE_CHECKING:
    from .forms.form import Form

BUNDLED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bundled")
"""The presets that come with subdeck, included by the setting `bundled_presets`."""


FORMS: dict[str, str] = {"claude": ".md", "codex": ".toml", "opencode": ".md"}
"""Agent file forms of other programs, with their file suffixes. This is the only table of them: each form is a module
of `forms` with a `FORM`.
"""


DEEPEST, MOST_DIRECTORIES = 4, 100
"""Limits of the search for agent files below a directory, because checkouts may be large: depth, directories."""


class PresetDirectory(Struct, frozen=True):
    """A directory that may contain presets."""

    source: PresetSource
    directory: str
    form: str = ""
    """A key of `FORMS`; empty for subdeck presets."""
    agent: str = ""
    """Agent that runs them; empty if the presets or settings decide."""
    fault: ContentError | None = None
    """Why nothing in it is usable."""

    @property
    def suffix(self) -> str:
        """File suffix."""
        return FORMS[self.form] if self.form else SUFFIX

    def files(self) -> list[str]:
        """Return the sorted paths of files named like presets.

        Raises OSError if the directory cannot be read; unreadable subdirectories are skipped.
        """
        paths = list(preset_files(self.directory, self.suffix))
        for directory in self.directories()[1:]:
            with suppress(OSError):
                paths += preset_files(directory, self.suffix)
        return sorted(paths)

    def directories(self) -> tuple[str, ...]:
        """Return the directory, and for agent files its subdirectories, which their programs also search.

        Subdeck presets are only in the directory itself.
        """
        directories = [self.directory]
        depth = {self.directory: 0}
        for directory in directories if self.form else ():
            if depth[directory] < DEEPEST:
                below = [os.path.join(directory, name) for name in _directories_in(directory)]
                directories += below[: MOST_DIRECTORIES - len(directories)]
                depth |= dict.fromkeys(below, depth[directory] + 1)
        return tuple(directories)


def form_of(name: str) -> Form:
    """Return the reader of a form. Raises KeyError if the form is not in the table."""
    return load(f"{__package__}.forms.{name}").FORM


def preset_directories(workspace: Workspace) -> tuple[PresetDirectory, ...]:
    """List the directories that may contain presets, nearest first, each once, existing or not."""
    settings = workspace.settings
    directories = (
        PresetDirectory(PresetSource.PROJECT, project_directory(workspace)),
        *(_named(entry, settings) for entry in settings.preset_dirs),
        PresetDirectory(PresetSource.GLOBAL, os.path.join(agent_dir(), "subagents")),
        *((PresetDirectory(PresetSource.BUNDLED, BUNDLED),) if settings.bundled_presets else ()),
    )
    nearest_of: dict[str, PresetDirectory] = {}
    for preset_dir in directories:
        nearest_of.setdefault(os.path.realpath(preset_dir.directory), preset_dir)
    return tuple(nearest_of.values())


def preset_directory(directory: str, workspace: Workspace) -> PresetDirectory | None:
    """Return what is known of a directory; None if presets are not searched for there."""
    real = os.path.realpath(directory)
    return next(
        (preset_dir for preset_dir in preset_directories(workspace) if os.path.realpath(preset_dir.directory) == real),
        None,
    )


def _named(entry: str | PresetDir, settings: Settings) -> PresetDirectory:
    """Return a directory of the settings."""
    if isinstance(entry, str):
        return PresetDirectory(PresetSource.DIR, entry)
    try:
        form, agent = form_and_agent(entry, settings)
    except ContentError as fault:
        return PresetDirectory(PresetSource.DIR, entry.path, fault=fault)
    return PresetDirectory(PresetSource.DIR, entry.path, form, agent)


def form_and_agent(entry: PresetDir, settings: Settings) -> tuple[str, str]:
    """Return the form of the files in a directory or of a file, and the agent that runs them (empty: any).

    Files of a kind of agent need an agent of that kind, because they name its tools and models. Raises ContentError.
    """
    configured = settings.agents.get(entry.agent)
    kind = (configured.kind if configured else "") or entry.agent
    form = entry.form or (kind if kind in FORMS else entry.agent)
    known_forms = ", ".join(FORMS)
    if form not in FORMS:
        what = f'unknown agent file format "{form}"'
        raise ContentError(
            what, hint=f"set its form: {known_forms}; or write only the path for a directory of subdeck presets"
        )
    if form in KINDS:
        if entry.agent and kind != form:
            what = f'the agent "{entry.agent}" cannot run agent files of {form}'
            raise ContentError(what, hint=f"use {form}, or an agent from your settings with kind: {form}")
        return form, entry.agent or form
    if entry.agent in settings.agents or entry.agent in KINDS:
        return form, entry.agent
    if entry.agent not in ("", form):
        what = f'unknown agent "{entry.agent}"'
        raise ContentError(what, hint="add it under agents in your settings, or remove it")
    return form, form if form in settings.agents else ""


def project_directory(workspace: Workspace) -> str:
    """Return the nearest `.pi/subagents` with a preset, from the launcher's directory up, but below HOME.

    Directories without presets are skipped: each first launch creates one in the project, and it must not hide presets
    in a directory above.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    directory = os.path.realpath(workspace.cwd)
    while not f"{home}/".startswith(f"{directory.rstrip('/')}/"):
        path = os.path.join(directory, ".pi", "subagents")
        if _has_presets(path):
            return path if fault_of(Project(directory)) is None else workspace.project.home
        directory = os.path.dirname(directory)
    return workspace.project.home


def _has_presets(directory: str) -> bool:
    try:
        return any(True for _ in preset_files(directory))
    except OSError:
        return is_directory(directory)


def _directories_in(directory: str) -> list[str]:
    """Return the names of subdirectories, except hidden ones and links."""
    try:
        with opened(directory) as handle:
            return sorted(name for name, status in handle.entries() if S_ISDIR(status.st_mode) and name[0] != ".")
    except OSError:
        return []


def preset_files(directory: str, suffix: str = SUFFIX) -> Iterator[str]:
    """Yield the paths of files named like presets. Raises OSError if the directory cannot be read."""
    with opened(directory) as handle:
        yield from (
            os.path.join(directory, name)
            for name in handle.names()
            if name.endswith(suffix) and not name.startswith(".")
        )
