"""The screen of the grid: its runs, their layout, and its keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from ...core.run.describe import doing, doing_silently, elapsed, short_cost, state
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ...core.text.visible import recounted
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, keys_line
from ..terminal.textual_internals import LeanScreen, set_timer
from ..text.cells import cells, fit
from ..transcript.pane import EDGES, Transcript

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ..feed.messages import TranscriptRead

MOST = 6
"""Maximum number of runs in the grid."""
TOGETHER_S = 0.015
"""Seconds for collecting the changes of one frame."""
BESIDE = 38
"""Minimum columns of a tile with others beside it."""


def columns_of(tiles: int, width: int) -> int:
    """Return the number of columns for these tiles on a screen of this width."""
    columns = tiles if tiles <= 3 else (tiles + 1) // 2
    return max(1, min(columns, width // BESIDE))


class TilesScreen(LeanScreen):
    """Shows the runs until it is closed; the deck below it sends the updates."""

    BINDINGS = bindings(KeyContext.TILES)
    CSS_PATH = "tiles.tcss"
    AUTO_FOCUS = "Tile"

    def __init__(
        self,
        runs: Sequence[tuple[str, RunSnapshot | None]],
        actions: Sequence[Action],
        on_act: Callable[[str, str], None],
    ) -> None:
        """Show runs by id, even if not yet known; `on_act` does the actions that need the deck, with the run's id."""
        super().__init__()
        self.tiles = [Tile(run_id, actions) for run_id, _ in runs]
        self._initial_runs = dict(runs)
        self._actions = actions
        self._on_act = on_act
        self._zoomed = False
        self._changed: dict[str, RunSnapshot] = {}
        self._gone: set[str] = set()
        self._read: list[TranscriptRead] = []
        """Pieces read since the last frame."""
        self._is_due = False
        """Whether the next frame is scheduled."""

    def compose(self) -> ComposeResult:
        with Container(id="tiles") as container:
            container.can_focus = False
            yield from self.tiles
        yield TilesBar(Content(f" {keys_line(KeyContext.TILES, self._actions)}"))

    def on_mount(self) -> None:
        for tile in self.tiles:
            tile.show(self._initial_runs.get(tile.wanted_id))
        self._lay_out()
        self._on_act("read", "")  # not earlier: pieces would be lost
        self.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        for tile in self.tiles:
            if tile.display:
                tile.tick()

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(tile.wanted_id for tile in self.tiles)

    @property
    def visible_ids(self) -> tuple[str, ...]:
        """Without the tiles that a zoom hides."""
        return tuple(tile.wanted_id for tile in self.tiles if tile.display)

    @property
    def tile(self) -> Tile:
        """The focused tile."""
        return next((tile for tile in self.tiles if tile.has_focus), self.tiles[0])

    # --- updates from the deck -----------------------------------------------------------------------------------

    def runs_changed(self, update: Update) -> None:
        self._changed.update((run.run_id, run) for run in update.runs if run.run_id in self.run_ids)
        self._gone.update(run_id for run_id in update.removed if run_id in self.run_ids)
        self._show_soon()

    def take(self, message: TranscriptRead) -> None:
        """Take a piece of a run's transcript."""
        self._read.append(message)
        self._show_soon()

    def _show_soon(self) -> None:
        """Draw all changes of one frame at once: drawing one tile costs as much as drawing all."""
        if not self._is_due and (self._changed or self._gone or self._read):
            self._is_due = True
            set_timer(self, TOGETHER_S, self._show)

    def _show(self) -> None:
        changed, gone, messages = self._changed, self._gone, self._read
        self._changed, self._gone, self._read, self._is_due = {}, set(), [], False
        has_more = False
        for tile in self.tiles:
            for message in messages:
                if message.reader.run_id == tile.wanted_id:
                    tile.take(message.piece)
                    has_more |= message.piece.more
            if tile.wanted_id in gone:
                tile.is_gone = True
                tile.show_edges()
            if run := changed.get(tile.wanted_id):
                has_more |= tile.run_changed(run) and run.has_ended
        if has_more:
            self._on_act("read on", "")

    # --- layout --------------------------------------------------------------------------------------------------

    def on_resize(self, _: Resize) -> None:
        if self.is_mounted:
            self._lay_out()

    def _lay_out(self) -> None:
        focused = self.tile
        for tile in self.tiles:
            tile.display = not self._zoomed or tile is focused
        container = self.query_one("#tiles")
        count = 1 if self._zoomed else len(self.tiles)
        columns = columns_of(count, self.size.width)
        container.styles.grid_size_columns = columns
        container.styles.grid_size_rows = -(-count // columns)

    # --- keys ----------------------------------------------------------------------------------------------------

    def action_go(self, step: int) -> None:
        """Go to the next tile or the previous one, wrapping around."""
        index = (self.tiles.index(self.tile) + step) % len(self.tiles)
        self.action_choose(index + 1)

    def action_choose(self, number: int) -> None:
        """Go to a tile by its number."""
        if number > len(self.tiles):
            return
        tile = self.tiles[number - 1]
        tile.display = True
        tile.focus()
        if self._zoomed:
            self.call_after_refresh(self._lay_out)

    def action_zoom(self) -> None:
        self._zoomed = not self._zoomed
        self._lay_out()

    def action_move(self, where: str) -> None:
        self.tile.action_move(where)

    def action_follow(self) -> None:
        self.tile.follow(not self.tile.following)

    def action_open_entry(self) -> None:
        self.tile.toggle_at_cursor()

    def action_ask_deck(self, what: str) -> None:
        """Pass an action on the tile's run to the deck."""
        self._on_act(what, self.tile.wanted_id)

    def action_cancel(self) -> None:
        """Leave the zoom, then the grid."""
        if self._zoomed:
            self.action_zoom()
        else:
            self.action_ask_deck("close")


# --- a tile ----------------------------------------------------------------------------------------------------------

LEAST = 12
"""Cells of a run's activity below which its cost is omitted."""


class Tile(Transcript, inherit_bindings=False):
    """Shows the run and its state above, its activity, cost and duration below."""

    def __init__(self, run_id: str, actions: Sequence[Action]) -> None:
        super().__init__(actions, name=f"tile-{run_id}")
        self.wanted_id = run_id
        self.is_gone = False
        """Whether the run was deleted."""

    def tick(self) -> None:
        """Update the duration."""
        if self.shown_run is not None and not self.shown_run.has_ended:
            self.show_edges()

    def show_edges(self) -> None:
        run, room = self.shown_run, self.size.width - EDGES
        if run is None or self.is_gone or room <= 0:
            self.border_title = Content(f"{self.wanted_id[-6:]} {'was deleted' if self.is_gone else ''}".strip())
            self.border_subtitle = ""
            return
        word = state(run, silent=run.silence(monotonic()) is not None)
        word = word if room > LEAST * 4 else word[0]
        self.border_title = Content(f"{word} {one_line(run.meta.title, 40)} ▸ {one_line(run.meta.task, 300)}")
        self.border_subtitle = Content(foot(run, "" if self.following else f"{self.unread} new", room))

    def empty_line(self) -> str:
        return "" if self.shown_run is None else super().empty_line()


def foot(run: RunSnapshot, news: str, room: int) -> str:
    """Return a run's activity or result, its cost and its duration in `room` cells."""
    figures = [part for part in (news, short_cost(run.usage.cost), elapsed(run, datetime.now(UTC))) if part]
    while len(figures) > 1 and cells(" · ".join(figures)) > room - LEAST:
        del figures[0]
    figures_text = " · ".join(figures)
    activity_room = room - cells(figures_text) - 3
    silence = run.silence(monotonic())
    does = doing(run, 200) if silence is None else doing_silently(run, silence, 200)
    does = recounted(does, activity_room, cells) if run.is_waiting else does
    now = fit(does, activity_room).rstrip() if activity_room >= LEAST // 2 else ""
    return " · ".join(filter(None, (now, figures_text)))


class TilesBar(Static):
    """The keys, at the foot of the screen."""

    DEFAULT_CSS = "TilesBar { height: 1; color: $text-muted; }"
