"""The command that shows one run in detail, and the keys there, which act on that run and not on the selected ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.run.model import RunnerKind
from ..changes.commands import ChangesCommands
from ..commands import Commands
from ..keys.command import (
    DECK,
    TRANSCRIPT,
    Action,
    KeyContext,
    Method,
    action_of,
    at,
    command,
    moves,
    needs_run,
    unbound,
)
from ..runs.commands import RunCommands, RunListCommands
from ..talk.commands import TalkCommands

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...core.run.snapshot import RunSnapshot
    from ._screen import RunDetailScreen
    from .page import Section, Tab

DETAIL = KeyContext.DETAIL
_TABS = {
    "transcript": ("transcript", "Show the end of the transcript."),
    "answer": ("answer", "Show the answer, or the text so far."),
    "changes": ("changes", "Show the run's changes, other runs in the same directory, and the check result."),
    "facts": ("overview", "Show status, check, cost, changes and model, the settings, and all details in sections."),
}
"""By id: label and help."""


def _in_detail(method: Callable[..., object], key: str, rank: int, *, after: str = "") -> Callable[[Method], Method]:
    """Declare an action of the deck for the shown run, with its own id, rank and help."""
    action = action_of(method)
    return command(
        f"detail_{action.id}",
        at(DETAIL, key),
        action.name,
        "",
        action.needs,
        do=f"screen.act('{action.id}')",
        footer=rank,
        name_here=action.name_here,
        changes=action.changes,
        writes=action.writes,
        after=after,
    )


class DetailCommands(Commands):
    opens = (".page",)

    @command("detail", at(DECK, "i"), "detail", needs=needs_run, footer=13)
    async def show(self, run: RunSnapshot, target: Tab | Section | None = None) -> None:
        """Show the highlighted run's details: transcript, answer, changes and overview."""
        from ._screen import RunDetailScreen

        deck = self._deck
        screen = RunDetailScreen(self._bridge, run, deck.run_store.get, self._act, deck.actions, target)
        if await self.app.push_screen_wait(screen):
            deck.runs.select(screen.run.run_id)
            deck.panes.zoom(TRANSCRIPT)

    @command("tab_prompt", unbound(DETAIL), "prompt", "Show the prompt and system prompt.", needs_run, args=("prompt",))
    @command("tab_usage", unbound(DETAIL), "usage", "Show the usage of each message.", needs_run, args=("usage",))
    @command("tab_files", unbound(DETAIL), "files", "List the run's files.", needs_run, args=("files",))
    @command("tab_events", unbound(DETAIL), "events", "Show the latest events, as stored.", needs_run, args=("events",))
    async def show_section(self, run: RunSnapshot, name: str) -> None:
        from .page import Section

        await self.show(run, Section(name))

    def _act(self, screen: RunDetailScreen, action_id: str) -> None:
        """Do the action of a key in the details; it moves the deck's cursor to the shown run."""
        deck, run = self._deck, screen.run
        deck.runs.select(run.run_id)
        if self._obstacle(action_id, replace(deck.action_context, run=run, marked=0, key_context=DETAIL)):
            return
        self._ask(action_id, screen)
        if (highlighted := deck.run) and highlighted.run_id != run.run_id:
            self._mark_seen((highlighted,))
            screen.show_run(highlighted)

    to_tabs = (
        *(Action(f"tab_{name}", at(DETAIL, str(number)), label, sentence, do=f"screen.show_tab('{name}')")
          for number, (name, (label, sentence)) in enumerate(_TABS.items(), start=1)),
        Action("next_tab", at(DETAIL, "right", "l", "tab"), "next tab", "Go to the next tab.", do="screen.turn(1)"),
        Action("previous_tab", at(DETAIL, "left", "h", "shift+tab"), "previous tab", "Go to the previous tab.",
               do="screen.turn(-1)"),
    )  # fmt: skip

    @command(
        "next_run",
        at(DETAIL, "J"),
        "next run",
        "Go to the run below in the list.",
        do="screen.act('next_run')",
        args=(1,),
    )
    @command(
        "previous_run",
        at(DETAIL, "K"),
        "previous run",
        "Go to the run above in the list.",
        do="screen.act('previous_run')",
        args=(-1,),
    )
    def go_beside(self, _: RunDetailScreen, step: int) -> None:
        self._deck.runs.go_beside(step)

    @command(
        "detail_next_unseen",
        at(DETAIL, "]"),
        "next for you",
        "Go to the next run that needs you.",
        do="screen.act('next_unseen')",
        args=(1,),
    )
    @command(
        "detail_previous_unseen",
        at(DETAIL, "["),
        "previous for you",
        "Go to the previous run that needs you.",
        do="screen.act('previous_unseen')",
        args=(-1,),
    )
    def go_to_needing(self, _: RunDetailScreen, step: int) -> None:
        self._of(RunListCommands).go_to_needing(step, replies=False)

    @_in_detail(RunCommands.stop, "x", 6)
    def stop(self, screen: RunDetailScreen) -> None:
        """Stop this run gracefully. Its work is kept."""
        self.spawn(self._of(RunCommands).stop, (screen.run,))

    @_in_detail(TalkCommands.say, "s", 7)
    def say(self, screen: RunDetailScreen) -> None:
        """Send a message to this run, or continue its conversation."""
        run, talk = screen.run, self._of(TalkCommands)
        self._mark_seen((run,))
        if run.can_talk:
            screen.dismiss(False)
            self._deck.call_after_refresh(talk.say_to, run)
        else:
            talk.say_to(run)

    @_in_detail(RunCommands.attach_or_zoom, "a", 5)
    def attach(self, screen: RunDetailScreen) -> None:
        """Attach to the run's tmux pane, or show its transcript full screen."""
        if screen.run.meta.runner == RunnerKind.TMUX:
            self._of(RunCommands).attach_or_zoom()
        else:
            screen.dismiss(True)

    @_in_detail(ChangesCommands.show, "c", 8, after="changes")
    def show_changes(self, screen: RunDetailScreen) -> None:
        """Show this run's changes. Press it again to review, apply or merge them."""
        self._mark_seen((screen.run,))
        self.spawn(self._of(ChangesCommands).show, screen.run)

    @command("help_on_detail", at(DETAIL, "?"), "help", do="screen.act('help_on_detail')")
    def show_help(self, _: RunDetailScreen) -> None:
        """Show the most used keys here. Press it again for all keys."""
        self._show_help(key_context=DETAIL)

    on_page = (
        Action("open_shown", at(DETAIL, "enter"), "open", do="screen.open_shown", footer=3,
               help="Open the transcript on the deck, a file in your pager or the changes. Fold or unfold a section."),
        Action("copy_shown", at(DETAIL, "y"), "copy", do="screen.copy_shown", footer=4,
               help="Copy the tab's or section's content, or the highlighted file's path."),
        *moves((DETAIL,), "screen.move", "detail_"),
    )  # fmt: skip
