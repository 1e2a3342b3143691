"""The figures of a deck, read from its screen."""

from __future__ import annotations

import re

from msgspec import Struct
from subdeck.core.run.need import Need
from subdeck.tui.runs._rows import FOLDED

_RUNNING = re.compile(r" {3}(\d+) running(?: \((\d+) in a shell\))?(?:, (\d+) queued)?")
_NEED_WORDS = {need.counted(count).partition(" ")[2]: need for need in Need for count in (1, 2)}
_NEEDS = re.compile(rf"(\d+) ({'|'.join(map(re.escape, sorted(_NEED_WORDS, key=len, reverse=True)))})\b")
_FOOTER = re.compile(r"^ ?bg: (\d+) running / (\d+) total(?=  |$)")
_STATE_AT = 4
"""Cells before the state of a row: the cursor, whether it needs you, the place in a group."""
_ROW = re.compile(r"(\S)(?: ([a-z][A-Za-z ]*?))? +([0-9a-f]{6})(?: |$)")
_FOLDED_HEAD = re.compile(rf".{{{_STATE_AT - 1}}}{FOLDED}.* ×(\d+) ")
_SHOWN = re.compile(r"(\d{8}-\d{6}-[0-9a-f]{6}) · (?:(\d+) events?)?")
CURSOR = "▌"


class Row(Struct, frozen=True):
    glyph: str
    word: str
    """Empty if it does not fit in the list."""


class View(Struct, frozen=True):
    running: int
    """Without queued ones."""
    in_shell: int
    """Those of them that a `subdeck run` waits for."""
    queued: int
    needs: dict[Need, int]
    """How many runs need you, by the reason."""
    background: tuple[int, int] | None
    """The footer's figures: running, total; None if the footer has another form."""
    rows: dict[str, Row]
    """By the last part of the run's id."""
    folded: tuple[int, ...]
    """Number of rows hidden in each folded group."""
    is_whole: bool
    """Whether the list ends on the screen: no row is below it."""
    selected: str
    """The last part of the highlighted run's id; empty if the cursor is on the head of a group, or out of sight."""
    transcript_of: str
    """The id of the run whose transcript is shown; empty for none."""
    events: int | None
    """Number of events in the transcript; None while it is being read."""
    transcript: tuple[str, ...]
    """Its lines."""
    is_following: bool
    """Whether they are the last ones: not after scrolling up."""


def read(screen: str) -> View | None:
    """Read a screen of `capture-pane`; None if it does not show the deck."""
    lines = screen.rstrip("\n").split("\n")
    header = _RUNNING.search(lines[0])
    pane = _pane(lines, "Runs")
    if header is None or pane is None or not lines[0].startswith(" subdeck"):
        return None
    running, in_shell, queued = (int(text or 0) for text in header.groups())
    footer = next((found for line in reversed(lines) if (found := _FOOTER.match(line))), None)
    rows: dict[str, Row] = {}
    selected = ""
    for line in pane:
        if (found := _ROW.match(line[_STATE_AT:])) is not None:
            rows[found[3]] = Row(found[1], found[2] or "")
            if CURSOR in line[:_STATE_AT]:
                selected = found[3]
    transcript, edge = _transcript(lines)
    shown = _SHOWN.search(edge)
    return View(
        running=running,
        in_shell=in_shell,
        queued=queued,
        needs={_NEED_WORDS[words]: int(count) for count, words in _NEEDS.findall(lines[0])},
        background=(int(footer[1]), int(footer[2])) if footer else None,
        rows=rows,
        folded=tuple(int(found[1]) for line in pane if (found := _FOLDED_HEAD.match(line)) is not None),
        is_whole=not pane or not pane[-1].strip(),
        selected=selected,
        transcript_of=shown[1] if shown else "",
        events=int(shown[2]) if shown and shown[2] and "reading…" not in edge else None,
        transcript=tuple(transcript),
        is_following="f follows" not in edge,
    )


def _pane(lines: list[str], title: str) -> list[str] | None:
    """Return the lines inside of a pane's frame."""
    for top, line in enumerate(lines):
        if (left := line.find(f"╭─ {title} ")) >= 0:
            right = line.index("╮", left)
            inside: list[str] = []
            for below in lines[top + 1 :]:
                if below[left : left + 1] != "│":
                    break
                inside.append(below[left + 1 : right].rstrip())
            return inside
    return None


def _transcript(lines: list[str]) -> tuple[list[str], str]:
    """Return the lines of the rightmost pane of the uppermost row, and its lower edge."""
    top = next((number for number, line in enumerate(lines) if "╭" in line), None)
    if top is None:
        return [], ""
    left = lines[top].rindex("╭")
    inside: list[str] = []
    for below in lines[top + 1 :]:
        if below[left : left + 1] != "│":
            return inside, below[left:]
        inside.append(below[left + 1 :].rstrip("│ "))
    return inside, ""
