"""The commands on the transcript: show it otherwise, go to errors and times, and take text out of the app."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...core import paths
from ...core.run.describe import size_text
from ...core.system.files import open_private
from ...core.system.line_file import LineFile
from ..deck.screen import MainScreen
from ..dialogs.ask import AskScreen
from ..feed.lines import View
from ..terminal.handover import page_file
from ..text.format import short_path
from ..transcript.export import exists, file_name, full_path, save, text_of
from ..transcript.matches import edit_matcher, error_matcher, find
from ..transcript.time import FORMS, offset_at, parse_time
from .base import Commands, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi
    from ..transcript.matches import Match, NewMatcher

CLIPBOARD = 74_994
"""Bytes that every terminal which takes a clipboard at all takes: 100,000 characters of base64."""

LARGE = 16 * 1024 * 1024
"""Bytes of a file from which on one waits for its text."""


class TranscriptCommands(Commands):
    def __init__(self, deck: MainScreen) -> None:
        super().__init__(deck)
        self._is_looking = False
        """For an error or an edit."""
        self._opens_found = False
        """Whether it was asked to be opened before it was found."""
        self._is_paging = False

    def next_view(self) -> None:
        views = list(View)
        transcript = self._deck.transcript
        transcript.set_view(views[(views.index(View(transcript.view)) + 1) % len(views)])

    # --- finding -------------------------------------------------------------------------------------------------

    def go_to_error(self, by: int) -> None:
        self._go_to("error", error_matcher, by)

    def go_to_edit(self, by: int) -> None:
        self._go_to("edit", edit_matcher, by)

    def _go_to(self, what: str, matcher: NewMatcher, by: int) -> None:
        transcript = self._deck.transcript
        if transcript.view == View.STDERR:
            self._say(f"Not available in the stderr view. {self._key('search')} searches it.")
        elif transcript.source_path is not None and not self._is_looking:
            self._is_looking = True
            self.spawn(self._find, transcript.source_path, what, matcher, by)

    async def _find(self, path: str, what: str, matcher: NewMatcher, by: int) -> None:
        transcript = self._deck.transcript
        shown = transcript.shown
        here = max(0, transcript.cursor_offset or 0)
        # While the end is followed no line is chosen: what is in the last one is a previous one.
        start = here + (1 if by > 0 or transcript.following else 0)
        try:
            match = await self._bridge.call(find, LineFile(path), matcher, start, by, lambda: shown != transcript.shown)
        finally:
            opens, self._opens_found, self._is_looking = self._opens_found, False, False
        if shown == transcript.shown:
            self._go_to_match(what, match, here, by)
            if opens and match.offset is not None:
                transcript.toggle_at_cursor()

    def open_entry(self) -> None:
        """Open the line under the cursor; while it is still on its way to another, that one."""
        if self._is_looking:
            self._opens_found = not self._opens_found
        else:
            self._deck.transcript.toggle_at_cursor()

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

    def ask_time(self) -> None:
        self.app.push_screen(AskScreen(self._bridge, "Go to a time", self._go_to_time, hint=f"{FORMS}."))

    async def _go_to_time(self, written: str) -> bool:
        time = parse_time(written)
        shown = self._deck.transcript.shown
        if shown[2] is None:
            return True
        offset = await self._bridge.call(offset_at, LineFile(shown[2]), time)
        if shown == self._deck.transcript.shown:
            self._deck.transcript.show_offset(offset)
        return True

    # --- the clipboard -------------------------------------------------------------------------------------------

    async def copy_entry(self) -> None:
        offset = self._deck.transcript.cursor_offset
        if offset is not None and (text := await self._bridge.call(self._deck.transcript.document.full_text, offset)):
            self.copy(text, "")
        else:
            self._say("Nothing under the cursor.")

    def copy(self, text: str, what: str) -> None:
        """Copy a text, and say how much it was; `what` names it, and ends with a comma."""
        self.app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        said = f"Copied {what}{lines} line{'' if lines == 1 else 's'}, {size_text(len(text.encode()))}."
        if len(text.encode()) > CLIPBOARD:
            said += f" Many terminals accept less. {self._key('page_transcript')} opens the transcript in a pager."
        self._say(said)

    # --- the pager -----------------------------------------------------------------------------------------------

    async def page(self, run: RunSnapshot) -> None:
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

    async def ask_path(self, run: RunSnapshot) -> None:
        cwd = self._bridge.engine.cwd
        name = file_name(run.meta.preset or "adhoc", run.meta.short_id)
        hint = f"A markdown file. Relative paths start in {short_path(cwd, 44)}."
        take = partial(self._save, run, cwd)
        screen = AskScreen(self._bridge, f"Save {name_of(run)} as markdown", take, value=name, hint=hint)
        self.app.push_screen(screen)

    async def _save(self, run: RunSnapshot, cwd: str, written: str) -> bool:
        path = full_path(written, cwd) if written.strip() else ""
        over = await self._bridge.call(exists, path)
        if over and not await self._confirmed("Overwrite this file?", short_path(path, 70), "Overwrite"):
            return False
        size = await self._bridge.call(save_run, self._bridge.engine, run, path, over=over)
        self._mark_seen((run,))
        self._say(f"Saved {name_of(run)} to {short_path(path)}, {size_text(size)}.")
        return True


def large(path: str) -> int:
    """Return the size of a file on whose text one has to wait, else 0."""
    mark = LineFile(path).mark()
    return mark.size if mark and mark.size > LARGE else 0


def write_text(path: str, view: str, target: str, wanted: Callable[[], bool]) -> bool:
    """Write a view as text; return whether it was wanted to the end."""
    with open(target, "x", encoding="utf-8", opener=open_private) as file:
        for piece in text_of(LineFile(path), view):
            if not wanted():
                return False
            file.write(piece)
    return wanted()


def save_run(engine: EngineApi, run: RunSnapshot, path: str, *, over: bool) -> int:
    """Write a run as markdown; return how many bytes. Raises OSError."""
    from ...core.run.events import EventTail
    from ...core.run.markdown import run_markdown

    tail = EventTail(engine.line_file(run.run_id, paths.EVENTS).path)
    return save(path, run_markdown(run, tail, engine.result(run.run_id)), over=over)
