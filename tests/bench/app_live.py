"""The app's latency: from a run's output, and from your keys, to the screen of a pane."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from subdeck.core import paths

from .busy import Writer, made_project
from .figures import Figure, percentile, usually
from .pane import APP, MINIMAL, Pane, Panes, Screen

WRITING = usually(20, smoke=3)
PER_SECOND = 10
SECONDS = usually(30.0, smoke=1.0)
REST_SECONDS = usually(2.0, smoke=0.5)
"""Time for the last events to reach the screen."""
RUNNING = usually(200, smoke=10)
"""Runs, `WRITING` of them writing, while keys are pressed."""
KEYS = usually(150, smoke=4)
PAUSE = 0.05
"""Seconds between a key's answer and the next key, so that keys meet the frames at any moment."""
QUIET = usually(1.5, smoke=0.3)
"""Seconds without output after which the app has read the runs."""

_TRANSCRIPT = re.compile(r"\d\d:\d\d:\d\d\s.*event (\d+): I'm")
"""A line of the transcript: it begins with its time of day."""
_TAIL = re.compile(r"event (\d+): I'm")
_CURSOR = re.compile(r"▌[^│]*#(\d+) find")


def measure() -> Iterator[Figure]:
    yield _events()
    yield _keys()


def open_app(panes: Panes, directory: str) -> Pane:
    """Open the app and wait until it has read the runs."""
    pane = panes.open(APP, cwd=directory)
    pane.until(highlighted, "highlighted run")
    pane.until_quiet(QUIET, patience=8)
    return pane


def highlighted(screen: Screen) -> str:
    """Return the number of the highlighted run, empty without one."""
    found = _CURSOR.search(screen.text)
    return found[1] if found else ""


def newest_event(screen: Screen, line: re.Pattern[str] = _TRANSCRIPT) -> int:
    """Return the number of the shown run's newest event on the screen, -1 before there is one."""
    return max(map(int, line.findall(screen.text)), default=-1)


def _events() -> Figure:
    with made_project() as project, Writer(project, WRITING, per_second=PER_SECOND, seconds=SECONDS) as writer:
        shown = max(os.listdir(project.runs))
        with Panes() as panes:
            app = open_app(panes, project.root)
            tail = panes.open("tail", "-f", os.path.join(project.run_dir(shown), paths.EVENTS), cwd="/")
            tail.until(lambda screen: "run_started" in screen.text, "first event")
            writer.begin()
            reached: dict[Pane, list[tuple[int, float]]] = {app: [], tail: []}
            for pane, screen in panes.screens((app, tail), SECONDS + REST_SECONDS):
                reached[pane].append((newest_event(screen, _TRANSCRIPT if pane is app else _TAIL), screen.at))
        moments = writer.written()[shown]
    name = f"app: event appended to text in the pane, {WRITING} runs at {PER_SECOND}/s, p50 / p99"
    middle, worst = _late(moments, reached[app])
    floor = "tail -f: {:.0f} / {:.0f} ms".format(*_late(moments, reached[tail]))
    return Figure(name, f"{middle:.0f} / {worst:.0f} ms", floor, "60 / 120 ms", middle <= 60 and worst <= 120)


def _late(moments: Sequence[float], reached: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Return p50 and p99 in ms; `reached` has the newest event's number on each screen, `moments` are of one run."""
    late: list[float] = []
    steps = iter(reached)
    number, at = -1, 0.0
    for count, moment in enumerate(moments):
        while number < count * WRITING:
            number, at = next(steps, (1 << 60, float("inf")))
        late.append((at - moment) * 1000)
    return percentile(late, 0.5), percentile(late, 0.99)


def _keys() -> Figure:
    with (
        made_project() as project,
        Writer(project, RUNNING, per_second=PER_SECOND, seconds=600, writing=WRITING) as writer,
        Panes() as panes,
    ):
        app = open_app(panes, project.root)
        least = panes.open(*MINIMAL, cwd=project.root)
        least.until(lambda screen: "ready" in screen.text, "line")
        writer.begin()
        panes.wait(1)
        times: list[float] = []
        floor: list[float] = []
        for number in range(KEYS):
            times.append(_until_cursor_moved(app, "j" if number // 30 % 2 == 0 else "k"))
            panes.wait(PAUSE)
            floor.append(_until_ready(least, chr(97 + number % 26)))
    middle, most = percentile(times, 0.5), percentile(times, 0.95)
    floor_text = f"minimal Textual app: {percentile(floor, 0.5):.0f} / {percentile(floor, 0.95):.0f} ms"
    name = f"app: key to screen, {RUNNING} running runs of which {WRITING} write, p50 / p95"
    return Figure(name, f"{middle:.0f} / {most:.0f} ms", floor_text, "- / 50 ms", most <= 50)


def _until_cursor_moved(app: Pane, key: str) -> float:
    """Press a key that moves the cursor; return how many ms it took."""
    before = highlighted(app.look())
    pressed = app.press(key)
    moved = app.until(lambda screen: highlighted(screen) not in ("", before), "move of the cursor", 10)
    return (moved.at - pressed) * 1000


def _until_ready(least: Pane, letter: str) -> float:
    pressed = least.press(letter)
    return (least.until(lambda screen: f"ready {letter}" in screen.text, "letter", 10).at - pressed) * 1000
