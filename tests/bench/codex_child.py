"""What Codex costs as a child, against a minimal client that speaks to the same app-server."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.house.set_up import agent_program
from tests.mock_models import MockModels

from .figures import REPEATS, Figure, resident_mb

STREAM_MB = 250
PATIENCE = 60
CONFIG = """\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}/v1"
env_key = "MOCK_KEY"
wire_api = "responses"
"""
MINIMAL = """\
import json, subprocess, sys
child = subprocess.Popen([sys.argv[1], "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def say(**message):
    child.stdin.write(json.dumps(message).encode() + b"\\n")
    child.stdin.flush()
def answer(number):
    for line in child.stdout:
        message = json.loads(line)
        if message.get("id") == number:
            return message["result"]
say(id=1, method="initialize", params={"clientInfo": {"name": "bench", "version": "0"}})
answer(1)
say(method="initialized")
say(id=2, method="thread/start", params={"cwd": ".", "model": "mock-model"})
thread = answer(2)["thread"]["id"]
say(id=3, method="turn/start", params={"threadId": thread, "input": [{"type": "text", "text": "Say hello."}]})
for line in child.stdout:
    if b'"method":"turn/completed"' in line:
        break
child.stdin.close()
child.wait()
"""


class _Models(MockModels):
    """Notes the moment of each request."""

    def __init__(self, script: object) -> None:
        super().__init__(script)
        self.moments: list[float] = []

    def log(self, **record: object) -> None:
        if record["event"] == "request":
            self.moments.append(time.perf_counter())


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory, _Models({"turns": [{"steps": [{"text": "Hello."}]}]}) as models:
        project = Path(os.path.realpath(directory))
        environment = _set_up(project, models.url)
        yield _launch(project, environment, models)
        models.script = {"turns": [{"steps": [{"text": "So far."}, {"hang": True}]}]}
        yield _resident(project, environment, models)
        yield from _deltas(project, environment)


def _set_up(project: Path, url: str) -> dict[str, str]:
    home = project / "home"
    for place in (project / ".git", project / ".pi" / "subagents", home / ".codex", home / ".config" / "subdeck"):
        place.mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (home / ".codex" / "config.toml").write_text(CONFIG.format(url=url))
    preset = "---\nname: greeter\ndescription: d\nagent: codex\nmodel: openai/mock-model\n---\n"
    (project / ".pi" / "subagents" / "greeter.md").write_text(preset)
    (project / ".pi" / "subagents" / "reader.md").write_text(
        preset.replace("greeter", "reader").replace("agent: codex", "agent: long")
    )
    (project / "minimal.py").write_text(MINIMAL)
    agents = {
        "codex": {"command": [str(agent_program("codex"))], "env": {"MOCK_KEY": "x"}},
        "long": {"kind": "codex", "command": [str(_long_answer(project))]},
    }
    (home / ".config" / "subdeck" / "config.yaml").write_text(json.dumps({"agents": agents}))
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    return kept | {"HOME": str(home), "PATH": os.environ["PATH"], "MOCK_KEY": "x"}


def _subdeck(*words: str) -> tuple[str, ...]:
    return (os.path.join(os.path.dirname(sys.executable), "subdeck"), *words)


def _launch(project: Path, environment: dict[str, str], models: _Models) -> Figure:
    ways = (_subdeck("run", "greeter", "Say hello."), (sys.executable, "minimal.py", str(agent_program("codex"))))
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS + 1):
        for argv, times in zip(ways, taken, strict=True):
            models.moments.clear()
            started = time.perf_counter()
            subprocess.run(argv, cwd=project, env=environment, capture_output=True, check=True, timeout=PATIENCE)
            times.append((models.moments[0] - started) * 1000)
    # Of each the first try is left out: Codex then makes its databases, and is asked for its protocol.
    ours, floor = (statistics.median(times[1:]) for times in taken)
    return Figure(
        "exec of subdeck run to the first model request, codex",
        f"{ours / floor:.2f}x, +{ours - floor:.0f} ms ({ours:.0f} ms)",
        f"minimal client: {floor:.0f} ms",
        "1.15x or 80 ms",
        ours <= max(floor * 1.15, floor + 80),
    )


def _resident(project: Path, environment: dict[str, str], models: _Models) -> Figure:
    models.moments.clear()
    words = _subdeck("bg", "greeter", "Say hello.", "--json")
    subprocess.run(words, cwd=project, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    while not models.moments:
        time.sleep(0.05)
    time.sleep(0.5)
    (runner,) = [path for path in (project / ".pi" / "subagents" / "runs").glob("*/runner.json") if _lives(path)]
    weight = resident_mb(json.loads(runner.read_text())["pid"])
    subprocess.run(
        _subdeck("stop", runner.parent.name), cwd=project, env=environment, capture_output=True, timeout=PATIENCE
    )
    return Figure("wrapper resident while codex runs", f"{weight:.1f} MB", "", "20 MB", weight <= 20)


def _lives(runner: Path) -> bool:
    return not (runner.parent / "result.json").exists()


def _long_answer(project: Path) -> Path:
    """Write a program that says what an app-server says of one answer of 250 MB, when it is asked."""
    stream = project / "stream.jsonl"
    ids = '"threadId":"01a2019b-6975-7ac0-99c2-350d64d373cf","turnId":"01a2019b-699f-7312-9c57-18afae26b650"'
    delta = f'{{"method":"item/agentMessage/delta","params":{{{ids},"itemId":"msg_001_1","delta":"ds one varia"}},'
    line = (delta + '"emittedAtMs":1795323292368}\n').encode()
    turn = '{"id":"01a2019b-699f-7312-9c57-18afae26b650","status":"completed"}'
    thread = '{"id":"01a2019b-6975-7ac0-99c2-350d64d373cf","path":null}'
    with stream.open("wb") as file:
        file.write(b'{"id":1,"result":{"userAgent":"x","codexHome":"/"}}\n')
        file.write(f'{{"id":3,"result":{{"thread":{thread},"model":"m","modelProvider":"p"}}}}\n'.encode())
        for _ in range(STREAM_MB):
            file.write(line * (1_000_000 // len(line)))
        said = '{"type":"agentMessage","id":"msg_001_1","text":"done"}'
        file.write(f'{{"method":"item/completed","params":{{{ids},"item":{said}}}}}\n'.encode())
        file.write(f'{{"method":"turn/completed","params":{{{ids},"turn":{turn}}}}}\n'.encode())
    program = project / "long-answer"
    real = agent_program("codex")
    program.write_text(f'#!/bin/sh\n[ "$2" = generate-json-schema ] && exec "{real}" "$@"\nexec /bin/cat "{stream}"\n')
    program.chmod(0o755)
    return program


def _deltas(project: Path, environment: dict[str, str]) -> Iterator[Figure]:
    size = (project / "stream.jsonl").stat().st_size
    speeds: list[float] = []
    peaks: list[float] = []
    for _ in range(REPEATS):
        before = set((project / ".pi" / "subagents" / "runs").iterdir())
        subprocess.run(_subdeck("bg", "reader", "Go."), cwd=project, env=environment, check=True, capture_output=True)
        (run_dir,) = set((project / ".pi" / "subagents" / "runs").iterdir()) - before
        wrapper = json.loads((run_dir / "runner.json").read_text())["pid"]
        peak = 0.0
        while not (run_dir / "result.json").exists():
            with suppress(OSError, StopIteration):
                peak = max(peak, resident_mb(wrapper, "VmHWM"))
            time.sleep(0.02)
        result = json.loads((run_dir / "result.json").read_text())
        assert "completed" == result["status"], result
        speeds.append(size / 1e3 / result["durationMs"])
        peaks.append(peak)
    speed, peak = statistics.median(speeds), statistics.median(peaks)
    name = f"{size / 1e6:.0f} MB of codex deltas through the wrapper"
    yield Figure(name, f"{speed:.0f} MB/s", "", "250 MB/s", speed >= 250)
    yield Figure("  resident while it reads them", f"{peak:.1f} MB", "", "25 MB", peak <= 25)
