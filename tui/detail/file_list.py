"""The list of a run's files: name, size, age."""

from __future__ import annotations

import time

from ...core.project.diagnosis import ago
from ...core.run.describe import size_text
from ...core.text.plain import one_line
from ..text.cells import fit
from ..widgets.row_list import RowList
from .page import FileRow

SIZE, AGE = 10, 12


class FileList(RowList, can_focus=False):
    """The cursor stays on its file when others come."""

    def __init__(self) -> None:
        super().__init__(id="files")
        self._files: tuple[FileRow, ...] = ()
        self._now = 0.0

    @property
    def file(self) -> FileRow | None:
        """The highlighted file."""
        return self._files[self.cursor] if self.cursor < len(self._files) else None

    def show_files(self, files: tuple[FileRow, ...]) -> None:
        here = self.file
        self._files, self._now = files, time.time()
        self.cursor = next((row for row, file in enumerate(files) if here and file.name == here.name), 0)
        self.set_height()
        self.refresh()

    @property
    def row_count(self) -> int:
        return len(self._files)

    def empty_lines(self) -> list[str]:
        return ["The run has no files."]

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        file = self._files[row]
        name = fit(one_line(file.name, 500), max(8, width - SIZE - AGE - 1))
        size, age = size_text(file.size), f"{ago(self._now - file.modified)} ago"
        return [(name, ""), (fit(size, SIZE, right=True), ""), (fit(age, AGE, right=True), "row-list--muted")]
