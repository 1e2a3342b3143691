"""What holds the panes; the borders between them can be dragged."""

from __future__ import annotations

from enum import Enum

from textual.containers import Vertical
from textual.events import MouseDown, MouseMove, MouseUp
from textual.message import Message

from ..actions import KeyContext

ABOVE = "above"
"""The id of what holds presets and runs."""


class Border(Enum):
    BESIDE = "beside"
    """Between presets and runs."""
    BELOW = "below"
    """Between these and the transcript."""


class Workspace(Vertical):
    """Says where a border was dragged to; the keys stay where they are."""

    ALLOW_SELECT = False

    class Dragged(Message):
        def __init__(self, border: Border, cells: int, done: bool) -> None:
            super().__init__()
            self.border = border
            self.cells = cells
            """For what is left of the border or above it."""
            self.done = done
            """The mouse was let go."""

    def __init__(self) -> None:
        super().__init__(id="workspace")
        self._held: Border | None = None
        self._grip = 0
        """Cells from the mouse to the size of what it drags."""

    def border_at(self, x: int, y: int) -> Border | None:
        """Return the border that runs through a cell of the screen."""
        above = self.query_one(f"#{ABOVE}")
        presets, runs = self.query_one(f"#{KeyContext.PRESETS}"), self.query_one(f"#{KeyContext.RUNS}")
        transcript = self.query_one(f"#{KeyContext.TRANSCRIPT}")
        if above.display and transcript.display and y in (above.region.bottom - 1, transcript.region.y):
            return Border.BELOW
        if presets.display and runs.display and above.region.y <= y < above.region.bottom:
            return Border.BESIDE if x in (presets.region.right - 1, runs.region.x) else None
        return None

    def on_mouse_down(self, event: MouseDown) -> None:
        border = self.border_at(event.screen_x, event.screen_y)
        if border is None or event.button != 1:
            return
        self._held = border
        self._grip = self._extent(border) - self._position(event, border)
        self.capture_mouse()
        event.stop()

    def on_mouse_move(self, event: MouseMove) -> None:
        if self._held is not None:
            event.stop()
            self._tell(event, self._held, done=False)

    def on_mouse_up(self, event: MouseUp) -> None:
        if self._held is not None:
            event.stop()
            held, self._held = self._held, None
            self.release_mouse()
            self._tell(event, held, done=True)

    def _tell(self, event: MouseMove | MouseUp, border: Border, *, done: bool) -> None:
        self.post_message(self.Dragged(border, self._position(event, border) + self._grip, done))

    def _position(self, event: MouseDown | MouseMove | MouseUp, border: Border) -> int:
        return event.screen_x if border is Border.BESIDE else event.screen_y

    def _extent(self, border: Border) -> int:
        if border is Border.BESIDE:
            return self.query_one(f"#{KeyContext.PRESETS}").outer_size.width
        return self.query_one(f"#{ABOVE}").outer_size.height
