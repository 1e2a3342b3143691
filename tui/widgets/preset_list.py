"""The presets by name, each with its origin; files that cannot be used are listed with their reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from ...core.plain import one_line
from ..actions import Place, bindings
from ..messages import PresetHighlighted
from ..present import fit, short_path
from ..wrapping import wrap
from .row_list import RowList

if TYPE_CHECKING:
    from ...core.presets import Preset, PresetCatalog, PresetProblem

BADGE_WIDTH = 8
EMPTY = ("b  copy Explore, which comes with subdeck", "N  run a task without a preset")


class PresetList(RowList):
    """Keeps the selection on a preset, by its name, when the files change."""

    BINDINGS = bindings(Place.PRESETS)

    def __init__(self) -> None:
        super().__init__(id=Place.PRESETS)
        self._presets: tuple[Preset, ...] = ()
        self._problems: tuple[PresetProblem, ...] = ()
        self._places: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self._presets) + len(self._problems)

    @property
    def preset(self) -> Preset | None:
        """The highlighted preset; None on a broken one."""
        return self._presets[self.cursor] if self.cursor < len(self._presets) else None

    def named(self, name: str) -> Preset | None:
        """Answer the preset of that name; None when there is none that can be used."""
        return next((preset for preset in self._presets if preset.name == name), None)

    @property
    def problem(self) -> PresetProblem | None:
        """The highlighted broken file."""
        row = self.cursor - len(self._presets)
        return self._problems[row] if 0 <= row < len(self._problems) else None

    def show_presets(self, catalog: PresetCatalog) -> None:
        """Take a new reading of the files."""
        name = self._name_at(self.cursor)
        self._presets, self._problems, self._places = catalog.presets, catalog.problems, catalog.places
        names = [self._name_at(row) for row in range(self.row_count)]
        self.cursor = names.index(name) if name in names else min(self.cursor, max(0, self.row_count - 1))
        self.set_height()
        self.show_cursor()
        self.refresh()
        self.cursor_moved()

    def cursor_moved(self) -> None:
        self.post_message(PresetHighlighted(self._name_at(self.cursor)))
        self.border_subtitle = Content(one_line(self.note, 200))

    @property
    def note(self) -> str:
        """What is worth knowing about the highlighted row: a reason, a warning, else the description."""
        if problem := self.problem:
            return problem.message if problem.line is None else f"line {problem.line}: {problem.message}"
        if preset := self.preset:
            return preset.warnings[0] if preset.warnings else preset.description
        return ""

    def empty_lines(self) -> list[str]:
        width = max(10, self.scrollable_content_region.width - 1)
        teach = ["No presets yet.", "", *EMPTY, "", "Presets are markdown files in"]
        places = [short_path(place) for place in self._places]
        return [row for line in (*teach, *places) for row in wrap(line, width)]

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        if row < len(self._presets):
            preset = self._presets[row]
            mark, name, source, colour = " ", preset.name, preset.source, ""
            if preset.warnings:
                mark, colour = "!", "row-list--aborted"
        else:
            problem = self._problems[row - len(self._presets)]
            mark, name, source, colour = "!", problem.name, problem.source, "row-list--failed"
        return [
            (mark, colour),
            (fit(one_line(name, 200), width - 1 - BADGE_WIDTH), colour),
            (fit(str(source), BADGE_WIDTH, right=True), "row-list--muted"),
        ]

    def _name_at(self, row: int) -> str | None:
        if row < len(self._presets):
            return self._presets[row].name
        row -= len(self._presets)
        return self._problems[row].path if row < len(self._problems) else None
