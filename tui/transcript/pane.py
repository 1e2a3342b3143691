"""The shown run's transcript, followed while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.binding import BindingType
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.strip import Strip

from ...core.run.describe import clock, doing, moment
from ...core.run.model import STATUS_OF, RunReason, RunStatus
from ...core.run.outcome import REASONS
from ...core.run.snapshot import Running
from ...core.text import markdown
from ...core.text.plain import one_line, plain
from ..feed.lines import TranscriptEntry, View
from ..keys.actions import ACTIONS
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, key_of
from ..terminal.process import freeze_once
from ..text.cells import cells, wrap
from ..text.format import tries
from ._document import Document
from ._rows import TIME_STYLE
from ._view import DocumentView
from .earlier import EarlierRun

if TYPE_CHECKING:
    from ...core.run.snapshot import Ended, RunSnapshot
    from ...core.system.line_file import LineFile
    from ..feed.reader import Piece

UNSAID = frozenset(reason for reason, status in STATUS_OF.items() if status is not RunStatus.COMPLETED) - {
    RunReason.MODEL_ERROR
}
"""Reasons that the last line of a file names, but does not explain; a model error's own text is there."""
FAULTS = frozenset(reason for reason in UNSAID if STATUS_OF[reason] is RunStatus.FAILED)
"""Failures not requested by anyone: the agent's stderr may explain them."""
EDGES = 4
"""Cells of the frame that its lower text cannot use."""


