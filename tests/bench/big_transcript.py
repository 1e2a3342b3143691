"""A run of a million events: the time until it is readable, the cost of a frame while scrolling, its memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from subdeck.core import paths

from . import made_up
from .app_live import open_app
from .busy import made_project
from .figures import Figure, percentile, resident_mb, usually
from .pane import MINIMAL, Pane, Panes
from .run_list import FRAME_MS, scroll_frames, weight_of_empty

EVENTS = usually(1_000_000, smoke=5_000)
OPENINGS = usually(7, smoke=1)
OPEN_MS = 300.0
MEMORY_MB = 200.0
SETTLED = usually(2.0, smoke=0.3)
"""Seconds without output after which reading is over."""

_SMALL = re.compile(r"\d\d:\d\d:\d\d\s.*31 functions")
_LINE = r"\d\d:\d\d:\d\d\s"


def measure() -> Iterator[Figure]:
    with made_project() as empty, made_project() as project, Panes() as panes:
        made_up.finished(project, 2)
        made = made_up.long_run(project, 2, EVENTS)
        made_up.finished(project, 1, first=3)
        size = os.path.getsize(os.path.join(project.run_dir(made.run_id), paths.EVENTS)) / 1e6
        nothing = weight_of_empty(panes, empty.root)
        app = open_app(panes, project.root)
        opened: list[float] = []
        small: list[float] = []
        for _ in range(OPENINGS):
            opened.append(_until_shown(app, "j", re.compile(made_up.LAST)))
            small.append(_until_shown(app, "k", _SMALL))
        opened.append(_until_shown(app, "j", re.compile(made_up.LAST)))
        app.press("Enter")
        app.until_quiet(SETTLED, patience=120)
        frames = scroll_frames(app, _LINE, up=True)
        weights = [resident_mb(app.pid)]
        app.press("g")
        app.until_quiet(SETTLED, patience=120)
        frames += scroll_frames(app, _LINE)
        weights.append(resident_mb(app.pid))
        least = panes.open(*MINIMAL, str(EVENTS), cwd=project.root)
        least.until(lambda screen: "ready" in screen.text, "rows")
        floor = percentile(scroll_frames(least, r"row \d+"), 0.95)
    middle, most = percentile(opened, 0.5), percentile(frames, 0.95)
    yield Figure(
        f"transcript, {EVENTS} events ({size:.0f} MB): key to its end on the screen",
        f"{middle:.0f} ms (most {max(opened):.0f})",
        f"of a run with two events: {percentile(small, 0.5):.0f} ms",
        f"{OPEN_MS:.0f} ms",
        middle <= OPEN_MS,
    )
    yield Figure(
        "  CPU of a scroll frame, p95",
        f"{most:.1f} ms (p50 {percentile(frames, 0.5):.1f})",
        f"minimal Textual list: {floor:.1f} ms",
        f"{FRAME_MS:.0f} ms",
        most <= FRAME_MS,
    )
    yield Figure(
        "  memory over an empty app",
        f"{max(weights) - nothing:.0f} MB",
        f"empty app: {nothing:.0f} MB",
        f"{MEMORY_MB:.0f} MB",
        max(weights) - nothing <= MEMORY_MB,
    )


def _until_shown(app: Pane, key: str, text: re.Pattern[str]) -> float:
    """Press a key that chooses another run; return how many ms it took to show its transcript's end."""
    pressed = app.press(key)
    shown = app.until(lambda screen: text.search(screen.text), f"transcript after {key}", 120)
    app.until_quiet(0.3, patience=5)
    return (shown.at - pressed) * 1000
