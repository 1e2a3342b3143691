"""The command that opens the palette, and does what was chosen there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from ...core.paths import user_settings_file
from ..actions import KeyContext
from ..deck.screen import MainScreen
from ..terminal.handover import edit_file
from ..text.format import short_path
from .base import Commands

if TYPE_CHECKING:
    from ..palette.offers import Offer
    from .launch import LaunchCommands


class PaletteCommands(Commands):
    def __init__(self, deck: MainScreen, launch: LaunchCommands) -> None:
        super().__init__(deck)
        self._launch = launch

    def open(self) -> None:
        from ..palette.screen import PaletteScreen

        self.app.push_screen(PaletteScreen(self._offers(), self._deck.actions), self._do)

    def _offers(self) -> list[Offer]:
        """Return all that is possible now, in the order of the list while nothing is typed."""
        from ..palette import offers

        deck, runs = self._deck, tuple(self._deck.run_store.runs)
        context = deck.action_context
        possible = [action for action in deck.actions if action.in_palette and action.allowed(context)]
        presets = () if context.readonly else deck.presets.usable
        return [
            *offers.action_offers(possible, deck.actions),
            *offers.preset_offers(presets),
            *offers.filter_offers(
                deck.runs.listing.filter.text,
                (run.meta.preset for run in runs if run.meta.preset),
                (host for run in runs if (host := run.host)),
            ),
            *offers.setting_offers(self._bridge.engine.settings),
            *offers.run_offers(runs),
        ]

    def _do(self, offer: Offer | None) -> None:
        from ..palette.offers import Kind

        if offer is None:
            return
        deck = self._deck
        match offer.kind:
            case Kind.ACTION:
                deck.action_act(offer.key)
            case Kind.PRESET:
                self._launch.ask(deck.presets.named(offer.key))
            case Kind.FILTER:
                deck.runs.filter_by(offer.key)
                deck.runs.keep_layout()
                deck.panes.go_to(KeyContext.RUNS)
            case Kind.RUN if offer.key in deck.run_store:
                deck.show_launched(offer.key)
            case Kind.RUN:
                self._say("This run no longer exists.")
            case Kind.SETTING:
                self.spawn(self._edit_setting, offer.key)

    async def _edit_setting(self, key: str) -> None:
        """Say what a setting means, and open the user's file at its line."""
        from ..dialogs.reader import ReadingScreen
        from ..palette.offers import ready_file, setting_facts

        path = user_settings_file()
        facts = setting_facts(self._bridge.engine.settings, key, short_path(path, 60))
        if self._bridge.readonly or self.app.is_web:
            self.app.push_screen(ReadingScreen(f"Setting {key}", [Content(row) for row in facts.split("\n")]))
        elif await self._confirmed(f"Setting {key}", facts, "Open in editor", harmless=True):
            line = await self._bridge.call(ready_file, path, key)
            if problem := edit_file(self.app, path, line=line):
                self._say(problem, error=True)
