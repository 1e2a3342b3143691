"""Ask for a file and answer its text."""

from __future__ import annotations

import os
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from ...core.errors import UsageError
from ..actions import Place, bindings
from ..feed.bridge import Bridge
from ..widgets.field import Field, Problem
from .path_input import PathInput
from .problems import beside
from .text_file import LIMIT, read_text

ABOUT = f"UTF-8 text, at most {LIMIT // 1024} KB. Tab completes, ↓ goes through the files."


class LoadFileScreen(ModalScreen[str]):
    """Answers the text, or None."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "launch.tcss"]
    BINDINGS = bindings(Place.ASK)

    def __init__(self, bridge: Bridge, base: str) -> None:
        """`base` is where a relative path starts."""
        super().__init__()
        self._bridge = bridge
        self._base = base
        self._reading = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="load") as dialog:
            dialog.border_title = "Load the task from a file"
            dialog.border_subtitle = "esc cancel"
            yield Static(Content(ABOUT), classes="muted", id="about")
            yield Field("File", PathInput("", self._base, name="path", files=True), name="path")
            with Horizontal(classes="buttons"):
                yield Button("Load", id="go", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one(PathInput).focus()

    @on(Input.Changed)
    def forget_problem(self) -> None:
        self.query_one(Problem).say("")

    @on(Input.Submitted)
    @on(Button.Pressed, "#go")
    def read(self) -> None:
        path = self.query_one(PathInput).value.strip()
        if path and not self._reading:
            self._reading = True
            self._bridge.spawn(self._read, os.path.join(self._base, os.path.expanduser(path)))

    async def _read(self, path: str) -> None:
        try:
            text = await self._bridge.call(read_text, path)
        except UsageError as error:
            if self.is_current:
                self.query_one(Problem).say(beside(error))
        else:
            if self.is_current:
                self.dismiss(text)
        finally:
            self._reading = False

    def action_cancel(self) -> None:
        self.dismiss(None)
