"""The commands in the screen of one run: going to others, and acting on the one that is shown, whatever is marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.run.model import RunnerKind
from ..actions import KeyContext, said
from ..deck.screen import MainScreen
from .base import Commands

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..detail.page import Tab
    from ..detail.screen import RunDetailScreen
    from .changes import ChangesCommands
    from .deck import DeckCommands
    from .runs import RunCommands
    from .talk import TalkCommands


class DetailCommands(Commands):
    def __init__(
        self,
        deck: MainScreen,
        runs: RunCommands,
        talk: TalkCommands,
        around: DeckCommands,
        changes: ChangesCommands,
    ) -> None:
        super().__init__(deck)
        self._runs = runs
        self._talk = talk
        self._around = around
        self._changes = changes

    async def show(self, run: RunSnapshot, tab: Tab | None = None) -> None:
        """Show a run in detail; on the way out its transcript, where that was asked for."""
        from ..detail.screen import RunDetailScreen

        deck = self._deck
        screen = RunDetailScreen(self._bridge, run, deck.run_store.get, self._act, deck.actions, tab)
        if await self.app.push_screen_wait(screen):
            deck.runs.select(screen.run.run_id)
            deck.panes.zoom(KeyContext.TRANSCRIPT)

    def _act(self, screen: RunDetailScreen, action_id: str) -> None:
        """Do what a key in the detail asks for; the cursor of the deck is on the run that is shown."""
        deck, run = self._deck, screen.run
        deck.runs.select(run.run_id)
        action = next((action for action in deck.actions if action.id == action_id), None)
        context = replace(deck.action_context, run=run, marked=0, place=KeyContext.DETAIL)
        if action and (obstacle := action.refusal(context)):
            deck.refuse(action, said(obstacle, deck.actions))
            return
        match action_id:
            case "next_run" | "previous_run":
                deck.runs.go_beside(1 if action_id == "next_run" else -1)
            case "next_unseen" | "previous_unseen":
                self._around.go_to_needing(1 if action_id == "next_unseen" else -1, replies=False)
            case "stop":
                self.spawn(self._runs.stop, (run,))
            case "follow_up":
                self._mark_seen((run,))
                if run.can_talk:
                    screen.dismiss(False)
                    deck.call_after_refresh(self._talk.say_to, run)
                else:
                    self._talk.say_to(run)
            case "changes":
                self._mark_seen((run,))
                self.spawn(self._changes.show, run)
            case "attach" if run.meta.runner == RunnerKind.TMUX:
                self._runs.attach_or_zoom()
            case "attach":
                screen.dismiss(True)
            case _:
                pass
        if (other := deck.run) and other.run_id != run.run_id:
            self._mark_seen((other,))
            screen.show_run(other)
