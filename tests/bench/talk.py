"""The time of a message to the agent, and of a request to the screen; the cost of waiting for people."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from subdeck.core.engine import Engine
from subdeck.core.paths import Project
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from .app_live import QUIET
from .busy import made_project
from .figures import Figure, on_cpu_ms, percentile, resident_mb, usually
from .pane import APP, Panes

TALKER = str(Path(__file__).parent / "talker.py")
RUNS = usually(100, smoke=3)
PER_SECOND = 5
"""Events that each of them writes."""
MESSAGES = usually(200, smoke=6)
QUESTIONS = usually(60, smoke=2)
PAUSE_S = 0.05
"""Between two messages, and between a reply and the next question."""
WAITING_S = usually(30.0, smoke=0.5)
PATIENCE_S = 60.0


def measure() -> Iterator[Figure]:
    yield _messages()
    yield from _questions()


@contextmanager
def talkers(
    project: Project, runs: int, per_second: float, **others: object
) -> Iterator[tuple[Engine, list[RunSnapshot], Path]]:
    """Start runs whose agents talk; they end with the context. `others` are further settings."""
    notes = Path(project.root) / "notes"
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-I", "-S", TALKER, str(notes), str(per_second)]
    agents = {"talker": {"kind": "pi", "command": command}}
    settings.write_text(json.dumps({"agents": agents, "agent": "talker", **others}))
    engine = Engine.open(project.root)
    started: list[RunSnapshot] = []
    try:
        for number in range(runs):
            request = RunRequest(task=f"talk {number}", model="bench/talker")
            started += engine.launch([request], background=True)
        _wait_for(notes, runs)
        yield engine, started, notes
    finally:
        engine.stop([run.run_id for run in started], force=True)
        engine.wait([run.run_id for run in started], timeout=PATIENCE_S)
        settings.unlink()


def _messages() -> Figure:
    with made_project() as project, talkers(project, RUNS, PER_SECOND) as (engine, runs, notes):
        sent: dict[str, int] = {}
        for number in range(MESSAGES):
            text = f"message {number}"
            sent[text] = time.monotonic_ns()
            engine.send(runs[number % RUNS].run_id, text)
            time.sleep(PAUSE_S)
        _wait_for(notes, RUNS + MESSAGES)
        heard = moments(notes, "heard")
    late = [(heard[text] - at) / 1e6 for text, at in sent.items()]
    middle, worst = percentile(late, 0.5), percentile(late, 0.99)
    name = f"message sent to the child's stdin, {RUNS} runs at {PER_SECOND}/s, p50 / p99"
    return Figure(name, f"{middle:.0f} / {worst:.0f} ms", "", "20 / 60 ms", middle <= 20 and worst <= 60)


def _questions() -> Iterator[Figure]:
    with made_project() as project, talkers(project, 1, 0) as (engine, (run,), notes), Panes() as panes:
        app = panes.open(APP, "--run", run.run_id, cwd=project.root)
        app.until(lambda screen: "talk 0" in screen.text, "the run")
        app.until_quiet(QUIET, patience=8)
        shown: dict[str, float] = {}
        for number in range(QUESTIONS):
            text = f"ask {number}"
            engine.send(run.run_id, text)
            shown[text] = app.until(lambda screen, text=text: f"May I: {text}?" in screen.text, text, 10).at
            if number < QUESTIONS - 1:
                engine.reply(run.run_id, "", Verdict.DENY)
                panes.wait(PAUSE_S)
        asked = moments(notes, "asks")
        late = [(at * 1000 - asked[text] / 1e6) for text, at in shown.items()]
        middle, worst = percentile(late, 0.5), percentile(late, 0.99)
        name = "question of a child to the screen, p50 / p99"
        yield Figure(name, f"{middle:.0f} / {worst:.0f} ms", "", "40 / 100 ms", middle <= 40 and worst <= 100)
        wrapper = json.loads(Path(project.run_dir(run.run_id), "runner.json").read_text())["pid"]
        before, began = on_cpu_ms(wrapper), time.monotonic()
        panes.wait(WAITING_S)
        share = (on_cpu_ms(wrapper) - before) / (time.monotonic() - began) / 10
        weight = resident_mb(wrapper)
    measured = f"{share:.2f} % of a core; {weight:.1f} MB"
    yield Figure(
        "wrapper while its child waits for a reply", measured, "", "0.1 %; 20 MB", share <= 0.1 and weight <= 20
    )


def moments(notes: Path, word: str) -> dict[str, int]:
    """Return when the agents recorded a word, by its argument."""
    lines = (line.split(" ", 2) for line in notes.read_text().splitlines()) if notes.exists() else ()
    return {argument: int(moment) for moment, noted, argument in lines if noted == word}


def _wait_for(notes: Path, wanted: int) -> None:
    """Wait until the agents have received so many things."""
    deadline = time.monotonic() + PATIENCE_S
    while len(moments(notes, "heard")) < wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"the children heard {len(moments(notes, 'heard'))} of {wanted} things")
        time.sleep(0.05)
