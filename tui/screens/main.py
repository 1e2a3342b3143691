"""The deck: presets, runs and the transcript of the highlighted run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import DescendantFocus, Resize
from textual.screen import Screen

from ...core.plain import plain
from ...core.runs import Counts, RunSnapshot
from ..actions import Action, Place, Situation, bindings
from ..board import Board
from ..bridge import Bridge
from ..commands import deeds
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
from ..panes import ABOVE, Panes
from ..toasts import Toasts, unseen_text
from ..undo import Undo
from ..widgets.deck_header import DeckHeader
from ..widgets.preset_list import PresetList
from ..widgets.run_list import RunList
from ..widgets.status_bar import StatusBar
from ..widgets.transcript import Transcript

if TYPE_CHECKING:
    from ...core.engine import Engine


class MainScreen(Screen[object]):
    """Routes: what the bridge tells goes to the panes, what keys ask for goes to the commands."""

    BINDINGS = bindings(Place.DECK)
    AUTO_FOCUS = ""

    def __init__(self, engine: Engine, actions: Sequence[Action]) -> None:
        """`actions` is the registry with the operator's own keys."""
        super().__init__()
        self.actions = actions
        self.board = Board()
        self.counts = Counts()
        self.undo = Undo()
        self._begun = False
        """True once the first update has decided where the focus begins."""
        self.bridge = Bridge(engine)
        self.presets = PresetList()
        self.runs = RunList(self.board)
        self.transcript = Transcript()
        self.panes = Panes(
            self,
            {Place.PRESETS: self.presets, Place.RUNS: self.runs, Place.TRANSCRIPT: self.transcript},
        )
        self._header = DeckHeader(engine.project.root)
        self._status = StatusBar(actions)
        self._toasts = Toasts(self, engine.settings.notifications)
        self._deeds = deeds(self)

    def compose(self) -> ComposeResult:
        yield self._header
        with Horizontal(id=ABOVE):
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
        self.panes.arrange()
        self.call_after_refresh(self.bridge.start)
        self.set_interval(1.0, self.runs.tick)

    # --- what is the case ----------------------------------------------------------------------------------------

    @property
    def run(self) -> RunSnapshot | None:
        """The highlighted run."""
        return self.board.get(self.runs.selected)

    @property
    def situation(self) -> Situation:
        return Situation(
            place=self.panes.place,
            preset=self.presets.preset,
            run=self.run,
            undoable=bool(self.undo),
            zoomed=self.panes.zoomed,
            unseen=len(self.board.unseen),
            can_suspend=not self.app.is_web,
        )

    # --- what the bridge tells -----------------------------------------------------------------------------------

    @on(RunsChanged)
    def show_runs(self, message: RunsChanged) -> None:
        update = message.update
        self.board.apply(update)
        self.counts = update.counts
        looked_at = self.transcript.run_id if self.transcript.has_focus else None
        self.runs.runs_changed(update)
        self.runs.mark_seen(looked_at)
        self._header.show_figures(update.counts, self.board.tokens, self.board.cost)
        self._status.show_counts(update.background)
        in_sight = self.transcript.run_id if self.transcript.display else None
        self._toasts.tell(update.ended, looked_at=looked_at, in_sight=in_sight)
        for run in update.runs:
            if run.run_id == self.transcript.run_id and self.transcript.run_changed(run):
                self.bridge.read_on()
        if not self._begun:
            self._begun = True
            if not update.runs and self.runs.has_focus:
                self.panes.go_to(Place.PRESETS)
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
        self.board.mark_unseen(message.runs)
        self.notify(unseen_text(message.runs), markup=False)

    @on(EngineFailed)
    def show_failure(self, message: EngineFailed) -> None:
        self.notify(plain(message.what), severity="error", markup=False)

    # --- what the panes tell -------------------------------------------------------------------------------------

    @on(RunHighlighted)
    def show_highlighted(self, message: RunHighlighted) -> None:
        if message.run_id != self.transcript.run_id:
            self.transcript.show(self.board.get(message.run_id))
            self.bridge.show_run(message.run_id)
        self._show_situation()

    @on(PresetHighlighted)
    def _show_situation(self) -> None:
        self._status.show_situation(self.situation)

    @on(RowChosen)
    async def open_row(self) -> None:
        self.action_act("launch" if self.panes.place is Place.PRESETS else "open")

    @on(DescendantFocus)
    def show_focus(self) -> None:
        if self.panes.place is Place.TRANSCRIPT:
            self.runs.mark_seen(self.transcript.run_id)
        self.panes.arrange()
        self._show_situation()

    @on(Resize)
    def fit_panes(self) -> None:
        self.panes.arrange()

    # --- what keys ask for ---------------------------------------------------------------------------------------

    def action_act(self, action_id: str) -> None:
        """Do an action of the registry, or say why it is not possible now."""
        action = next(action for action in self.actions if action.id == action_id)
        if obstacle := action.refusal(self.situation):
            self.notify(obstacle, severity="warning", timeout=3, markup=False)
            return
        self._deeds[action_id]()
        self._show_situation()

    def show_launched(self, run_id: str) -> None:
        """Put the cursor on a run just launched, as soon as it is there."""
        self.runs.select(run_id)
        self.panes.go_to(Place.RUNS)
