"""The commands on presets, and the keys of their dialogs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...core.run.model import PresetSource
from ...core.text.plain import one_line
from ..commands import Commands
from ..keys.command import DECK, PRESETS, Action, ActionContext, KeyContext, at, command, unbound
from ..text.cells import fit, wrap
from ..text.format import short_path

if TYPE_CHECKING:
    from ...core.launch.preview import PresetCheck
    from ...core.presets.catalog import Preset, PresetProblem
    from .draft import Draft

EDIT, COPY = KeyContext.EDIT, KeyContext.COPY
DETAIL_WIDTH, DETAIL_ROWS = 72, 16
"""Cells of the text in a question."""


def needs_preset_file(context: ActionContext) -> str:
    return "" if context.preset or context.problem else "No preset is highlighted. {create_preset} creates one."


def needs_own_preset(context: ActionContext) -> str:
    if context.preset and context.preset.source is PresetSource.BUNDLED:
        return "This preset is part of subdeck. To hide it, set bundled_presets: false."
    return needs_preset_file(context)


def needs_copyable(context: ActionContext) -> str:
    """Allow it without a highlighted preset: a bundled preset is copied then."""
    return "This preset file is broken. Fix it first ({edit_preset})." if context.problem else ""


def _first_rows(line: str, most: int) -> list[str]:
    """Return the first rows of a line; a cut is marked."""
    rows = wrap(line, DETAIL_WIDTH)
    return rows if len(rows) <= most else [*rows[: most - 1], fit(" ".join(rows[most - 1 :]), DETAIL_WIDTH)]


class PresetCommands(Commands):
    """Create, edit, copy and delete presets; each command ends with the cursor on the preset."""

    opens = ("._copy", ".draft", "._editor")

    @command("presets", at(DECK, "1"), "presets", footer=1)
    def go_to_presets(self) -> None:
        """Go to the presets."""
        self._deck.panes.go_to(PRESETS)

    @command("init_presets", unbound(PRESETS), "starter presets", changes=True, writes=True)
    async def write_starters(self) -> None:
        """Create four starter presets in this project (explore, implement, review, fix tests). Asks first."""
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

    @command("create_preset", unbound(PRESETS), "create preset", footer=6, changes=True, writes=True)
    async def create(self) -> None:
        """Create a preset for this project or for all your projects."""
        from .draft import new_draft

        await self._open(new_draft)

    @command("edit_preset", at(PRESETS, "e"), "edit", needs=needs_preset_file, footer=4, changes=True, writes=True)
    async def edit(self, preset: Preset | PresetProblem) -> None:
        """Edit the highlighted preset's file. Works for broken files."""
        from .draft import read_draft

        if preset.source is PresetSource.BUNDLED:
            await self._copy_instead(preset)
        else:
            await self._open(partial(read_draft, preset))

    async def _open(self, read: Callable[[], Draft]) -> None:
        from ._editor import PresetEditorScreen

        screen = PresetEditorScreen(self._bridge, read, self._keys_line(EDIT))
        if path := await self.app.push_screen_wait(screen):
            self._deck.presets.select(path)
            self._say(f"Saved {short_path(path, 60)}")

    @command(
        "edit_preset_outside", unbound(PRESETS), "open in editor", "", needs_preset_file, changes=True, writes=True
    )
    async def edit_outside(self, preset: Preset | PresetProblem) -> None:
        """Open the highlighted preset's file in your editor ($EDITOR)."""
        from ...core.presets.text import GONE, content_now
        from ..terminal.handover import edit_file
        from .draft import check, read_draft

        if preset.source is PresetSource.BUNDLED:
            await self._copy_instead(preset)
            return
        before = await self._bridge.call(read_draft, preset)
        if problem := edit_file(self.app, preset.path):
            self._say(problem, error=True)
            return
        content = await self._bridge.call(content_now, preset.path)
        if content == before.own.content:
            return
        if content == GONE:
            self._say(f"{short_path(preset.path, 60)} no longer exists", error=True)
            return
        checked = await self._bridge.call(check, self._bridge.engine, before, "", content)
        self._say(saved_outside(preset.path, checked), error=checked.preset is None)

    async def _copy_instead(self, preset: Preset | PresetProblem) -> None:
        detail = "Bundled presets cannot be changed. Copy it and edit the copy, which then replaces it."
        if await self._confirmed(f"Copy {one_line(preset.name, 40)} first?", detail, "Copy", harmless=True):
            await self._copy_preset(self._deck.presets.named(preset.name))

    @command("copy_preset", unbound(PRESETS), "copy preset", needs=needs_copyable, footer=5, changes=True, writes=True)
    async def copy(self) -> None:
        """Copy a preset to a new name. A bundled preset is copied to this project or to all your projects."""
        await self._copy_preset(self._deck.presets.preset)

    async def _copy_preset(self, preset: Preset | None) -> None:
        from ._copy import CopyPresetScreen, read_template

        read = partial(read_template, self._bridge.engine, preset, self._deck.presets.names)
        screen = CopyPresetScreen(self._bridge, read, self._keys_line(COPY))
        if copied := await self.app.push_screen_wait(screen):
            name, path = copied
            self._deck.presets.select(path)
            self._say(f"Copied {one_line(name, 40)} to {short_path(path)}. You can edit it now.")

    @command("delete_preset", at(PRESETS, "d"), "delete", needs=needs_own_preset, changes=True, guarded=True)
    async def delete(self, preset: Preset | PresetProblem) -> None:
        """Delete the highlighted preset's file. Asks first; undo restores it."""
        from ...core.presets.catalog import next_after
        from ...core.work.deletion import delete_preset

        engine = self._bridge.engine
        name = one_line(preset.name, 60)

        async def detail() -> str:
            behind = await self._bridge.call(next_after, preset.path, preset.name, engine.workspace)
            then = (
                f"The {behind.source} preset with this name replaces it:\n{short_path(behind.path, 66)}\n"
                if behind
                else "No other preset has this name."
            )
            return f"{preset.source}: {short_path(preset.path, 60)}\n\n{then}\n{self._key('undo')} restores it."

        if not await self._confirmed(f"Delete the preset {name}?", detail, "Delete"):
            return
        await self._bridge.call(delete_preset, engine.project, preset.path, preset.source, f"the preset {name}")
        await self._deck.undo.look()
        self._say(f"Deleted the preset {name}. {self._key('undo')} restores it.")

    in_dialogs = (
        Action("save_preset", at(EDIT, "ctrl+s"), "save", "Save the preset if it has no errors.", do="screen.start",
               footer=1, changes=True),
        Action("edit_outside", at(EDIT, "ctrl+e"), "open in editor", "Continue in your editor ($EDITOR).",
               do="screen.edit_outside", footer=3),
        Action("write_copy", at(COPY, "ctrl+s"), "copy", "Save the copy.", do="screen.start", footer=1, changes=True),
    )  # fmt: skip


def saved_outside(path: str, check: PresetCheck) -> str:
    """Return the state of a file that another program wrote."""
    file = one_line(os.path.basename(path), 60)
    if check.fault is not None:
        return f"{file} is broken: {one_line(check.fault.advice, 300)}"
    warnings = "\n".join(f"! {one_line(warning, 200)}" for warning in check.warnings[:3])
    return f"{file} was saved\n{warnings}" if warnings else f"{file} was saved, no problems"
