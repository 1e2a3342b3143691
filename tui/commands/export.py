"""The actions that take text out of the app: copy, page and save."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ...core import paths
from ...core.run.describe import size_text
from ...core.run.snapshot import RunSnapshot
from ...core.system.files import open_private
from ...core.system.line_file import LineFile
from ...core.text.plain import plain
from ..deck.protocol import DeckView
from ..dialogs.ask import AskScreen
from ..terminal.handover import page_file
from ..text.format import short_path
from ..transcript.export import exists, file_name, full_path, save
from .base import Commands, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi

CLIPBOARD = 74_994
"""Bytes that every terminal which takes a clipboard at all takes: 100,000 characters of base64."""

LARGE = 16 * 1024 * 1024
"""Bytes of a file from which on one waits for its text."""


class ExportCommands(Commands):
    """Copy, page and save."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self._paging = False
        self.table = {
            "copy_entry": self._copy_entry,
            "copy_answer": lambda: self._with_run(self._copy_answer),
            "page_transcript": lambda: self._with_run(self._page),
            "save_run": lambda: self._with_run(self._ask_path),
        }

    def _copy_entry(self) -> None:
        if text := self._deck.transcript.entry_text_at_cursor():
            self._copy(text, "")
        else:
            self._say("There is nothing under the cursor.")

    async def _copy_answer(self, run: RunSnapshot) -> None:
        result = await self._bridge.call(self._bridge.engine.result, run.run_id)
        if result is None:
            self._say(f"{name_of(run)} has no answer yet: it is {run.status}.")
        elif not (result.final_text or "").strip():
            self._say(f"{name_of(run)} ended without an answer ({result.status}: {result.reason}).")
        else:
            self._copy(plain(result.final_text or ""), f"the answer of {name_of(run)}, ")

    def _copy(self, text: str, what: str) -> None:
        self._app.copy_to_clipboard(text)
        lines = text.count("\n") + 1
        said = f"Copied {what}{lines} line{'' if lines == 1 else 's'}, {size_text(len(text.encode()))}."
        if len(text.encode()) > CLIPBOARD:
            said += (
                f" Many terminals take less than that: {self._key('page_transcript')} opens the transcript in a pager."
            )
        self._say(said)

    # --- the pager -----------------------------------------------------------------------------------------------

    async def _page(self, run: RunSnapshot) -> None:
        transcript = self._deck.transcript
        path, view = transcript.source_path, transcript.view
        if path is None or transcript.run_id != run.run_id or self._paging:
            return
        self._paging = True
        with tempfile.TemporaryDirectory(prefix="subdeck-", ignore_cleanup_errors=True) as directory:
            text_path = os.path.join(directory, f"{run.meta.short_id}-{view}.txt")
            try:
                if size := large(path):
                    self._say(f"Writing {size_text(size)} as text for the pager; going to another run cancels it.")
                written = partial(self._is_shown, run.run_id, view)
                complete = await self._bridge.call(write_text, path, view, text_path, written)
                if complete and (problem := page_file(self._app, text_path)):
                    self._say(problem, error=True)
            finally:
                self._paging = False

    def _is_shown(self, run_id: str, view: str) -> bool:
        transcript = self._deck.transcript
        return (run_id, view) == (transcript.run_id, transcript.view) and self._deck.screen.is_attached

    # --- the file ------------------------------------------------------------------------------------------------

    async def _ask_path(self, run: RunSnapshot) -> None:
        cwd = self._bridge.engine.cwd
        name = file_name(run.meta.preset or "adhoc", run.meta.short_id)
        hint = f"A markdown file; a relative path begins in {short_path(cwd, 44)}."
        take = partial(self._save, run, cwd)
        screen = AskScreen(self._bridge, f"Save {name_of(run)} as markdown", take, value=name, hint=hint)
        self._app.push_screen(screen)

    async def _save(self, run: RunSnapshot, cwd: str, written: str) -> bool:
        path = full_path(written, cwd) if written.strip() else ""
        over = await self._bridge.call(exists, path)
        if over and not await self._confirmed("Overwrite this file?", short_path(path, 70), "Overwrite"):
            return False
        size = await self._bridge.call(save_run, self._bridge.engine, run, path, over=over)
        self._say(f"Saved {name_of(run)} to {short_path(path)}, {size_text(size)}.")
        return True


def large(path: str) -> int:
    """Return the size of a file on whose text one has to wait, else 0."""
    mark = LineFile(path).mark()
    return mark.size if mark and mark.size > LARGE else 0


def write_text(path: str, view: str, target: str, wanted: Callable[[], bool]) -> bool:
    """Write a view as text; return whether it was wanted to the end."""
    from ..transcript.export import text_of

    with open(target, "x", encoding="utf-8", opener=open_private) as file:
        for piece in text_of(LineFile(path), view):
            if not wanted():
                return False
            file.write(piece)
    return wanted()


def save_run(engine: EngineApi, run: RunSnapshot, path: str, *, over: bool) -> int:
    """Write a run as markdown; return how many bytes. Raises OSError."""
    return save(path, _pieces(engine, run), over=over)


def _pieces(engine: EngineApi, run: RunSnapshot) -> Iterator[str]:
    from ...core.run.events import EventTail
    from ...core.run.markdown import run_markdown

    tail = EventTail(engine.line_file(run.run_id, paths.EVENTS).path)
    return run_markdown(run, tail, engine.result(run.run_id))
