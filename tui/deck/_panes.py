"""Which panes are on the screen, their sizes and their focus; and the view of a single run."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.containers import Horizontal, Vertical
from textual.events import MouseDown, MouseMove, MouseUp
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker

from ..keys.command import PANES, KeyContext
from ..terminal.after_close import notify_failure
from ._shape import (
    ONE_STEP_COLUMNS,
    ONE_STEP_ROWS,
    WIDE,
    Room,
    Shape,
    above_height,
    left_width,
    presets_width,
    request_height,
    shape_file,
    visible_panes,
    with_above,
    with_left,
    with_presets,
)

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ..runs.list import RunList
    from ..runs.store import RunStore
    from ..talk.block import RequestBlock


class Border(Enum):
    BESIDE = "beside"
    """Between presets and runs."""
    BELOW = "below"
    """Between these and the transcript below them."""
    RIGHT = "right"
    """Between these and the transcript beside them."""


class Panes(Vertical):
    """Holds the panes: shows, hides, sizes and focuses them; the mouse can drag the borders between them."""

    ALLOW_SELECT = False

    def __init__(self, deck: Screen[Any], panes: Mapping[KeyContext, Widget], *, readonly: bool) -> None:
        super().__init__()
        self._deck = deck
        self._panes = panes
        self.above = Horizontal(id="above")
        """Contains presets and runs."""
        self.left = Vertical(id="left")
        """Contains `above` and the filter line."""
        self.right = Vertical(id="right")
        """Contains the transcript and the lines at its foot; below `left`, or beside it."""
        self.request: RequestBlock | None = None
        """The request below the transcript; it takes the transcript's focus while it is open."""
        self.zoomed: KeyContext | None = None
        """The pane shown full screen."""
        self._back_to: KeyContext | None = None
        """The pane focused when going back leaves the zoom; None: the zoomed one."""
        self.shown: frozenset[KeyContext] = frozenset()
        self._file = shape_file(readonly=readonly)
        self._shape = self._file.read()
        self._empty: frozenset[KeyContext] = frozenset()
        """The lists without any rows."""
        self._laid_out: tuple[Room, frozenset[KeyContext], Shape, int] | None = None
        """State of the last layout; None after a pane was shown separately. Setting styles costs a layout."""
        self._held: Border | None = None
        """The border that is being dragged."""
        self._grip = 0
        """Cells from the mouse to the border."""

    @property
    def key_context(self) -> KeyContext:
        """The pane with the focus, or with the focus in one of its lines."""
        focused = self._deck.focused
        is_at_transcript = focused is not None and self.right in focused.ancestors
        lent = KeyContext.TRANSCRIPT if is_at_transcript else KeyContext.RUNS
        return next((pane for pane, widget in self._panes.items() if widget.has_focus), lent)

    @property
    def _room(self) -> Room:
        return Room(*self._deck.app.size)

    def lay_out(self) -> None:
        """Show the panes that fit; the screen composes after the first call, so that nothing is styled twice."""
        room = self._room
        visible = visible_panes(room, self.key_context, self.zoomed, self._shape, self._empty)
        request = self.request.wanted_height if self.request else 0
        if self._laid_out == (room, visible, self._shape, request):
            return
        self.shown = visible
        self._laid_out = (room, visible, self._shape, request)
        if self.request:
            self.request.styles.max_height = request_height(room)
        for pane, widget in self._panes.items():
            widget.display = pane in visible
        several = len(visible) > 1
        self.left.display = visible != frozenset({KeyContext.TRANSCRIPT})
        self.right.display = KeyContext.TRANSCRIPT in visible
        beside = {KeyContext.PRESETS, KeyContext.RUNS} <= visible
        self._panes[KeyContext.PRESETS].styles.width = self._presets_width if beside else "1fr"
        is_split = several and KeyContext.TRANSCRIPT in visible
        of_three = is_split and room.is_beside
        self.left.styles.width = left_width(self._shape, room) if of_three else "1fr"
        self.left.styles.height = "auto" if is_split and not of_three else "1fr"
        self.above.styles.height = above_height(self._shape, room, request) if is_split and not of_three else "1fr"
        self._deck.set_class(not several, "-zoomed")
        self._deck.set_class(room.is_tiny, "-tiny")
        self._deck.set_class(several and room.width >= WIDE, "-wide")
        self._deck.set_class(of_three, "-beside")

    def fit_content(self) -> None:
        """Lay out the panes for other content, unless a pane is about to get the focus, which does it."""
        if self._laid_out is not None:
            self.lay_out()

    def show_empty(self, empty: frozenset[KeyContext]) -> None:
        """Give the room of these lists, which have no rows, to the other panes."""
        if empty != self._empty:
            self._empty = empty
            self.fit_content()

    def go_to(self, pane: KeyContext) -> None:
        """Show a pane and focus it; a zoom moves along."""
        self.show(pane)
        block = self.request if pane is KeyContext.TRANSCRIPT else None
        (block if block is not None and block.request else self._panes[pane]).focus()

    def show(self, pane: KeyContext) -> None:
        """Show a pane that gets the focus next; a zoom moves along."""
        if self.zoomed is not None:
            self.zoomed = pane
        self._back_to = None
        self._laid_out = None
        self._panes[pane].display = True
        self.left.display = self.right.display = True

    def go_round(self, step: int) -> None:
        self.go_to(PANES[(PANES.index(self.key_context) + step) % len(PANES)])

    def go_back(self) -> None:
        """Leave the zoom, otherwise the pane for the runs."""
        if self.zoomed:
            back_to = self._back_to
            self.zoom(None)
            if back_to is not None:
                self.go_to(back_to)
        else:
            self.go_to(KeyContext.RUNS)

    def zoom(self, pane: KeyContext | None) -> None:
        """Show one pane full screen; None ends it."""
        self.zoomed = pane
        self._back_to = None
        if pane is not None:
            self.go_to(pane)
        self.lay_out()

    def visit(self, pane: KeyContext) -> None:
        """Show a pane full screen; going back returns to the current focus."""
        pane_now = self.key_context
        self.zoom(pane)
        self._back_to = pane_now

    def toggle_zoom(self) -> None:
        self.zoom(None if self.zoomed else self.key_context)

    # --- sizes -------------------------------------------------------------------------------------------------------

    @property
    def _presets_width(self) -> int:
        """Their columns beside the runs."""
        return presets_width(self._shape, self._room, has_transcript=KeyContext.TRANSCRIPT in self.shown)

    def widen_presets(self, steps: int) -> None:
        columns = self._presets_width + steps * ONE_STEP_COLUMNS
        self._reshape(with_presets(self._shape, self._room, columns))

    def lower_transcript(self, steps: int) -> None:
        """Take rows from the transcript, or columns if it is beside the runs."""
        if self._room.is_beside:
            columns = left_width(self._shape, self._room) + steps * ONE_STEP_COLUMNS
            self._reshape(with_left(self._shape, self._room, columns))
            return
        rows = above_height(self._shape, self._room) + steps * ONE_STEP_ROWS
        self._reshape(with_above(self._shape, self._room, rows))

    def reset_layout(self) -> None:
        self._reshape(Shape())

    def _reshape(self, shape: Shape, *, done: bool = True) -> None:
        """Change the layout; if `done`, save it for the next start."""
        if shape != self._shape:
            self._shape = shape
            self.lay_out()
        if done:
            self.run_worker(partial(self._file.keep, lambda: self._shape), exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    # --- mouse -------------------------------------------------------------------------------------------------------

    def border_at(self, x: int, y: int) -> Border | None:
        """Return the border in a cell of the screen."""
        presets, runs, transcript = (self._panes[pane] for pane in PANES)
        above = self.above.region
        if self.left.display and transcript.display:
            if not self._room.is_beside:
                if y in (above.bottom - 1, transcript.region.y):
                    return Border.BELOW
            elif above.y <= y < above.bottom and x in (above.right - 1, transcript.region.x):
                return Border.RIGHT
        if presets.display and runs.display and above.y <= y < above.bottom:
            return Border.BESIDE if x in (presets.region.right - 1, runs.region.x) else None
        return None

    def on_mouse_down(self, event: MouseDown) -> None:
        border = self.border_at(event.screen_x, event.screen_y)
        if border is None or event.button != 1:
            return
        self._held = border
        if border is Border.BESIDE:
            self._grip = self._panes[KeyContext.PRESETS].outer_size.width - event.screen_x
        elif border is Border.RIGHT:
            self._grip = self.left.outer_size.width - event.screen_x
        else:
            self._grip = self.above.outer_size.height - event.screen_y
        self.capture_mouse()
        event.stop()

    def on_mouse_move(self, event: MouseMove) -> None:
        self._drag(event, done=False)

    def on_mouse_up(self, event: MouseUp) -> None:
        self._drag(event, done=True)

    def _drag(self, event: MouseMove | MouseUp, *, done: bool) -> None:
        if self._held is None:
            return
        event.stop()
        if self._held is Border.BESIDE:
            shape = with_presets(self._shape, self._room, event.screen_x + self._grip)
        elif self._held is Border.RIGHT:
            shape = with_left(self._shape, self._room, event.screen_x + self._grip)
        else:
            shape = with_above(self._shape, self._room, event.screen_y + self._grip)
        if done:
            self._held = None
            self.release_mouse()
        self._reshape(shape, done=done)


class SingleRunMode:
    """A single run, such as in its own tmux window: it fills the screen until you go to the deck."""

    def __init__(self, run_id: str | None, run_store: RunStore, runs: RunList, panes: Panes) -> None:
        self._run_id = run_id
        self._run_store = run_store
        self._runs = runs
        self._panes = panes
        self._here = False
        self._gone = False

    @property
    def hides_others(self) -> bool:
        """Whether the run does not exist, so that no other run takes its place, or its actions."""
        return self._run_id is not None and not self._here

    @property
    def run_id(self) -> str | None:
        """The run; None once you have gone to the deck."""
        return self._run_id

    def note(self, back: str) -> str:
        """Return the run's message for the header; `back` is the key that goes to the deck."""
        return f"this run no longer exists · {back} goes to the deck" if self._gone else ""

    def begin(self) -> None:
        if self._run_id is not None:
            self._panes.zoom(KeyContext.TRANSCRIPT)
            self._runs.select(self._run_id)

    def look(self, update: Update) -> None:
        """Check whether the run exists, after an update of the run store."""
        if self._run_id is None:
            return
        here = self._run_id in self._run_store
        self._gone = not here and (self._gone or self._here or update.complete)
        if here and not self._here:
            self._runs.select(self._run_id)
        self._here = here

    def end_when_left(self) -> bool:
        """Return whether you have just gone to the deck."""
        if self._run_id is None or self._panes.zoomed is KeyContext.TRANSCRIPT:
            return False
        self._run_id = None
        self._gone = False
        return True
