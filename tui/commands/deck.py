"""The actions that go about on the deck."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from ...core.text.plain import one_line
from ..actions import KeyContext
from ..deck.protocol import DeckView
from ..dialogs.help import HelpScreen
from ..dialogs.reading import ReadingScreen
from ..text.cells import wrap
from ..text.format import farewell
from ..theme import next_theme
from .base import Commands
from .runs import clear_filter

if TYPE_CHECKING:
    from ...core.doctor import Check


class DeckCommands(Commands):
    """Go to panes, zoom, help and quit."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        panes = deck.panes
        self.table = {
            "zoom": panes.toggle_zoom,
            "narrower": lambda: panes.widen_presets(-1),
            "wider": lambda: panes.widen_presets(1),
            "lower": lambda: panes.lower_transcript(1),
            "higher": lambda: panes.lower_transcript(-1),
            "reset_layout": panes.reset_layout,
            "theme": self._next_theme,
            "presets": lambda: panes.go_to(KeyContext.PRESETS),
            "runs": lambda: panes.go_to(KeyContext.RUNS),
            "transcript": lambda: panes.go_to(KeyContext.TRANSCRIPT),
            "next_pane": lambda: panes.go_round(1),
            "previous_pane": lambda: panes.go_round(-1),
            "back": lambda: clear_filter(deck) or panes.go_back(),
            "help": lambda: self._app.push_screen(HelpScreen(deck.actions, deck.action_context)),
            "quit": lambda: self._app.exit(farewell(deck.counts)),
        }

    def _next_theme(self) -> None:
        app = self._app
        if app.no_color:
            self._say("NO_COLOR is set: there are no colours to choose from.")
            return
        app.theme = next_theme(app.theme)
        self._say(f"Theme {app.theme}; set theme in the settings to keep it.")


STATE_WIDTH = 10
NAME_WIDTH = 10
DETAIL_WIDTH = 70 - STATE_WIDTH - NAME_WIDTH
"""What the dialog leaves beside the two."""
FIX_WIDTH = 64
SEVERITY = ("problem", "warn", "ok")
COLOURS = {"ok": "$text-success", "warn": "$text-warning", "problem": "$text-error"}


class DoctorCommands(Commands):
    """Examine, and show it."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {"doctor": self._open}

    def _open(self) -> None:
        screen = ReadingScreen("Doctor", empty="Checking …")
        self._app.push_screen(screen)
        self._spawn(self._examine, screen)

    async def _examine(self, screen: ReadingScreen) -> None:
        from ...core.doctor import examine

        checks = await self._bridge.call(examine, self._bridge.engine.cwd)
        if screen.is_current:
            worst_first = sorted(checks, key=lambda check: SEVERITY.index(check.state))
            screen.show([check_lines(check) for check in worst_first], verdict(checks))


def verdict(checks: tuple[Check, ...]) -> str:
    """Sum up: `1 problem, 2 warnings`, or that all is well."""
    counted = [(sum(check.state == state for check in checks), word) for state, word in _COUNTED]
    named = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counted if count)
    return f"{named or 'all is well'}   esc closes"


_COUNTED = (("problem", "problem"), ("warn", "warning"))


def check_lines(check: Check) -> Content:
    """Glyph, word, what was looked at and what was found; below it the command that mends it."""
    from ...core.doctor import SYMBOLS

    first, *more = wrap(one_line(check.detail), DETAIL_WIDTH)
    indent = " " * (STATE_WIDTH + NAME_WIDTH)
    colour = COLOURS[check.state]
    lines = [
        Content.assemble(
            (f"{SYMBOLS[check.state]} {check.state}".ljust(STATE_WIDTH), colour),
            (check.name.ljust(NAME_WIDTH), "bold"),
            first,
        ),
        *(Content(indent + row) for row in more),
    ]
    if check.fix:
        mending = wrap(one_line(check.fix), FIX_WIDTH)
        lines += [Content.styled(f"{'  → ' if not n else '    '}{row}", colour) for n, row in enumerate(mending)]
    return Content("\n").join(lines)


class TellingCommands(Commands):
    """List the messages of this session of the app."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {"messages": self._list_messages}

    def _list_messages(self) -> None:
        entries = self._deck.notices.entries()
        self._app.push_screen(ReadingScreen("Messages", entries, empty="There are no messages yet.", filterable=True))
