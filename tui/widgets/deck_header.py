"""The first line: where we are, which agent works here, what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from ...core.describe import tokens
from ...core.plain import one_line
from ..present import dollars, short_path, two_sided

if TYPE_CHECKING:
    from ...core.engine import AgentChoice
    from ...core.runs import Counts


LEAST_PATH = 16
"""Cells of the project's path that are worth more than the reason for the choice of an agent."""


class DeckHeader(Widget):
    DEFAULT_CSS = """
    DeckHeader { height: 1; padding: 0 1; background: $surface; }
    """
    ALLOW_SELECT = False

    def __init__(self, project: str) -> None:
        super().__init__()
        self._project = project
        self._agent = ""
        self._short_agent = ""
        """For a line that has no room for the reason."""
        self._figures = ""

    def show_agent(self, agent: AgentChoice | None, problem: str) -> None:
        self._agent = one_line(agent.label if agent else f"no agent: {problem}", 100)
        self._short_agent = one_line(f"{agent.name} {agent.version}" if agent else "no agent", 40)
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
        right = self._right(self._agent)
        if width - len(right) < LEAST_PATH + 12:
            right = self._right(self._short_agent)
        path = short_path(self._project, max(8, width - len(right) - 12))
        left = Content.assemble(("subdeck", "bold $primary"), "  ", path)
        return two_sided(left, Content(right), width)

    def _right(self, agent: str) -> str:
        return "   ".join(part for part in (agent, self._figures) if part)
