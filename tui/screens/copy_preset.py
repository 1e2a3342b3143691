"""Make a preset that comes with subdeck one's own: where, and with which model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

from ...core.errors import SubdeckError
from ...core.paths import agent_dir
from ...core.plain import one_line
from ..actions import Place, bindings
from ..bridge import Bridge
from ..present import short_path
from ..problem_text import problem_text
from ..widgets.choice import Choice
from ..widgets.model_input import ModelInput

if TYPE_CHECKING:
    from ...core.engine import Engine

PROJECT, USER = "this project", "all my projects"


class Template(Struct, frozen=True):
    """What comes along."""

    name: str
    description: str
    model: str
    needs_model: bool
    """Its own is a role that is not set."""
    models: tuple[str, ...]
    """Those that are known."""


def read_template(engine: Engine, name: str | None) -> Template:
    """Answer the bundled preset of that name, or the first one. Reads files."""
    from ...core.model_choices import model_choices
    from ...core.preset_copy import bundled_presets, needs_model

    presets = bundled_presets()
    preset = next((preset for preset in presets if preset.name == name), presets[0])
    return Template(
        preset.name,
        preset.description,
        preset.model or "",
        needs_model(preset, engine.settings),
        model_choices(preset.agent, engine.settings),
    )


def write_copy(engine: Engine, name: str, where: str, model: str) -> str:
    """Write the copy and answer its path; blank `model` keeps the preset's own. Raises SubdeckError."""
    from ...core.preset_copy import copy_bundled

    return copy_bundled(name, place_of(engine, where), engine.settings, model.strip() or None)


def place_of(engine: Engine, where: str) -> str:
    """Answer the directory of presets for this project or for all."""
    return engine.project.home if where == PROJECT else os.path.join(agent_dir(), "subagents")


class CopyPresetScreen(ModalScreen[str]):
    """Answers the path of the copy, or None."""

    BINDINGS = bindings(Place.COPY)

    def __init__(self, bridge: Bridge, template: Template, keys: str) -> None:
        super().__init__()
        self._bridge = bridge
        self._template = template
        self._keys = keys
        self._writing = False

    def compose(self) -> ComposeResult:
        template = self._template
        with Vertical(classes="dialog", id="copy") as dialog:
            dialog.border_title = Content(f"Copy {one_line(template.name, 50)}")
            dialog.border_subtitle = "bundled"
            yield Static(Content(one_line(template.description, 200)), classes="muted", id="description")
            with Horizontal(classes="field"):
                yield Static("For", classes="label")
                yield Choice((PROJECT, USER), PROJECT, name="where")
            with Horizontal(classes="field"):
                yield Static("Model", classes="label")
                yield ModelInput("" if template.needs_model else template.model)
            yield Static("", id="file", classes="muted")
            yield Static(Content(self._reason), id="problems")
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Copy", id="go", variant="primary", compact=True)

    @property
    def _reason(self) -> str:
        if not self._template.needs_model:
            return ""
        return f"The role {one_line(self._template.model, 40)} is not set here: name a model for the copy."

    def on_mount(self) -> None:
        model = self.query_one(ModelInput)
        model.offer(self._template.models)
        (model if self._template.needs_model else self.query_one(Choice)).focus()
        self.show_file()

    @on(Choice.Changed)
    def show_file(self) -> None:
        """Say where the copy goes."""
        directory = place_of(self._bridge.engine, self.query_one(Choice).value)
        self.query_one("#file", Static).update(Content(f"a file in {short_path(directory, 60)}"))

    @on(Input.Submitted)
    @on(Button.Pressed, "#go")
    def action_start(self) -> None:
        if not self._writing:
            self._writing = True
            self._bridge.spawn(self._write(self.query_one(Choice).value, self.query_one(ModelInput).value))

    async def _write(self, where: str, model: str) -> None:
        chosen = "" if model.strip() == self._template.model else model
        try:
            path = await self._bridge.call(write_copy, self._bridge.engine, self._template.name, where, chosen)
        except (SubdeckError, OSError) as error:
            self._writing = False
            self.query_one("#problems", Static).update(Content(problem_text(error)))
        else:
            self.dismiss(path)

    def action_cancel(self) -> None:
        if not self._writing:
            self.dismiss(None)
