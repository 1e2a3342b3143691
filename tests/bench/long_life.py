"""One hour of busy runs in two minutes: the app's memory growth.

There are as many events as in the hour, and the operator looks at another run each of its minutes.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from .app_live import open_app
from .busy import Writer, made_project
from .figures import Figure, resident_mb, usually
from .pane import Panes

RUNS = usually(20, smoke=3)
PER_SECOND = 2
"""Of each run, in the hour's own time."""
MINUTES = usually(60, smoke=3)
WARM = usually(10, smoke=1)
"""Minutes after which memory should not grow."""
MINUTE_SECONDS = usually(2.0, smoke=0.5)
"""Duration of a minute here."""
GROWTH_MB = 5.0
MEDIAN_OF = usually(5, smoke=1)


def measure() -> Iterator[Figure]:
    pace = PER_SECOND * 60 / MINUTE_SECONDS
    weights: list[float] = []
    with (
        made_project() as project,
        Writer(project, RUNS, per_second=pace, seconds=MINUTES * MINUTE_SECONDS, kind="work") as writer,
        Panes() as panes,
    ):
        app = open_app(panes, project.root)
        writer.begin()
        started = time.monotonic()
        for minute in range(1, MINUTES + 1):
            app.press("j" if minute // (RUNS - 1) % 2 == 0 else "k")
            panes.wait(started + minute * MINUTE_SECONDS - time.monotonic())
            weights.append(resident_mb(app.pid))
        count = sum(map(len, writer.written().values()))
    early, late = (statistics.median(part) for part in (weights[WARM : WARM + MEDIAN_OF], weights[-MEDIAN_OF:]))
    yield Figure(
        f"app: {MINUTES} minutes of {RUNS} busy runs in {MINUTES * MINUTE_SECONDS:.0f} s, "
        f"{count} events: growth after {WARM}",
        f"{late - early:+.1f} MB",
        f"app by then: {early:.0f} MB",
        f"{GROWTH_MB:.0f} MB",
        late - early < GROWTH_MB,
    )
