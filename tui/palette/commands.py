"""The command that opens the palette and does the chosen action, with its keys."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.paths import user_settings_file
from ..commands import Commands
from ..keys.command import DECK, RUNS, Action, KeyContext, at
from ..launch.commands import LaunchCommands
from ..layout_file import LayoutFile
from ..text.format import short_path

if TYPE_CHECKING:
    from ._offers import Offer


RECENT = 5
"""Number of recent actions that the palette opens with."""


class RecentActions(Struct, frozen=True):
    """The actions that you chose in the palette."""

    actions: tuple[str, ...] = ()
    """Their ids, the latest first."""


class PaletteCommands(Commands):
    from_app = (
        Action("palette", (*at(DECK, ":"), *at(KeyContext.APP, "ctrl+p")), "palette", do="app.command_palette",
               help="Find anything by name: actions, runs, presets, filters and settings.", after="quit"),
        Action("choose", at(KeyContext.PALETTE, "enter"), "choose", do="screen.choose", footer=1, after="palette",
               help="Run the action, go to the run, launch the preset, apply the filter or edit the setting."),
    )  # fmt: skip

    @cached_property
    def _file(self) -> LayoutFile[RecentActions]:
        return LayoutFile(RecentActions(), lambda: "palette.json", readonly=self._bridge.readonly)

    @cached_property
    def _recent(self) -> tuple[str, ...]:
        """The ids of recent actions; changed by each choice."""
        return self._file.read().actions[:RECENT]

    def open(self) -> None:
        from ._screen import PaletteScreen

        self.app.push_screen(PaletteScreen(self._offers(), self._deck.actions), self._do)

    def _offers(self) -> list[Offer]:
        """Return everything possible now, in the order of the list before words are typed."""
        from . import _offers

        deck, runs = self._deck, tuple(self._deck.run_store.runs)
        context = deck.action_context
        hidden = () if context.request else ((KeyContext.REQUEST,),)
        possible = [
            action
            for action in deck.actions
            if action.in_palette and action.key_contexts not in hidden and action.allowed(context)
        ]
        presets = () if context.readonly else deck.presets.usable
        return [
            *_offers.action_offers(possible, deck.actions, self._recent, context.key_context),
            *_offers.preset_offers(presets),
            *_offers.filter_offers(
                deck.runs.listing.filter.text,
                (run.meta.preset for run in runs if run.meta.preset),
                (host for run in runs if (host := run.host)),
            ),
            *_offers.setting_offers(self._bridge.engine.settings),
            *_offers.run_offers(runs),
        ]

    def _do(self, offer: Offer | None) -> None:
        from ._offers import Kind

        if offer is None:
            return
        deck = self._deck
        match offer.kind:
            case Kind.ACTION | Kind.RECENT:
                self._remember(offer.key)
                deck.action_act(offer.key)
            case Kind.PRESET:
                self._of(LaunchCommands).ask(deck.presets.named(offer.key))
            case Kind.FILTER:
                deck.runs.filter_by(offer.key)
                deck.runs.keep_layout()
                deck.panes.go_to(RUNS)
            case Kind.RUN if offer.key in deck.run_store:
                deck.show_launched(offer.key)
            case Kind.RUN:
                self._say("This run no longer exists.")
            case Kind.SETTING:
                self.spawn(self._edit_setting, offer.key)

    def _remember(self, action_id: str) -> None:
        other_ids = [recent for recent in self._recent if recent != action_id]
        self._recent = (action_id, *other_ids)[:RECENT]
        self._bridge.spawn(self._file.keep, lambda: RecentActions(self._recent))

    async def _edit_setting(self, key: str) -> None:
        """Explain a setting, and open the user's file at its line; without a `key` open the file."""
        from textual.content import Content

        from ..dialogs.reader import ReadingScreen
        from ..terminal.handover import edit_file
        from ._offers import ready_file, setting_facts

        path = user_settings_file()
        title = f"Setting {key}" if key else "Settings"
        facts = setting_facts(self._bridge.engine.settings, key, short_path(path, 60))
        if self._bridge.readonly or self.app.is_web:
            self.app.push_screen(ReadingScreen(title, [Content(row) for row in facts.split("\n")]))
        elif not key or await self._confirmed(title, facts, "Open in editor", harmless=True):
            line = await self._bridge.call(ready_file, path, key)
            if problem := edit_file(self.app, path, line=line):
                self._say(problem, error=True)
