"""The deck's own commands: its panes and layout, texts to read, the end of the app."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from ...core.paths import is_demo
from ...core.run.describe import runs_word
from ...core.text.plain import one_line
from ..commands import Commands, first_of
from ..keys.command import DECK, PANES, RUNS, TRANSCRIPT, Action, ActionContext, KeyContext, at, command, moves, unbound
from ..text.format import farewell
from ..theme import ThemeChoice, next_theme, theme_file

if TYPE_CHECKING:
    from ...core.run.snapshot import Counts
    from ..dialogs.reader import ReadingScreen
    from ..terminal.key_queue import KeyQueueApp

NAMED = 4
"""Unsent texts that are named; more are counted."""


def needs_beside(context: ActionContext) -> str:
    if {KeyContext.PRESETS, KeyContext.RUNS} <= context.shown:
        return ""
    return "Presets and runs are not side by side: no border to move."


def needs_above(context: ActionContext) -> str:
    if KeyContext.TRANSCRIPT in context.shown and len(context.shown) > 1:
        return ""
    return "Only one pane is shown: no border to move."


class DeckCommands(Commands):
    opens = ("..text.reports",)

    @command("messages", unbound(DECK), "notifications", after="copy_id")
    def list_messages(self) -> None:
        """Show all notifications since the app was opened."""
        from ..dialogs.reader import ReadingScreen

        entries = self._deck.toasts.entries()
        self.app.push_screen(ReadingScreen("Notifications", entries, empty="No notifications yet.", filterable=True))

    # --- the panes ---------------------------------------------------------------------------------------------------

    @command("zoom", at(DECK, "z"), "zoom")
    def zoom(self) -> None:
        """Show one pane full screen, or all panes again."""
        self._deck.panes.toggle_zoom()

    @command("narrower", unbound(DECK), "narrower presets", "Make the presets pane narrower.", needs_beside, args=(-1,))
    @command("wider", unbound(DECK), "wider presets", "Make the presets pane wider.", needs_beside, args=(1,))
    def widen_presets(self, by: int) -> None:
        self._deck.panes.widen_presets(by)

    @command(
        "lower",
        unbound(DECK),
        "shorter transcript",
        "Make the transcript shorter, or narrower if it is beside the runs.",
        needs_above,
        args=(1,),
    )
    @command(
        "higher",
        unbound(DECK),
        "taller transcript",
        "Make the transcript taller, or wider if it is beside the runs.",
        needs_above,
        args=(-1,),
    )
    def lower_transcript(self, by: int) -> None:
        self._deck.panes.lower_transcript(by)

    @command("reset_layout", unbound(DECK), "reset layout")
    def reset_layout(self) -> None:
        """Restore the default pane sizes."""
        self._deck.panes.reset_layout()

    @command("theme", unbound(DECK), "theme")
    def next_theme(self) -> None:
        """Cycle the theme: dark, light, terminal colours."""
        if self.app.no_color:
            self._say("NO_COLOR is set, so themes are not available.")
            return
        self.app.theme = next_theme(self.app.theme)
        self._say(f"Theme: {self.app.theme}")
        setting = self._bridge.engine.settings.theme or ""
        file = theme_file(readonly=self._bridge.readonly)
        self._bridge.spawn(file.keep, lambda: ThemeChoice(self.app.theme, setting))

    @command("runs", at(DECK, "2"), "runs", "Go to the runs.", args=(RUNS,))
    @command("transcript", at(DECK, "3"), "transcript", "Go to the transcript.", args=(TRANSCRIPT,))
    def go_to(self, pane: KeyContext) -> None:
        self._deck.panes.go_to(pane)

    @command("next_pane", at(DECK, "tab"), "next pane", "Go to the next pane.", args=(1,))
    @command("previous_pane", at(DECK, "shift+tab"), "previous pane", "Go to the previous pane.", args=(-1,))
    def go_round(self, step: int) -> None:
        self._deck.panes.go_round(step)

    @command("back", at(DECK, "escape"), "back", footer=1, name_here=lambda context: "back" if context.zoomed else "")
    def go_back(self) -> None:
        """Leave full screen, then the pane. Never quits."""
        runs, panes = self._deck.runs, self._deck.panes
        if panes.key_context is RUNS and runs.listing.filter:
            runs.filter_by("")
            runs.keep_layout()
        else:
            panes.go_back()

    # --- the app -----------------------------------------------------------------------------------------------------

    @command("help", at(DECK, "?"), "help", footer=3)
    def show_help(self) -> None:
        """Show the most used keys here. Press it again for all keys."""
        self._show_help()

    @command("quit", at(DECK, "q"), "quit", footer=12)
    def quit(self) -> None:
        """Quit. Runs continue in the background."""
        from ..dialogs.ask import TYPING_S

        detail = "\n".join((*what_goes_on(self._deck.counts), *what_is_lost(self._deck.talk.unsent)))
        if detail:
            self.spawn(self._ask_to_quit, detail, cast("KeyQueueApp", self.app).was_typing(TYPING_S))
        else:
            self._exit()

    async def _ask_to_quit(self, detail: str, is_typing: bool) -> None:
        from ..dialogs.ask import QuitScreen

        if await self.app.push_screen_wait(QuitScreen(detail, is_typing=is_typing)):
            self._exit()

    def _exit(self) -> None:
        self.app.exit(farewell(self._deck.counts))

    in_every_pane = (
        Action("how_to_quit", at(KeyContext.APP, "ctrl+c"), "", "Show how to quit.", do="app.how_to_quit"),
        *moves(PANES, "move", ends=False),
    )

    # --- texts -------------------------------------------------------------------------------------------------------

    @command("costs", at(DECK, "$"), "costs")
    def show_costs(self) -> None:
        """Show costs for today, this week and in total, by preset, model and agent."""
        from ...core.run.cost_sheet import cost_sheet, remarks
        from ..dialogs.reader import ReadingScreen
        from ..text.reports import cost_lines

        sheet = cost_sheet(self._deck.run_store.runs, datetime.now().astimezone())
        self.app.push_screen(ReadingScreen("Costs", cost_lines(sheet), note=f"{remarks(sheet)}   esc closes"))

    @command("doctor", unbound(DECK), "doctor")
    def show_doctor(self) -> None:
        """Check this machine's setup. Shows how to fix each problem."""
        from ..dialogs.reader import ReadingScreen

        screen = ReadingScreen("Doctor", empty="Checking…")
        self.app.push_screen(screen)
        self.spawn(self._examine, screen)

    async def _examine(self, screen: ReadingScreen) -> None:
        from ...core.doctor import examine
        from ..text.reports import COLOURS, check_lines, summary

        checks = await self._bridge.call(examine, self._bridge.engine.cwd)
        if screen.is_current:
            worst_first = sorted(checks, key=lambda check: list(COLOURS).index(check.state))
            screen.show([check_lines(check) for check in worst_first], summary(checks))


def what_goes_on(counts: Counts) -> Iterator[str]:
    """Yield a line on the runs that continue after quitting."""
    if counts.running and is_demo():
        yield "The demo ends, and its directory is removed."
    elif counts.running:
        continues, it = ("continues", "it") if counts.running == 1 else ("continue", "them")
        yield f"{runs_word(counts.running)} {continues} in the background. Open subdeck again to see {it}."


def what_is_lost(titles: Sequence[str]) -> Iterator[str]:
    """Yield the unsent texts, a line each."""
    yield from first_of([f"Unsent draft, lost if you quit: {one_line(title, 60)}" for title in titles], NAMED)
