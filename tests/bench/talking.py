"""What talking to a run costs: the way of a message to the stdin of a child, and a wrapper that waits for a reply."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts
from subdeck.core.run.inbox import EntryKind, put
from subdeck.core.run.model import RunRequest
from subdeck.core.run.snapshot import RunSnapshot

from .busy import Writer
from .figures import Figure, on_cpu_ms, percentile, resident_mb

BUSY = 100
PER_SECOND = 10
SENT = 200
PAUSE = 0.05
IDLE_S = 20.0

CHILD = """\
import json, os, sys, time
def write(**line): os.write(1, json.dumps(line).encode() + b"\\n")
heard = open(os.environ["BENCH_HEARD"], "a", buffering=1)
for line in sys.stdin.buffer:
    now = time.monotonic()
    command = json.loads(line)
    kind, text = command.get("type"), command.get("message", "")
    write(id=command.get("id"), type="response", command=kind, success=True, data={})
    if kind == "prompt":
        write(type="agent_start")
        if "ask" in text:
            write(type="extension_ui_request", id="d1", method="select", title="Which?", options=["a", "b"])
    elif kind == "steer":
        print(text, now, file=heard)
"""
"""A child that speaks pi's rpc mode, never ends its turn, and writes down when it was told what."""


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        os.mkdir(os.path.join(directory, ".git"))
        child = Path(directory, "child.py")
        child.write_text(CHILD)
        heard = Path(directory, "heard")
        heard.touch()
        os.environ["BENCH_HEARD"] = str(heard)
        settings = Path(paths.user_settings_file())
        settings.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-I", "-S", str(child)]
        agents = {"bench": {"kind": "pi", "command": command}}
        settings.write_text(json.dumps({"agent": "bench", "agents": agents, "default_model": "fake/bench"}))
        engine = Engine.open(directory)
        yield from _sending(engine, heard)
        yield from _waiting(engine)
        settings.unlink()


@contextmanager
def _running(engine: Engine, task: str) -> Iterator[RunSnapshot]:
    (run,) = engine.launch([RunRequest(task=task)], background=True)
    while not (now := engine.snapshots((run.run_id,))[0]).started_at or ("ask" in task and not now.is_waiting):
        time.sleep(0.05)
    try:
        yield now
    finally:
        engine.stop((run.run_id,), force=True)
        engine.wait((run.run_id,))


def _sending(engine: Engine, heard: Path) -> Iterator[Figure]:
    seconds = SENT * PAUSE * 2 + 5
    with (
        Writer(engine.project, BUSY, per_second=PER_SECOND, seconds=seconds) as writer,
        _running(engine, "work") as run,
    ):
        writer.begin()
        sent: dict[str, float] = {}
        for number in range(SENT):
            sent[f"m{number}"] = time.monotonic()
            engine.send(run.run_id, f"m{number}")
            time.sleep(PAUSE)
        deadline = time.monotonic() + 10
        while len(heard.read_text().splitlines()) < SENT and time.monotonic() < deadline:
            time.sleep(0.05)
        told = dict(line.split() for line in heard.read_text().splitlines())
        run_dir = engine.project.run_dir(run.run_id)
        floor = _written_ms(run_dir)
    times = [(float(told[name]) - began) * 1000 for name, began in sent.items()]
    middle, late = percentile(times, 0.5), percentile(times, 0.99)
    name = f"send to the child's stdin beside {BUSY} busy runs, p50 / p99"
    yield Figure(name, f"{middle:.1f} / {late:.0f} ms", floor, "20 / 60 ms", middle <= 20 and late <= 60)


def _written_ms(run_dir: str) -> str:
    """What it takes to write the file alone."""
    times: list[float] = []
    for number in range(50):
        began = time.perf_counter()
        put(run_dir, EntryKind.MESSAGE, by="bench", text=f"f{number}")
        times.append((time.perf_counter() - began) * 1000)
    return f"the file alone: {percentile(times, 0.5):.1f} ms"


def _waiting(engine: Engine) -> Iterator[Figure]:
    with _running(engine, "ask") as run:
        facts = artifacts.read_runner(engine.project.run_dir(run.run_id))
        assert facts is not None
        time.sleep(1)
        began, used = time.monotonic(), on_cpu_ms(facts.pid)
        time.sleep(IDLE_S)
        share = (on_cpu_ms(facts.pid) - used) / (time.monotonic() - began) / 10
        resident = resident_mb(facts.pid)
    yield Figure("wrapper that waits for a reply", f"{share:.2f} % of a core", "", "0.1 %", share <= 0.1)
    yield Figure("  resident", f"{resident:.1f} MB", "", "20 MB", resident <= 20)
