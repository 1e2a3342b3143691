"""The first line: where we are, which agent works here, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from ...core.run.describe import tokens
from ...core.text.plain import one_line
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
