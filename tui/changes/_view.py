"""The differences, row by row; the cost depends on the rows on the screen, not on the patch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from ...core.git.patch import NO_PAIR, FilePatch
from ...core.text.plain import disarmed, one_line
from ..text.cells import cells, fit, shortened
from ..widgets.line_view import CURSOR, LineView
from ._document import NONE, Document, Kind, Row

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LONGEST_SHOWN = 2_000
"""Characters of a line that are read."""
NUMBER_CELLS = 5
GUTTER = NUMBER_CELLS + 2
"""Cells of the number, the sign and a space."""
TAB = "    "
_KEPT_LINES = 4_000
"""Lines whose colours are kept."""


class DiffView(LineView, can_focus=True, inherit_bindings=False):
    """Has a cursor; the document knows what is in its row."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "diff--added",
        "diff--removed",
        "diff--added-word",
        "diff--removed-word",
        "diff--file",
        "diff--hunk",
        "diff--muted",
        "diff--cursor",
        "diff--match",
        "diff--keyword",
        "diff--string",
        "diff--number",
        "diff--comment",
        "diff--name",
    }
    DEFAULT_CSS = """
    DiffView {
        & > .diff--added { background: $success 12%; }
        & > .diff--removed { background: $error 12%; }
        & > .diff--added-word { background: $success 35%; }
        & > .diff--removed-word { background: $error 35%; }
        & > .diff--file { color: $text; text-style: bold; background: $surface-lighten-1; }
        & > .diff--hunk { color: $text-muted; }
        & > .diff--muted { color: $text-muted; }
        & > .diff--cursor { color: $text-primary; }
        & > .diff--match { background: $warning 50%; }
        & > .diff--keyword { color: $text-accent; }
        & > .diff--string { color: $text-success; }
        & > .diff--number { color: $text-warning; }
        & > .diff--comment { color: $text-muted; }
        & > .diff--name { color: $text-primary; }
    }
    """

    class Moved(Message):
        """The cursor is on another row."""

    class Uncoloured(Message):
        """Lines on the screen have no colours yet."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self.document: Document | None = None
        self.cursor = 0
        self.marked: set[tuple[str, int]] = set()
        """Selected hunks, by file and number, from 1."""
        self.wanted = ""
        """The search text."""
        self._coloured: dict[int, Spans] = {}
        """By line of the patch."""
        self._words: dict[int, tuple[tuple[int, int], ...]] = {}
        self._uncoloured: set[int] = set()
        """Lines on the screen that wait for their colours."""
        self._looks: dict[tuple[str, ...], Style] = {}
        self._strips: dict[int, Strip] = {}
        """Rows drawn without the cursor, by number; a scroll draws most of the screen again."""
        self._drawn_width = 0

    # --- content ---------------------------------------------------------------------------------------------------

    def show(self, document: Document, *, line: int = 0) -> None:
        """Show a document, with the cursor on the row of a line of its patch."""
        self.document = document
        self._strips.clear()
        self._coloured.clear()
        self._words.clear()
        self._uncoloured.clear()
        self._fit()
        self.cursor = min(document.row_of(line) if document.rows and line else 0, max(0, len(document.rows) - 1))
        self.show_cursor()
        self.refresh()

    def laid_out(self, line: int) -> None:
        """Use the document's new rows; the cursor stays on a line of the patch."""
        if self.document:
            self._strips.clear()
            self._fit()
            self.cursor = self.document.row_of(line) if self.document.rows else 0
            self.show_cursor()
            self.refresh()
            self.post_message(self.Moved())

    def _fit(self) -> None:
        count = len(self.document.rows) if self.document else 0
        size = Size(max(1, self.scrollable_content_region.width), count)
        if size != self.virtual_size:
            self.virtual_size = size

    def on_resize(self, _: Resize) -> None:
        self._fit()
        self.show_cursor()

    # --- moving ----------------------------------------------------------------------------------------------------

    @property
    def line(self) -> int:
        """The line of the patch under the cursor."""
        return self.document.line_at(self.cursor) if self.document else 0

    @property
    def file(self) -> FilePatch | None:
        return self.document.file_at(self.cursor) if self.document else None

    def action_move(self, where: str) -> None:
        if self.document and self.document.rows:
            self.go_to(self.target_row(where, self.cursor, len(self.document.rows) - 1))

    def go_to(self, row: int, *, top: bool = False) -> None:
        """Move the cursor to a row; `top` scrolls it to the top if possible."""
        if not self.document:
            return
        row = max(0, min(row, len(self.document.rows) - 1))
        if row != self.cursor:
            self.cursor = row
            self.post_message(self.Moved())
        if top:
            self.scroll_to(y=row, animate=False)
        self.show_cursor()
        self.refresh()

    def show_cursor(self) -> None:
        height, top = self.rows_height, self.scroll_offset.y
        if height > 0 and self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif height > 0 and self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def on_click(self, event: Click) -> None:
        if (offset := event.get_content_offset(self)) is not None:
            self.go_to(offset.y + self.scroll_offset.y)

    # --- colours ---------------------------------------------------------------------------------------------------

    def uncoloured(self) -> list[tuple[str, list[int], list[str]]]:
        """Return, once, the lines on the screen to colour: path, lines of the patch, their texts."""
        document, lines = self.document, self._uncoloured
        self._uncoloured = set()
        if document is None:
            return []
        parts: list[tuple[str, list[int], list[str]]] = []
        for is_old in (True, False):
            side = sorted(line for line in lines if document.patch.lines[line].startswith(b"-") is is_old)
            parts += self._together(side)
        return parts

    def _together(self, lines: Sequence[int]) -> list[tuple[str, list[int], list[str]]]:
        """Group neighbouring lines of a file into parts."""
        parts: list[tuple[str, list[int], list[str]]] = []
        for line in lines:
            path = self._path_of(line)
            near = parts and parts[-1][0] == path and line - parts[-1][1][-1] <= TOGETHER
            if not near or len(parts[-1][1]) >= TOGETHER:
                parts.append((path, [], []))
            parts[-1][1].append(line)
            parts[-1][2].append(self._text(line))
        return parts

    def _path_of(self, line: int) -> str:
        document = self.document
        return document.patch.files[document.rows[document.row_of(line)].file].path if document else ""

    def take_colours(self, document: Document, coloured: dict[int, Spans]) -> None:
        """Draw these lines in colour, if the document is still shown."""
        if document is self.document:
            if len(self._coloured) > _KEPT_LINES:
                self._coloured.clear()
            self._coloured |= coloured
            for line in coloured:
                self._strips.pop(document.row_of(line), None)
            self.refresh()

    # --- drawing ---------------------------------------------------------------------------------------------------

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._looks.clear()
        self._strips.clear()

    def draw_again(self) -> None:
        """Draw all rows again after the search or the selection changed."""
        self._strips.clear()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        document, number = self.document, self.scroll_offset.y + y
        if document is None or number >= len(document.rows):
            return self.strip(())
        if self.shown_width != self._drawn_width or len(self._strips) > _KEPT_LINES:
            self._strips.clear()
            self._drawn_width = self.shown_width
        if number == self.cursor:
            return self._draw(document, number)
        strip = self._strips.get(number)
        if strip is None:
            strip = self._strips[number] = self._draw(document, number)
        return strip

    def _draw(self, document: Document, number: int) -> Strip:
        row, width = document.rows[number], self.shown_width
        mark = Segment(CURSOR if number == self.cursor else " ", self._look("diff--cursor"))
        match row.kind:
            case Kind.FILE:
                segments = [
                    Segment(fit(self._file_text(document.patch.files[row.file]), width), self._look("diff--file"))
                ]
            case Kind.NOTE:
                note = note_of(document.patch.files[row.file])
                segments = [Segment(fit(" " * GUTTER + note, width), self._look("diff--muted"))]
            case Kind.HUNK:
                segments = [Segment(fit(self._hunk_text(document, row), width), self._look("diff--hunk"))]
            case Kind.LINE if document.beside:
                half = (width - 1) // 2
                segments = [*self._side(row.left, half, is_old=True), Segment("│", self._look("diff--muted"))]
                segments += self._side(row.right, width - 2 - half, is_old=False)
            case Kind.LINE:
                segments = self._line(row.left, width - 1, is_old=document.patch.lines[row.left].startswith(b"-"))
        return self.strip((mark, *segments))

    def _file_text(self, file: FilePatch) -> str:
        folded = self.document is not None and file.key in self.document.folded
        counts = "" if file.is_binary else f"  +{file.added} −{file.removed}"
        name = (
            f"{one_line(file.old_path, 200)} → {one_line(file.path, 200)}"
            if file.old_path
            else one_line(file.path, 300)
        )
        return f"{'▸' if folded else '▾'} {name}{counts}{_words_of(file)}"

    def _hunk_text(self, document: Document, row: Row) -> str:
        file = document.patch.files[row.file]
        hunk = file.hunks[row.hunk]
        is_marked = (file.path, row.hunk + 1) in self.marked
        first = next((number for number in document.patch.new[hunk.begin + 1 : hunk.end] if number), 0)
        heading = one_line(hunk.heading.decode("utf-8", "replace"), 200)
        return f"{'◆' if is_marked else ' '} line {first or 1} · hunk {row.hunk + 1} of {len(file.hunks)}  {heading}"

    def _side(self, line: int, width: int, *, is_old: bool) -> list[Segment]:
        if line == NONE:
            return [Segment(" " * width, self._look("diff--muted"))]
        return self._line(line, width, is_old=is_old)

    def _line(self, line: int, width: int, *, is_old: bool) -> list[Segment]:
        """Return a line of the patch in `width` cells: number, sign, text."""
        document = self.document
        assert document is not None  # noqa: S101 - for the type: who draws has one
        patch = document.patch
        raw = patch.lines[line]
        sign = raw[:1].decode("ascii", "replace") or " "
        if sign == "\\":
            return [Segment(fit(" " * GUTTER + "no newline at end of file", width), self._look("diff--muted"))]
        is_same = sign == " " or (not document.spaces and document.is_blank_change(line))
        ground = () if is_same else ("diff--removed",) if sign == "-" else ("diff--added",)
        number = patch.old[line] if is_old and patch.old[line] else patch.new[line] or patch.old[line]
        gutter = f"{number:>{NUMBER_CELLS}}{' ' if is_same else sign} "
        text = self._text(line)
        room = width - GUTTER
        shown = shortened(text, room)
        segments = [Segment(gutter, self._look("diff--muted", *ground))]
        segments += self._coloured_text(line, shown, ground)
        used = GUTTER + cells(shown)
        return [*segments, Segment(" " * max(0, width - used), self._look("", *ground))]

    def _text(self, line: int) -> str:
        raw = self.document.patch.lines[line][1 : LONGEST_SHOWN * 4] if self.document else b""
        text = raw.rstrip(b"\r").decode("utf-8", "replace")[:LONGEST_SHOWN]
        return disarmed(text).replace("\t", TAB).replace("\n", " ").replace("\r", " ")

    def _coloured_text(self, line: int, text: str, ground: tuple[str, ...]) -> list[Segment]:
        """Split a text where its colours change."""
        spans = self._coloured.get(line)
        if spans is None:
            if not self._uncoloured:
                self.post_message(self.Uncoloured())
            self._uncoloured.add(line)
            spans = ()
        marks = [(begin, end, f"{ground[0]}-word") for begin, end in self._differing(line)] if ground else []
        matches = _matches_of(self.wanted, text) if self.wanted else []
        cuts = {0, len(text)}
        for begin, end, *_ in (*spans, *marks, *matches):
            cuts.update((min(begin, len(text)), min(end, len(text))))
        points = sorted(cuts)
        segments: list[Segment] = []
        for begin, end in pairwise(points):
            over = next((name for low, high, name in (*matches, *marks) if low <= begin < high), "")
            colour = next((name for low, high, name in spans if low <= begin < high), "")
            segments.append(Segment(text[begin:end], self._look(colour, *ground, *((over,) if over else ()))))
        return segments

    def _differing(self, line: int) -> tuple[tuple[int, int], ...]:
        """Return the words of a line that its counterpart does not have."""
        ranges = self._words.get(line)
        if ranges is None:
            pair = self.document.patch.pairs[line] if self.document else NO_PAIR
            if pair == NO_PAIR:
                return ()
            if len(self._words) > _KEPT_LINES:
                self._words.clear()
            old, new = min(line, pair), max(line, pair)
            self._words[old], self._words[new] = differing(self._text(old), self._text(new))
            ranges = self._words[line]
        return ranges

    def _look(self, colour: str, *grounds: str) -> Style:
        """Return the colour of one component class on the background of the last of `grounds`."""
        style = self._looks.get((colour, *grounds))
        if style is None:
            style = self.style_of()
            for name in grounds:
                style += Style(bgcolor=self.style_of(name).bgcolor)
            if colour:
                text_style = self.style_of(colour)
                style += Style(
                    color=text_style.color, bold=text_style.bold, bgcolor=None if grounds else text_style.bgcolor
                )
            self._looks[colour, *grounds] = style
        return style


