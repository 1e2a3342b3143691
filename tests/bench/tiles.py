"""The cost of six live tiles beside other busy runs, and whether they keep up."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from .app_cpu import DRAWN, shares
from .app_live import QUIET
from .busy import Writer, made_project
from .figures import Figure, usually
from .pane import APP, Panes, Screen

TILES, BESIDE = 6, usually(20, smoke=2)
PER_SECOND = 20
SECONDS = usually(15.0, smoke=1.0)
SETTLE_SECONDS = usually(4.0, smoke=0.5)

_EVENT = re.compile(r"event (\d+):")


def measure() -> Iterator[Figure]:
    running = TILES + BESIDE
    with (
        made_project() as project,
        Writer(project, running, per_second=PER_SECOND, seconds=600) as writer,
        Panes((180, 48)) as panes,
    ):
        shown = sorted(os.listdir(project.runs), reverse=True)[:TILES]
        app = panes.open(APP, "watch", *shown, cwd=project.root)
        app.until(lambda screen: screen.text.count("╭─") == TILES, "tiles")
        app.until_quiet(QUIET, patience=8)
        writer.begin()
        panes.wait(SETTLE_SECONDS)
        before = _newest(app.look())
        (share,) = shares(panes, (app.pid,), SECONDS)
        drawn = _newest(app.look()) - before
    assert drawn > running * PER_SECOND * SECONDS * DRAWN, f"only {drawn} events later on the screen"
    name = f"app: {TILES} tiles, {PER_SECOND} events/s each, beside {BESIDE} busy runs"
    yield Figure(name, f"{share:.1f} % of a core", "", "25 %", share < 25)


def _newest(screen: Screen) -> int:
    return max(map(int, _EVENT.findall(screen.text)), default=-1)
