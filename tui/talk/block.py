"""The block at the foot of a transcript that shows what the child of the run asks, until somebody replies."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ...core.run.describe import WAITS_GLYPH, clock, moment
from ...core.text.plain import one_line
from ..actions import ACTIONS, Action, ActionContext, KeyContext, bindings, key_of, keys_line
from ..actions.keys import TEXT_PLACES
from ..widgets.line_view import LineView
from .request_rows import BlockRow, Tone, request_rows

if TYPE_CHECKING:
    from ...core.run.events import Request
    from ...core.run.snapshot import RunSnapshot

UNREAD_S = 0.4
"""For so long after one request has taken the place of another, keys may be meant for that one."""
TITLE = 80
"""Characters of what a request is called."""


class RequestBlock(LineView, can_focus=True, inherit_bindings=False):
    """Shows the requests of one run in turn, those first that were made first; there while something is asked."""

    BINDINGS = bindings(KeyContext.REQUEST)
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"request--{tone}" for tone in Tone}
    DEFAULT_CSS = """
    RequestBlock {
        display: none;
        height: auto;
        max-height: 75%;
        padding: 0 1;
        border: round $text-warning;
        border-title-color: $text-warning;
        border-subtitle-color: $text-muted;
        background: $background;
        &:focus { border: heavy $text-warning; border-title-style: bold; border-subtitle-color: $text; }
        & > .request--text { color: $text; }
        & > .request--command { color: $text; text-style: bold; }
        & > .request--muted { color: $text-muted; }
        & > .request--added { color: $text-success; }
        & > .request--removed { color: $text-error; }
        & > .request--warning { color: $text-warning; }
    }
    """

    class Chosen(Message):
        """One of what can be chosen is the reply."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, actions: Sequence[Action] = ACTIONS, *, readonly: bool = False) -> None:
        super().__init__(id="request")
        self._actions = actions
        self._readonly = readonly
        self._run: RunSnapshot | None = None
        self.request: Request | None = None
        """What is shown; None where nothing is asked that was not replied to from here."""
        self._replied: set[tuple[str, str]] = set()
        """Runs and ids of what was replied to and may still be open in their records."""
        self._place = KeyContext.RUNS
        """Where the keys are."""
        self._rows: list[BlockRow] = []
        self._read_from = 0.0
        """When what is shown counts as read, by `time.monotonic`."""

    @property
    def is_shown(self) -> bool:
        return bool(self.display)

    @property
    def is_unread(self) -> bool:
        """Whether it has just taken the place of another request, for which the last key may have been meant."""
        return monotonic() < self._read_from

    def show(self, run: RunSnapshot | None) -> bool:
        """Show what a run asks; return False where that leaves nobody with the keys that the block had."""
        if self.request is None and not self._replied and (run is None or not run.is_waiting):
            return True
        self._run = run
        asked = run.requests if run is not None and run.is_waiting else ()
        ids = {request.id for request in asked}
        if run is not None:
            self._replied = {known for known in self._replied if known[0] != run.run_id or known[1] in ids}
        request = next((one for one in asked if run and (run.run_id, one.id) not in self._replied), None)
        if request == self.request and self.is_shown == (request is not None):
            return True
        had_keys = self.has_focus
        if had_keys and request is not None:
            self._read_from = monotonic() + UNREAD_S
        self.request = request
        self.display = request is not None
        self._lay_out()
        self.scroll_to(y=0, animate=False)
        self.tick()
        return request is not None or not had_keys

    def mark_replied(self, run_id: str, request_id: str, replied: bool) -> None:
        """Note that a reply is on its way, or that it could not be given."""
        if replied:
            self._replied.add((run_id, request_id))
        else:
            self._replied.discard((run_id, request_id))

    def show_keys(self, place: KeyContext) -> None:
        """Name the keys that work where the keys are now."""
        if place is not self._place:
            self._place = place
            self.tick()

    def tick(self) -> None:
        """Say at the edges what is asked since when, and which keys reply to it."""
        run, request = self._run, self.request
        if run is None or request is None:
            return
        more = sum((run.run_id, one.id) not in self._replied for one in run.requests) - 1
        parts = [f"{WAITS_GLYPH} {one_line(request.title, TITLE) or 'asks'}", *self._times(run, request)]
        if more > 0:
            parts.append(f"{more} more")
        self.border_title = Content(" · ".join(parts))
        self.border_subtitle = Content(self._keys(run, request))

    def _keys(self, run: RunSnapshot, request: Request) -> str:
        """Name the keys that reply, or the one that leads to them."""
        if self._place is not KeyContext.REQUEST:
            leads_here = key_of("next_unseen", self._actions)
            return f"{leads_here} {'show' if self._readonly else 'answer'}" if self._place not in TEXT_PLACES else ""
        context = ActionContext(place=KeyContext.REQUEST, run=run, request=request, readonly=self._readonly)
        only_ours = [action for action in self._actions if KeyContext.REQUEST in action.places]
        return keys_line(KeyContext.REQUEST, only_ours, context)

    def _times(self, run: RunSnapshot, request: Request) -> list[str]:
        """Say for how long it is asked, and when nobody will have replied."""
        begin = moment(request.ts)
        if begin is None:
            return []
        seconds = (datetime.now(UTC) - begin).total_seconds()
        until = run.meta.answer_timeout
        return [clock(seconds), *([f"denied in {clock(until - seconds)}"] if until is not None else [])]

    def _lay_out(self) -> None:
        width = max(10, self.scrollable_content_region.width or self.app.size.width - 4)
        cwd = self._run.meta.cwd if self._run else ""
        self._rows = request_rows(self.request, cwd, width) if self.request else []
        self.virtual_size = Size(width, len(self._rows))
        self.refresh(layout=True)

    def on_resize(self, _: Resize) -> None:
        if self.is_shown:
            self._lay_out()

    def action_move(self, where: str) -> None:
        row = self.target_row(where, self.scroll_offset.y, len(self._rows))
        self.scroll_to(y=max(0, min(row, self.max_scroll_y)), animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave a digit to the deck where it stands for no choice."""
        if action != "choose":
            return True
        return self.request is not None and int(str(parameters[0])) <= len(self.request.choices)

    def action_choose(self, number: int) -> None:
        self.post_message(self.Chosen(number))

    def render_line(self, y: int) -> Strip:
        row = self.scroll_offset.y + y
        if row >= len(self._rows):
            return self.strip(())
        text, tone = self._rows[row]
        return self.strip([Segment(text, self.style_of(f"request--{tone}"))])