def _words_of(file: FilePatch) -> str:
    """Return how a file changed, unless it was only modified, and its kind, unless it is a regular file."""
    words = ", ".join(filter(None, ("" if file.what == "modified" else file.what, file.kind)))
    return f"  {words}" if words else ""


def note_of(file: FilePatch) -> str:
    """Return why a file has no lines to show."""
    if file.is_binary:
        return "binary file, not shown"
    return "renamed" if file.old_path else "empty file" if file.what in ("added", "deleted") else "mode changed"


def _matches_of(sought: str, text: str) -> list[tuple[int, int, str]]:
    """Return the matches of a search text."""
    fold: Callable[[str], str] = str if sought != sought.lower() else str.lower
    folded, at = fold(text), 0
    matches: list[tuple[int, int, str]] = []
    while (at := folded.find(sought, at)) >= 0:
        matches.append((at, at + len(sought), "diff--match"))
        at += max(1, len(sought))
    return matches


def colour_parts(parts: Sequence[tuple[str, list[int], list[str]]]) -> dict[int, Spans]:
    """Colour the result of `DiffView.uncoloured`; takes some milliseconds, and runs in a thread."""
    coloured: dict[int, Spans] = {}
    for path, lines, texts in parts:
        coloured |= dict(zip(lines, colour_lines(path, texts), strict=True))
    return coloured


