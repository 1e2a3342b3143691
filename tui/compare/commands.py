"""The command that compares runs, and the keys of the comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.describe import runs_word
from ..changes.commands import ChangesCommands
from ..commands import Commands, name_of
from ..detail.commands import DetailCommands
from ..keys.command import DECK, READONLY, Action, KeyContext, at, command, moves, needs_run

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from .screen import CompareScreen

COMPARE = KeyContext.COMPARE


class CompareCommands(Commands):
    _screen: CompareScreen | None = None

    @command("compare", at(DECK, "V"), "compare", needs=needs_run, footer=16)
    def open(self) -> None:
        """Compare the results of two to six selected runs, or of one group."""
        from ...core.run.comparison import LEAST, MOST

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
        from .screen import CompareScreen

        deck = self._deck
        self._screen = CompareScreen(self._bridge, runs, deck.actions, self._act)
        deck.show_comparison(self._screen)

    def _act(self, what: str) -> None:
        """Do the action of a key in the comparison."""
        screen, deck = self._screen, self._deck
        if screen is None:
            return
        match what:
            case "close":
                deck.show_comparison(None)
            case "help":
                self._show_help(key_context=COMPARE)
            case "open":
                self._mark_seen((screen.run,))
                self.spawn(self._open, screen.run)
            case "difference":
                self.spawn(self._differ, screen)
            case "choose" if self._bridge.readonly:
                self._say(READONLY)
            case "choose":
                run = screen.run
                from ...core.work.operation import CHOOSE
                from ..changes.operations import OperationCommands

                others = [each for each in screen.runs if each.run_id != run.run_id]
                self.spawn(self._of(OperationCommands).carry_out, CHOOSE, run, others=others)
            case _:
                pass

    async def _open(self, run: RunSnapshot) -> None:
        """Show a run's details, starting with its answer."""
        from ..detail.page import Tab

        deck = self._deck
        deck.runs.select(run.run_id)
        await self._of(DetailCommands).show(run, Tab.ANSWER)

    async def _differ(self, screen: CompareScreen) -> None:
        """Show the difference between the current column's run and another one."""
        run = screen.run
        others = [other for other in screen.runs if other.run_id != run.run_id]
        other = others[0] if len(others) == 1 else await self._pick_other(run, others, screen.run_ids)
        if other is not None:
            self._of(ChangesCommands).show_difference(run, other)

    async def _pick_other(
        self, run: RunSnapshot, others: list[RunSnapshot], run_ids: tuple[str, ...]
    ) -> RunSnapshot | None:
        from ..dialogs.pick import PickScreen

        rows = [f"{run_ids.index(other.run_id) + 1}  {name_of(other)}" for other in others]
        number = run_ids.index(run.run_id) + 1
        picked = await self.app.push_screen_wait(PickScreen(f"Difference from {number} to …", rows, end="show"))
        return None if picked is None else others[picked]

    in_comparison = (
        Action("next_column", at(COMPARE, "tab", "right", "l"), "next", "Go to the next run.", do="screen.go(1)",
               footer=1),
        Action("previous_column", at(COMPARE, "shift+tab", "left", "h"), "previous", "Go to the previous run.",
               do="screen.go(-1)"),
        *(Action(f"column_{number}", at(COMPARE, str(number)), f"run {number}", "Go to the run with that number.",
                 do=f"screen.choose({number})") for number in range(1, 7)),
        Action("open_compared", at(COMPARE, "enter"), "open", "Show the run's details, starting with its answer.",
               do="screen.ask_deck('open')", footer=2),
        Action("difference", at(COMPARE, "c"), "difference", "Show the difference between two runs' changes.",
               do="screen.ask_deck('difference')", footer=3),
        Action("choose_compared", at(COMPARE, "T"), "choose winner", do="screen.ask_deck('choose')", footer=4,
               changes=True, guarded=True,
               help="Choose the winner: apply its changes and discard the other worktrees. Asks once."),
        Action("help_on_comparing", at(COMPARE, "?"), "help", do="screen.ask_deck('help')", footer=6,
               help="Show the most used keys here. Press it again for all keys."),
        *moves((COMPARE,), "screen.move", "compare_"),
    )  # fmt: skip
