"""The commands on the deck itself: the list of runs, the panes, and dialogs that are only read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from textual.content import Content

from ...core.paths import is_demo
from ...core.run.costs import HEADINGS, CostSheet, cost_sheet, remarks, sections, total_row
from ...core.run.describe import runs_word
from ...core.text.plain import one_line
from ..actions import KeyContext
from ..dialogs.ask import TYPING_S, QuitScreen
from ..dialogs.reader import HelpScreen, ReadingScreen
from ..runs.filter_line import FilterLine
from ..runs.store import Need
from ..terminal.key_queue import KeyQueueApp
from ..text.cells import fit, wrap
from ..text.format import farewell
from ..theme import ThemeChoice, next_theme, theme_file
from .base import Commands, first_of

if TYPE_CHECKING:
    from ...core.doctor import Check
    from ...core.run.snapshot import Counts

NAMED = 4
"""Texts that were not sent and are named; more are counted."""
STATE_WIDTH = 10
NAME_WIDTH = 12
DETAIL_WIDTH = 70 - STATE_WIDTH - NAME_WIDTH
"""What the dialog leaves beside the two."""
FIX_WIDTH = 64
COST_WIDTH, COST_NAME_WIDTH = 10, 21
"""Of a figure, and of what it is about: six columns fit into the dialog."""
COLOURS = {"problem": "$text-error", "warn": "$text-warning", "ok": "$text-success"}
"""By the state of a check, the worst first."""


class DeckCommands(Commands):
    # --- the list of runs --------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Show the transcript of the highlighted run, or fold the highlighted group."""
        runs = self._deck.runs
        if runs.cursor_row is not None and not runs.cursor_row.run_id:
            self.fold(runs.cursor_row.group_key not in runs.listing.folded)
        else:
            self._deck.panes.go_to(KeyContext.TRANSCRIPT)

    def open_filter(self) -> None:
        self._deck.query_one(FilterLine).open()

    def sort(self) -> None:
        runs = self._deck.runs
        runs.order_by(runs.listing.sort.next)
        runs.keep_layout()

    def reverse_sort(self) -> None:
        runs = self._deck.runs
        runs.order_by(runs.listing.sort, backwards=not runs.listing.backwards)
        runs.keep_layout()

    def fold(self, folded: bool) -> None:
        if self._deck.runs.fold(folded):
            self._deck.runs.keep_layout()

    def mark(self) -> None:
        runs = self._deck.runs
        if runs.cursor_row is not None:
            ids = runs.listing.runs_in(runs.cursor_row)
            runs.mark(ids, not self._deck.run_store.marked.issuperset(ids))
            runs.action_move("down")

    def mark_all(self) -> None:
        """Mark all shown runs; where they all are, unmark all, those that are not shown too."""
        runs, marked = self._deck.runs, self._deck.run_store.marked
        shown = runs.listing.shown_ids()
        all_marked = marked.issuperset(shown)
        runs.mark(marked if all_marked else shown, not all_marked)

    def go_to_needing(self, step: int, *, replies: bool = True) -> None:
        """Go to the next run that needs a person, the most urgent first, around the end; what waits for a reply gets
        the keys with `replies`.
        """
        runs, needs = self._deck.runs, self._deck.run_store.needs
        ordered = sorted(needs, key=lambda run_id: (needs[run_id], runs.listing.key_of(run_id)))
        if not ordered:
            return
        here = runs.selected
        start = ordered.index(here) if here in needs else (-1 if step > 0 else 0)
        wanted = ordered[(start + step) % len(ordered)]
        if replies and here in self._deck.run_store.waiting and not self._deck.request.has_focus:
            wanted = here  # it asks something again
        runs.select(wanted)
        if replies and needs[wanted] is Need.WAITING:
            self._deck.show_highlighted()
            self._deck.panes.go_to(KeyContext.TRANSCRIPT)

    def mark_seen(self) -> None:
        """Note that the marked runs, or the highlighted ones, were looked at."""
        runs = [run for run in self._deck.runs.targets if self._deck.run_store.needs_look(run.run_id)]
        self._mark_seen(runs)
        if not runs:
            self._say("Already read.")
        elif waiting := self._deck.run_store.waiting.intersection(run.run_id for run in runs):
            what = "This run still needs" if len(waiting) == 1 else f"{runs_word(len(waiting))} still need"
            self._say(f"{what} input. {self._key('open')} shows the request.")

    def go_back(self) -> None:
        """Show all runs again where a filter hides some, else leave the zoom or the pane."""
        runs, panes = self._deck.runs, self._deck.panes
        if panes.place is KeyContext.RUNS and runs.listing.filter:
            runs.filter_by("")
            runs.keep_layout()
        else:
            panes.go_back()

    # --- around it ---------------------------------------------------------------------------------------------------

    def next_theme(self) -> None:
        if self.app.no_color:
            self._say("NO_COLOR is set, so themes are not available.")
            return
        self.app.theme = next_theme(self.app.theme)
        self._say(f"Theme: {self.app.theme}")
        setting = self._bridge.engine.settings.theme or ""
        file = theme_file(readonly=self._bridge.readonly)
        self._bridge.spawn(file.keep, lambda: ThemeChoice(self.app.theme, setting))

    def quit(self) -> None:
        """End the app; ask if runs are active, or if a text that was not sent would be lost."""
        detail = "\n".join((*what_goes_on(self._deck.counts), *what_is_lost(self._deck.talk.unsent)))
        if detail:
            self.spawn(self._ask_to_quit, detail, cast(KeyQueueApp, self.app).was_typing(TYPING_S))
        else:
            self._exit()

    async def _ask_to_quit(self, detail: str, is_typing: bool) -> None:
        if await self.app.push_screen_wait(QuitScreen(detail, is_typing=is_typing)):
            self._exit()

    def _exit(self) -> None:
        self.app.exit(farewell(self._deck.counts))

    def show_help(self) -> None:
        self.app.push_screen(HelpScreen(self._deck.actions, self._deck.action_context))

    def list_messages(self) -> None:
        entries = self._deck.notices.entries()
        self.app.push_screen(ReadingScreen("Notifications", entries, empty="No notifications yet.", filterable=True))

    def show_costs(self) -> None:
        sheet = cost_sheet(self._deck.run_store.runs, datetime.now().astimezone())
        self.app.push_screen(ReadingScreen("Costs", cost_lines(sheet), note=f"{remarks(sheet)}   esc closes"))

    def show_doctor(self) -> None:
        screen = ReadingScreen("Doctor", empty="Checking…")
        self.app.push_screen(screen)
        self.spawn(self._examine, screen)

    async def _examine(self, screen: ReadingScreen) -> None:
        from ...core.doctor import examine

        checks = await self._bridge.call(examine, self._bridge.engine.cwd)
        if screen.is_current:
            worst_first = sorted(checks, key=lambda check: list(COLOURS).index(check.state))
            screen.show([check_lines(check) for check in worst_first], verdict(checks))


