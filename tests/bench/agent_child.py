"""The cost of an agent as a child, against a minimal client that starts the same program in the same mode."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from tests.real.model_server import ModelServer, said
from tests.real.programs import Program

from .figures import REPEATS, Figure, not_measured, resident_mb, usually

STREAM_MB = usually(250, smoke=2)
PATIENCE = 60
TASK = "Say hello."
SO_FAR = "So far."
"""The model's text of an answer that does not end."""


class Case(Struct, frozen=True):
    """One agent."""

    agent: str
    program: str
    kind: Program
    """Sets up the agent in a home; knows its model."""
    minimal: str
    """A Python program that starts the agent, its first argument, and gives it the task."""
    stream: Callable[[int], Iterator[bytes]] | None = None
    """Makes the agent's output for one long answer, with so many MB of its deltas; None skips that."""
    is_asked_first: bool = False
    """Whether the program is queried for its features, also for a long answer."""
    deltas: str = "deltas"
    needs: tuple[str, ...] = ()
    """Paths of other programs that it starts."""


def measure(case: Case) -> Iterator[Figure]:
    if missing := next((program for program in (case.program, *case.needs) if not os.path.exists(program)), ""):
        yield not_measured(f"{case.agent} as a child", f"{missing} is not there")
        return
    models = ModelServer(said("Hello."), models=(case.kind.model.rpartition("/")[2],))
    with tempfile.TemporaryDirectory() as directory, models:
        bench = _Bench(case, Path(os.path.realpath(directory)), models)
        yield bench.launch()
        models.script({"steps": [{"text": SO_FAR}, {"hang": True}]})
        yield bench.resident()
        if case.stream:
            yield from bench.long_answer(case.stream)


class _Bench:
    def __init__(self, case: Case, project: Path, models: ModelServer) -> None:
        self._case = case
        self._project = project
        self._models = models
        self._runs = project / ".pi" / "subagents" / "runs"
        home = project / "home"
        for place in (project / ".git", project / ".pi" / "subagents", home / ".config" / "subdeck"):
            place.mkdir(parents=True)
        (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (project / "minimal.py").write_text(case.minimal)
        model = (f"model: {case.kind.model}",) if case.kind.model else ()
        for name, agent in (("greeter", case.agent), ("reader", "long")):
            (project / ".pi" / "subagents" / f"{name}.md").write_text(
                "\n".join(("---", f"name: {name}", "description: d", f"agent: {agent}", *model, "---", ""))
            )
        own = case.kind.configure(home, models.url)
        agents = {
            case.agent: {"command": [case.program], "env": own},
            "long": {"kind": case.agent, "command": [str(project / "long-answer")]},
        }
        (home / ".config" / "subdeck" / "config.yaml").write_text(json.dumps({"agents": agents}))
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        self._environment = kept | {"HOME": str(home), "PATH": os.environ["PATH"]} | own

    def _call(self, *argv: str) -> None:
        subprocess.run(
            argv, cwd=self._project, env=self._environment, capture_output=True, check=True, timeout=PATIENCE
        )

    def _subdeck(self, *words: str) -> None:
        self._call(*_SUBDECK, *words)

    def launch(self) -> Figure:
        ways = ((*_SUBDECK, "run", "greeter", TASK), (sys.executable, "minimal.py", self._case.program))
        taken: tuple[list[float], list[float]] = ([], [])
        for _ in range(usually(REPEATS + 1, smoke=1)):
            for argv, times in zip(ways, taken, strict=True):
                self._models.requests.clear()
                started = time.perf_counter()
                self._call(*argv)
                times.append((self._models.requests[0].at - started) * 1000)
        # The first try of each is dropped: the agent sets itself up, and is queried for its features.
        ours, floor = (statistics.median(times[-REPEATS:]) for times in taken)
        return Figure(
            f"exec of subdeck run to the first model request, {self._case.agent}",
            f"{ours / floor:.2f}x, {ours - floor:+.0f} ms ({ours:.0f} ms)",
            f"minimal client: {floor:.0f} ms",
            "1.15x or 80 ms",
            ours <= max(floor * 1.15, floor + 80),
        )

    def _begin(self, preset: str) -> Path:
        """Begin a run; return its directory."""
        before = set(self._runs.glob("*"))
        self._subdeck("bg", preset, TASK)
        (run_dir,) = set(self._runs.iterdir()) - before
        return run_dir

    def resident(self) -> Figure:
        run_dir = self._begin("greeter")
        told = (self._runs.parent / "active" / run_dir.name, run_dir / "events.jsonl")  # being written, or complete
        _wait(lambda: any(SO_FAR.encode() in file.read_bytes() for file in told), "the beginning of the answer")
        weight = resident_mb(json.loads((run_dir / "runner.json").read_text())["pid"])
        self._subdeck("stop", run_dir.name)
        _wait((run_dir / "result.json").exists, "the end of the stopped run")
        return Figure(f"wrapper resident while {self._case.agent} runs", f"{weight:.1f} MB", "", "20 MB", weight <= 20)

    def _write_long_program(self, lines: Iterator[bytes]) -> int:
        """Write a program that prints the agent's output for one long answer; return its bytes."""
        stream = self._project / "stream.jsonl"
        with stream.open("wb") as file:
            file.writelines(lines)
        asked = f'[ "$2" = generate-json-schema ] && exec "{self._case.program}" "$@"\n' * self._case.is_asked_first
        program = self._project / "long-answer"
        program.write_text(f'#!/bin/sh\n{asked}exec /bin/cat "{stream}"\n')
        program.chmod(0o755)
        return stream.stat().st_size

    def long_answer(self, stream: Callable[[int], Iterator[bytes]]) -> Iterator[Figure]:
        size = self._write_long_program(stream(STREAM_MB))
        speeds: list[float] = []
        peaks: list[float] = []
        for _ in range(REPEATS):
            run_dir = self._begin("reader")
            wrapper, peak = json.loads((run_dir / "runner.json").read_text())["pid"], 0.0
            while not (run_dir / "result.json").exists():
                with suppress(OSError, StopIteration):
                    peak = max(peak, resident_mb(wrapper, "VmHWM"))
                time.sleep(0.02)
            result = json.loads((run_dir / "result.json").read_text())
            assert "completed" == result["status"], result
            speeds.append(size / 1e3 / result["durationMs"])
            peaks.append(peak)
        speed, peak = statistics.median(speeds), statistics.median(peaks)
        name = f"{size / 1e6:.0f} MB of {self._case.agent} {self._case.deltas} through the wrapper"
        yield Figure(name, f"{speed:.0f} MB/s", "", "250 MB/s", speed >= 250)
        yield Figure("  resident while it reads them", f"{peak:.1f} MB", "", "25 MB", peak <= 25)


_SUBDECK = (os.path.join(os.path.dirname(sys.executable), "subdeck"),)


def _wait(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(OSError):
            if condition():
                return
        time.sleep(0.02)
    raise RuntimeError(f"{what} did not come")
