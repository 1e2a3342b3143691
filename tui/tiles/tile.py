"""One tile: the transcript of a run with its state at the edges."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic

from textual.content import Content
from textual.widgets import Static

from ...core.run.describe import doing, doing_silently, elapsed, state
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ...core.text.visible import recounted
from ..actions import Action
from ..text.cells import cells, fit
from ..text.format import dollars
from ..transcript.pane import EDGES, Transcript

LEAST = 12
"""Cells of what a run does now, below which its cost is left out."""


class Tile(Transcript, inherit_bindings=False):
    """Says above which run it is and its state, below what the run does, what it has cost and how long it took."""

    def __init__(self, run_id: str, actions: Sequence[Action]) -> None:
        super().__init__(actions, name=f"tile-{run_id}")
        self.wanted_id = run_id
        self.is_gone = False
        """Whether the run was deleted."""

    def tick(self) -> None:
        """Say how long it has taken now."""
        if self.shown_run is not None and not self.shown_run.has_ended:
            self.show_edges()

    def show_edges(self) -> None:
        run, room = self.shown_run, self.size.width - EDGES
        if run is None or self.is_gone or room <= 0:
            self.border_title = Content(f"{self.wanted_id[-6:]} {'was deleted' if self.is_gone else ''}".strip())
            self.border_subtitle = ""
            return
        word = state(run, silent=run.silence(monotonic()) is not None)
        word = word if room > LEAST * 4 else word[0]
        self.border_title = Content(f"{word} {one_line(run.meta.title, 40)} ▸ {one_line(run.meta.task, 300)}")
        self.border_subtitle = Content(foot(run, "" if self.following else f"{self.unread} new", room))

    def empty_line(self) -> str:
        return "" if self.shown_run is None else super().empty_line()


def foot(run: RunSnapshot, news: str, room: int) -> str:
    """Say in so many cells what a run does or how it ended, what it has cost, and how long it took."""
    figures = [part for part in (news, dollars(run.usage.cost), elapsed(run, datetime.now(UTC))) if part]
    while len(figures) > 1 and cells(" · ".join(figures)) > room - LEAST:
        del figures[0]
    said = " · ".join(figures)
    left = room - cells(said) - 3
    silence = run.silence(monotonic())
    does = doing(run, 200) if silence is None else doing_silently(run, silence, 200)
    does = recounted(does, left, cells) if run.is_waiting else does
    now = fit(does, left).rstrip() if left >= LEAST // 2 else ""
    return " · ".join(filter(None, (now, said)))


class TilesBar(Static):
    """The keys, at the foot of the screen."""

    DEFAULT_CSS = "TilesBar { height: 1; color: $text-muted; }"
