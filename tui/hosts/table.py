"""The table of hosts; the cursor stays on its host when others come or go."""

from __future__ import annotations

from collections.abc import Sequence

from ..widgets.line_view import RowList
from .rows import Shown, cells, heading, layout


class HostTable(RowList, can_focus=True, inherit_bindings=False):
    def __init__(self) -> None:
        super().__init__(id="hosts")
        self._shown: tuple[Shown, ...] = ()
        self.empty: Sequence[str] = ()
        """What is said while there are none."""

    @property
    def shown(self) -> Shown | None:
        """The host of the cursor."""
        return self._shown[self.cursor] if self.cursor < len(self._shown) else None

    def show_hosts(self, shown: Sequence[Shown], empty: Sequence[str]) -> None:
        here = self.shown
        self._shown, self.empty = tuple(shown), empty
        known = (row for row, one in enumerate(self._shown) if here and one.host.name == here.host.name)
        self.cursor = next(known, min(self.cursor, max(0, len(self._shown) - 1)))
        self.set_height()
        self.show_cursor()
        self.refresh()

    @property
    def row_count(self) -> int:
        return len(self._shown)

    @property
    def wants_head(self) -> bool:
        return bool(self._shown)

    def head_line(self, width: int) -> str:
        return heading(layout(self._shown, width))

    def empty_lines(self) -> list[str]:
        return list(self.empty)

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        return cells(self._shown[row], layout(self._shown, width))

    def cursor_moved(self) -> None:
        self.post_message(self.Highlighted())
