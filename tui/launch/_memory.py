"""The last choices for a launch, and tasks typed but not launched: one small file for each project.

A broken file counts as an empty one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.paths import Project, now_iso, project_key, state_file
from ...core.system.files import write_state
from ...core.system.record import read_record
from ..feed.bridge import Bridge

ADHOC = ""
"""The key for runs without a preset."""
PRESETS = 200
"""Presets whose values are kept: those used last."""
UNSENT = 40
"""Tasks kept that were not launched."""
CHARACTERS = 1_000_000
"""Their total number of characters; the newest task is kept even if it is larger."""


class LastValues(Struct, frozen=True, omit_defaults=True):
    """Only the choices that differ from the preset."""

    agent: str = ""
    model: str = ""
    cwd: str = ""
    runner: str = ""
    copies: int = 1


class UnsentTask(Struct, frozen=True):
    preset: str
    task: str
    at: str
    """When, as in a run's files."""
    offered: bool = True
    """Whether the next launch of the preset begins with it; at most one task of each preset."""


class LaunchMemory(Struct, frozen=True, omit_defaults=True):
    project: str = ""
    """For people who read the file."""
    last: dict[str, LastValues] = {}
    """By preset, the one used last at the end."""
    unsent: tuple[UnsentTask, ...] = ()
    """Newest first."""

    def values_of(self, preset: str) -> LastValues:
        return self.last.get(preset, LastValues())

    def draft_of(self, preset: str) -> str:
        """Return the task that the next launch of a preset begins with."""
        return next((unsent.task for unsent in self.unsent if unsent.offered and unsent.preset == preset), "")

    def after_launch(self, preset: str, task: str, values: LastValues | None) -> LaunchMemory:
        """Record a launch; `values=None` keeps the preset's values."""
        last = dict(self.last)
        if values is not None:
            last.pop(preset, None)
            if values != LastValues():
                last[preset] = values
        newest = dict(list(last.items())[-PRESETS:])
        return replace(self, last=newest, unsent=self._without(preset, task))

    def after_cancel(self, preset: str, task: str) -> LaunchMemory:
        """Keep a typed task; blank text only removes the offered one."""
        unsent = self._without(preset, task)
        if not task.strip():
            return replace(self, unsent=unsent)
        return replace(self, unsent=_bounded((UnsentTask(preset, task, now_iso()), *unsent)))

    def _without(self, preset: str, task: str) -> tuple[UnsentTask, ...]:
        """Return the other unsent tasks; those of the preset are no longer offered."""
        return tuple(
            replace(unsent, offered=False) if unsent.preset == preset else unsent
            for unsent in self.unsent
            if unsent.task != task
        )


def memory_file(project: Project) -> str:
    return state_file("launches", f"{project_key(project.root)}.json")


def read_memory(project: Project) -> LaunchMemory:
    """Return the memory of a project; an empty one if the file is missing or broken."""
    return read_record(memory_file(project), LaunchMemory, LaunchMemory(), follow=True)


def change_memory(project: Project, change: Callable[[LaunchMemory], LaunchMemory]) -> LaunchMemory:
    """Change the memory as stored in the file now, and return it. Raises OSError."""
    memory = replace(change(read_memory(project)), project=project.root.encode("utf-8", "replace").decode())
    write_state(memory_file(project), msgspec.json.format(msgspec.json.encode(memory), indent=1))
    return memory


def _bounded(unsent: tuple[UnsentTask, ...]) -> tuple[UnsentTask, ...]:
    kept, characters = list(unsent[:1]), len(unsent[0].task)
    for task in unsent[1:UNSENT]:
        characters += len(task.task)
        if characters > CHARACTERS:
            break
        kept.append(task)
    return tuple(kept)


class Remembered:
    """The memory in the app: read and written in threads, one change at a time.

    A change that cannot be written lasts until the app ends.
    """

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge
        self._lock = asyncio.Lock()
        self.known: LaunchMemory | None = None
        """None before the first read."""

    async def read(self) -> LaunchMemory:
        async with self._lock:
            if self.known is None:
                self.known = await self._bridge.call(read_memory, self._bridge.engine.project)
            return self.known

    async def change(self, change: Callable[[LaunchMemory], LaunchMemory]) -> None:
        """Change the memory and the file. Raises OSError if only the file could not be changed."""
        async with self._lock:
            try:
                self.known = await self._bridge.call(change_memory, self._bridge.engine.project, change)
            except OSError:
                self.known = change(self.known or LaunchMemory())
                raise
