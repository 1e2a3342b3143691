"""Edit the text of a preset's file; what would not work is said while it is typed, and is never written."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Paste
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Button, Static, TextArea
from textual.worker import Worker

from ...core.errors import SubdeckError
from ...core.text.placeholders import held, released, shown
from ...core.text.plain import one_line, plain
from ..actions import KeyContext, bindings
from ..dialogs.confirm import ConfirmScreen
from ..feed.bridge import Bridge
from ..terminal.handover import edit_text
from ..text.format import format_error, notify_failure, short_path
from ..widgets.choice import Choice
from .draft import PROJECT, USER, Draft, judge, place_of, save

if TYPE_CHECKING:
    from textual.app import App

    from ...core.launch.preset_check import PresetCheck
    from ...core.presets.text import FileChanged

OURS = frozenset(binding.key for binding in bindings(KeyContext.EDIT) if not isinstance(binding, tuple))
"""Keys that Textual gives to text areas and the editor to something else."""


class PresetArea(TextArea):
    """Holds the file's text with stand-ins for what a screen cannot take; Tab leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+home", "go_to_end(False)", show=False),
        Binding("ctrl+end", "go_to_end(True)", show=False),
    ]

    def __init__(self, text: str) -> None:
        super().__init__(held(text), show_line_numbers=True, soft_wrap=True, tab_behavior="focus", id="text")
        for key in OURS & self._bindings.key_to_bindings.keys():
            del self._bindings.key_to_bindings[key]

    @property
    def written(self) -> str:
        """The text as it goes into the file."""
        return released(self.text)

    def put(self, text: str) -> None:
        """Replace the text; what stood there comes back by undo."""
        self.history.checkpoint()
        self.replace(held(text), (0, 0), self.document.end, maintain_selection_offset=False)
        self.history.checkpoint()

    def action_go_to_end(self, last: bool) -> None:
        """Put the cursor at the end of the text, or at its beginning."""
        self.move_cursor(self.document.end if last else (0, 0))

    def go_to_line(self, line: int) -> None:
        """Put the cursor on a line, from 1."""
        self.move_cursor((min(line, self.document.line_count) - 1, 0), center=True)

    def get_line(self, line_index: int) -> Text:
        return Text(shown(self.document.get_line(line_index)), end="", no_wrap=True)

    def on_paste(self, event: Paste) -> None:
        # Terminals send a carriage return for each newline of what is pasted.
        event.text = plain(event.text.replace("\r\n", "\n").replace("\r", "\n"))


class Wish(StrEnum):
    OVER = "over"
    """Write what was typed over what is there now."""
    RELOAD = "reload"
    """Go on with what is there now; what was typed comes back by undo."""


class ChangedFileScreen(ModalScreen[Wish]):
    """Answers None for going back to the text, which is what Enter does."""

    BINDINGS = bindings(KeyContext.PICK)
    CSS_PATH = "../dialogs/dialogs.tcss"

    def __init__(self, what: str, path: str, *, gone: bool) -> None:
        super().__init__()
        self._what = f"{what[:1].upper()}{what[1:]}:\n{path}"
        self._gone = gone

    def compose(self) -> ComposeResult:
        said = f"{self._what}\n\nNothing was written. Your text stays in the editor."
        if not self._gone:
            said += "\nReloading puts the file's text in its place; ^z there brings yours back."
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Not saved yet"
            yield Static(Content(said), id="detail")
            with Horizontal(classes="buttons"):
                yield Button("Back to the text", id="back", compact=True)
                if not self._gone:
                    yield Button("Reload", id=Wish.RELOAD, compact=True)
                yield Button("Write it again" if self._gone else "Write over", id=Wish.OVER, compact=True)

    def on_mount(self) -> None:
        self.query_one("#back", Button).focus()

    @on(Button.Pressed, "#over")
    def write_over(self) -> None:
        self.dismiss(Wish.OVER)

    @on(Button.Pressed, "#reload")
    def reload(self) -> None:
        self.dismiss(Wish.RELOAD)

    @on(Button.Pressed, "#back")
    def action_cancel(self) -> None:
        self.dismiss(None)


PAUSE = 0.25
"""Seconds without a key after which a text is looked at."""


