"""The list that shows the overview: facts, and sections that fold, with a cursor."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, ClassVar

from textual.strip import Strip

from ..widgets.line_view import RowList
from .page import INDENT, Block, Section

_COMPONENTS = {"muted": "row-list--muted", "strong": "row-list--strong", "error": "row-list--failed"}
"""By style of a page's rows."""


class Overview(RowList, can_focus=False):
    """Keeps the cursor on its row when newer blocks come; at the end of a growing file it follows the end."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"row-list--strong"}
    DEFAULT_CSS = "Overview > .row-list--strong { text-style: bold; }"

    def __init__(self) -> None:
        super().__init__(id="overview")
        self._blocks: Sequence[Block] = ()
        self._starts: Sequence[int] = ()
        """The first row of each block."""

    @property
    def block(self) -> Block | None:
        """The block under the cursor."""
        return self._block_at(self.cursor)[0] if self._blocks else None

    def _block_at(self, row: int) -> tuple[Block, int]:
        """Return the block of a row, and the row's number in it."""
        number = bisect_right(self._starts, row) - 1
        return self._blocks[number], row - self._starts[number]

    def show_blocks(self, blocks: Sequence[Block]) -> None:
        here, offset = self._block_at(self.cursor) if self._blocks else (None, 0)
        y = self.cursor - self.scroll_offset.y
        self._blocks = blocks
        self._starts = [0, *accumulate(len(block.rows) for block in blocks)][:-1]
        self.cursor = self._row_of(here, offset) if here else 0
        self.set_height()
        self.scroll_to(y=self.cursor - y)
        self.refresh()

    def _row_of(self, here: Block, offset: int) -> int:
        """Return the row with this number in a block; without that block, the heading of its section."""
        rows = {
            block.key: (start, len(block.rows) - 1) for block, start in zip(self._blocks, self._starts, strict=True)
        }
        start, last = rows.get(here.key) or rows.get(here.section or "", (0, 0))
        at_end = here.follows and offset == len(here.rows) - 1
        return start + (last if at_end else min(offset, last))

    def action_move(self, where: str) -> None:
        """Move the cursor; a page scrolls, as in a text."""
        if where in ("page_down", "page_up"):
            self.scroll_to(y=self.target_row(where, self.scroll_offset.y, self.max_scroll_y))
        super().action_move(where)

    def scroll_to(self, x: float | None = None, y: float | None = None, **_: Any) -> None:
        """Scroll without animation, even before there is a scrollbar: new blocks are shown before they are laid out."""
        super().scroll_to(x, y, animate=False, force=True)

    def go_to(self, section: Section | None, *, at_end: bool = False) -> None:
        """Move the cursor to the heading of a section, or to the top for None; with `at_end`, to the end of a section
        that follows a growing file.
        """
        for block, start in zip(self._blocks, self._starts, strict=True):
            if block.key == section:
                self.move_to(start)
                self.scroll_to(y=start)
            elif at_end and block.section is section and block.follows:
                self.move_to(start + len(block.rows) - 1)
        if section is None:
            self.move_to(0)

    def go_back(self) -> None:
        """Go to the heading of the section under the cursor; from there, and from elsewhere, to the top."""
        block = self.block
        self.go_to(block.section if block and block.is_unfolded is None else None)

    def empty_lines(self) -> list[str]:
        return ["reading…"]

    @property
    def row_count(self) -> int:
        return self._starts[-1] + len(self._blocks[-1].rows) if self._blocks else 0

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        block, offset = self._block_at(row)
        shown = block.rows[offset]
        if isinstance(shown, Strip):
            return [(shown.text, "")]
        is_inside = block.section is not None and block.is_unfolded is None
        parts = [(text, _COMPONENTS.get(style, "")) for text, style in shown]
        return [(" " * INDENT, ""), *parts] if is_inside else parts
