"""The dialog that loads a task from a file."""

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
from ...core.text.plain import one_line, plain
from ..actions import KeyContext, bindings
from ..feed.bridge import Bridge
from ..text.format import short_path
from ..widgets.field import Field, Problem
from .path_input import PathInput
from .problems import beside

LIMIT = 256 * 1024
"""Bytes; more than that is no task but material, which an agent reads better by itself."""


def read_text(path: str) -> str:
    """Return the text of a file, fit for the screen. Raises UsageError."""
    shown = short_path(path, 60)
    if not os.path.lexists(path):
        raise UsageError(f"{shown} does not exist", hint="choose a file that exists")
    if os.path.isdir(path):
        raise UsageError(f"{shown} is a directory", hint="choose a file in it")
    if not os.path.isfile(path):
        raise UsageError(f"{shown} is not a regular file", hint="choose a text file")
    try:
        with open(path, "rb") as file:
            content = file.read(LIMIT + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UsageError(
            f"{shown} cannot be read: {one_line(error.strerror or '')}", hint="check its permissions"
        ) from error
    if len(content) > LIMIT:
        hint = "name the file in the task instead: the agent can read it"
        raise UsageError(f"{shown} is too large: {size // 1024} KB, at most {LIMIT // 1024} KB are taken", hint=hint)
    try:
        return plain(content.decode("utf-8-sig")).rstrip("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown} is not UTF-8 text (line {line})", hint="save it as UTF-8 first") from error


ABOUT = f"UTF-8 text, at most {LIMIT // 1024} KB. Tab completes, ↓ goes through the files."


class LoadFileScreen(ModalScreen[str]):
    """Returns the text, or None."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "launch.tcss"]
    BINDINGS = bindings(KeyContext.ASK)

    def __init__(self, bridge: Bridge, base: str) -> None:
        """Ask for a file; `base` is where a relative path starts."""
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
