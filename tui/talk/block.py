"""The block below a transcript that shows the agent's request until it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar, cast

from rich.segment import Segment
from textual.content import Content
from textual.events import Hide, Key, Resize, Show
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ...core.run.describe import WAITS_GLYPH, clock, moment
from ...core.text.visible import visible_line
from ..keys.actions import ACTIONS
from ..keys.command import Action, ActionContext, KeyContext
from ..keys.keymap import TEXT_CONTEXTS, bindings, key_of, keys_line
from ..terminal.key_queue import KeyQueueApp
from ..terminal.textual_internals import set_timer
from ..widgets.line_view import LineView
from ._request_rows import TITLE, BlockRow, Tone, request_rows

if TYPE_CHECKING:
    from textual.timer import Timer

    from ...core.run.events import Request
    from ...core.run.snapshot import RunSnapshot
    from ..terminal.key_queue import KeyTime

LINGER_S = 2.0
"""Seconds for which the block stays after a reply to a running run: its next request often comes at once."""
POLL_S = 1.0
"""Seconds between two checks whether it can close."""
FRAME = 2
"""Rows of its borders."""
STEPS = ("next_unseen", "previous_unseen")
"""Actions that leave a request reached by them, even if their keys follow each other quickly."""
REPLY_SENT = "reply sent"
GONE = "request withdrawn or answered elsewhere"
HELD = "keys work in a moment"


class RequestBlock(LineView, can_focus=True, inherit_bindings=False):
    """Shows the requests of one run in turn, the oldest first.

    An answered or withdrawn one stays for a moment, so that keys meant for it reach nothing else.
    """

    BINDINGS = bindings(KeyContext.REQUEST)
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"request--{tone}" for tone in Tone}
    DEFAULT_CSS = """
    RequestBlock {
        display: none;
        height: auto;
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
        """The reply is one of the choices."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(
        self,
        actions: Sequence[Action] = ACTIONS,
        give_back: Callable[[], None] = lambda: None,
        fit_panes: Callable[[], None] = lambda: None,
        *,
        readonly: bool = False,
    ) -> None:
        """`give_back` moves the focus to another pane, if the block has it; `fit_panes` makes room for its height."""
        super().__init__(id="request")
        self._actions = actions
        self._give_back = give_back
        self._fit_panes = fit_panes
        self._readonly = readonly
        self.run: RunSnapshot | None = None
        """The run whose request is shown, or was shown last."""
        self.request: Request | None = None
        """The shown request; None if all requests are answered from here."""
        self._past: Request | None = None
        """The last request, while it stays after it was answered or withdrawn."""
        self._past_note = ""
        self._is_new = False
        """Whether the request replaced another one that was not answered from here."""
        self._lost: tuple[str, float] = ("", 0.0)
        """The run whose shown request vanished without a reply from here, and when."""
        self._replied: set[tuple[str, str]] = set()
        """Runs and ids of answered requests that may still be open in their records."""
        self._key_context = KeyContext.RUNS
        """The context with the focus."""
        self._rows: list[BlockRow] = []
        self._guard = ReplyGuard()
        self._is_visited = False
        """Whether the request was opened by going to its run."""
        self._steps = {key for action in actions if action.id in STEPS for _, key in action.keys}
        self._rang = False
        """Whether the bell has rung for a dropped key since the last change."""
        self._linger_until = 0.0
        self._timer: Timer | None = None

    @property
    def is_shown(self) -> bool:
        return bool(self.display)

    @property
    def wanted_height(self) -> int:
        """Rows with the frame; 0 while it is not shown."""
        return len(self._rows) + FRAME if self.is_shown else 0

    @property
    def run_id(self) -> str:
        return self.run.run_id if self.run else ""

    @property
    def is_ready(self) -> bool:
        """Whether the request has been visible long enough to be answered."""
        return self.request is not None and not self._guard.seconds_left(self._now)

    @property
    def _now(self) -> float:
        return cast(KeyQueueApp, self.app).clock()

    # --- content ------------------------------------------------------------------------------------------------------

    def show(self, run: RunSnapshot | None, *, has_keys: bool, is_chosen: bool = True) -> None:
        """Show a run's request; `has_keys`: the block has the focus, or lent it to the line of a reply.

        `is_chosen` is False if the run replaced another one that left the list.
        """
        if not (self.is_shown or self._replied) and (run is None or not run.is_waiting):
            return
        asked = run.requests if run is not None and run.is_waiting else ()
        ids = {request.id for request in asked}
        if run is not None:
            self._replied = {reply for reply in self._replied if reply[0] != run.run_id or reply[1] in ids}
        request = next(
            (candidate for candidate in asked if run and (run.run_id, candidate.id) not in self._replied), None
        )
        if run is None or request is None:
            self._end(run, has_keys, is_chosen)
        elif (run.run_id, request) != (self.run_id, self.request):
            self._begin(run, request, is_chosen)
        else:
            self.run = run

    def _begin(self, run: RunSnapshot, request: Request, is_chosen: bool) -> None:
        """Show a request; if it replaced another one without a reply, mark it as new and block keys longer."""
        lost_run, lost_at = self._lost
        if run.run_id != self.run_id:
            self._is_new = not is_chosen
        elif self.request is None:
            self._is_new = lost_run == run.run_id and self._now - lost_at < REPLACED_S
        else:
            self._is_new = (run.run_id, self.request.id) not in self._replied
        self._is_visited = run.run_id != self.run_id and is_chosen
        self.run, self.request, self._past = run, request, None
        self._change(REPLACED_S if self._is_new else VISIBLE_S)

    def _end(self, run: RunSnapshot | None, has_keys: bool, is_chosen: bool) -> None:
        """Show that the request is gone, while keys may still be meant for it."""
        is_other_run = run is None or run.run_id != self.run_id
        if is_other_run and is_chosen:
            self._close()
            return
        is_replied = self.request is not None and (self.run_id, self.request.id) in self._replied
        if is_other_run:  # its records are no longer followed
            self._replied = {reply for reply in self._replied if reply[0] != self.run_id}
        has_ended = run is None or is_other_run or run.has_ended
        if self.request is None:
            if has_ended:
                self._linger_until = self._now
            self._settle()
            return
        self._past, self.request = self.request, None
        self._is_new = self._is_visited = False
        self._past_note = REPLY_SENT if is_replied else GONE
        if not is_replied:
            self._lost = (self.run_id, self._now)
        if not has_keys:
            self._close()
            return
        self._linger_until = self._now + (LINGER_S if is_replied and not has_ended else 0.0)
        self._change(VISIBLE_S if is_replied else REPLACED_S)

    def _change(self, delay: float) -> None:
        self._guard.restart(delay)
        self._rang = False
        self.display = True
        self._lay_out()
        self.scroll_to(y=0, animate=False)
        self.tick()
        self.call_after_refresh(self.look)

    def _settle(self, is_behind_keys: bool = False) -> None:
        """Close once no request follows, typing has stopped, and no key is waiting.

        `is_behind_keys`: the app has read all keys typed before this call.
        """
        if self.request is not None or not self.is_shown:
            return
        now = self._now
        if any(run_id == self.run_id for run_id, _ in self._replied):
            self._linger_until = now + LINGER_S  # not confirmed yet
        app = cast(KeyQueueApp, self.app)
        quiet = app.last_key_at + QUIET_S
        delay = max(self._guard.seconds_left(now), self._linger_until - now, quiet - now)
        if app.has_keys_waiting:
            delay = max(delay, POLL_S)
        if delay <= 0 and is_behind_keys:
            self._close()
            return
        if delay <= 0:
            app.call_later(self._settle, True)  # keys typed while the app was busy are read first
            return
        if self._timer:
            self._timer.stop()
        self._timer = set_timer(self, min(delay, POLL_S), self._settle)

    def _close(self) -> None:
        self.request = self._past = None
        if self.is_shown:
            self.display = False
            self._fit_panes()
            self._give_back()

    def look(self) -> None:
        """Record that the block is visible now, unless a dialog covers it."""
        if self.is_shown and self.app.screen is self.screen and self.is_on_screen:
            self._guard.note_visible(self._now)
            if self._is_new and (delay := self._guard.seconds_left(self._now)):
                set_timer(self, delay, self.tick)
            self._settle()

    def on_show(self, _: Show) -> None:
        self.look()

    def on_hide(self, _: Hide) -> None:
        self._guard.note_hidden(self._now)
        if self.request is None:
            self._close()

    def mark_replied(self, run_id: str, request_id: str, replied: bool) -> None:
        """Record that a reply is being sent, or that it could not be sent."""
        if replied:
            self._replied.add((run_id, request_id))
        else:
            self._replied.discard((run_id, request_id))
            self._past_note = GONE

    def show_keys(self, key_context: KeyContext) -> None:
        """Name the keys that work in the focused context."""
        if key_context is not self._key_context:
            self._key_context = key_context
            self.tick()

    def tick(self) -> None:
        """Show the request's title, age and reply keys at the edges."""
        run, request = self.run, self.request
        if run is None or not self.is_shown:
            return
        if request is None:
            self.border_title = Content(f"{WAITS_GLYPH} {self._past_note}")
            is_held = self._past_note == GONE and self._key_context is KeyContext.REQUEST
            self.border_subtitle = Content(HELD if is_held else "")
            return
        more = sum((run.run_id, candidate.id) not in self._replied for candidate in run.requests) - 1
        new = ["new request"] if self._is_new else []
        parts = [*new, visible_line(request.title, TITLE) or "request", *self._times(run, request)]
        if more > 0:
            parts.append(f"{more} more")
        self.border_title = Content(f"{WAITS_GLYPH} {' · '.join(parts)}")
        self.border_subtitle = Content(self._keys(run, request))

    def _keys(self, run: RunSnapshot, request: Request) -> str:
        """Return the reply keys, or the key that leads to them."""
        if self._key_context is not KeyContext.REQUEST:
            leads_here = key_of("next_unseen", self._actions)
            return (
                f"{leads_here} {'show' if self._readonly else 'answer'}"
                if self._key_context not in TEXT_CONTEXTS
                else ""
            )
        if self._is_new and not self.is_ready:
            return f"read it first · {HELD}"
        context = ActionContext(key_context=KeyContext.REQUEST, run=run, request=request, readonly=self._readonly)
        only_ours = [action for action in self._actions if KeyContext.REQUEST in action.key_contexts]
        return keys_line(KeyContext.REQUEST, only_ours, context)

    def _times(self, run: RunSnapshot, request: Request) -> list[str]:
        """Return the request's age, and when it will be denied."""
        begin = moment(request.ts)
        if begin is None:
            return []
        seconds = (datetime.now(UTC) - begin).total_seconds()
        until = run.meta.answer_timeout
        return [clock(seconds), *([f"denied in {clock(until - seconds)}"] if until is not None else [])]

    def _lay_out(self) -> None:
        width = max(10, self.scrollable_content_region.width or self.app.size.width - 4)
        cwd = self.run.meta.cwd if self.run else ""
        shown = self.request or self._past
        self._rows = request_rows(shown, cwd, width) if shown else []
        self.virtual_size = Size(width, len(self._rows))
        self.refresh(layout=True)
        self._fit_panes()

    def on_resize(self, _: Resize) -> None:
        if self.is_shown:
            self._lay_out()

    def render_line(self, y: int) -> Strip:
        row = self.scroll_offset.y + y
        if row >= len(self._rows):
            return self.strip(())
        text, tone = self._rows[row]
        return self.strip([Segment(text, self.style_of(f"request--{tone if self.request else Tone.MUTED}"))])

    # --- keys ---------------------------------------------------------------------------------------------------------

    def on_key(self, event: Key) -> None:
        """Drop a key that may have been meant for something else."""
        is_step = self._is_visited and not self._steps.isdisjoint((event.key, event.character))
        if self._guard.takes(cast(KeyQueueApp, self.app).key_time) or is_step:
            return
        event.stop()
        event.prevent_default()
        if not self._rang:
            self._rang = True
            self.app.bell()

    def action_move(self, where: str) -> None:
        if self.request is None:
            self._give_back()
            return
        row = self.target_row(where, self.scroll_offset.y, len(self._rows))
        self.scroll_to(y=max(0, min(row, self.max_scroll_y)), animate=False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Pass a digit without a choice to the deck."""
        if action != "choose":
            return True
        return self.request is not None and int(str(parameters[0])) <= len(self.request.choices)

    def action_choose(self, number: int) -> None:
        self.post_message(self.Chosen(number))


# --- the guard of reply keys -----------------------------------------------------------------------------------------

VISIBLE_S = 0.4
"""Seconds that a request has to be visible before a key may answer it."""
REPLACED_S = 2.0
"""The same for a request that replaced another one not answered from here."""
QUIET_S = 0.3
"""Seconds without a key before the first one that may answer."""


class ReplyGuard:
    """Drops keys until the request has been visible long enough and typing has paused."""

    def __init__(self) -> None:
        self._delay = VISIBLE_S
        self._visible_since: float | None = None
        """None while it is not on the screen."""
        self._taken_at = 0.0
        """Time of the last accepted key: the next one needs no pause."""

    def restart(self, delay: float) -> None:
        """Begin again for a new request, which is not yet visible."""
        self._delay, self._visible_since = delay, None

    def note_visible(self, now: float) -> None:
        if self._visible_since is None:
            self._visible_since = now

    def note_hidden(self, now: float) -> None:
        """Record that it left the screen; a request that was visible long enough is known when it returns."""
        if not self.seconds_left(now):
            self._delay = VISIBLE_S
        self._visible_since = None

    def seconds_left(self, now: float) -> float:
        """Return how long it still has to be visible; infinity while it is not on the screen."""
        return float("inf") if self._visible_since is None else max(0.0, self._visible_since + self._delay - now)

    def takes(self, key: KeyTime) -> bool:
        """Return False for a key to be dropped."""
        is_quiet = key.before == self._taken_at or key.at - key.before >= QUIET_S
        if not is_quiet or self.seconds_left(key.at):
            return False
        self._taken_at = key.at
        return True
