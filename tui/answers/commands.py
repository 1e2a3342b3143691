"""The commands that send text to your own command, the editor or the clipboard."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ...core.run.model import RunStatus
from ...core.system.files import open_private
from ...core.text.plain import disarmed, one_line
from ..commands import Commands, name_of
from ..keys.command import DECK, TRANSCRIPT, at, command, needs_run, needs_terminal_to_lend, unbound
from ..text.format import short_path
from ..transcript.commands import write_text

if TYPE_CHECKING:
    from ...core.run.markdown import CodeBlock
    from ...core.run.snapshot import RunSnapshot
    from ._locations import FileLocation
    from ._pipe import Piped

BLOCK_SHOWN = 44
"""Characters of a code block's first line in a row."""
PATH_SHOWN = 60


class AnswerCommands(Commands):
    opens = ("._locations", "._pipe", "..terminal.handover")

    _command = ""
    """The last command typed."""

    # --- to a command ------------------------------------------------------------------------------------------------

    @command("pipe", at(DECK, "|"), "pipe", needs=needs_terminal_to_lend, changes=True, after="copy_answer")
    async def pipe(self, run: RunSnapshot) -> None:
        """Pipe the run's answer or transcript to a shell command."""
        import tempfile

        from ..terminal.handover import pipe_file
        from ._pipe import Pipe, Piped, PipeScreen

        in_transcript = self._deck.panes.key_context is TRANSCRIPT or not run.has_ended
        proposed = Pipe(self._command, Piped.TRANSCRIPT if in_transcript else Piped.ANSWER)
        chosen = await self.app.push_screen_wait(PipeScreen(f"Pipe {name_of(run)} to a command", proposed))
        if chosen is None:
            return
        self._command = chosen.command
        with tempfile.TemporaryDirectory(prefix="subdeck-", ignore_cleanup_errors=True) as directory:
            path = os.path.join(directory, f"{run.meta.short_id}-{chosen.source}.txt")
            if await self._write(run, chosen.source, path) and (
                problem := pipe_file(self.app, path, chosen.command, cwd=self._bridge.engine.cwd)
            ):
                self._say(problem, error=True)

    async def _write(self, run: RunSnapshot, source: Piped, path: str) -> bool:
        """Write the text into a file; return whether there was one."""
        from ._pipe import Piped

        if source is Piped.TRANSCRIPT:
            transcript = self._deck.transcript
            shown, view = transcript.source_path, transcript.view
            if shown is None or transcript.run_id != run.run_id:
                return False
            return await self._bridge.call(write_text, shown, view, path, lambda: self._deck.is_attached)
        if (answer := await self._answer_of(run)) is None:
            return False
        await self._bridge.call(_write_file, path, answer)
        return True

    # --- to the clipboard --------------------------------------------------------------------------------------------

    @command("copy_answer", unbound(DECK), "copy answer", needs=needs_run, after="copy_entry")
    async def copy_answer(self, run: RunSnapshot) -> None:
        """Copy the run's answer, or one of its code blocks."""
        if (answer := await self._answer_of(run)) is not None and (part := await self._chosen_part(answer)):
            what, text = part
            self._copy(text, f"{what} of {name_of(run)}, ")

    async def _chosen_part(self, answer: str) -> tuple[str, str] | None:
        """Ask for one of the code blocks, or the whole; return its name and text."""
        from ...core.run.markdown import code_blocks
        from ..dialogs.pick import PickScreen

        blocks = code_blocks(answer)
        if not blocks:
            return "the answer", answer
        rows = ["the whole answer", *(_block_row(number, block) for number, block in enumerate(blocks, start=1))]
        chosen = await self.app.push_screen_wait(PickScreen("Copy the answer", rows, end="copy"))
        if chosen is None:
            return None
        return ("the answer", answer) if chosen == 0 else (f"code block {chosen}", blocks[chosen - 1].text)

    async def _answer_of(self, run: RunSnapshot) -> str | None:
        """Return the answer, made safe for a terminal, with its tabs; if there is none, report it."""
        result = await self._bridge.call(self._bridge.engine.result, run.run_id)
        if result is None:
            self._say(f"{name_of(run)} has no answer yet. It is {run.status}.")
        elif result.status is not RunStatus.COMPLETED or not (result.final_text or "").strip():
            more = f" {self._key('detail')} shows its last text." if result.final_text else ""
            self._say(f"{name_of(run)} finished without an answer ({result.status}: {result.reason}).{more}")
        else:
            return disarmed(result.final_text or "")
        return None

    # --- to the editor -----------------------------------------------------------------------------------------------

    @command("open_path", unbound(TRANSCRIPT), "open file", "", needs_terminal_to_lend, changes=True, after="pipe")
    async def open_path(self, run: RunSnapshot) -> None:
        """Open the file path under the cursor in your editor ($EDITOR), at its line number."""
        from ..dialogs.pick import PickScreen
        from ..terminal.handover import edit_file

        view = self._deck.transcript
        offset = view.cursor_offset
        whole = "" if offset is None else await self._bridge.call(view.document.full_text, offset)
        texts = (view.row_text_at_cursor(), whole)
        locations = await self._bridge.call(_first_locations, texts, run.meta.cwd)
        if not locations:
            self._say("No existing file path under the cursor.")
            return
        location = locations[0]
        if len(locations) > 1:
            rows = [_location_row(location) for location in locations]
            chosen = await self.app.push_screen_wait(PickScreen("Open a file", rows, end="open"))
            if chosen is None:
                return
            location = locations[chosen]
        if problem := edit_file(self.app, location.path, line=location.line):
            self._say(problem, error=True)


def _block_row(number: int, block: CodeBlock) -> str:
    lines = block.text.count("\n")
    language = one_line(block.language, 12) or "code"
    first = one_line(next(filter(str.strip, block.text.split("\n")), ""), BLOCK_SHOWN)
    return f"{number}  {language}, {lines} line{'' if lines == 1 else 's'}:  {first}"


def _location_row(location: FileLocation) -> str:
    return short_path(location.path, PATH_SHOWN) + (f":{location.line}" if location.line else "")


def _first_locations(texts: tuple[str, ...], cwd: str) -> list[FileLocation]:
    from ._locations import locations_in

    for text in texts:
        if locations := locations_in(text, cwd):
            return locations
    return []


def _write_file(path: str, text: str) -> None:
    with open(path, "x", encoding="utf-8", errors="replace", opener=open_private) as file:
        file.write(text if text.endswith("\n") else f"{text}\n")
