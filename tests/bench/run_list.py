"""The list of very many runs: the cost of a frame while scrolling, and its memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import made_up
from .app_live import open_app
from .busy import made_project
from .figures import Figure, on_cpu_ms, percentile, resident_mb, usually
from .pane import APP, MINIMAL, Pane, Panes

RUNS = usually(10_000, smoke=200)
NOTCHES = usually(200, smoke=6)
FRAME_MS = 15.0
MEMORY_MB = 60.0
SETTLE_SECONDS = usually(3.0, smoke=0.3)
"""Seconds after which reading is over."""


def measure() -> Iterator[Figure]:
    with made_project() as empty, made_project() as project, Panes() as panes:
        made_up.finished(project, RUNS)
        nothing = weight_of_empty(panes, empty.root)
        app = open_app(panes, project.root)
        panes.wait(SETTLE_SECONDS)
        weight = resident_mb(app.pid)
        frames = scroll_frames(app, r"#\d+ find")
        least = panes.open(*MINIMAL, str(RUNS), cwd=project.root)
        least.until(lambda screen: "ready" in screen.text, "rows")
        floor = percentile(scroll_frames(least, r"row \d+"), 0.95)
        most = percentile(frames, 0.95)
        scrolled = resident_mb(app.pid)
    yield Figure(
        f"run list, {RUNS} runs: CPU of a scroll frame, p95",
        f"{most:.1f} ms (p50 {percentile(frames, 0.5):.1f})",
        f"minimal Textual list: {floor:.1f} ms",
        f"{FRAME_MS:.0f} ms",
        most <= FRAME_MS,
    )
    yield Figure(
        "  memory over an empty app (after scrolling)",
        f"{weight - nothing:.0f} ({scrolled - nothing:.0f}) MB",
        f"empty app: {nothing:.0f} MB",
        f"{MEMORY_MB:.0f} MB",
        max(weight, scrolled) - nothing <= MEMORY_MB,
    )


def weight_of_empty(panes: Panes, directory: str) -> float:
    """Return the app's memory on a project without runs, in MB."""
    pane = panes.open(APP, cwd=directory)
    pane.until(lambda screen: "No runs yet" in screen.text, "empty list")
    panes.wait(SETTLE_SECONDS)
    weight = resident_mb(pane.pid)
    pane.close()
    return weight


def scroll_frames(pane: Pane, row: str, notches: int = NOTCHES, *, up: bool = False) -> list[float]:
    """Turn the wheel over a row that matches a pattern, notch by notch; return the ms of CPU of each frame.

    A frame is all work of the process from the notch until it has drawn; of all its threads, since they share one
    core's worth of Python.
    """
    lines = pane.look().lines
    y, x = next((y, found.start()) for y, line in enumerate(lines, 1) if (found := re.search(row, line)))
    frames: list[float] = []
    for number in range(notches):
        down = (number // 20 % 4 != 3) is not up  # now and then back a bit, as a reader does
        before, written = on_cpu_ms(pane.pid), pane.wrote_at
        pane.wheel(down, x + 2, y)
        pane.until_wrote(written, 2)
        pane.until_quiet(0.03, patience=1)
        frames.append(on_cpu_ms(pane.pid) - before)
    return frames
