"""The command palette's view of the action registry."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from ..actions import PANES, Action, key_label, said

if TYPE_CHECKING:
    from .screen import MainScreen


class ActionPalette(CommandPalette):
    """Draws no black lines, as Textual does: in the terminal's own colours nobody knows whether black can be seen."""

    DEFAULT_CSS = """
    ActionPalette:ansi #--input, ActionPalette:ansi CommandList { border: none; }
    ActionPalette:ansi #--container { border: round $border; }
    ActionPalette:ansi SearchIcon { color: ansi_default; }
    """


class ActionProvider(Provider):
    """Offers the actions that are possible on the deck now."""

    async def discover(self) -> Hits:
        for action, title, sentence in self._offered():
            yield DiscoveryHit(title, partial(self._run, action), help=sentence)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action, title, sentence in self._offered():
            text = f"{title} {sentence}"
            if (score := matcher.match(text)) > 0:
                yield Hit(score, matcher.highlight(title), partial(self._run, action), text=text, help=sentence)

    def _offered(self) -> Iterator[tuple[Action, str, str]]:
        """Return each with its title and its sentence."""
        deck = cast("MainScreen", self.screen)
        for action in deck.actions:
            if action.in_palette and action.allowed(deck.action_context):
                yield action, _title(action), said(action.help, deck.actions)

    async def _run(self, action: Action) -> None:
        await self.screen.run_action(action.command)


def _title(action: Action) -> str:
    """Name and keys; with the pane they are about where they mean nothing elsewhere: a preset and a run are deleted."""
    places = dict.fromkeys(place for place, _ in action.keys)
    where = f" · {next(iter(places))}" if all(place in PANES for place in places) else ""
    return f"{action.name}{where}  ({' '.join(dict.fromkeys(key_label(key) for _, key in action.keys))})"
