"""The commands on presets."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING

from ...core.run.model import PresetSource
from ...core.text.plain import one_line
from ..actions import KeyContext, keys_line
from ..presets.copy import CopyPresetScreen, read_template
from ..presets.draft import Draft, check, new_draft, read_draft
from ..presets.editor import PresetEditorScreen
from ..terminal.handover import edit_file
from ..text.cells import fit, wrap
from ..text.format import short_path
from .base import Commands

if TYPE_CHECKING:
    from ...core.launch.preview import PresetCheck
    from ...core.presets.catalog import Preset, PresetProblem


DETAIL_WIDTH, DETAIL_ROWS = 72, 16
"""Cells of the text in a question."""


def _first_rows(line: str, most: int) -> list[str]:
    """Return the first rows of a line; a cut is marked."""
    rows = wrap(line, DETAIL_WIDTH)
    return rows if len(rows) <= most else [*rows[: most - 1], fit(" ".join(rows[most - 1 :]), DETAIL_WIDTH)]


class PresetCommands(Commands):
    """Get presets of one's own, change them, take them away; each ends with the cursor on what it was about."""

    def with_preset(self, command: Callable[[Preset | PresetProblem], Coroutine[None, None, None]]) -> None:
        """Do this with the highlighted file, if there is one."""
        if found := self._deck.presets.highlighted:
            self.spawn(command, found)

    async def create(self) -> None:
        await self._open(new_draft)

    async def write_starters(self) -> None:
        """Write the starter presets that are missing in this project, after asking."""
        from ...core.errors import UsageError
        from ...core.starters import StarterPlan, plan_lines, plan_starters, write_starters

        engine = self._bridge.engine

        def detail(plan: StarterPlan) -> str:
            if plan.is_done:
                raise UsageError("All four starter presets already exist in this project.")
            lines = plan_lines(plan, partial(short_path, width=DETAIL_WIDTH - 10))
            rows = [row for line in lines for row in _first_rows(line, 3 if line.startswith("!") else 2)]
            return "\n".join(rows if len(rows) <= DETAIL_ROWS else [*rows[: DETAIL_ROWS - 1], "…"])

        async def load() -> StarterPlan:
            await self._bridge.call(engine.read_settings)
            return await self._bridge.call(partial(plan_starters, for_all=False), engine.workspace)

        plan = await self._confirmed_data("Create four starter presets?", load, detail, "Create")
        if plan is None:
            return
        written, troubles = await self._bridge.call(write_starters, plan)
        await self._bridge.call(engine.read_settings)
        if written:
            self._deck.presets.select(written[0].path)
            count = f"{len(written)} starter preset{'s' * (len(written) > 1)}"
            self._say(f"Created {count} in {short_path(plan.directory)}. {self._key('launch')} launches one.")
        for trouble in troubles:
            self._say(one_line(trouble, 300), error=True)

    async def edit(self, found: Preset | PresetProblem) -> None:
        if found.source is PresetSource.BUNDLED:
            await self._copy_instead(found)
        else:
            await self._open(partial(read_draft, found))

    async def _open(self, read: Callable[[], Draft]) -> None:
        screen = PresetEditorScreen(self._bridge, read, keys_line(KeyContext.EDIT, self._deck.actions))
        if path := await self.app.push_screen_wait(screen):
            self._deck.presets.select(path)
            self._say(f"Saved {short_path(path, 60)}")

    async def edit_outside(self, found: Preset | PresetProblem) -> None:
        from ...core.presets.text import GONE, content_now

        if found.source is PresetSource.BUNDLED:
            await self._copy_instead(found)
            return
        before = await self._bridge.call(read_draft, found)
        if problem := edit_file(self.app, found.path):
            self._say(problem, error=True)
            return
        content = await self._bridge.call(content_now, found.path)
        if content == before.own.content:
            return
        if content == GONE:
            self._say(f"{short_path(found.path, 60)} no longer exists", error=True)
            return
        checked = await self._bridge.call(check, self._bridge.engine, before, "", content)
        self._say(saved_outside(found.path, checked), error=checked.preset is None)

    async def _copy_instead(self, preset: Preset | PresetProblem) -> None:
        detail = "Bundled presets cannot be changed. Copy it and edit the copy, which then replaces it."
        if await self._confirmed(f"Copy {one_line(preset.name, 40)} first?", detail, "Copy", harmless=True):
            await self.copy(self._deck.presets.named(preset.name))

    async def copy(self, preset: Preset | None) -> None:
        read = partial(read_template, self._bridge.engine, preset, self._deck.presets.names)
        screen = CopyPresetScreen(self._bridge, read, keys_line(KeyContext.COPY, self._deck.actions))
        if copied := await self.app.push_screen_wait(screen):
            name, path = copied
            self._deck.presets.select(path)
            self._say(f"Copied {one_line(name, 40)} to {short_path(path)}. You can edit it now.")

    async def delete(self, found: Preset | PresetProblem) -> None:
        from ...core.presets.catalog import next_after
        from ...core.work.deletion import delete_preset

        engine = self._bridge.engine
        name = one_line(found.name, 60)

        async def detail() -> str:
            behind = await self._bridge.call(next_after, found.path, found.name, engine.workspace)
            then = (
                f"The {behind.source} preset with this name replaces it:\n{short_path(behind.path, 66)}\n"
                if behind
                else "No other preset has this name."
            )
            return f"{found.source}: {short_path(found.path, 60)}\n\n{then}\n{self._key('undo')} restores it."

        if not await self._confirmed(f"Delete the preset {name}?", detail, "Delete"):
            return
        await self._bridge.call(delete_preset, engine.project, found.path, found.source, f"the preset {name}")
        await self._deck.undo.look()
        self._say(f"Deleted the preset {name}. {self._key('undo')} restores it.")


def saved_outside(path: str, check: PresetCheck) -> str:
    """Say what became of a file that another program wrote."""
    file = one_line(os.path.basename(path), 60)
    if check.fault is not None:
        return f"{file} is broken: {one_line(check.fault.advice, 300)}"
    said = "\n".join(f"! {one_line(warning, 200)}" for warning in check.warnings[:3])
    return f"{file} was saved\n{said}" if said else f"{file} was saved, no problems"
