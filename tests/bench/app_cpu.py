"""The cost of the idle app: with silent runs, and with very talkative ones."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from subdeck.core.paths import Project

from .app_live import newest_event, open_app
from .busy import Writer, made_project
from .figures import Figure, cpu_seconds, forks_so_far, spawned_so_far, usually
from .pane import MINIMAL, Panes

RUNS = usually(100, smoke=5)
PER_SECOND = 20
IDLE_SECONDS = usually(20.0, smoke=0.5)
BUSY_SECONDS = usually(15.0, smoke=1.0)
SETTLE_SECONDS = usually(3.0, smoke=0.5)
DRAWN = usually(0.8, smoke=0.0)
"""Minimum share of the events that has to reach the screen."""

_FOLLOW = (
    "import sys, threading; from subdeck.core.engine import Engine\n"
    "engine = Engine.open(sys.argv[1])\n"
    "for update in engine.updates(threading.Event(), shown=tuple): print(end='.', flush=True)"
)


def measure() -> Iterator[Figure]:
    yield _idle()
    yield _busy()


def shares(panes: Panes, pids: tuple[int, ...], seconds: float) -> list[float]:
    """Let processes run for so long; return what each used, in percent of a core."""
    before = [cpu_seconds(pid) for pid in pids]
    started = time.monotonic()
    panes.wait(seconds)
    over = time.monotonic() - started
    return [(cpu_seconds(pid) - then) / over * 100 for pid, then in zip(pids, before, strict=True)]


def _idle() -> Figure:
    with made_project() as project, Writer(project, RUNS), Panes() as panes:
        app = open_app(panes, project.root)
        least = panes.open(*MINIMAL, cwd=project.root)
        least.until(lambda screen: "ready" in screen.text, "line")
        panes.wait(SETTLE_SECONDS)
        spawned, forks = spawned_so_far(app.pid), forks_so_far()
        share, floor = shares(panes, (app.pid, least.pid), IDLE_SECONDS)
        spawned, forks = spawned_so_far(app.pid) - spawned, forks_so_far() - forks
    name = f"app: {RUNS} running idle runs"
    measured = f"{share:.2f} % of a core; {'some' if spawned else 0} processes"
    floor_text = f"minimal Textual app: {floor:.2f} %; machine: {forks} forks"
    return Figure(name, measured, floor_text, "0.6 %; 0", share < 0.6 and not spawned)


def _busy() -> Figure:
    with (
        made_project() as project,
        Writer(project, RUNS, per_second=PER_SECOND, seconds=600) as writer,
        Panes() as panes,
    ):
        app = open_app(panes, project.root)
        engine = _follower(project)
        try:
            writer.begin()
            panes.wait(SETTLE_SECONDS)
            before = newest_event(app.look())
            share, floor = shares(panes, (app.pid, engine.pid), BUSY_SECONDS)
            drawn = newest_event(app.look()) - before
        finally:
            engine.kill()
            engine.wait()
    assert drawn > RUNS * PER_SECOND * BUSY_SECONDS * DRAWN, f"only {drawn} events later on the screen"
    name = f"app: {RUNS} runs writing {PER_SECOND} events/s each"
    return Figure(
        name, f"{share:.1f} % of a core", f"the engine alone: {floor:.1f} %", "15 %; 8 %", share < 15 and floor < 8
    )


def _follower(project: Project) -> subprocess.Popen[bytes]:
    return subprocess.Popen((sys.executable, "-c", _FOLLOW, project.root), stdout=subprocess.DEVNULL)
