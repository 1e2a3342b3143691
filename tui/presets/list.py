"""The presets by name, each with its origin; files that cannot be used are listed with their reason."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip
from textual.timer import Timer
from textual.worker import Worker

from ...core.text.plain import one_line
from ..actions import Action, KeyContext, bindings
from ..messages import PresetHighlighted
from ..text.cells import fit
from ..text.format import notify_failure
from ..widgets.row_list import RowList
from .cells import BADGE_WIDTH, WIDE, fact_lines, note, preset_cells, problem_cells

if TYPE_CHECKING:
    from ...core.doctor import Check
    from ...core.engine import Engine
    from ...core.presets.catalog import Preset, PresetCatalog, PresetProblem

PAUSE = 0.3
"""Seconds that the cursor rests on a preset before a run of it is thought through."""


class PresetList(RowList):
    """Keeps the selection on a preset, by its file, when the files change."""

    BINDINGS = bindings(KeyContext.PRESETS)

    class PresetResolved(Message, bubble=False):
        """What a run of a preset would get here is known."""

        def __init__(self, preset: Preset, warnings: tuple[str, ...]) -> None:
            super().__init__()
            self.preset = preset
            self.warnings = warnings

    class ProgramsLooked(Message, bubble=False):
        """What has to be installed is known."""

        def __init__(self, missing: tuple[Check, ...]) -> None:
            super().__init__()
            self.missing = missing

    def __init__(self, actions: Sequence[Action], engine: Engine) -> None:
        super().__init__(id=KeyContext.PRESETS)
        self._actions = actions
        self._engine = engine
        self._presets: tuple[Preset, ...] = ()
        self._problems: tuple[PresetProblem, ...] = ()
        self._places: tuple[str, ...] = ()
        self._missing: tuple[Check, ...] = ()
        self._has_read = False
        """Whether it is known yet which presets there are."""
        self._wanted: str | None = None
        """A file to be selected as soon as it is there."""
        self._resolved: dict[Preset, tuple[str, ...]] = {}
        """Warnings about runs of the presets that were highlighted since the files were read."""
        self._pause: Timer | None = None

    # --- what is there -------------------------------------------------------------------------------------------

    @property
    def row_count(self) -> int:
        return len(self._presets) + len(self._problems)

    @property
    def preset(self) -> Preset | None:
        """The highlighted preset; None on a broken one."""
        return self._presets[self.cursor] if self.cursor < len(self._presets) else None

    @property
    def problem(self) -> PresetProblem | None:
        """The highlighted broken file."""
        row = self.cursor - len(self._presets)
        return self._problems[row] if 0 <= row < len(self._problems) else None

    @property
    def names(self) -> frozenset[str]:
        """All that are taken, by broken files too."""
        return frozenset(found.name for found in (*self._presets, *self._problems))

    def named(self, name: str) -> Preset | None:
        """Return the preset of that name; None when there is none that can be used."""
        return next((preset for preset in self._presets if preset.name == name), None)

    def show_presets(self, catalog: PresetCatalog) -> None:
        """Take a new reading of the files."""
        self._has_read = True
        path, name = self._path_at(self.cursor), self._name_at(self.cursor)
        self._presets, self._problems, self._places = catalog.presets, catalog.problems, catalog.places
        self._resolved.clear()
        paths = [self._path_at(row) for row in range(self.row_count)]
        names = [self._name_at(row) for row in range(self.row_count)]
        if self._wanted in paths:
            path, self._wanted = self._wanted, None
        last = max(0, self.row_count - 1)
        same_name = names.index(name) if name in names else min(self.cursor, last)
        self.cursor = paths.index(path) if path in paths else same_name
        self.set_height()
        self.show_cursor()
        self.refresh()
        self._tell()
        if not self.row_count:
            self.run_worker(self._look_for_programs, thread=True, exclusive=True, exit_on_error=False)

    def select(self, path: str) -> None:
        """Put the cursor on a preset's file, at once or when it appears."""
        self._wanted = None
        for row in range(self.row_count):
            if self._path_at(row) == path:
                self.move_to(row)
                return
        self._wanted = path

    def cursor_moved(self) -> None:
        self._wanted = None
        self._tell()

    def on_resize(self, _: Resize) -> None:
        self._show_edge()

    def _tell(self) -> None:
        self.post_message(PresetHighlighted(self._name_at(self.cursor)))
        self._show_edge()
        if self._pause:
            self._pause.stop()
        if (preset := self.preset) and preset not in self._resolved:
            self._pause = self.set_timer(PAUSE, partial(self._resolve, preset))

    def _show_edge(self) -> None:
        """Put at the lower edge what there is no room for below the rows."""
        said = bool(self._facts())
        self.border_subtitle = "" if said else Content(one_line(note(self.preset, self.problem), 300))

    def _resolve(self, preset: Preset) -> None:
        self.run_worker(
            partial(self._preview, preset), thread=True, group="preview", exclusive=True, exit_on_error=False
        )

    def _preview(self, preset: Preset) -> None:
        from ...core.launch.preview import run_warnings

        engine = self._engine
        found = run_warnings(preset, engine.workspace)
        self.post_message(self.PresetResolved(preset, found))

    def on_preset_list_preset_resolved(self, message: PresetResolved) -> None:
        self._resolved[message.preset] = message.warnings
        self._show_edge()
        self.refresh()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    # --- while there are none ------------------------------------------------------------------------------------

    def _look_for_programs(self) -> None:
        from ...core.doctor import missing_programs

        self.post_message(self.ProgramsLooked(missing_programs(self._engine.settings)))

    def on_preset_list_programs_looked(self, message: ProgramsLooked) -> None:
        self._missing = message.missing
        self.refresh()

    def empty_lines(self) -> list[str]:
        if not self._has_read:
            return []
        from .first_steps import first_steps

        region = self.scrollable_content_region
        return first_steps(self._actions, self._places, self._missing, width=region.width - 1, height=region.height)

    # --- drawing -------------------------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        facts = self._facts()
        from_end = self.scrollable_content_region.height - y
        if not 0 < from_end <= len(facts):
            return super().render_line(y)
        text, colour = facts[-from_end]
        style = self.cell_style(colour)
        return self.strip([Segment(f" {text}", style)], style)

    def _facts(self) -> list[tuple[str, str]]:
        """What the row of the cursor leaves unsaid, as far as there is room for it below the rows."""
        lines, room = self._fact_lines(), self._room_below
        if len(lines) <= room:
            return lines
        if room < 2:
            return []
        text, colour = lines[room - 1]
        return [*lines[: room - 1], (f"{text.rstrip()} …", colour)]

    def _fact_lines(self) -> list[tuple[str, str]]:
        width = self.scrollable_content_region.width
        if not self.row_count or width < 10:
            return []
        resolved = self._resolved.get(self.preset, ()) if self.preset else ()
        columns = width >= WIDE
        return fact_lines(self.preset, self.problem, width - 3, resolved=resolved, in_columns=columns)

    @property
    def _room_below(self) -> int:
        """Lines below the rows, but for a blank one."""
        return self.scrollable_content_region.height - self.row_count - 1

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        room = width - 1 - BADGE_WIDTH
        longest = max((len(name) for name in self.names), default=0)
        preset = self._presets[row] if row < len(self._presets) else None
        if preset:
            mark, colour = ("!", "row-list--aborted") if preset.warnings else (" ", "")
            cells, source = preset_cells(preset, room, colour, longest=longest), preset.source
        else:
            problem = self._problems[row - len(self._presets)]
            mark, colour = "!", "row-list--failed"
            cells, source = problem_cells(problem, room, longest=longest), problem.source
        return [(mark, colour), *cells, (fit(str(source), BADGE_WIDTH, right=True), "row-list--muted")]

    def _name_at(self, row: int) -> str | None:
        if row < len(self._presets):
            return self._presets[row].name
        row -= len(self._presets)
        return self._problems[row].name if row < len(self._problems) else None

    def _path_at(self, row: int) -> str | None:
        if row < len(self._presets):
            return self._presets[row].path
        row -= len(self._presets)
        return self._problems[row].path if row < len(self._problems) else None
