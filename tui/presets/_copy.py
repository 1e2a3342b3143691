"""The dialog that copies a preset: its name, its directory and, for a bundled one, its model."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Input, Static

from ...core.errors import SubdeckError
from ...core.models.catalog import INHERIT
from ...core.run.model import PresetSource
from ...core.text.plain import one_line
from ..dialogs.data_screen import DataScreen
from ..feed.bridge import Bridge
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..text.format import brief_error, short_path
from ..widgets.form import Choice, Field, ModelInput
from .draft import PROJECT, USER, preset_dir

if TYPE_CHECKING:
    from ...core.presets.catalog import Preset
    from ..engine_api import EngineApi


@dataclass(frozen=True, slots=True)
class Template:
    """The preset to copy; a bundled preset keeps its name, and may get another model."""

    preset: Preset
    proposed: str = ""
    """The proposed name of the copy, if it may have one."""
    needs_model: bool = False
    """Whether its model is a role that is not set."""
    models: Mapping[str, str] = field(default_factory=dict[str, str])
    """The known models, each with its agent, if the copy may get another."""

    @property
    def is_bundled(self) -> bool:
        return self.preset.source is PresetSource.BUNDLED


def read_template(engine: EngineApi, preset: Preset | None, taken: Container[str]) -> Template:
    """Return a preset as a template, by default the first bundled one; `taken` are names in use."""
    from ...core.launch.model_choices import model_choices
    from ...core.presets.write import bundled_presets, free_name, needs_model

    if preset is not None and preset.source is not PresetSource.BUNDLED:
        return Template(preset, free_name(preset.name, taken))
    presets = bundled_presets()
    bundled = next((each for each in presets if preset is not None and each.name == preset.name), presets[0])
    models = {choice.ref: choice.agent for choice in model_choices(bundled.agent, engine.settings)}
    return Template(bundled, needs_model=needs_model(bundled, engine.settings), models=models)


def write_copy(engine: EngineApi, template: Template, name: str, where: str, model: str) -> str:
    """Write the copy and return its path; a blank `model` keeps the preset's own. Raises SubdeckError."""
    from ...core.presets.write import copy_bundled, duplicate

    directory = preset_dir(engine, where)
    if template.is_bundled:
        return copy_bundled(template.preset, directory, engine.settings, model)
    return duplicate(template.preset, name, directory)


class CopyPresetScreen(DataScreen[Template, tuple[str, str]]):
    """Returns the preset's name and the path of the copy, or None."""

    BINDINGS = bindings(KeyContext.COPY)
    CSS_PATH = "../dialogs/dialogs.tcss"
    WRITES_IN = "copy"

    _template: Template

    def __init__(self, bridge: Bridge, read: Callable[[], Template], keys: str) -> None:
        """`read` is called in a thread."""
        super().__init__(partial(bridge.call, read))
        self._bridge = bridge
        self._keys = keys
        self._writing = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="copy") as dialog:
            if self.data is None:
                return
            template, preset = self._template, self._template.preset
            dialog.border_title = Content(f"Copy {one_line(preset.name, 50)}")
            dialog.border_subtitle = Content(str(preset.source))
            yield Static(Content(one_line(preset.description, 200)), classes="muted", id="description")
            if not template.is_bundled:
                yield Field("Name", Input(template.proposed, compact=True, id="name"))
            where = USER if preset.source is PresetSource.GLOBAL else PROJECT
            yield Field("For", Choice((PROJECT, USER), where, name="where"))
            if template.is_bundled:
                usual = self._bridge.engine.settings.default_model or INHERIT
                model = usual if template.needs_model else preset.model
                yield Field("Model", ModelInput(model or ""))
            yield Static("", id="file", classes="muted")
            role = one_line(preset.model or "", 40)
            unset = f"The role {role} is not set. inherit uses the parent's model, or the agent's default."
            reason = unset if template.needs_model else ""
            yield Static(Content(reason), id="problems")
            with Horizontal(classes="buttons"):
                yield Static(Content(self._keys), classes="muted", id="keys")
                yield Button("Copy", id="go", variant="primary", compact=True)

    async def fill(self, data: Template) -> None:
        self._template = data
        await self.recompose()
        for model in self.query(ModelInput):
            model.offer(data.models)
        if data.is_bundled:
            self.query_one("#model" if data.needs_model else "#where").focus()
        else:
            self.query_one("#name").focus()
        self.show_file()

    @on(Choice.Changed)
    def show_file(self) -> None:
        directory = preset_dir(self._bridge.engine, self.query_one(Choice).value)
        self.query_one("#file", Static).update(Content(f"saved in {short_path(directory, 60)}"))

    @on(Input.Submitted)
    @on(Button.Pressed, "#go")
    def action_start(self) -> None:
        if not self._writing:
            self._writing = True
            self._bridge.spawn(self._write)

    async def _write(self) -> None:
        template, written = self._template, {field.id: field.value for field in self.query(Input)}
        model = written.get("model", "")
        chosen = "" if model.strip() == template.preset.model else model
        name, where = written.get("name", ""), self.query_one(Choice).value
        try:
            path = await self._bridge.call(write_copy, self._bridge.engine, template, name, where, chosen)
        except (SubdeckError, OSError) as error:
            self.query_one("#problems", Static).update(Content(brief_error(error)))
        else:
            self.dismiss((template.preset.name, path))
        finally:
            self._writing = False

    def action_cancel(self) -> None:
        if not self._writing:
            self.dismiss(None)
