"""The screen that shows a few runs side by side, live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from ...core.errors import SubdeckError
from ...core.run.comparison import Side
from ...core.system.log import log_fault
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, keys_line
from ..terminal.after_close import is_open
from ..terminal.textual_internals import LeanScreen
from ._columns import lines, shown_columns, title_of

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ...core.run.snapshot import RunSnapshot
    from ..feed.bridge import Bridge

LOOK_S = 5.0
"""Between two reads of the running runs' changes."""


class CompareScreen(LeanScreen):
    """Shows the runs until it is closed; the deck below it sends the updates."""

    BINDINGS = bindings(KeyContext.COMPARE)
    CSS_PATH = "compare.tcss"
    AUTO_FOCUS = ""

    def __init__(
        self, bridge: Bridge, runs: Sequence[RunSnapshot], actions: Sequence[Action], on_act: Callable[[str], None]
    ) -> None:
        """`on_act` does the actions that need the deck."""
        super().__init__()
        self._bridge = bridge
        self._sides = [Side(run=run) for run in runs]
        self._actions = actions
        self._on_act = on_act
        self.current = 0
        """Number of the column that the keys apply to."""
        self._gone: set[str] = set()
        self._unread = {run.run_id for run in runs}
        """Runs whose changes and answer are still to be read."""
        self._is_reading = False

    def compose(self) -> ComposeResult:
        yield Static(id="title")
        with VerticalScroll(can_focus=False):
            yield Static(id="columns")
        yield Static(Content(f" {keys_line(KeyContext.COMPARE, self._actions)}"), id="keys")

    def on_mount(self) -> None:
        self._draw()
        self._read_soon()
        self.set_interval(1.0, self._tick)
        self.set_interval(LOOK_S, self._look_again)

    @property
    def runs(self) -> tuple[RunSnapshot, ...]:
        return tuple(side.run for side in self._sides)

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for run in self.runs)

    @property
    def run(self) -> RunSnapshot:
        """The run in the current column."""
        return self._sides[self.current].run

    # --- updates from the deck -----------------------------------------------------------------------------------

    def runs_changed(self, update: Update) -> None:
        run_ids = self.run_ids
        self._gone.update(set(run_ids).intersection(update.removed))
        for run in update.runs:
            if run.run_id in run_ids:
                self._gone.discard(run.run_id)
                number = run_ids.index(run.run_id)
                if run.has_ended and not self._sides[number].run.has_ended:
                    self._unread.add(run.run_id)
                self._sides[number] = _with_run(self._sides[number], run)
        if self.is_mounted:
            self._draw()
            self._read_soon()

    # --- reading -------------------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        self._unread.update(run.run_id for run in self.runs if not run.has_ended)
        self._read_soon()

    def _read_soon(self) -> None:
        if self._unread and not self._is_reading:
            self._is_reading = True
            self._bridge.spawn(self._read)

    async def _read(self) -> None:
        """Read the changes and answer of each run, one after the other."""
        try:
            while self._unread and is_open(self):
                run_id = self._unread.pop()
                run = self.runs[self.run_ids.index(run_id)]
                try:
                    side = await self._bridge.call(self._bridge.engine.work.side, run)
                except (SubdeckError, OSError) as error:
                    log_fault("reading a run that is compared", error)
                    continue
                number = self.run_ids.index(run_id)
                self._sides[number] = _with_run(side, self._sides[number].run)
                if is_open(self):
                    self._draw()
        finally:
            self._is_reading = False

    # --- drawing -------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if not all(run.has_ended for run in self.runs):
            self._draw()

    def _draw(self) -> None:
        width = max(20, self.size.width - 3)  # without the padding and a scrollbar
        shown = shown_columns(len(self._sides), self.current, width)
        more = f"   {shown.start + 1}–{shown.stop} of {len(self._sides)}" if len(shown) < len(self._sides) else ""
        gone = [run.meta.short_id for run in self.runs if run.run_id in self._gone]
        note = f"   {', '.join(gone)} {'was' if len(gone) == 1 else 'were'} deleted" if gone else ""
        room = width - len(more) - len(note)
        title = Content(f" {title_of(self._sides)}").truncate(max(10, room), ellipsis=True)
        self.query_one("#title", Static).update(Content.assemble(title, (f"{more}{note}", "$text-muted")))
        drawn = lines(self._sides, self.current, width, datetime.now(UTC))
        self.query_one("#columns", Static).update(Content("\n").join(drawn))

    def on_resize(self, _: Resize) -> None:
        if self.is_mounted:
            self._draw()

    # --- keys ----------------------------------------------------------------------------------------------------

    def action_go(self, step: int) -> None:
        """Go to the next column or the previous one, wrapping around."""
        self.current = (self.current + step) % len(self._sides)
        self._draw()

    def action_choose(self, number: int) -> None:
        """Go to a column by its number."""
        if number <= len(self._sides):
            self.current = number - 1
            self._draw()

    def action_move(self, where: str) -> None:
        scroll = self.query_one(VerticalScroll)
        page = max(1, scroll.size.height - 1)
        end = scroll.virtual_size.height
        steps = {"down": 1, "up": -1, "page_down": page, "page_up": -page, "first": -end, "last": end}
        scroll.scroll_relative(y=steps[where], animate=False)

    def action_ask_deck(self, what: str) -> None:
        """Pass an action on the current run, or on all of them, to the deck."""
        if self.run.run_id in self._gone and what in ("open", "difference", "choose"):
            self.app.notify("This run was deleted.", timeout=3)
            return
        self._on_act(what)

    def action_cancel(self) -> None:
        self._on_act("close")


def _with_run(side: Side, run: RunSnapshot) -> Side:
    """Replace the snapshot of a run by a newer one."""
    is_read = side.run.has_ended and side.changes is not None  # it may show that the worktree was edited since
    return Side(run=run, changes=side.changes if is_read else run.changes or side.changes, answer=side.answer)