class Transcript(DocumentView):
    """The file of one run in one view, the sentence being written, and the texts of the pane's edges."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KeyContext.SEARCH), *bindings(KeyContext.TRANSCRIPT)]
    DEFAULT_CSS = """
    Transcript {
        scrollbar-gutter: stable;
        & > .transcript--text, & > .transcript--raw, & > .transcript--live { color: $text; }
        & > .transcript--tool { color: $text-primary; }
        & > .transcript--result, & > .transcript--note, & > .transcript--thinking { color: $text-muted; }
        & > .transcript--time { color: $text-muted; }
        & > .transcript--warning { color: $text-warning; }
        & > .transcript--error { color: $text-error; }
        & > .transcript--ended { color: $text; text-style: bold; }
        & > .transcript--strong { text-style: bold; }
        & > .transcript--emphasis { text-style: italic; }
        & > .transcript--title { text-style: bold underline; }
        & > .transcript--faint { color: $text-muted; }
        & > .transcript--message { color: $text-accent; text-style: bold; }
        & > .transcript--request { color: $text-warning; text-style: bold; }
        & > .transcript--added { color: $text-success; }
        & > .transcript--removed { color: $text-error; }
        & > .transcript--code { color: $text-secondary; }
        & > .transcript--pointer { color: $text-primary; }
        & > .transcript--cursor { background: $surface-lighten-1; }
        &:focus > .transcript--cursor { background: $primary 25%; }
    }
    """

    class ViewChosen(Message):
        """Another view of the shown run was chosen."""

        def __init__(self, run_id: str, view: View) -> None:
            super().__init__()
            self.run_id = run_id
            self.view = view

    def __init__(self, actions: Sequence[Action] = ACTIONS, name: str = KeyContext.TRANSCRIPT) -> None:
        super().__init__(name)
        self._follow_key = key_of("follow", actions)
        self.unread = 0
        """Lines added since following stopped."""
        self._run: RunSnapshot | None = None
        self.view = View.READABLE
        self._live_text = ""
        """The sentence being written, the unfinished last line of a file, or the explanation of the reason in its last
        line.
        """
        self._last_seq = 0
        """Of the events read so far."""
        self._loading = False
        self._state = ""
        self._earlier: Sequence[EarlierRun] = ()
        """The earlier runs of the shown run's conversation that have been read."""
        self._last_words: tuple[str, ...] | None = None
        """The end of a failed run's stderr; None until it is read."""

    @property
    def run_id(self) -> str | None:
        return self._run.run_id if self._run else None

    @property
    def shown_run(self) -> RunSnapshot | None:
        return self._run

    @property
    def source_path(self) -> str | None:
        """The shown file; None before its first read."""
        return self.document.file.path if self.document.file else None

    @property
    def shown(self) -> tuple[str | None, str, str | None]:
        """Run, view and file; a search result is only valid while these are unchanged."""
        return self.run_id, self.view, self.source_path

    def show(self, run: RunSnapshot | None) -> None:
        """Empty the pane for another run; follow its end in the text view."""
        self._run = run
        self._begin(View.READABLE)

    def set_view(self, name: str) -> None:
        if self._run is None or name == self.view:
            return
        self._begin(View(name))
        self.post_message(self.ViewChosen(self._run.run_id, self.view))

    def run_changed(self, run: RunSnapshot) -> bool:
        """Set a newer snapshot of the shown run; return whether its file may contain unread lines."""
        self._run = run
        self.show_edges()
        if run.has_ended or run.last_seq > self._last_seq or self.view is View.STDERR:
            return True
        if plain(run.sentence).strip() != self._live_text:
            self._take_sentence()
        return False

    def take(self, piece: Piece) -> None:
        """Add the next piece of the shown run, and its current sentence if no event follows it."""
        if piece.begins:
            self._open(piece.file)
        for part in piece.after:
            self.document.put_after(part)
            if not self.following:
                self.unread += part.chunk.lines if part.entries is None else len(part.entries)
        if piece.before:
            self.put_before(piece.before)
        self._last_seq = max(self._last_seq, piece.last_seq)
        self._loading = piece.more
        self._put_earlier()
        self._take_sentence(piece.rest)
        self.show_edges()
        if not piece.more:
            freeze_once(self)

    def message_state(self, entry: TranscriptEntry) -> str:
        """Return a message's outcome, or for how long it has been queued."""
        if (outcome := super().message_state(entry)) or not self._has_undelivered:
            return outcome
        sent_at = moment(entry.said_at)
        return f"queued {clock((datetime.now(UTC) - sent_at).total_seconds())}" if sent_at else "queued"

    @property
    def _has_undelivered(self) -> bool:
        return self._run is not None and isinstance(self._run.state, Running) and bool(self._run.state.undelivered)

    def tick(self) -> None:
        """Update how long messages have been queued."""
        if self._has_undelivered:
            self.refresh()

    @property
    def wants_last_words(self) -> bool:
        """Whether the shown run failed in a way that its unread stderr may explain."""
        end = self._run.end if self._run else None
        return self._last_words is None and end is not None and end.reason in FAULTS and self.view is View.READABLE

    def show_last_words(self, run_id: str, lines: Sequence[str]) -> None:
        """Show the last lines of a run's stderr."""
        if run_id == self.run_id:
            self._last_words = tuple(lines)
            self._take_sentence()

    def show_earlier(self, run_id: str, earlier: Sequence[EarlierRun]) -> None:
        """Show the earlier runs of its conversation above it."""
        if run_id == self.run_id and self.view is View.READABLE:
            self._earlier = earlier
            self._put_earlier()
            self.show_edges()

    def _put_earlier(self) -> None:
        if self.document.earlier or self._loading:
            return
        moved = self.document.put_earlier(self._earlier)
        if moved is not None:
            self.settle(None if self.following else self.scroll_offset.y + moved)

    def say_state(self, text: str) -> None:
        """Show a short text at the pane's edge, such as `match 3/17`; empty removes it."""
        self._state = text
        self.show_edges()

    def follow(self, follow: bool) -> None:
        super().follow(follow)
        if follow:
            self.unread = 0
        self.show_edges()

    def on_resize(self, event: Resize) -> None:
        super().on_resize(event)
        self._cut_live()
        self.show_edges()

    def render_line(self, y: int) -> Strip:
        if self.virtual_size.height or self.document.height:
            return super().render_line(y)
        return self.strip([Segment(("" if y else self.empty_line()), self.style_of(TIME_STYLE))])

    def _begin(self, view: View) -> None:
        self.view = view
        self._loading = self._run is not None
        self._earlier = ()
        self._state = ""
        self._last_words = None
        self._open(None)
        self.follow(True)

    def _open(self, file: LineFile | None) -> None:
        self._last_seq = 0
        self._set_live("")
        self.open_document(Document(file, self.view))

    def _take_sentence(self, unfinished: str = "") -> None:
        """Show the sentence being written, unless the file is already ahead of it; or the reason for the end."""
        run = self._run
        live_text = unfinished
        self.live_is_written = True
        if run is not None and self.view is View.READABLE:
            if not run.has_ended and run.last_seq >= self._last_seq:
                live_text = run.sentence
            elif run.end and run.end.reason in UNSAID:
                live_text, self.live_is_written = _reason(run.end, self._last_words), False
        self._set_live(live_text)
        self.settle()

    def _set_live(self, sentence: str) -> None:
        self._live_text = plain(sentence).strip()
        self._cut_live()

    def _cut_live(self) -> None:
        text = self._live_text
        if self.view is View.READABLE:
            text = "\n".join(line.prefix + line.text for line in markdown.lines(text))
        text += " "
        width = self.document.width
        cut = wrap(text, width) if width else text.split("\n")
        self.live_rows = cut if self._live_text else ()

    def show_edges(self) -> None:
        """Show at the pane's edges the run, and whether its end is followed."""
        self.border_title = Content(_title(self._run))
        if self._run is None:
            self.border_subtitle = ""
            return
        if self._loading:
            state = "reading…"
        elif self.following:
            state = "follow"
        else:
            news = f"+{self.unread} new, " if self.unread else ""
            state = f"{news}{self._follow_key} follows"
        view = "" if self.view is View.READABLE else f"{self.view} view"
        lines = self.document.lines
        count = f"{lines} {self.view.counted}{'' if lines == 1 else 's'}"
        parts = [*_facts(self._run), *filter(None, (count, view, one_line(self._state, 40), state))]
        while len(parts) > 1 and cells(" · ".join(parts)) > self.size.width - EDGES:
            del parts[0]
        self.border_subtitle = Content(" · ".join(parts))

    def empty_line(self) -> str:
        """Return why there is nothing to read."""
        if self._loading:
            return ""
        if self._run is None:
            return "The highlighted run's transcript appears here."
        if self.view is View.STDERR:
            return "No stderr output."
        return doing(self._run, 200) if self.view is View.READABLE else "No events yet."