class PresetEditorScreen(ModalScreen[str]):
    """Answers the path of the file that was written, or None."""

    BINDINGS = bindings(KeyContext.EDIT)
    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "editor.tcss"]

    def __init__(self, bridge: Bridge, draft: Draft, keys: str) -> None:
        super().__init__()
        self._bridge = bridge
        self._draft = draft
        self._own = draft.own
        """The file as it was read last."""
        self._keys = keys
        self._pause: Timer | None = None
        self._busy = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="preset-editor") as dialog:
            dialog.border_title = Content(self._draft.title)
            if self._draft.path is None:
                with Horizontal(classes="field"):
                    yield Static("For", classes="label")
                    yield Choice((PROJECT, USER), PROJECT, name="where")
            else:
                dialog.border_subtitle = Content(str(self._draft.source))
            yield Static("", id="file", classes="muted")
            yield PresetArea(self._own.text)
            with VerticalScroll(id="verdict", can_focus=False):
                yield Static("", id="said")
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Save", id="go", variant="primary", compact=True)

    def on_mount(self) -> None:
        self._area.focus()
        if self._draft.path is None:
            self._area.move_cursor((1, len("name: ")))
        self.look_again()

    # --- looking at what is typed --------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def look_soon(self) -> None:
        if self._pause:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE, self._look)

    @on(Choice.Changed)
    def look_again(self) -> None:
        """Say where it goes, and what is wrong with it there."""
        path = self._draft.path
        where = f"a file in {short_path(place_of(self._bridge.engine, self._where), 60)}" if path is None else path
        self.query_one("#file", Static).update(Content(where if path is None else short_path(where, 70)))
        self._look()

    def _look(self) -> None:
        self._pause = None
        self.run_worker(self._judge_and_say(), group="judging", exclusive=True, exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    async def _judge_and_say(self) -> None:
        content = self._content
        check = await self._judge(content)
        if content == self._content:
            self._say(verdict(check))

    def _look_no_more(self) -> None:
        """Keep what is said next until another key is typed."""
        if self._pause:
            self._pause.stop()
        self.workers.cancel_group(self, "judging")

    async def _judge(self, content: bytes) -> PresetCheck:
        return await self._bridge.call(judge, self._bridge.engine, self._draft, self._where, content)

    # --- saving --------------------------------------------------------------------------------------------------

    @on(Button.Pressed, "#go")
    def action_start(self) -> None:
        if not self._busy:
            self._busy = True
            self._bridge.spawn(self._save)

    async def _save(self) -> None:
        self._look_no_more()
        try:
            content = self._content
            check = await self._judge(content)
            if check.preset is None:
                self._say(Content.assemble(("Not saved. ", "bold"), verdict(check)))
                if check.fault is not None and check.fault.line is not None:
                    self._area.go_to_line(check.fault.line)
            else:
                await self._write(check.preset.name, content, self._own.content)
        finally:
            self._busy = False

    async def _write(self, name: str, content: bytes, before: bytes) -> None:
        from ...core.presets.text import FileChanged

        engine = self._bridge.engine
        try:
            path = await self._bridge.call(save, engine, self._draft, self._where, name, content, before)
        except FileChanged as change:
            await self._settle(change, name, content)
        except (SubdeckError, OSError) as error:
            self._say(Content.assemble(("Not saved. ", "bold"), (f"✗ {_why(error)}", "$text-error")))
        else:
            self.dismiss(path)

    async def _settle(self, change: FileChanged, name: str, content: bytes) -> None:
        from ...core.errors import ContentError
        from ...core.presets.text import GONE, text_of

        asked = ChangedFileScreen(change.what, short_path(change.where, 66), gone=change.content == GONE)
        wish = await self.app.push_screen_wait(asked)
        if wish is Wish.OVER:
            await self._write(name, content, change.content)
        elif wish is Wish.RELOAD:
            try:
                self._own = text_of(change.content)
            except ContentError as error:
                self._say(Content.styled(f"✗ The file cannot be reloaded: {error.what}", "$text-error"))
            else:
                self._area.put(self._own.text)

    # --- leaving -------------------------------------------------------------------------------------------------

    def action_edit_outside(self) -> None:
        """Go on in the operator's own editor; nothing is written to the preset's file."""
        name = os.path.basename(self._draft.path or "preset.md")
        before = self._area.written
        text, problem = edit_text(cast("App[Any]", self.app), before, name=name)
        if problem:
            self._say(Content.styled(f"✗ {one_line(problem, 300)}", "$text-error"))
        elif text != before:
            self._area.put(text)

    def action_cancel(self) -> None:
        if self._busy:
            return
        if self._area.written == self._own.text:
            self.dismiss(None)
        else:
            self._bridge.spawn(self._leave)

    async def _leave(self) -> None:
        what = "What you typed is lost" if self._draft.path is None else "What you changed is lost; the file stays"
        asked = ConfirmScreen("Leave without saving?", f"{what}.", "Leave")
        if await self.app.push_screen_wait(asked):
            self.dismiss(None)

    # --- parts ---------------------------------------------------------------------------------------------------

    @property
    def _area(self) -> PresetArea:
        return self.query_one(PresetArea)

    @property
    def _where(self) -> str:
        return self.query_one(Choice).value if self._draft.path is None else ""

    @property
    def _content(self) -> bytes:
        return self._own.bytes_of(self._area.written)

    def _say(self, said: Content) -> None:
        self.query_one("#said", Static).update(said)
        self.query_one("#verdict").scroll_home(animate=False)


def _why(error: Exception) -> str:
    """Say what went wrong without the path, which stands above the text."""
    if isinstance(error, SubdeckError):
        return one_line(error.advice)
    return format_error(error)


def verdict(check: PresetCheck) -> Content:
    """What keeps the text from being saved, else what is worth knowing of it."""
    if check.fault is not None:
        return Content.styled(f"✗ {one_line(check.fault.advice)}", "$text-error")
    lines = [
        *(Content.styled(f"! {warning}", "$text-warning") for warning in check.warnings),
        *(Content.styled(note, "$text-muted") for note in check.notes),
    ]
    return Content("\n").join(lines or [Content.styled("✓ nothing is wrong with it", "$text-success")])
