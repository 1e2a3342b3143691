"""The commands of the comparison: which runs it shows, and what is done from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.comparison import LEAST, MOST
from ...core.run.describe import runs_word
from ...core.work.operation import CHOOSE
from ..actions.model import READONLY
from ..deck.screen import MainScreen
from ..dialogs.reader import HelpScreen
from .base import Commands, name_of
from .operations import OperationCommands

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..compare.screen import CompareScreen
    from .changes import ChangesCommands
    from .detail import DetailCommands


class CompareCommands(Commands):
    def __init__(self, deck: MainScreen, detail: DetailCommands, changes: ChangesCommands) -> None:
        super().__init__(deck)
        self._detail = detail
        self._changes = changes
        self._operations = OperationCommands(deck)
        self._screen: CompareScreen | None = None

    def open(self) -> None:
        """Show the marked runs beside each other, else those that were launched together with the highlighted one."""
        deck = self._deck
        runs = deck.runs.targets
        if len(runs) < LEAST and not deck.run_store.marked and deck.run and (group := deck.run.meta.group):
            mates = [run for run in deck.run_store.runs if run.meta.group and run.meta.group.id == group.id]
            runs = tuple(sorted(mates, key=lambda run: run.meta.group.index if run.meta.group else 0))
        if len(runs) < LEAST:
            self._say(f"Select two to six runs ({self._key('mark')}) to compare them, or highlight a run of a group.")
            return
        if len(runs) > MOST:
            self._say(f"Showing the first {MOST} of {runs_word(len(runs))}.")
        self._show(runs[:MOST])

    def _show(self, runs: tuple[RunSnapshot, ...]) -> None:
        from ..compare.screen import CompareScreen

        deck = self._deck
        self._screen = CompareScreen(self._bridge, runs, deck.actions, self._act)
        deck.show_comparison(self._screen)

    def _act(self, what: str) -> None:
        """Do what a key of the comparison asks for."""
        screen, deck = self._screen, self._deck
        if screen is None:
            return
        match what:
            case "close":
                deck.show_comparison(None)
            case "help":
                self.app.push_screen(HelpScreen(deck.actions, deck.action_context))
            case "open":
                self._mark_seen((screen.run,))
                self.spawn(self._open, screen.run)
            case "difference":
                self.spawn(self._differ, screen)
            case "choose" if self._bridge.readonly:
                self._say(READONLY)
            case "choose":
                run = screen.run
                others = [one for one in screen.runs if one.run_id != run.run_id]
                self.spawn(self._operations.carry_out, CHOOSE, run, others=others)
            case _:
                pass

    async def _open(self, run: RunSnapshot) -> None:
        """Show the whole answer of a run, and all else of it."""
        from ..detail.page import Tab

        deck = self._deck
        deck.runs.select(run.run_id)
        await self._detail.show(run, Tab.ANSWER)

    async def _differ(self, screen: CompareScreen) -> None:
        """Show what differs between the run of the current column and another one."""
        run = screen.run
        others = [other for other in screen.runs if other.run_id != run.run_id]
        other = others[0] if len(others) == 1 else await self._other(run, others, screen.run_ids)
        if other is not None:
            self._changes.show_difference(run, other)

    async def _other(self, run: RunSnapshot, others: list[RunSnapshot], run_ids: tuple[str, ...]) -> RunSnapshot | None:
        from ..dialogs.pick import PickScreen

        rows = [f"{run_ids.index(other.run_id) + 1}  {name_of(other)}" for other in others]
        number = run_ids.index(run.run_id) + 1
        picked = await self.app.push_screen_wait(PickScreen(f"Difference from {number} to …", rows, end="show"))
        return None if picked is None else others[picked]
