"""Searching the files of very many runs, against grep."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run.events import encode_event
from subdeck.core.search.pattern import Pattern

from . import made_up
from .busy import made_project
from .figures import Figure, in_turn_ms, usually

RUNS = usually(1000, smoke=40)
EVENTS = 390
"""In each run: 100 KB."""
FIRST_MS = 100.0
MOST = 2.0
SOUGHT = "module_500.ts"
"""In one run of eight."""


def measure() -> Iterator[Figure]:
    with made_project() as project:
        size = sum(_write(project, number) for number in range(RUNS)) / 1e6
        engine = Engine.open(project.root)

        def first() -> None:
            assert next(engine.search(Pattern(SOUGHT))).hits

        def everything() -> None:
            assert RUNS // 20 < sum(len(found.hits) for found in engine.search(Pattern(SOUGHT)))

        def grep() -> None:
            subprocess.run(("grep", "-rF", SOUGHT, project.runs), check=True, stdout=subprocess.PIPE)

        soon, whole, floor = in_turn_ms((first, everything, grep))
    floor_text = f"grep -rF: {floor:.0f} ms"
    name = f"search, {RUNS} runs ({size:.0f} MB of events), warm: first hits"
    yield Figure(name, f"{soon:.0f} ms", floor_text, f"{FIRST_MS:.0f} ms", soon <= FIRST_MS)
    ratio = whole / floor
    yield Figure("  all of them", f"{ratio:.2f}x ({whole:.0f} ms)", floor_text, f"{MOST:.0f}x", ratio <= MOST)


def _write(project: paths.Project, number: int) -> int:
    made = made_up.meta(number, project.root)
    content = b"".join(
        encode_event(replace(made_up.at_work(number * EVENTS + seq), seq=seq, ts=paths.now_iso()))
        for seq in range(1, EVENTS + 1)
    )
    with open(os.path.join(made_up.finish(project, made), paths.EVENTS), "wb") as file:
        file.write(content)
    return len(content)
