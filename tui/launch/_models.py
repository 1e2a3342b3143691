"""The installed agents' models, below the name of each: search words match the model or its agent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ...core.text.plain import one_line
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.textual_internals import DialogScreen
from ..text.cells import fit
from ._tasks import SearchWords

if TYPE_CHECKING:
    from ...core.launch.model_choices import ModelChoice

REF_WIDTH = 44
ROLES = "roles"
"""Heading for entries without an agent."""


def matching_models(models: Sequence[ModelChoice], words: str) -> list[ModelChoice]:
    """Return the models that match all words, in their own text or in the name of their agent."""
    terms = words.lower().split()
    return [each for each in models if all(word in f"{each.agent} {each.ref} {each.about}".lower() for word in terms)]


class ModelsScreen(DialogScreen["ModelChoice"]):
    """Returns a model, or None. The cursor moves while words are typed."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "launch.tcss"]
    BINDINGS = bindings(KeyContext.PICK)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (28, "-high")]  # noqa: RUF012 - Textual declares it as it is

    def __init__(self, models: Sequence[ModelChoice]) -> None:
        super().__init__()
        self._models = models
        self._rows: list[ModelChoice | None] = []
        """By their lines; None for the name of an agent."""

    def show_known(self, models: Sequence[ModelChoice]) -> None:
        """List these from now on, with the cursor on the same model."""
        if not self.is_mounted:  # they are listed then
            self._models = models
            return
        row = self.query_one(OptionList).highlighted
        chosen = None if row is None else self._rows[row]
        self._models = models
        self.show_matching()
        if chosen in self._rows:
            self.query_one(OptionList).highlighted = self._rows.index(chosen)

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="models") as dialog:
            dialog.border_title = "Models"
            dialog.border_subtitle = "⏎ select   esc cancel"
            yield SearchWords(placeholder="type to search", compact=True, id="words")
            yield OptionList(markup=False, compact=True)
            yield Static("", id="shown", classes="muted")

    def on_mount(self) -> None:
        self.query_one(OptionList).can_focus = False
        self.query_one("#words").focus()
        self.show_matching()

    @on(Input.Changed)
    def show_matching(self) -> None:
        matches = matching_models(self._models, self.query_one("#words", Input).value)
        options = self.query_one(OptionList)
        self._rows = []
        options.set_options(self._options(matches))
        options.highlighted = next((row for row, model in enumerate(self._rows) if model), None)
        count = f"{len(matches)} of {len(self._models)}" if self._models else "No known models."
        self.query_one("#shown", Static).update(Content(count))

    def _options(self, matches: Sequence[ModelChoice]) -> Iterator[Option]:
        for agent, models in groupby(matches, key=lambda model: model.agent):
            self._rows.append(None)
            yield Option(Content.styled(one_line(agent or ROLES, 60), "bold"), disabled=True)
            for model in models:
                self._rows.append(model)
                ref = fit(one_line(model.ref, 200), REF_WIDTH)
                yield Option(Content.assemble("  ", ref, "  ", (one_line(model.about, 80), "$text-muted")))

    def action_move(self, where: str) -> None:
        getattr(self.query_one(OptionList), f"action_{where}")()

    @on(OptionList.OptionSelected)
    @on(Input.Submitted)
    def take(self) -> None:
        row = self.query_one(OptionList).highlighted
        if row is not None and (model := self._rows[row]):
            self.dismiss(model)

    def action_cancel(self) -> None:
        self.dismiss(None)
