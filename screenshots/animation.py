"""An animated picture of a terminal: an SVG of about 25 seconds that loops, without a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from xml.sax.saxutils import escape, quoteattr

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from textual.strip import Strip

CELL, LINE, FONT = 12.2, 24.4, 20.0
"""Width and height of a cell and size of the letters, in the units of the picture."""
MARGIN, CAPTION = 16.0, 56.0
PAGE, FRAME, INK = "#0d1117", "#30363d", "#e6edf3"
ACCENT = "#9fd6d2"
FONTS = '"Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace'


@dataclass(frozen=True)
class Frame:
    """A screen, its duration in seconds, and the caption below it: possibly a key and two spaces, then words."""

    rows: tuple[Strip, ...]
    seconds: float
    caption: str


@dataclass
class Animation:
    """Frames of one size in order; equal rows are stored once, and shown for as many frames as they last."""

    columns: int
    lines: int
    title: str
    frames: list[Frame] = field(default_factory=list)
    _classes: dict[str, str] = field(default_factory=dict)
    _rows: dict[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return sum(frame.seconds for frame in self.frames)

    def add(self, rows: Sequence[Strip], seconds: float, caption: str) -> None:
        """Add a frame; if it looks like the last one, extend that."""
        frame = Frame(tuple(rows), seconds, caption)
        if self.frames and (last := self.frames[-1]).caption == caption and last.rows == frame.rows:
            self.frames[-1] = replace(last, seconds=last.seconds + seconds)
        else:
            self.frames.append(frame)

    def svg(self, only: int | None = None) -> str:
        """Return the picture; `only` is the index of a single frame to show, for inspection."""
        shown = self.frames if only is None else self.frames[only : only + 1]
        groups: dict[tuple[int, int], list[str]] = {}
        for line in range(self.lines):
            ids = [self._row(frame.rows[line]) for frame in shown]
            for begin, end in _spans(ids):
                use = f'<use href="#{ids[begin]}" y="{line * LINE:.1f}"/>'
                groups.setdefault((begin, end), []).append(use)
        captions = [frame.caption for frame in shown]
        for begin, end in _spans(captions):
            place = f'x="0" y="{self.lines * LINE + CAPTION - 16:.1f}"'
            key, _, words = captions[begin].rpartition("  ")
            key = f'<tspan class="key">{escape(key)}</tspan>  ' if key else ""
            groups.setdefault((begin, end), []).append(f'<text class="caption" {place}>{key}{escape(words)}</text>')
        starts = [sum(frame.seconds for frame in shown[:number]) for number in range(len(shown) + 1)]
        body = "\n".join(_timed("".join(parts), starts, *span) for span, parts in sorted(groups.items()))
        return self._document(body)

    def _document(self, body: str) -> str:
        width = self.columns * CELL + 2 * MARGIN
        height = self.lines * LINE + CAPTION + 2 * MARGIN
        inner = f'x="{MARGIN / 2}" y="{MARGIN / 2}" width="{width - MARGIN}" height="{self.lines * LINE + MARGIN}"'
        classes = "".join(f".{name}{{{rule}}}" for rule, name in self._classes.items())
        rows = "\n".join(f'<g id="{name}">{content}</g>' for content, name in self._rows.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 {width:.1f} {height:.1f}"'
            f' role="img" aria-label={quoteattr(self.title)}>\n<title>{escape(self.title)}</title>\n'
            f"<style>text{{font-family:{FONTS};font-size:{FONT}px;dominant-baseline:alphabetic;white-space:pre}}"
            f".caption{{fill:{INK};font-size:22px}}.key{{fill:{ACCENT};font-weight:bold}}{classes}</style>\n"
            f'<defs>{rows}</defs>\n<rect width="100%" height="100%" fill="{PAGE}"/>\n'
            f'<rect {inner} rx="8" fill="{_background(Style())}" stroke="{FRAME}"/>\n'
            f'<g transform="translate({MARGIN} {MARGIN})">\n{body}\n</g>\n</svg>\n'
        )

    def _row(self, strip: Strip) -> str:
        """Return the id of a row; store it if it is new."""
        back: list[str] = []
        text: list[str] = []
        column = 0
        for segment in Segment.simplify(strip):
            style = segment.style or Style()
            cells = segment.cell_length
            x, wide = column * CELL, cells * CELL
            if (colour := _background(style)) != _background(Style()):
                back.append(f'<rect x="{x:.1f}" width="{wide:.1f}" height="{LINE + 0.4:.1f}" fill="{colour}"/>')
            if words := segment.text.rstrip(" "):
                before = len(words) - len(words.lstrip(" "))
                words = words.lstrip(" ")
                place = f'x="{x + before * CELL:.1f}" y="{LINE - 6:.1f}"'
                length = f'textLength="{Segment(words).cell_length * CELL:.1f}"'
                text.append(f'<text class="{self._class(style)}" {place} {length}>{escape(words)}</text>')
            column += cells
        return self._rows.setdefault("".join(back + text), f"r{len(self._rows)}")

    def _class(self, style: Style) -> str:
        rule = f"fill:{_foreground(style)}"
        rule += ";font-weight:bold" if style.bold else ""
        rule += ";font-style:italic" if style.italic else ""
        rule += ";text-decoration:underline" if style.underline else ""
        return self._classes.setdefault(rule, f"c{len(self._classes)}")


def _spans(values: Sequence[str]) -> list[tuple[int, int]]:
    """Return the ranges of equal values, without the end."""
    starts = [number for number, value in enumerate(values) if not number or value != values[number - 1]]
    return list(zip(starts, [*starts[1:], len(values)], strict=True))


def _timed(content: str, starts: Sequence[float], begin: int, end: int) -> str:
    """Return a group that is shown from one frame to another of each round."""
    if (begin, end) == (0, len(starts) - 1):
        return f"<g>{content}</g>"
    whole = starts[-1]
    changes = {0.0: "none", starts[begin] / whole: "inline"}
    if end < len(starts) - 1:
        changes[starts[end] / whole] = "none"
    times = ";".join(f"{at:.4f}" for at in changes)
    # Without animation, such as in a plain viewer, the last frame is visible.
    still = "inline" if end == len(starts) - 1 else "none"
    moves = f'dur="{whole:g}s" repeatCount="indefinite" calcMode="discrete" keyTimes="{times}"'
    animate = f'<animate attributeName="display" {moves} values="{";".join(changes.values())}"/>'
    return f'<g display="{still}">{content}{animate}</g>'


def _foreground(style: Style) -> str:
    colour = _hex(style.bgcolor if style.reverse else style.color, foreground=not style.reverse)
    return _between(colour, _background(style)) if style.dim else colour


def _background(style: Style) -> str:
    return _hex(style.color if style.reverse else style.bgcolor, foreground=bool(style.reverse))


def _hex(colour: Color | None, *, foreground: bool) -> str:
    found = (colour or Color.default()).get_truecolor(SVG_EXPORT_THEME, foreground=foreground)
    return found.hex


def _between(one: str, other: str) -> str:
    """Return the colour half way between two, as terminals show dim text."""
    pairs = [(int(one[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{(first + second) // 2:02x}" for first, second in pairs)
