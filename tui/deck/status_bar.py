"""The last line: how many runs are still running in the background, and the keys that do something here."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from ...core.run.describe import background_counts
from ...core.run.snapshot import Counts
from ..actions import ACTIONS, Action, ActionContext, Hint, footer_hints

GAP = "  "


class StatusBar(Widget):
    DEFAULT_CSS = """
    StatusBar { height: 1; padding: 0 1; background: $surface; }
    """
    ALLOW_SELECT = False

    def __init__(self, actions: Sequence[Action] = ACTIONS) -> None:
        super().__init__()
        self._actions = actions
        self._figure = background_counts(Counts())
        self._short_figure = ""
        """For a terminal that is hardly there."""
        self._hints: list[Hint] = []

    def show_counts(self, background: Counts) -> None:
        figure = background_counts(background)
        if figure != self._figure:
            self._figure = figure
            self._short_figure = f"●{background.running}/{background.total}"
            self.refresh()

    def show_action_context(self, action_context: ActionContext) -> None:
        hints = footer_hints(action_context, self._actions)
        if hints != self._hints:
            self._hints = hints
            self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        figure = self._figure if cell_len(self._figure) <= width else self._short_figure
        shown = [Content(figure if cell_len(figure) <= width else "")]
        for hint in fitting(self._hints, width - shown[0].cell_length):
            shown.append(Content.assemble(GAP, (hint.key, "bold $text-primary"), " ", (hint.name, "$text-muted")))
        return Content("").join(shown)


def fitting(hints: list[Hint], room: int) -> list[Hint]:
    """Leave out the hints of the highest ranks until the others fit."""
    chosen: set[Hint] = set()
    for hint in sorted(hints):
        room -= len(GAP) + cell_len(hint.key) + 1 + cell_len(hint.name)
        if room < 0:
            break
        chosen.add(hint)
    return [hint for hint in hints if hint in chosen]
