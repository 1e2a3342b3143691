"""The list of presets by name, including unusable files with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from rich.segment import Segment
from textual import work
from textual.content import Content
from textual.events import Resize
from textual.strip import Strip
from textual.timer import Timer
from textual.worker import Worker

from ...core.text.plain import one_line
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings
from ..terminal.after_close import notify_failure
from ..terminal.textual_internals import set_timer
from ..widgets.line_view import RowList

if TYPE_CHECKING:
    from ...core.doctor import Check
    from ...core.presets.catalog import Preset, PresetCatalog, PresetProblem
    from ..engine_api import EngineApi

PREVIEW_AFTER = 0.3
"""Seconds that the cursor stays on a preset before its run warnings are computed."""


class PresetList(RowList):
    """Keeps the cursor on a preset, by its file, when the files change."""

    BINDINGS = bindings(KeyContext.PRESETS)

    def __init__(self, actions: Sequence[Action], engine: EngineApi) -> None:
        super().__init__(id=KeyContext.PRESETS)
        self._actions = actions
        self._engine = engine
        self._catalog: PresetCatalog | None = None
        """None until the presets are read."""
        self.known = asyncio.Event()
        """Set once reading the presets has succeeded or failed."""
        self._missing: tuple[Check, ...] = ()
        """Programs that have to be installed; checked only while there are no presets."""
        self._path_to_select: str | None = None
        """A file to select as soon as it appears."""
        self._warnings: dict[Preset, tuple[str, ...]] = {}
        """Run warnings of the presets highlighted since the files were read."""
        self._preview_timer: Timer | None = None
        self._shown_facts: list[tuple[str, str]] = []
        """The facts below the rows, of the frame being drawn."""

    # --- content -------------------------------------------------------------------------------------------------

    @property
    def row_count(self) -> int:
        return len(self._all)

    @property
    def is_read(self) -> bool:
        return self._catalog is not None

    @property
    def usable(self) -> tuple[Preset, ...]:
        """The presets that can be launched."""
        return self._catalog.presets if self._catalog else ()

    @property
    def _all(self) -> tuple[Preset | PresetProblem, ...]:
        return (*self._catalog.presets, *self._catalog.problems) if self._catalog else ()

    @property
    def highlighted(self) -> Preset | PresetProblem | None:
        return self._all[self.cursor] if self.cursor < self.row_count else None

    @property
    def preset(self) -> Preset | None:
        """The highlighted preset; None on a broken file."""
        return self.usable[self.cursor] if self.cursor < len(self.usable) else None

    @property
    def problem(self) -> PresetProblem | None:
        """The highlighted file if it is broken."""
        return None if self.preset else cast("PresetProblem | None", self.highlighted)

    @property
    def names(self) -> frozenset[str]:
        """All names in use, including those of broken files."""
        return frozenset(entry.name for entry in self._all)

    def named(self, name: str) -> Preset | None:
        return next((preset for preset in self.usable if preset.name == name), None)

    def show_presets(self, catalog: PresetCatalog) -> None:
        before, self._catalog = self.highlighted, catalog
        self.known.set()
        self._warnings.clear()
        paths, names = [entry.path for entry in self._all], [entry.name for entry in self._all]
        if self._path_to_select in paths:
            self.cursor, self._path_to_select = paths.index(self._path_to_select), None
        elif before and before.path in paths:
            self.cursor = paths.index(before.path)
        elif before and before.name in names:
            self.cursor = names.index(before.name)
        else:
            self.cursor = max(0, min(self.cursor, self.row_count - 1))
        self.set_height()
        self.show_cursor()
        self.refresh()
        self._highlight()
        if not self.row_count:
            self._look_for_programs()

    def select(self, path: str) -> None:
        """Move the cursor to a preset's file, at once or when it appears."""
        paths = [entry.path for entry in self._all]
        if path in paths:
            self._path_to_select = None
            self.move_to(paths.index(path))
        else:
            self._path_to_select = path

    def cursor_moved(self) -> None:
        self._path_to_select = None
        self._highlight()

    def on_resize(self, _: Resize) -> None:
        self._show_edge()

    def _highlight(self) -> None:
        self.post_message(self.Highlighted())
        self._show_edge()
        if self._preview_timer:
            self._preview_timer.stop()
        if (preset := self.preset) and preset not in self._warnings:
            self._preview_timer = set_timer(self, PREVIEW_AFTER, partial(self._preview, preset))

    def _show_edge(self) -> None:
        """Show the summary at the lower edge if the facts do not fit below the rows."""
        self.border_subtitle = ""
        if (entry := self.highlighted) and not self._facts():
            from ._rows import summary

            self.border_subtitle = Content(one_line(summary(entry), 300))

    # --- beside the event loop -----------------------------------------------------------------------------------

    @work(group="preview", exclusive=True, exit_on_error=False)
    async def _preview(self, preset: Preset) -> None:
        self._warnings[preset] = await asyncio.to_thread(_run_warnings, self._engine, preset)
        self._show_edge()
        self.refresh()

    @work(group="programs", exclusive=True, exit_on_error=False)
    async def _look_for_programs(self) -> None:
        self._missing = await asyncio.to_thread(_missing_programs, self._engine)
        self.refresh()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    # --- drawing -------------------------------------------------------------------------------------------------

    def empty_lines(self) -> list[str]:
        if self._catalog is None:
            return []
        from ._rows import first_steps  # after the first paint, for which no preset is read yet

        region = self.scrollable_content_region
        return first_steps(self._actions, self._catalog, self._missing, width=region.width - 1, height=region.height)

    def prepare(self) -> None:
        super().prepare()
        self._shown_facts = self._facts()

    def render_line(self, y: int) -> Strip:
        facts = self._shown_facts
        from_end = self.scrollable_content_region.height - y
        if not 0 < from_end <= len(facts):
            return super().render_line(y)
        text, colour = facts[-from_end]
        style = self.cell_style(colour)
        return self.strip([Segment(f" {text}", style)], style)

    def _facts(self) -> list[tuple[str, str]]:
        """Return the facts omitted from the highlighted row, as many as fit below the rows."""
        entry, region = self.highlighted, self.scrollable_content_region
        if entry is None or region.width < 10:
            return []
        from ._rows import fact_lines  # with the modules that read presets, not needed by the first paint

        lines = fact_lines(entry, region.width, self._warnings.get(self.preset, ()) if self.preset else ())
        room = region.height - self.row_count - 1
        if len(lines) <= room:
            return lines
        if room < 2:
            return []
        text, colour = lines[room - 1]
        return [*lines[: room - 1], (f"{text.rstrip()} …", colour)]

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        from ._rows import row_cells

        return row_cells(self._all[row], width, max(len(entry.name) for entry in self._all))


def _run_warnings(engine: EngineApi, preset: Preset) -> tuple[str, ...]:
    from ...core.launch.preview import run_warnings

    return run_warnings(preset, engine.workspace)


def _missing_programs(engine: EngineApi) -> tuple[Check, ...]:
    from ...core.doctor import missing_programs

    return missing_programs(engine.settings)