def what_goes_on(counts: Counts) -> Iterator[str]:
    """Name the runs that quitting leaves behind."""
    if counts.running and is_demo():
        yield "The demo ends, and its directory is removed."
    elif counts.running:
        continues, it = ("continues", "it") if counts.running == 1 else ("continue", "them")
        yield f"{runs_word(counts.running)} {continues} in the background. Open subdeck again to see {it}."


def what_is_lost(titles: Sequence[str]) -> Iterator[str]:
    """Name the texts that were not sent, a line each."""
    yield from first_of([f"Unsent draft, lost if you quit: {one_line(title, 60)}" for title in titles], NAMED)


def cost_lines(sheet: CostSheet) -> list[Content]:
    """Lay out the total, then a part for presets, models and agents."""
    lines = [_cost_line(("", *HEADINGS), "$text-muted"), _cost_line(total_row(sheet), "bold")]
    for title, rows in sections(sheet):
        lines += [Content(""), Content.styled(f"by {title}", "bold $text-muted"), *map(_cost_line, rows)]
    return lines


def _cost_line(row: Sequence[str], style: str = "") -> Content:
    name, *figures = row
    cells = [fit(name, COST_NAME_WIDTH), *(fit(figure, COST_WIDTH, right=True) for figure in figures)]
    return Content.styled("".join(cells), style)


def verdict(checks: Sequence[Check]) -> str:
    """Sum up: `1 problem, 2 warnings`, or that all is well."""
    counts = ((sum(check.state == state for check in checks), word) for state, word in _COUNTED)
    named = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)
    return f"{named or 'no problems'}   esc closes"


_COUNTED = (("problem", "problem"), ("warn", "warning"))


def check_lines(check: Check) -> Content:
    """Lay out glyph, word, what was looked at and what was found; below it the command that mends it."""
    from ...core.doctor import SYMBOLS

    first, *more = wrap(one_line(check.detail), DETAIL_WIDTH)
    colour = COLOURS[check.state]
    state = f"{SYMBOLS[check.state]} {check.state}".ljust(STATE_WIDTH)
    lines = [Content.assemble((state, colour), (check.name.ljust(NAME_WIDTH), "bold"), first)]
    lines += [Content(" " * (STATE_WIDTH + NAME_WIDTH) + row) for row in more]
    if check.fix:
        mending = wrap(one_line(check.fix), FIX_WIDTH)
        lines += [Content.styled(f"{'    ' if n else '  → '}{row}", colour) for n, row in enumerate(mending)]
    return Content("\n").join(lines)