def _reason(end: Ended, last_words: Sequence[str] | None) -> str:
    """Return why a run ended, and below it the end of its stderr if that adds something."""
    message = end.message or REASONS[end.reason]
    more = [line for line in last_words or () if line.strip() not in message]
    return "\n".join((message, "", "Last stderr output:", *(f"  {line}" for line in more))) if more else message


def _title(run: RunSnapshot | None) -> str:
    if run is None:
        return "Transcript"
    warned = len(run.warnings)
    warnings = f"! {warned} warning{'s' if warned > 1 else ''}" if warned else ""
    notes = ", ".join(filter(None, (tries(run), warnings)))
    name = one_line(run.meta.title, 40)
    return f"{name}{f' ({notes})' if notes else ''} ▸ {one_line(run.meta.task, 300)}"


def _facts(run: RunSnapshot) -> list[str]:
    """Return its origin, host, model and other facts; a narrow screen drops the first ones first."""
    meta = run.meta
    origin = str(meta.preset_source) if meta.preset else ""
    changed = f"changed {run.changes.brief}" if run.changes and run.changes.files else ""
    return [
        part
        for part in (
            origin,
            one_line(run.host, 40) or meta.runner,
            one_line(meta.resolved_model, 40),
            meta.run_id,
            changed,
        )
        if part
    ]
