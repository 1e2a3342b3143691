"""The transcript pane without the app, on a real file, with read results applied at once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from subdeck.core import paths
from subdeck.core.run.events import AssistantText, Event, Thinking, ToolCall, ToolResult, encode_event
from subdeck.core.system.line_file import LineFile
from subdeck.tui.feed.lines import View
from subdeck.tui.feed.reader import RunReader
from subdeck.tui.theme import DARK
from subdeck.tui.transcript._rows import TextPosition
from subdeck.tui.transcript.pane import Transcript
from textual import on
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from .fake_engine import a_run, stamp


def text(seq: int, said: str) -> AssistantText:
    return AssistantText(seq=seq, ts=stamp(seq), text=said)


def thought(seq: int, said: str) -> Thinking:
    return Thinking(seq=seq, ts=stamp(seq), text=said)


def call(seq: int, name: str = "read", **args: object) -> ToolCall:
    return ToolCall(seq=seq, ts=stamp(seq), tool_call_id=str(seq), tool_name=name, args=args)


def result(seq: int, of: int, content: str, name: str = "read", **fields: object) -> ToolResult:
    known: dict[str, object] = {"is_error": False}
    return ToolResult(seq=seq, ts=stamp(seq), tool_call_id=str(of), tool_name=name, content=content, **(known | fields))  # type: ignore[arg-type]


class ReadingApp(App[None]):
    CSS = "Transcript { height: 1fr; border: round grey; }"

    def __init__(self, directory: str) -> None:
        super().__init__()
        self.directory = directory
        self.transcript = Transcript()
        self.reader = self._reader(View.READABLE)

    def compose(self) -> ComposeResult:
        yield self.transcript

    def on_mount(self) -> None:
        self.register_theme(DARK)
        self.theme = DARK.name
        self.transcript.focus()

    @on(Transcript.ViewChosen)
    def show_view(self, message: Transcript.ViewChosen) -> None:
        self.reader = self._reader(message.view)
        self.read_on()

    def read_on(self, pieces: int = 1000) -> None:
        """Let the pane read the available lines."""
        for _ in range(pieces):
            piece = self.reader.read()
            self.transcript.take(piece)
            if not piece.more:
                return

    def _reader(self, view: View) -> RunReader:
        return RunReader("run", view, LineFile(os.path.join(self.directory, view.file)))


class Pane:
    """The pane under test, with access to the user's view."""

    def __init__(self, app: ReadingApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.transcript = app.transcript

    @property
    def rows(self) -> list[str]:
        """Return the rows of the view, without the time."""
        indent = self.transcript.document.view.indent
        height = self.transcript.scrollable_content_region.height
        return [self.transcript.render_line(y).text[indent:].rstrip() for y in range(height)]

    @property
    def said(self) -> list[str]:
        """Return the rows without empty ones."""
        return [row for row in self.rows if row]

    @property
    def pointed(self) -> list[str]:
        """Return the rows under the cursor."""
        height = self.transcript.scrollable_content_region.height
        lines = [self.transcript.render_line(y).text for y in range(height)]
        indent = self.transcript.document.view.indent
        return [line[indent:].rstrip() for line in lines if line.startswith("▌")]

    @property
    def edge(self) -> str:
        return str(self.transcript.border_subtitle)

    @property
    def cursor(self) -> TextPosition | None:
        return self.transcript.cursor

    async def press(self, *keys: str) -> None:
        """Move like the keys of a pane."""
        for key in keys:
            self.transcript.action_move(key)
        await self.pilot.pause()

    async def write(self, *events: Event) -> None:
        await self.write_bytes(paths.EVENTS, b"".join(map(encode_event, events)))

    async def write_bytes(self, file: str, content: bytes) -> None:
        append(self.app.directory, file, content)
        self.app.read_on()
        await self.pilot.pause()


def append(directory: str, file: str, content: bytes) -> None:
    with open(os.path.join(directory, file), "ab") as opened:
        opened.write(content)


@asynccontextmanager
async def reading(
    *events: Event, size: tuple[int, int] = (80, 24), pieces: int = 1000, **run_fields: object
) -> AsyncIterator[Pane]:
    """Open the pane on these events; `pieces` limits the first read."""
    with tempfile.TemporaryDirectory() as directory:
        append(directory, paths.EVENTS, b"".join(map(encode_event, events)))
        app = ReadingApp(directory)
        async with app.run_test(size=size) as pilot:
            last_seq = events[-1].seq if events else 0
            app.transcript.show(a_run(1, **({"last_seq": last_seq} | run_fields)))  # type: ignore[arg-type]
            app.read_on(pieces)
            await pilot.pause()
            yield Pane(app, pilot)
