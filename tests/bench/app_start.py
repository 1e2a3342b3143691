"""The time until the app is visible in a real pane, against a minimal Textual app."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator

from . import made_up
from .busy import made_project
from .figures import Figure, usually
from .pane import APP, MINIMAL, Panes, Screen

RUNS = usually(1000, smoke=20)
REPEATS = usually(11, smoke=1)
TRIES = usually(REPEATS + 1, smoke=1)
"""The first one warms up."""
MOST = 1.15


def measure() -> Iterator[Figure]:
    app: list[float] = []
    listed: list[float] = []
    least: list[float] = []
    with made_project() as project, Panes() as panes:
        made_up.finished(project, RUNS)
        for _ in range(TRIES):
            pane = panes.open(*MINIMAL, cwd=project.root)
            least.append((pane.until(lambda screen: "ready" in screen.text, "line").at - pane.started) * 1000)
            pane.close()
            pane = panes.open(APP, cwd=project.root)
            app.append((pane.until(_has_panes, "first screen").at - pane.started) * 1000)
            listed.append((pane.until(_has_runs, "run in the list").at - pane.started) * 1000)
            pane.close()
    floor, first, runs = (statistics.median(times[-REPEATS:]) for times in (least, app, listed))
    floor_text = f"minimal Textual app: {floor:.0f} ms"
    ratio = first / floor
    yield Figure(
        f"app: exec to first paint, {RUNS} runs",
        f"{ratio:.2f}x ({first:.0f} ms)",
        floor_text,
        f"{MOST}x",
        ratio <= MOST,
    )
    yield Figure("  to the runs in the list", f"{runs / floor:.2f}x ({runs:.0f} ms)", floor_text, "-", True)


def _has_panes(screen: Screen) -> bool:
    return "Runs" in screen.text and "bg:" in screen.text


def _has_runs(screen: Screen) -> bool:
    return _has_panes(screen) and re.search(r"#\d+ find", screen.text) is not None
