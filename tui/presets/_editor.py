"""The editor of a preset's file: shows errors while you type, and never saves a file with errors."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static, TextArea
from textual.worker import Worker

from ...core.errors import ContentError, SubdeckError
from ...core.text.plain import decode_unsafe, display_encoded, encode_unsafe, one_line
from ..dialogs.ask import ConfirmScreen
from ..dialogs.data_screen import DataScreen
from ..feed.bridge import Bridge
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.after_close import notify_failure
from ..terminal.handover import edit_text
from ..terminal.textual_internals import DialogScreen, drop_bindings
from ..text.format import brief_error, short_path
from ..widgets.form import Choice, Field, PlainTextArea
from .draft import PROJECT, USER, Draft, check, preset_dir, save

if TYPE_CHECKING:
    from textual.app import App

    from ...core.launch.preview import PresetCheck
    from ...core.presets.text import FileChanged, PresetText

CHECK_AFTER = 0.25
"""Seconds without a key before a text is checked."""
OVERWRITE, RELOAD = "overwrite", "reload"
"""For a file that has changed: overwrite it with the editor's text, or reload it, which undo reverts."""


class PresetEditorScreen(DataScreen[Draft, str]):
    """Returns the path of the written file, or None."""

    BINDINGS = bindings(KeyContext.EDIT)
    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "editor.tcss"]

    _draft: Draft
    _original: PresetText
    """The file as last read."""

    def __init__(self, bridge: Bridge, read: Callable[[], Draft], keys: str) -> None:
        """`read` is called in a thread."""
        super().__init__(partial(bridge.call, read))
        self._bridge = bridge
        self._keys = keys
        self._busy = False

    WRITES_IN = "edit"

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="preset-editor") as dialog:
            if self.data is None:
                return
            dialog.border_title = Content(self._draft.title)
            if self._draft.path is None:
                yield Field("For", Choice((PROJECT, USER), PROJECT, name="where"))
            else:
                dialog.border_subtitle = Content(str(self._draft.source))
            yield Static("", id="file", classes="muted")
            yield PresetArea(self._original.text)
            with VerticalScroll(id="check", can_focus=False):
                yield Static("", id="message")
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Save", id="go", variant="primary", compact=True)

    async def fill(self, data: Draft) -> None:
        self._draft, self._original = data, data.own
        await self.recompose()
        self._area.focus()
        if self._draft.path is None:
            self._area.move_cursor((1, len("name: ")))
        self.show_target()

    # --- checking the text --------------------------------------------------------------------------------------

    @on(TextArea.Changed)
    def check_soon(self) -> None:
        self._check_after(CHECK_AFTER)

    @on(Choice.Changed)
    def show_target(self) -> None:
        """Show the path of the file, and problems with the text in that place."""
        path = self._draft.path
        new = f"saved in {short_path(preset_dir(self._bridge.engine, self._where), 60)}"
        self.query_one("#file", Static).update(Content(new if path is None else short_path(path, 70)))
        self._check_after(0.0)

    @work(group="check", exclusive=True, exit_on_error=False)
    async def _check_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._say(check_report(await self._check(self._content)))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    async def _check(self, content: bytes) -> PresetCheck:
        return await self._bridge.call(check, self._bridge.engine, self._draft, self._where, content)

    # --- saving --------------------------------------------------------------------------------------------------

    @on(Button.Pressed, "#go")
    def action_start(self) -> None:
        if not self._busy:
            self._busy = True
            self._bridge.spawn(self._save)

    async def _save(self) -> None:
        self.workers.cancel_group(self, "check")  # the message about saving stays until another key is typed
        try:
            content = self._content
            checked = await self._check(content)
            if checked.preset is None:
                self._say(Content.assemble(("Not saved. ", "bold"), check_report(checked)))
                if checked.fault is not None and checked.fault.line is not None:
                    self._area.go_to_line(checked.fault.line)
            else:
                await self._write(checked.preset.name, content, self._original.content)
        finally:
            self._busy = False

    async def _write(self, name: str, content: bytes, before: bytes) -> None:
        from ...core.presets.text import FileChanged

        engine = self._bridge.engine
        try:
            path = await self._bridge.call(save, engine, self._draft, self._where, name, content, before)
        except FileChanged as change:
            await self._resolve(change, name, content)
        except (SubdeckError, OSError) as error:
            # Without the path, which is shown above the text.
            why = brief_error(error)
            self._say(Content.assemble(("Not saved. ", "bold"), (f"✗ {why}", "$text-error")))
        else:
            self.dismiss(path)

    async def _resolve(self, change: FileChanged, name: str, content: bytes) -> None:
        from ...core.presets.text import GONE, text_of

        asked = ChangedFileScreen(change.what, short_path(change.where, 66), gone=change.content == GONE)
        resolution = await self.app.push_screen_wait(asked)
        if resolution == OVERWRITE:
            await self._write(name, content, change.content)
        elif resolution == RELOAD:
            try:
                self._original = text_of(change.content)
            except ContentError as error:
                self._say(Content.styled(f"✗ Cannot reload the file: {error.advice}", "$text-error"))
            else:
                self._area.put(self._original.text)

    # --- leaving -------------------------------------------------------------------------------------------------

    def action_edit_outside(self) -> None:
        """Edit the text in your own editor; the preset's file is not written."""
        name = os.path.basename(self._draft.path or "preset.md")
        before = self._area.written
        text, problem = edit_text(cast("App[Any]", self.app), before, name=name)
        if problem:
            self.workers.cancel_group(self, "check")  # its result would replace this message
            self._say(Content.styled(f"✗ {one_line(problem, 300)}", "$text-error"))
        elif text != before:
            self._area.put(text)

    def action_cancel(self) -> None:
        if self._busy:
            return
        if self.data is None or self._area.written == self._original.text:
            self.dismiss(None)
        else:
            self._bridge.spawn(self._leave)

    async def _leave(self) -> None:
        is_new = self._draft.path is None
        what = "Your text will be lost." if is_new else "Your changes will be lost. The file is not changed."
        asked = ConfirmScreen("Leave without saving?", what, "Leave")
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
        return self._original.bytes_of(self._area.written)

    def _say(self, message: Content) -> None:
        self.query_one("#message", Static).update(message)
        self.query_one("#check").scroll_home(animate=False)


