"""The command that shows one run in detail, and the keys there, which act on that run whatever is selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.run.model import RunnerKind
from ..changes.commands import ChangesCommands
from ..commands import Commands
from ..keys.command import DECK, TRANSCRIPT, Action, KeyContext, action_of, at, command, moves, needs_run
from ..runs.commands import RunCommands, RunListCommands
from ..talk.commands import TalkCommands

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.run.snapshot import RunSnapshot
    from ._screen import RunDetailScreen
    from .page import Tab

DETAIL = KeyContext.DETAIL
_TABS = {
    "transcript": "Show the end of the transcript.",
    "answer": "Show the answer, or the text so far.",
    "prompt": "Show the prompt that the agent received, and its system prompt.",
    "facts": "Show how the run was launched, its settings and its result.",
    "usage": "Show the tokens and cost of each message.",
    "files": "List the run's files.",
    "events": "Show the latest events as stored in the file.",
    "changes": "Show the run's changes, other runs in the same directory, and the check result.",
}
_TAB_LABELS = {"facts": "overview"}
"""The tabs with a label that is not their id."""


def _here(method: Callable[..., object], key: str, rank: int, help_text: str, *, after: str = "") -> Action:
    """Return an action of the deck as it is done here: with its own id, rank and help, on the run that is shown."""
    action = action_of(method)
    return replace(
        action,
        id=f"detail_{action.id}",
        keys=at(DETAIL, key),
        help=help_text,
        footer=rank,
        do=f"screen.act('{action.id}')",
        after=after,
    )


class DetailCommands(Commands):
    opens = (".page",)

    @command("detail", at(DECK, "i"), "detail", needs=needs_run, footer=13)
    async def show(self, run: RunSnapshot, tab: Tab | None = None) -> None:
        """Show the highlighted run's details: state, answer, prompt, overview, usage, files."""
        from ._screen import RunDetailScreen

        deck = self._deck
        screen = RunDetailScreen(self._bridge, run, deck.run_store.get, self._act, deck.actions, tab)
        if await self.app.push_screen_wait(screen):
            deck.runs.select(screen.run.run_id)
            deck.panes.zoom(TRANSCRIPT)

    def _act(self, screen: RunDetailScreen, action_id: str) -> None:
        """Do what a key in the detail asks for; the cursor of the deck is on the run that is shown."""
        deck, run = self._deck, screen.run
        deck.runs.select(run.run_id)
        if self._obstacle(action_id, replace(deck.action_context, run=run, marked=0, place=DETAIL)):
            return
        runs, talk = self._of(RunCommands), self._of(TalkCommands)
        match action_id:
            case "next_run" | "previous_run":
                deck.runs.go_beside(1 if action_id == "next_run" else -1)
            case "next_unseen" | "previous_unseen":
                step = 1 if action_id == "next_unseen" else -1
                self._of(RunListCommands).go_to_needing(step, replies=False)
            case "stop":
                self.spawn(runs.stop, (run,))
            case "follow_up":
                self._mark_seen((run,))
                if run.can_talk:
                    screen.dismiss(False)
                    deck.call_after_refresh(talk.say_to, run)
                else:
                    talk.say_to(run)
            case "changes":
                self._mark_seen((run,))
                self.spawn(self._of(ChangesCommands).show, run)
            case "attach" if run.meta.runner == RunnerKind.TMUX:
                runs.attach_or_zoom()
            case "attach":
                screen.dismiss(True)
            case _:
                pass
        if (other := deck.run) and other.run_id != run.run_id:
            self._mark_seen((other,))
            screen.show_run(other)

    on_page = (
        *(Action(f"tab_{name}", at(DETAIL, str(number)), _TAB_LABELS.get(name, name), sentence,
                 do=f"screen.show_tab('{name}')")
          for number, (name, sentence) in enumerate(_TABS.items(), start=1)),
        Action("next_tab", at(DETAIL, "right", "tab"), "next tab", "Go to the next tab.", do="screen.turn(1)"),
        Action("previous_tab", at(DETAIL, "left", "shift+tab"), "previous tab", "Go to the previous tab.",
               do="screen.turn(-1)"),
        Action("next_run", at(DETAIL, "J"), "next run", "Go to the run below in the list.",
               do="screen.act('next_run')"),
        Action("previous_run", at(DETAIL, "K"), "previous run", "Go to the run above in the list.",
               do="screen.act('previous_run')"),
        Action("detail_next_unseen", at(DETAIL, "]"), "next for you", "Go to the next run that needs you.",
               do="screen.act('next_unseen')"),
        Action("detail_previous_unseen", at(DETAIL, "["), "previous for you", "Go to the previous run that needs you.",
               do="screen.act('previous_unseen')"),
        _here(RunCommands.stop, "x", 6, "Stop this run gracefully. Its work is kept."),
        _here(TalkCommands.say, "s", 7, "Send a message to this run, or continue its conversation."),
        _here(RunCommands.attach_or_zoom, "a", 5, "Attach to the run's tmux pane, or show its transcript full screen."),
        Action("open_shown", at(DETAIL, "enter"), "open", do="screen.open_shown", footer=3,
               help="Open the tab's content: the transcript on the deck, a file in your pager, the changes."),
        Action("copy_shown", at(DETAIL, "y"), "copy", do="screen.copy_shown", footer=4,
               help="Copy the tab's content, or the highlighted file's path."),
        *moves((DETAIL,), "screen.move", "detail_"),
        _here(ChangesCommands.show, "c", 8, "Review this run's changes.", after="changes"),
    )  # fmt: skip
