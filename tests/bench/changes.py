"""A run that changed 50,000 lines: the time until they are shown, and the cost of a frame while scrolling."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from subdeck.core import paths

from . import made_up
from .app_live import open_app
from .busy import made_project
from .figures import Figure, percentile, usually
from .pane import MINIMAL, Panes
from .run_list import FRAME_MS, scroll_frames

LINES = usually(50_000, smoke=4_000)
IN_A_FILE = 2_000
OPENINGS = usually(9, smoke=1)
OPEN_MS = 300.0
SETTLED = usually(1.0, smoke=0.3)
"""Seconds without output after which colouring is over."""

_LINE = r"\d+[-+] .*value_\d+"


def measure() -> Iterator[Figure]:
    with made_project() as project, Panes() as panes:
        made_up.finished(project, 1)
        (run_id,) = os.listdir(project.runs)
        patch = b"".join(map(_file, range(LINES // IN_A_FILE)))
        with open(os.path.join(project.run_dir(run_id), paths.CHANGES_PATCH), "wb") as file:
            file.write(patch)
        app = open_app(panes, project.root)
        app.press("j")
        opened: list[float] = []
        for _ in range(OPENINGS):
            app.until_quiet(SETTLED, patience=20)
            pressed = app.press("c")
            shown = app.until(lambda screen: re.search(_LINE, screen.text), "the changes", 60)
            opened.append((shown.at - pressed) * 1000)
            app.until_quiet(SETTLED, patience=20)
            app.press("Escape")
            app.until(lambda screen: not re.search(_LINE, screen.text), "the deck", 20)
        app.press("c")
        app.until_quiet(SETTLED, patience=20)
        frames = scroll_frames(app, _LINE)
        least = panes.open(*MINIMAL, str(LINES), cwd=project.root)
        least.until(lambda screen: "ready" in screen.text, "rows")
        floor = percentile(scroll_frames(least, r"row \d+"), 0.95)
    middle, most = percentile(opened, 0.5), percentile(frames, 0.95)
    yield Figure(
        f"changes, {LINES} lines ({len(patch) / 1e6:.1f} MB): key to the first screen",
        f"{middle:.0f} ms (most {max(opened):.0f})",
        "-",
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


def _file(number: int) -> bytes:
    """Return the patch of one file: pairs of lines, with three around each ten of them."""
    name = b"src/part%d.py" % number
    lines = [b"diff --git a/%b b/%b\n--- a/%b\n+++ b/%b\n" % (name, name, name, name)]
    for hunk in range(IN_A_FILE // 20):
        begin = hunk * 20 + 1
        lines.append(b"@@ -%d,16 +%d,16 @@ def part_%d():\n" % (begin, begin, hunk))
        around = b"".join(b"     total += part_%d(%d)\n" % (hunk, line) for line in range(3))
        gone = b"".join(b'-    value_%d = compute(first, "%d")  # old\n' % (line, line) for line in range(10))
        came = b"".join(b'+    value_%d = compute(second, "%d")  # new\n' % (line, line) for line in range(10))
        lines += (around, gone, came, around)
    return b"".join(lines)
