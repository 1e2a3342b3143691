"""The first line: where we are, which agent works here, what it costs; and the last one: background runs and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.content import Content
from textual.widget import Widget

from ...core.run.describe import background_counts, tokens
from ...core.run.snapshot import Counts
from ...core.text.plain import one_line
from ..actions import ACTIONS, Action, ActionContext, Hint, footer_hints
from ..text.cells import two_sided
from ..text.format import dollars, short_path

if TYPE_CHECKING:
    from ...core.engine import AgentChoice
    from ...core.run.snapshot import Counts

LEAST_PATH = 16
"""Cells of the project's path that are worth more than the reason for the choice of an agent."""


class DeckHeader(Widget):
    DEFAULT_CSS = """
    DeckHeader { height: 1; padding: 0 1; background: $surface; }
    """
    ALLOW_SELECT = False

    def __init__(self, project: str, *, readonly: bool = False) -> None:
        super().__init__()
        self._readonly = readonly
        self._note = ""
        self._gone = ""
        self._project = project
        self._agent = ""
        self._short_agent = ""
        """For a line that has no room for the reason."""
        self._figures = ""

    def show_agent(self, agent: AgentChoice | None, problem: str) -> None:
        self._agent = one_line(agent.label if agent else f"no agent: {problem}", 100)
        self._short_agent = one_line(f"{agent.name} {agent.version or ''}" if agent else "no agent", 40)
        self.refresh()

    def show_note(self, note: str) -> None:
        """Say something that matters more than which agent works here; empty ends it."""
        if note != self._note:
            self._note = note
            self.refresh()

    def show_gone(self, gone: bool) -> None:
        """Say beside its path that the project's directory is gone."""
        self._gone = "  ! gone" if gone else ""
        self.refresh()

    def show_figures(self, counts: Counts, token_count: int, cost: float) -> None:
        queued = f", {counts.queued} queued" if counts.queued else ""
        running = f"{counts.running - counts.queued} running{queued}"
        spent = f"{tokens(token_count)} tok" if token_count else ""
        figures = "   ".join(part for part in (running, spent, dollars(cost)) if part)
        if figures != self._figures:
            self._figures = figures
            self.refresh()

    def render(self) -> Content:
        width = self.content_size.width
        mode = "  read-only" if self._readonly else ""
        name = Content.assemble(("subdeck", "bold $text-primary"), (mode, "bold"), "  ")
        if self._note:
            return Content.assemble(name, (f"! {self._note}", "bold $text-warning")).truncate(width, ellipsis=True)
        room = width - name.cell_length
        right = self._right(self._agent)
        if room - len(right) < LEAST_PATH + 3:
            right = self._right(self._short_agent)
        path = short_path(self._project, max(8, room - len(right) - len(self._gone) - 3))
        where = Content.assemble(path, (self._gone, "bold $text-warning"))
        return two_sided(name + where, Content(right), width)

    def _right(self, agent: str) -> str:
        return "   ".join(part for part in (agent, self._figures) if part)


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
