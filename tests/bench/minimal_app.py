"""A minimal Textual app: one line, or a list of numbered rows; a key moves a number."""

from __future__ import annotations

import sys

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.events import Key
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static


class Line(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("ready 0")

    def on_key(self, event: Key) -> None:
        self.query_one(Static).update(f"ready {event.key}")


class Rows(ScrollView):
    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def on_mount(self) -> None:
        self.virtual_size = Size(80, self._count)

    def render_line(self, y: int) -> Strip:
        row = self.scroll_offset.y + y
        return Strip([Segment(f"row {row}: ready to be read".ljust(self.size.width), self.rich_style)])


class List(App[None]):
    def compose(self) -> ComposeResult:
        yield Rows(int(sys.argv[1]))


if __name__ == "__main__":
    (List if len(sys.argv) > 1 else Line)().run()
