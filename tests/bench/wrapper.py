"""The cost of one wrapper: its start, its memory, its waiting, and the longest streams."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.model import RunMeta
from subdeck.core.runners import standby

from . import made_up
from .figures import REPEATS, Figure, median_ms, quietly, resident_mb, usually

STREAM_MB = usually(250, smoke=2)
IDLE_CHILD = (sys.executable, "-c", "import time; time.sleep(60)")


def measure() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        project = Project(os.path.realpath(directory))
        os.makedirs(project.active)
        yield from _start(project)
        yield _waiting(project)
        yield from _long_stream(project)


def _create(project: Project, number: int, command: tuple[str, ...]) -> RunMeta:
    meta = replace(made_up.meta(number, project.root), agent="pi", agent_command=command, grace_seconds=0.2)
    os.close(artifacts.create_run(project.runs, meta, meta.task))
    return meta


def _wrapper(project: Project, meta: RunMeta, *places: str) -> subprocess.Popen[bytes]:
    arguments = (project.run_dir(meta.run_id), os.path.join(project.active, meta.run_id), *places)
    program = standby.loading(standby.WRAPPER_PROGRAM)
    return subprocess.Popen((sys.executable, "-P", "-E", *program, standby.WRAPPER, *arguments), cwd="/")


def _await_event(project: Project, meta: RunMeta) -> None:
    events = os.path.join(project.run_dir(meta.run_id), paths.EVENTS)
    while not (os.path.exists(events) and os.path.getsize(events)):
        time.sleep(0.0005)


def _start(project: Project) -> Iterator[Figure]:
    times: list[float] = []
    resident: list[float] = []
    for number in range(REPEATS):
        meta = _create(project, number, IDLE_CHILD)
        started = time.perf_counter()
        process = _wrapper(project, meta)
        _await_event(project, meta)
        times.append((time.perf_counter() - started) * 1000)
        time.sleep(0.3)
        resident.append(resident_mb(process.pid))
        process.terminate()
        process.wait()
    floor = median_ms(lambda: quietly("/bin/sh", "-c", ":"))
    first = sorted(times)[len(times) // 2]
    yield Figure("exec of wrapper to first event", f"{first:.0f} ms", f"/bin/sh: {floor:.1f} ms", "80 ms", first <= 80)
    middle = sorted(resident)[len(resident) // 2]
    yield Figure("wrapper resident", f"{middle:.1f} MB", _bare(), "20 MB", middle <= 20)


def _waiting(project: Project) -> Figure:
    slots = os.path.join(project.root, "slots")
    os.makedirs(slots)
    taken = os.open(os.path.join(slots, "0"), os.O_CREAT | os.O_RDWR)
    fcntl.flock(taken, fcntl.LOCK_EX)
    meta = _create(project, 100, IDLE_CHILD)
    process = _wrapper(project, meta, "--slots", "1", slots)
    _await_event(project, meta)
    resident = resident_mb(process.pid)
    process.terminate()
    process.wait()
    os.close(taken)
    return Figure("wrapper waiting in a queue", f"{resident:.1f} MB", _bare(), "10 MB", resident <= 10)


def _bare() -> str:
    """Resident size of an idle interpreter."""
    process = subprocess.Popen((sys.executable, "-P", "-E", "-c", "input()"), stdin=subprocess.PIPE)
    time.sleep(0.3)
    resident = resident_mb(process.pid)
    process.kill()
    process.communicate()
    return f"python: {resident:.1f} MB"


def _long_stream(project: Project) -> Iterator[Figure]:
    """One answer of 100 KB in the form of pi 0.73.1: each delta with the whole message so far, twice."""
    path = os.path.join(project.root, "stream.jsonl")
    size = _write_stream(path)
    cat = ("/bin/cat", path)
    floor = median_ms(lambda: _read_all(cat), repeats=REPEATS) / 1000
    times: list[float] = []
    peak: list[float] = []
    for number in range(REPEATS):
        # pi's own flags follow; a shell ignores them.
        meta = _create(project, 200 + number, ("/bin/sh", "-c", f'exec /bin/cat "{path}"', "pi"))
        started = time.perf_counter()
        process = _wrapper(project, meta)
        most = 0.0
        while process.poll() is None:
            try:
                most = max(most, resident_mb(process.pid, "VmHWM"))
            except (OSError, StopIteration):
                break
            time.sleep(0.02)
        process.wait()
        times.append(time.perf_counter() - started)
        peak.append(most)
        result = artifacts.read_result(project.run_dir(meta.run_id))
        assert result is not None and result.status == "completed", result
    seconds = sorted(times)[len(times) // 2]
    speed = size / 1e6 / seconds
    name = f"{size / 1e6:.0f} MB of message_update lines through the wrapper"
    floor_text = f"read alone: {size / 1e6 / floor:.0f} MB/s"
    yield Figure(name, f"{speed:.0f} MB/s", floor_text, "250 MB/s", speed >= 250)
    most = sorted(peak)[len(peak) // 2]
    yield Figure("  resident while it reads them", f"{most:.1f} MB", _bare(), "40 MB", most <= 40)


def _write_stream(path: str) -> int:
    step = 40
    text = "word " * 20_000
    with open(path, "wb") as file:
        file.write(b'{"type":"session","version":3,"id":"s","timestamp":"t","cwd":"/"}\n{"type":"agent_start"}\n')
        position = 0
        while file.tell() < STREAM_MB * 1e6:
            position = position + step if position + step <= len(text) else step
            so_far = '{"role":"assistant","content":[{"type":"text","text":"' + text[:position] + '"}]}'
            file.write(
                '{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,'
                f'"delta":"{text[position - step : position]}","partial":{so_far}}},"message":{so_far}}}\n'.encode()
            )
        file.write(
            b'{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"done"}],'
            b'"provider":"p","model":"m","stopReason":"stop"}}\n{"type":"agent_end","messages":[]}\n'
        )
        return file.tell()


def _read_all(argv: tuple[str, ...]) -> None:
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout
    while os.read(process.stdout.fileno(), 256 * 1024):
        pass
    process.wait()
    process.stdout.close()