# --- colours ---------------------------------------------------------------------------------------------------------

TOGETHER = 40
"""Lines coloured together; the lexer sees only these."""
LONGEST_LINE = 400
"""Characters of a line that are coloured, or compared by words."""
LEAST_ALIKE = 0.3
"""Similarity of two lines from which they are compared by words, from 0 to 1."""
_WORD = re.compile(r"\w+|\s+|.")


class Span(NamedTuple):
    begin: int
    end: int
    component: str
    """Component class of its colour."""


Spans = tuple[Span, ...]
_COMPONENTS = (
    ("Comment", "diff--comment"),
    ("Literal.String", "diff--string"),
    ("Literal", "diff--number"),
    ("Keyword", "diff--keyword"),
    ("Name.Function", "diff--name"),
    ("Name.Class", "diff--name"),
    ("Name.Decorator", "diff--name"),
    ("Name.Tag", "diff--keyword"),
)
"""Token types, by the beginning of their names."""


@lru_cache(maxsize=64)
def lexer_of(path: str) -> Lexer | None:
    """Return the lexer for a file name; None for an unknown language, and for plain text."""
    from pygments.lexers import find_lexer_class_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer_class = find_lexer_class_for_filename(path)
    except ClassNotFound:
        return None
    return (
        None if lexer_class is None or lexer_class.name == "Text only" else lexer_class(stripnl=False, ensurenl=False)
    )


