"""The deck: presets, runs and the transcript of the highlighted run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantFocus, Resize
from textual.screen import Screen
from textual.widget import Widget

from ...core.plain import plain
from ...core.runs import Counts, RunSnapshot
from ..actions import PANES, Action, Place, Situation, bindings
from ..arrangement import visible_panes
from ..board import Board
from ..bridge import Bridge
from ..commands import RunCommands
from ..launch_commands import LaunchCommands
from ..messages import (
    AgentChosen,
    EngineFailed,
    PresetHighlighted,
    PresetsRead,
    RowChosen,
    RunHighlighted,
    RunsChanged,
    TranscriptRead,
    UnseenFound,
)
from ..present import farewell
from ..toasts import Toasts, unseen_text
from ..widgets.deck_header import DeckHeader
from ..widgets.preset_list import PresetList
from ..widgets.run_list import RunList
from ..widgets.status_bar import StatusBar
from ..widgets.transcript import Transcript
from .help import HelpScreen

if TYPE_CHECKING:
    from ...core.engine import Engine


class MainScreen(Screen[None]):
    """Routes: what the bridge tells goes to the panes, what keys ask for goes to the commands."""

    BINDINGS = bindings(Place.DECK)
    AUTO_FOCUS = ""

    def __init__(self, engine: Engine, actions: Sequence[Action]) -> None:
        """`actions` is the registry with the operator's own keys."""
        super().__init__()
        self.actions = actions
        self._board = Board()
        self._counts = Counts()
        self._zoomed: Place | None = None
        self._begun = False
        """True once the first update has decided where the focus begins."""
        self.bridge = Bridge(engine)
        self.presets = PresetList()
        self.runs = RunList(self._board)
        self.transcript = Transcript()
        self._panes: dict[Place, Widget] = {
            Place.PRESETS: self.presets,
            Place.RUNS: self.runs,
            Place.TRANSCRIPT: self.transcript,
        }
        self._header = DeckHeader(engine.project.root)
        self._status = StatusBar(actions)
        self._toasts = Toasts(self, engine.settings.notifications)
        self._commands = RunCommands(self, self.bridge)
        self._deeds: dict[str, Callable[[], object]] = {
            **self._commands.table,
            **LaunchCommands(self, self.bridge).table,
            "open": lambda: self.go_to(Place.TRANSCRIPT),
            "follow": lambda: self.transcript.follow(not self.transcript.following),
            "wrap": lambda: self.transcript.set_wrap(not self.transcript.wrapped),
            "zoom": lambda: self.zoom(None if self._zoomed else self.place),
            "presets": lambda: self.go_to(Place.PRESETS),
            "runs": lambda: self.go_to(Place.RUNS),
            "transcript": lambda: self.go_to(Place.TRANSCRIPT),
            "next_pane": lambda: self._go_round(1),
            "previous_pane": lambda: self._go_round(-1),
            "back": self._go_back,
            "next_unseen": lambda: self._go_to_unseen(1),
            "previous_unseen": lambda: self._go_to_unseen(-1),
            "help": lambda: self.app.push_screen(HelpScreen(actions)),
            "quit": lambda: self.app.exit(farewell(self._counts)),
        }

    def compose(self) -> ComposeResult:
        yield self._header
        with Horizontal(id="above"):
            yield self.presets
            yield self.runs
        yield self.transcript
        yield self._status
        yield self.bridge

    def on_mount(self) -> None:
        self.presets.border_title = "Presets"
        self.runs.border_title = "Runs"
        self.transcript.show(None)
        self.runs.focus()
        self._arrange()
        self.call_after_refresh(self.bridge.start)
        self.set_interval(1.0, self.runs.tick)

    # --- what is the case ----------------------------------------------------------------------------------------

    @property
    def run(self) -> RunSnapshot | None:
        """The highlighted run."""
        return self._board.get(self.runs.selected)

    @property
    def place(self) -> Place:
        """The pane that has the focus."""
        return next((place for place, pane in self._panes.items() if pane.has_focus), Place.RUNS)

    @property
    def situation(self) -> Situation:
        return Situation(
            place=self.place,
            preset=self.presets.preset,
            run=self.run,
            undoable=self._commands.undoable,
            zoomed=self._zoomed is not None,
            unseen=len(self._board.unseen),
            can_suspend=not self.app.is_web,
        )

    # --- what the bridge tells -----------------------------------------------------------------------------------

    @on(RunsChanged)
    def show_runs(self, message: RunsChanged) -> None:
        update = message.update
        self._board.apply(update)
        self._counts = update.counts
        looked_at = self.transcript.run_id if self.transcript.has_focus else None
        self.runs.runs_changed(update)
        self.runs.mark_seen(looked_at)
        self._header.show_figures(update.counts, self._board.tokens, self._board.cost)
        self._status.show_counts(update.background)
        in_sight = self.transcript.run_id if self.transcript.display else None
        self._toasts.tell(update.ended, looked_at=looked_at, in_sight=in_sight)
        for run in update.runs:
            if run.run_id == self.transcript.run_id and self.transcript.run_changed(run):
                self.bridge.read_on()
        if not self._begun:
            self._begun = True
            if not update.runs and self.runs.has_focus:
                self.go_to(Place.PRESETS)
        self._show_situation()

    @on(PresetsRead)
    def show_presets(self, message: PresetsRead) -> None:
        self.presets.show_presets(message.catalog)
        self._show_situation()

    @on(AgentChosen)
    def show_agent(self, message: AgentChosen) -> None:
        self._header.show_agent(message.agent, message.problem)

    @on(TranscriptRead)
    def show_transcript(self, message: TranscriptRead) -> None:
        self.transcript.take(message.piece)
        if message.piece.more:
            self.bridge.read_on()

    @on(UnseenFound)
    def show_unseen(self, message: UnseenFound) -> None:
        self._board.mark_unseen(message.runs)
        self.notify(unseen_text(message.runs), markup=False)

    @on(EngineFailed)
    def show_failure(self, message: EngineFailed) -> None:
        self.notify(plain(message.what), severity="error", markup=False)

    # --- what the panes tell -------------------------------------------------------------------------------------

    @on(RunHighlighted)
    def show_highlighted(self, message: RunHighlighted) -> None:
        if message.run_id != self.transcript.run_id:
            self.transcript.show(self._board.get(message.run_id))
            self.bridge.show_run(message.run_id)
        self._show_situation()

    @on(PresetHighlighted)
    def _show_situation(self) -> None:
        self._status.show_situation(self.situation)

    @on(RowChosen)
    async def open_row(self) -> None:
        self.action_act("launch" if self.place is Place.PRESETS else "open")

    @on(DescendantFocus)
    def show_focus(self) -> None:
        if self.place is Place.TRANSCRIPT:
            self.runs.mark_seen(self.transcript.run_id)
        self._arrange()
        self._show_situation()

    @on(Resize)
    def _arrange(self) -> None:
        visible = visible_panes(self.app.size.width, self.place, self._zoomed)
        for place, pane in self._panes.items():
            pane.display = place in visible
        self.query_one("#above").display = visible != frozenset({Place.TRANSCRIPT})
        self.set_class(len(visible) == 1, "-zoomed")
        self.set_class(visible == frozenset(PANES), "-wide")

    # --- what keys ask for ---------------------------------------------------------------------------------------

    def action_act(self, action_id: str) -> None:
        """Do an action of the registry, or say why it is not possible now."""
        action = next(action for action in self.actions if action.id == action_id)
        if obstacle := action.obstacle(self.situation):
            self.notify(obstacle, severity="warning", timeout=3, markup=False)
            return
        self._deeds[action_id]()
        self._show_situation()

    def go_to(self, place: Place) -> None:
        """Show a pane and give it the keys; a zoom goes with them."""
        if self._zoomed is not None:
            self._zoomed = place
        self._panes[place].display = True
        self.query_one("#above").display = True
        self._panes[place].focus()

    def zoom(self, place: Place | None) -> None:
        """Give the whole screen to one pane; None ends it."""
        self._zoomed = place
        if place is not None:
            self.go_to(place)
        self._arrange()

    def show_launched(self, run_id: str) -> None:
        """Put the cursor on a run just launched, as soon as it is there."""
        self.runs.select(run_id)
        self.go_to(Place.RUNS)

    def _go_round(self, step: int) -> None:
        self.go_to(PANES[(PANES.index(self.place) + step) % len(PANES)])

    def _go_back(self) -> None:
        if self._zoomed is not None:
            self.zoom(None)
        else:
            self.go_to(Place.RUNS)

    def _go_to_unseen(self, step: int) -> None:
        if run_id := self._board.next_unseen(self.runs.selected, step):
            self.runs.select(run_id)
            self.runs.mark_seen(run_id)
