"""Starting on a project with very many runs."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Iterator

from subdeck.core.engine import Engine
from subdeck.core.paths import Project

from . import made_up
from .figures import REPEATS, Figure, median_ms, usually

RUNS = usually(10_000, smoke=300)


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, ".git"))
        project = Project(os.path.realpath(directory))
        made_up.finished(project, RUNS)
        engine = Engine.open(directory)
        first: list[float] = []
        whole: list[float] = []
        for _ in range(REPEATS + 1):
            stop = threading.Event()
            started = time.perf_counter()
            for number, update in enumerate(engine.updates(stop)):
                if number == 0:
                    first.append((time.perf_counter() - started) * 1000)
                    assert len(update.runs) >= min(200, RUNS)
                if update.complete:
                    whole.append((time.perf_counter() - started) * 1000)
                    assert update.counts.total == RUNS
                    break
        floor = median_ms(lambda: _read_files(project.runs))
    newest, everything = sorted(first[1:])[REPEATS // 2], sorted(whole[1:])[REPEATS // 2]
    floor_text = f"reading the files: {floor:.0f} ms"
    yield Figure(f"{RUNS} runs, warm: newest 200 usable", f"{newest:.0f} ms", floor_text, "50 ms", newest <= 50)
    yield Figure("  all of them", f"{everything:.0f} ms", floor_text, "500 ms", everything <= 500)


def _read_files(runs: str) -> None:
    for name in os.listdir(runs):
        for file_name in ("meta.json", "result.json"):
            with open(f"{runs}/{name}/{file_name}", "rb") as file:
                file.read()
