"""The command palette's view of the action registry."""

from __future__ import annotations

from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from .actions import Action, key_label


class ActionProvider(Provider):
    """Offers what is possible in the present situation."""

    async def discover(self) -> Hits:
        for action in self._offered():
            yield DiscoveryHit(_title(action), partial(self._run, action), help=action.help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for action in self._offered():
            text = f"{_title(action)} {action.help}"
            if (score := matcher.match(text)) > 0:
                yield Hit(
                    score, matcher.highlight(_title(action)), partial(self._run, action), text=text, help=action.help
                )

    def _offered(self) -> list[Action]:
        from .screens.main import MainScreen

        if not isinstance(self.screen, MainScreen):
            return []
        situation = self.screen.situation
        return [action for action in self.screen.actions if action.in_palette and action.allowed(situation)]

    async def _run(self, action: Action) -> None:
        await self.screen.run_action(action.command)


def _title(action: Action) -> str:
    return f"{action.name}  ({' '.join(dict.fromkeys(key_label(key) for _, key in action.keys))})"
