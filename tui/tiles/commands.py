"""The command that shows runs in the grid, and the keys of the grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.run.model import RunStatus
from ..commands import Commands
from ..keys.command import DECK, TRANSCRIPT, Action, KeyContext, at, command, moves, needs_run
from ..runs.commands import RunCommands
from ..text.format import farewell

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot

TILES = KeyContext.TILES


class TileCommands(Commands):
    @command("tiles", at(DECK, "W"), "grid", needs=needs_run, footer=15)
    def open(self) -> None:
        """Show two to six selected or running runs live in a grid."""
        from .screen import MOST

        deck = self._deck
        marked = deck.run_store.marked
        chosen = [
            run.run_id
            for run in deck.run_store.runs
            if (run.run_id in marked if marked else run.status is RunStatus.RUNNING)
        ]
        ordered = sorted(chosen, key=deck.runs.listing.key_of)
        if not ordered:
            self._say(f"No run is running. Select two to six runs ({self._key('mark')}) to see them in the grid.")
            return
        if len(ordered) > MOST:
            which = "selected" if marked else "running"
            self._say(f"Showing the first {MOST} of {len(ordered)} {which} runs.")
        self._show(ordered[:MOST])

    def watch(self) -> None:
        """Show the runs that the app was opened for."""
        self._show(self._deck.watched)

    def _show(self, run_ids: Sequence[str]) -> None:
        from .screen import TilesScreen

        deck = self._deck
        runs = [(run_id, deck.run_store.get(run_id)) for run_id in run_ids]
        deck.show_tiles(TilesScreen(runs, deck.actions, self._act))

    def _act(self, what: str, run_id: str) -> None:
        """Do the action of a key in the grid."""
        deck, run = self._deck, self._deck.run_store.get(run_id)
        match what:
            case "read":
                deck.read_tiles()
            case "read on":
                self._bridge.read_on()
            case "close":
                deck.show_tiles(None)
                if deck.watched:
                    self.app.exit(farewell(deck.counts))
            case "help":
                self._ask(what)
            case _ if run is None:
                self._say("This run no longer exists.")
            case _:
                self._ask(what, run)

    to_tiles = (
        Action("next_tile", at(TILES, "tab", "right", "l"), "next", "Go to the next run.", do="screen.go(1)", footer=1),
        Action("previous_tile", at(TILES, "shift+tab", "left", "h"), "previous", "Go to the previous run.",
               do="screen.go(-1)"),
        *(Action(f"tile_{number}", at(TILES, str(number)), f"run {number}", "Go to the run with that number.",
                 do=f"screen.choose({number})") for number in range(1, 7)),
        Action("zoom_tile", at(TILES, "z"), "zoom", "Show the run full screen, or the grid again.", do="screen.zoom",
               footer=2),
    )  # fmt: skip

    @command("open_tile", at(TILES, "enter"), "open", do="screen.ask_deck('open')", footer=3)
    def open_on_deck(self, run: RunSnapshot) -> None:
        """Open the run's transcript on the deck."""
        deck = self._deck
        deck.show_tiles(None)
        self._mark_seen((run,))
        deck.runs.select(run.run_id)
        deck.show_highlighted()
        deck.panes.go_to(TRANSCRIPT)

    @command("stop_tile", at(TILES, "x"), "stop", do="screen.ask_deck('stop')", footer=4, changes=True)
    def stop(self, run: RunSnapshot) -> None:
        """Stop this run gracefully. Its work is kept."""
        self.spawn(self._of(RunCommands).stop, (run,))

    in_tile = (
        Action("unfold_in_tile", at(TILES, "O"), "unfold", do="screen.open_entry",
               help="Unfold or fold the tool call or thinking under the cursor."),
        Action("follow_tile", at(TILES, "f"), "follow", "Follow the end of this transcript, or stop following.",
               do="screen.follow"),
    )  # fmt: skip

    @command("help_on_tiles", at(TILES, "?"), "help", do="screen.ask_deck('help')", footer=6)
    def show_help(self) -> None:
        """Show the most used keys here. Press it again for all keys."""
        self._show_help(key_context=TILES)

    in_grid = moves((TILES,), "screen.move", "tile_")