def colour_lines(path: str, lines: Sequence[str]) -> list[Spans]:
    """Return the coloured spans of consecutive lines of a file."""
    lexer = lexer_of(path)
    if lexer is None:
        return [()] * len(lines)
    spans: list[list[Span]] = [[] for _ in lines]
    row, column = 0, 0
    for token, text in lexer.get_tokens("\n".join(line[:LONGEST_LINE] for line in lines)):
        component = _component(str(token))
        for number, part in enumerate(text.split("\n")):
            if number:
                row, column = row + 1, 0
            if row >= len(spans):
                return [tuple(each) for each in spans]
            if part and component:
                spans[row].append(Span(column, column + len(part), component))
            column += len(part)
    return [tuple(each) for each in spans]


@lru_cache(maxsize=256)
def _component(token: str) -> str:
    name = token.removeprefix("Token.")
    return next((component for begin, component in _COMPONENTS if name.startswith(begin)), "")


def differing(before: str, after: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return the differing parts of two lines, as pairs of positions; none if the lines have too little in common."""
    if max(len(before), len(after)) > LONGEST_LINE:
        return (), ()
    old, new = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < LEAST_ALIKE:
        return (), ()
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        tuple(_character_ranges(old, ((begin, end) for _, begin, end, _, _ in codes))),
        tuple(_character_ranges(new, ((begin, end) for _, _, _, begin, end in codes))),
    )


def _character_ranges(words: Sequence[str], ranges: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Convert ranges of words to ranges of characters."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    for begin, end in ranges:
        if begin < end:
            yield starts[begin], starts[end]
