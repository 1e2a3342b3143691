"""What the shown run says and does, followed as it is written; only visible rows are ever drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...core.describe import doing
from ...core.plain import one_line, plain
from ..actions import Place, bindings
from ..present import tries
from ..transcript_lines import Entry, Kind
from ..transcript_rows import INDENT, Rows
from ..wrapping import cells

if TYPE_CHECKING:
    from ...core.runs import RunSnapshot
    from ..transcript_reader import Piece

LIVE_CURSOR = "▋"
EDGES = 4
"""Cells of the frame that its lower line cannot be written on."""

_COMPONENTS = {
    Kind.TEXT: "transcript--text",
    Kind.TOOL: "transcript--tool",
    Kind.RESULT: "transcript--quiet",
    Kind.NOTE: "transcript--quiet",
    Kind.WARNING: "transcript--warning",
    Kind.ERROR: "transcript--error",
    Kind.ENDED: "transcript--ended",
    Kind.THINKING: "transcript--quiet",
    Kind.LIVE: "transcript--live",
}


class Transcript(ScrollView, can_focus=True, inherit_bindings=False):
    """Follows its end until somebody scrolls up; catches it again at the end or by `follow`."""

    BINDINGS = bindings(Place.TRANSCRIPT)
    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {*_COMPONENTS.values(), "transcript--time"}
    DEFAULT_CSS = """
    Transcript {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        & > .transcript--text { color: $text; }
        & > .transcript--live { color: $text; }
        & > .transcript--tool { color: $text-primary; }
        & > .transcript--quiet, & > .transcript--time { color: $text-muted; }
        & > .transcript--warning { color: $text-warning; }
        & > .transcript--error { color: $text-error; }
        & > .transcript--ended { color: $text; text-style: bold; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id=Place.TRANSCRIPT)
        self._rows = Rows()
        self._wrapped = True
        self._live: list[str] = []
        """Rows of the sentence being written."""
        self._live_text = ""
        self._cut: LRUCache[int, list[str]] = LRUCache(1024)
        """Rows of the entries looked at lately."""
        self.following = True
        self.unread = 0
        """Lines that came since the end was let go."""
        self._run: RunSnapshot | None = None
        self._events = 0
        self._last_seq = 0
        """Of the events read so far."""
        self._loading = False

    def on_mount(self) -> None:
        super().on_mount()
        self.anchor()

    @property
    def wrapped(self) -> bool:
        return self._wrapped

    @property
    def text(self) -> str:
        """All that is laid out now, for tests and for copying."""
        return "\n".join([*(entry.text for entry in self._rows.entries), self._live_text])

    @property
    def run_id(self) -> str | None:
        return self._run.run_id if self._run else None

    def show(self, run: RunSnapshot | None) -> None:
        """Empty the pane for another run, which is followed from its end."""
        self._run = run
        self._events = self._last_seq = 0
        self._loading = run is not None
        self._rows.clear()
        self._cut.clear()
        self._set_live("")
        self._resize_virtual()
        self.follow(True)
        self.refresh()

    def run_changed(self, run: RunSnapshot) -> bool:
        """Take a newer snapshot of the shown run; answer whether its file holds more than was read."""
        self._run = run
        self._tell()
        if run.is_terminal or run.last_seq > self._last_seq:
            return True
        if plain(run.sentence).strip() != self._live_text:
            self.append((), run.sentence)
        return False

    def take(self, piece: Piece) -> None:
        """Take the next piece of the shown run, and its sentence when nothing was written after it."""
        self._events += piece.events
        self._last_seq = max(self._last_seq, piece.last_seq)
        self._loading = piece.more
        run = self._run
        live = run is not None and not run.is_terminal and run.last_seq >= self._last_seq
        self.append(piece.entries, run.sentence if run and live else "")
        self._tell()

    def append(self, entries: Sequence[Entry], sentence: str) -> None:
        """Add entries and the sentence now being written, in one frame."""
        self._cut.discard(len(self._rows.entries) - 1)
        self._rows.extend(entries)
        if not self.following:
            self.unread += len(entries)
        self._set_live(sentence)
        self._resize_virtual()
        self.refresh()

    def follow(self, follow: bool) -> None:
        if follow:
            self.following = True
            self.unread = 0
            self.anchor()
            self.call_after_refresh(self.scroll_end, animate=False)
        else:
            self.following = False
            self.release_anchor()
        self._tell()

    def set_wrap(self, wrapped: bool) -> None:
        self._wrapped = wrapped
        self.styles.overflow_x = "hidden" if wrapped else "auto"
        self._lay_out()

    def action_move(self, where: str) -> None:
        page = max(1, self.scrollable_content_region.height - 1)
        x, y = self.scroll_offset
        match where:
            case "left":
                self.scroll_to(x=x - 8, animate=False)
            case "right":
                self.scroll_to(x=x + 8, animate=False)
            case "first":
                self.scroll_to(y=0, animate=False)
            case "last":
                self.follow(True)
            case _:
                step = {"down": 1, "up": -1, "page_down": page, "page_up": -page}[where]
                self.scroll_to(y=y + step, animate=False)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        at_end = round(new_value) >= self.max_scroll_y
        if at_end and not self.following:
            self.follow(True)
        elif not at_end and self.following and new_value < old_value:
            self.follow(False)

    def on_resize(self, _: Resize) -> None:
        self._lay_out()
        self._tell()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        row = self.scroll_offset.y + y
        if not self._height:
            return self._strip([Segment(self._empty_line(y), self._style("transcript--time"))], base)
        if row >= self._height:
            return Strip.blank(width, base)
        if row >= self._rows.height:
            return self._live_strip(row - self._rows.height, base)
        index, part = self._rows.at(row)
        entry = self._rows.entries[index]
        rows = self._cut.get(index)
        if rows is None:
            rows = self._cut[index] = self._rows.cut(entry.text)
        text = rows[part] if part < len(rows) else ""
        time = entry.time if part == 0 else ""
        return self._strip(
            [
                Segment(time.ljust(INDENT), self._style("transcript--time")),
                Segment(text, self._style(_COMPONENTS[entry.kind])),
            ],
            base,
        )

    def _live_strip(self, part: int, base: Style) -> Strip:
        text = self._live[part]
        if part == len(self._live) - 1:
            text = text.removesuffix(" ") + LIVE_CURSOR  # laid out with a blank in its place
        style = self._style("transcript--live")
        return self._strip([Segment(" " * INDENT, style), Segment(text, style)], base)

    def _strip(self, segments: list[Segment], base: Style) -> Strip:
        x, width = self.scroll_offset.x, self.scrollable_content_region.width
        strip = Strip(segments)
        return strip.crop_extend(x, x + width, base).apply_style(base) if x else strip.crop_extend(0, width, base)

    def _style(self, component: str) -> Style:
        return self.get_component_rich_style(component)

    @property
    def _height(self) -> int:
        return self._rows.height + len(self._live)

    def _set_live(self, sentence: str) -> None:
        self._live_text = plain(sentence).strip()
        self._live = self._rows.cut(self._live_text + " ") if self._live_text else []

    def _lay_out(self) -> None:
        width = max(10, self.scrollable_content_region.width - INDENT)
        if self._rows.lay_out(width, self._wrapped):
            self._cut.clear()
            self._set_live(self._live_text)
        self._resize_virtual()
        self.refresh()

    def _resize_virtual(self) -> None:
        view = max(1, self.scrollable_content_region.width)
        width = view if self._wrapped else max(view, INDENT + self._rows.longest)
        self.virtual_size = Size(width, self._height)

    def _tell(self) -> None:
        """Say at the pane's edge what is shown, and whether its end is followed."""
        self.border_title = Content(_title(self._run))
        if self._run is None:
            self.border_subtitle = ""
            return
        if self._loading:
            state = "reading…"
        elif self.following:
            state = "follow"
        else:
            state = f"+{self.unread} new, f follows" if self.unread else "f follows"
        parts = [*_facts(self._run), f"{self._events} events", state]
        while len(parts) > 1 and cells(" · ".join(parts)) > self.size.width - EDGES:
            del parts[0]
        self.border_subtitle = Content(" · ".join(parts))

    def _empty_line(self, y: int) -> str:
        if y or self._loading:
            return ""
        return doing(self._run, 200) if self._run else "The transcript of the highlighted run is shown here."


def _title(run: RunSnapshot | None) -> str:
    if run is None:
        return "Transcript"
    warned = len(run.warnings)
    notes = (tries(run), f"! {warned} warning{'s' if warned > 1 else ''}" if warned else "")
    told = ", ".join(filter(None, notes))
    name = one_line(run.meta.title, 40)
    return f"{name}{f' ({told})' if told else ''} ▸ {one_line(run.meta.task, 300)}"


def _facts(run: RunSnapshot) -> list[str]:
    """Say where it comes from and what it runs on; the first is what a narrow screen misses least."""
    meta = run.meta
    origin = str(meta.preset_source) if meta.preset else ""
    return [part for part in (origin, meta.runner, one_line(meta.resolved_model, 40), meta.run_id) if part]