def check_report(checked: PresetCheck) -> Content:
    """Return the error that prevents saving, otherwise warnings and notes."""
    if checked.fault is not None:
        return Content.styled(f"✗ {one_line(checked.fault.advice)}", "$text-error")
    lines = [Content.styled(f"! {warning}", "$text-warning") for warning in checked.warnings]
    lines += [Content.styled(note, "$text-muted") for note in checked.notes]
    return Content("\n").join(lines or [Content.styled("✓ no problems", "$text-success")])


class ChangedFileScreen(DialogScreen[str]):
    """Returns `OVERWRITE`, `RELOAD`, or None to go back to the text, which is the default."""

    BINDINGS = bindings(KeyContext.PICK)
    CSS_PATH = "../dialogs/dialogs.tcss"

    def __init__(self, what: str, path: str, *, gone: bool) -> None:
        super().__init__()
        self._what = f"{what[:1].upper()}{what[1:]}:\n{path}"
        self._gone = gone

    def compose(self) -> ComposeResult:
        text = f"{self._what}\n\nNothing was written. Your text is still in the editor."
        if not self._gone:
            text += "\nReload replaces it with the file's text. ^z restores yours."
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Not saved yet"
            yield Static(Content(text), id="detail")
            with Horizontal(classes="buttons"):
                yield Button("Back to the text", id="back", compact=True)
                if not self._gone:
                    yield Button("Reload", id=RELOAD, compact=True)
                yield Button("Write it again" if self._gone else "Overwrite", id=OVERWRITE, compact=True)

    def on_mount(self) -> None:
        self.query_one("#back", Button).focus()

    @on(Button.Pressed)
    def choose(self, event: Button.Pressed) -> None:
        self.dismiss(None if event.button.id == "back" else event.button.id)

    def action_cancel(self) -> None:
        self.dismiss(None)


EDITOR_KEYS = frozenset(binding.key for binding in bindings(KeyContext.EDIT) if not isinstance(binding, tuple))
"""Keys of Textual's text areas that the editor uses for its own actions."""


class PresetArea(PlainTextArea):
    """Holds placeholders for characters that a screen cannot display."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+home", "go_to_end(False)", show=False),
        Binding("ctrl+end", "go_to_end(True)", show=False),
    ]

    def __init__(self, text: str) -> None:
        super().__init__(encode_unsafe(text), show_line_numbers=True, soft_wrap=True, tab_behavior="focus", id="text")
        drop_bindings(self, EDITOR_KEYS)

    @property
    def written(self) -> str:
        """The text as saved in the file."""
        return decode_unsafe(self.text)

    def put(self, text: str) -> None:
        super().put(encode_unsafe(text))

    def action_go_to_end(self, last: bool) -> None:
        self.move_cursor(self.document.end if last else (0, 0))

    def go_to_line(self, line: int) -> None:
        """Move the cursor to a line, from 1."""
        self.move_cursor((min(line, self.document.line_count) - 1, 0), center=True)

    def get_line(self, line_index: int) -> Text:
        return Text(display_encoded(self.document.get_line(line_index)), end="", no_wrap=True)
