"""The action that checks what is missing here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from ...core.text.plain import one_line
from ..deck.protocol import DeckView
from ..dialogs.reading import ReadingScreen
from ..text.cells import wrap
from .base import Commands

if TYPE_CHECKING:
    from ...core.doctor import Check

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
