"""The commands on the transcript: its view, errors, edits and times, the search in it, and copies of its text."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...core import paths
from ...core.run.describe import size_text
from ...core.system.files import open_private
from ...core.system.line_file import LineFile
from ..commands import Commands, name_of
from ..feed.lines import View
from ..keys.command import DECK, NO_RUN, TRANSCRIPT, Action, ActionContext, KeyContext, at, command, needs_run, unbound
from ..text.format import short_path

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi
    from ._matches import Match, NewMatcher

FILTER, SEARCH = KeyContext.FILTER, KeyContext.SEARCH
LARGE = 16 * 1024 * 1024
"""Bytes of a file whose text takes a while to prepare."""


def needs_run_to_search(context: ActionContext) -> str:
    return "" if context.run else f"{NO_RUN} Nothing to search."


def needs_pager(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "No terminal is available for a pager.")


class TranscriptCommands(Commands):
    opens = ("._export", "._matches", "._time")

    _is_looking = False
    """For an error or an edit."""
    _opens_match = False
    """Whether opening was requested before it was found."""
    _is_paging = False

    @command("open_entry", unbound(TRANSCRIPT), "unfold tool call", needs=needs_run)
    def open_entry(self) -> None:
        """Unfold or fold the tool call or thinking under the cursor."""
        if self._is_looking:  # the result is opened
            self._opens_match = not self._opens_match
        else:
            self._deck.transcript.toggle_at_cursor()

    @command("open_all", unbound(TRANSCRIPT), "unfold all", needs=needs_run)
    def open_all(self) -> None:
        """Unfold or fold all tool calls and thinking."""
        self._deck.transcript.toggle_all()

    @command("view", at(DECK, "t"), "view", needs=needs_run)
    def next_view(self) -> None:
        """Cycle the view: text, raw events, the agent's stderr."""
        views = list(View)
        transcript = self._deck.transcript
        transcript.set_view(views[(views.index(View(transcript.view)) + 1) % len(views)])

    @command("follow", at(DECK, "f"), "follow", needs=needs_run)
    def follow(self) -> None:
        """Follow the end of the transcript, or stop following."""
        self._deck.transcript.follow(not self._deck.transcript.following)

    @command("wrap", at(DECK, "w"), "wrap")
    def wrap(self) -> None:
        """Toggle wrapping of long lines in the transcript."""
        self._deck.transcript.set_wrap(not self._deck.transcript.wrapped)

    in_long_lines = (
        Action("left", at(TRANSCRIPT, "left"), "left", "Scroll left in long lines.", do="move('left')"),
        Action("right", at(TRANSCRIPT, "right"), "right", "Scroll right in long lines.", do="move('right')"),
    )

    # --- finding -------------------------------------------------------------------------------------------------

    @command("search", at(TRANSCRIPT, "/"), "search", needs=needs_run_to_search, writes=True, footer=5)
    def search(self) -> None:
        """Search the transcript, including folded text. A capital letter makes it case-sensitive."""
        self._deck.search.open()

    @command("next_match", at(SEARCH, "n"), "next", "Go to the next match.", footer=1, args=(1,))
    @command("previous_match", at(SEARCH, "N"), "previous", "Go to the previous match.", footer=1, args=(-1,))
    def go_to_match(self, by: int) -> None:
        self._deck.search.step(by)

    @command("end_search", at(SEARCH, "escape"), "end", footer=1)
    def end_search(self) -> None:
        """End the search and clear its highlights."""
        self._deck.search.end()

    in_prompt_line = (
        Action("keep", at(FILTER, "enter"), "keep", "Keep the filter or search and return to the pane.", do="keep",
               footer=1),
        Action("drop", at(FILTER, "escape"), "cancel", "Discard the input and restore the previous state.", do="drop",
               footer=2),
    )  # fmt: skip

    @command(
        "next_error", at(TRANSCRIPT, ")"), "next error", "Go to the next error in the transcript.", needs_run, args=(1,)
    )
    @command(
        "previous_error",
        at(TRANSCRIPT, "("),
        "previous error",
        "Go to the previous error in the transcript.",
        needs_run,
        args=(-1,),
    )
    def go_to_error(self, by: int) -> None:
        from ._matches import error_matcher

        self._go_to("error", error_matcher, by)

    @command(
        "next_edit",
        at(TRANSCRIPT, "}"),
        "next edit",
        "Go to the next edit of a file in the transcript; {open} shows it as a diff.",
        needs_run,
        footer=7,
        args=(1,),
    )
    @command(
        "previous_edit",
        at(TRANSCRIPT, "{"),
        "previous edit",
        "Go to the previous edit of a file in the transcript.",
        needs_run,
        args=(-1,),
    )
    def go_to_edit(self, by: int) -> None:
        from ._matches import edit_matcher

        self._go_to("edit", edit_matcher, by)

    def _go_to(self, what: str, matcher: NewMatcher, by: int) -> None:
        transcript = self._deck.transcript
        if transcript.view == View.STDERR:
            self._say(f"Not available in the stderr view. {self._key('search')} searches it.")
        elif transcript.source_path is not None and not self._is_looking:
            self._is_looking = True
            self.spawn(self._find, transcript.source_path, what, matcher, by)

    async def _find(self, path: str, what: str, matcher: NewMatcher, by: int) -> None:
        from ._matches import find

        transcript = self._deck.transcript
        shown = transcript.shown
        here = max(0, transcript.cursor_offset or 0)
        # While the end is followed no line is chosen: a match in the last line is a previous one.
        start = here + (1 if by > 0 or transcript.following else 0)
        try:
            match = await self._bridge.call(find, LineFile(path), matcher, start, by, lambda: shown != transcript.shown)
        finally:
            opens, self._opens_match, self._is_looking = self._opens_match, False, False
        if shown == transcript.shown:
            self._go_to_match(what, match, here, by)
            if opens and match.offset is not None:
                transcript.toggle_at_cursor()

    def _go_to_match(self, what: str, match: Match, here: int, by: int) -> None:
        transcript = self._deck.transcript
        if match.offset is None:
            self._say(f"No {what} in this transcript.")
            return
        if match.offset == here and not transcript.following:
            self._say(f"No other {what} in this transcript.")
        elif match.wrapped:
            where, end = ("after", "top") if by > 0 else ("before", "bottom")
            self._say(f"No {what} {where} this one. Continued from the {end}.")
        transcript.show_offset(match.offset)

    @command("go_to_time", unbound(TRANSCRIPT), "go to time", needs=needs_run, writes=True)
    def ask_time(self) -> None:
        """Go to a time in the transcript: 20:12, -5m from the end, +90s from the start, 50%."""
        from ..dialogs.ask import AskScreen
        from ._time import FORMS

        self.app.push_screen(AskScreen(self._bridge, "Go to a time", self._go_to_time, hint=f"{FORMS}."))

    async def _go_to_time(self, written: str) -> bool:
        from ._time import offset_at, parse_time

        time = parse_time(written)
        shown = self._deck.transcript.shown
        if shown[2] is None:
            return True
        offset = await self._bridge.call(offset_at, LineFile(shown[2]), time)
        if shown == self._deck.transcript.shown:
            self._deck.transcript.show_offset(offset)
        return True

    # --- the clipboard -------------------------------------------------------------------------------------------

    @command("copy_entry", at(TRANSCRIPT, "y"), "copy", needs=needs_run)
    async def copy_entry(self) -> None:
        """Copy the text under the cursor, including folds."""
        offset = self._deck.transcript.cursor_offset
        if offset is not None and (text := await self._bridge.call(self._deck.transcript.document.full_text, offset)):
            self._copy(text)
        else:
            self._say("Nothing under the cursor.")

    # --- the pager -----------------------------------------------------------------------------------------------

    @command("page_transcript", unbound(DECK), "open in pager", needs=needs_pager)
    async def page(self, run: RunSnapshot) -> None:
        """Open the whole unfolded transcript in your pager ($PAGER)."""
        import tempfile

        from ..terminal.handover import page_file

        transcript = self._deck.transcript
        path, view = transcript.source_path, transcript.view
        if path is None or transcript.run_id != run.run_id or self._is_paging:
            return
        self._is_paging = True
        with tempfile.TemporaryDirectory(prefix="subdeck-", ignore_cleanup_errors=True) as directory:
            text_path = os.path.join(directory, f"{run.meta.short_id}-{view}.txt")
            try:
                if size := large(path):
                    self._say(f"Preparing {size_text(size)} for the pager. Going to another run cancels it.")
                written = partial(self._is_shown, run.run_id, view)
                complete = await self._bridge.call(write_text, path, view, text_path, written)
                if complete and (problem := page_file(self.app, text_path)):
                    self._say(problem, error=True)
            finally:
                self._is_paging = False

    def _is_shown(self, run_id: str, view: str) -> bool:
        transcript = self._deck.transcript
        return (run_id, view) == (transcript.run_id, transcript.view) and self._deck.is_attached

    # --- the file ------------------------------------------------------------------------------------------------

    @command("save_run", unbound(DECK), "save run", needs=needs_run, changes=True, writes=True)
    async def ask_path(self) -> None:
        """Save the run as a markdown file. Asks for the path."""
        from ..dialogs.ask import AskScreen
        from ._export import file_name

        run = self._deck.run
        if run is None:
            return
        cwd = self._bridge.engine.cwd
        name = file_name(run.meta.preset or "adhoc", run.meta.short_id)
        hint = f"A markdown file. Relative paths start in {short_path(cwd, 44)}."
        take = partial(self._save, run, cwd)
        screen = AskScreen(self._bridge, f"Save {name_of(run)} as markdown", take, value=name, hint=hint)
        self.app.push_screen(screen)

    async def _save(self, run: RunSnapshot, cwd: str, written: str) -> bool:
        from ._export import exists, full_path

        path = full_path(written, cwd) if written.strip() else ""
        over = await self._bridge.call(exists, path)
        if over and not await self._confirmed("Overwrite this file?", short_path(path, 70), "Overwrite"):
            return False
        size = await self._bridge.call(save_run, self._bridge.engine, run, path, over=over)
        self._mark_seen((run,))
        self._say(f"Saved {name_of(run)} to {short_path(path)}, {size_text(size)}.")
        return True


def large(path: str) -> int:
    """Return the size of a file whose text takes time to prepare, otherwise 0."""
    mark = LineFile(path).mark()
    return mark.size if mark and mark.size > LARGE else 0


def write_text(path: str, view: str, target: str, is_wanted: Callable[[], bool]) -> bool:
    """Write a view as text; return whether it was wanted to the end."""
    from ._export import text_of

    with open(target, "x", encoding="utf-8", opener=open_private) as file:
        for piece in text_of(LineFile(path), view):
            if not is_wanted():
                return False
            file.write(piece)
    return is_wanted()


def save_run(engine: EngineApi, run: RunSnapshot, path: str, *, over: bool) -> int:
    """Write a run as markdown; return the number of bytes. Raises OSError."""
    from ...core.run.events import EventTail
    from ...core.run.markdown import run_markdown
    from ._export import save

    tail = EventTail(engine.line_file(run.run_id, paths.EVENTS).path)
    return save(path, run_markdown(run, tail, engine.result(run.run_id)), over=over)
