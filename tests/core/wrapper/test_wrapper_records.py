"""A run's records if files, directories or disks fail: its result reports the errors, and always exists."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.agents.sentence import Sentence
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts, second_copy
from subdeck.core.run.events import Notice
from subdeck.core.run.model import LogCaps
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.system import files
from subdeck.core.wrapper import _event_file, records
from subdeck.core.wrapper._event_file import MOST_HELD, AppendedFile, EventFile
from subdeck.core.wrapper._queue import LOOK_FOR_STOP_S
from subdeck.core.wrapper.records import Records, WritingFile

from tests.factories import (
    PUPPET,
    end_of,
    events_of,
    lives,
    open_engine,
    pid_in,
    request,
    result_of,
    run_dir,
    run_to_end,
    run_wrappers_with,
    start,
    started,
    wait_for_end,
    wait_until_gone,
    write_settings,
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


def queued_run(engine: Engine, *script: str) -> tuple[RunSnapshot, RunSnapshot]:
    """Start a run that blocks the only slot and one that waits for it; return both."""
    first = start(engine, "hang")
    started(engine, first)
    return first, start(engine, *script)


def test_a_look_at_each_alarm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are repaired each time the wrapper wakes to check, even if it started slowly before the first check."""
    looks: list[float] = []
    kept = Records(str(tmp_path), str(tmp_path / "active"), caps=LogCaps(), written=0, show=lambda _: None)
    monkeypatch.setattr(kept, "look", lambda: looks.append(now))
    alarms = [100.0 + LOOK_FOR_STOP_S * count for count in range(1, 4)]
    for now in (100.3, *alarms):
        kept.touch(now)
    kept.close()
    assert [100.3, *alarms] == looks


def test_events_that_cannot_be_written(project_dir: Path) -> None:
    """A directory in the place of events.jsonl is moved aside, and the run's result reports it."""
    engine = open_engine(project_dir, max_running=1)
    first, run = queued_run(engine, "answer All the same.")
    events = run_dir(engine, run) / "events.jsonl"
    events.unlink()
    events.mkdir()
    engine.stop([first.run_id])
    run = wait_for_end(engine, run.run_id)
    assert ("completed", "All the same.") == (run.status, end_of(run).message)
    (said,) = result_of(engine, run).tampered
    assert said.startswith("events.jsonl was changed or replaced")
    assert "run_ended" in events.read_text()


def test_records_that_vanish(project_dir: Path) -> None:
    """Removing log files while they are written does not change the result."""
    engine = open_engine(project_dir)
    gate = project_dir / "gate"
    run = start(engine, "say One.", f"wait-for {gate}", "answer Two.")
    started(engine, run)
    for name in ("stdout.log", "stderr.log", "transcript.log", "runner.json"):
        (run_dir(engine, run) / name).unlink()
    gate.touch()
    assert ("completed", "Two.") == (wait_for_end(engine, run.run_id).status, engine.result(run.run_id).final_text)


LIMITED = """
import resource, sys
from subdeck.core.engine import Engine
from subdeck.core.spec.request import RunRequest
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
engine = Engine.open()
(run,) = engine.launch([RunRequest(task=sys.argv[2])], background=False)
print(run.run_id)
"""


@pytest.mark.parametrize(("size", "kept"), [(48_000, 24_000), (6_000, 1_000), (1_730, 0)])
def test_a_limit_on_file_sizes(project_dir: Path, size: int, kept: int) -> None:
    """If files may not grow, the result has as much of the answer as fits, and reports the rest as missing."""
    write_settings()
    task = "say-many 100\nsay-big 100000\nfinish"
    said = subprocess.check_output([sys.executable, "-c", LIMITED, str(size), task], cwd=project_dir, text=True)
    engine = Engine.open(str(project_dir))
    run = wait_for_end(engine, said.strip())
    result = result_of(engine, run)
    assert ("completed", kept) == (run.status, len(result.final_text or ""))
    named = {trouble.partition(":")[0] for trouble in result.artifact_errors}
    assert {"events.jsonl", "stdout.log", "transcript.log", "result.json"} == named


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place]).returncode:
        pytest.skip("only root can mount a small file system")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def fill(place: Path) -> None:
    """Fill the last free byte."""
    with open(place / "filler", "ab", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue


def test_a_full_disk(small_disk: Path) -> None:
    """If the disk fills up during the run, the reserved space holds the whole result."""
    (small_disk / ".git").mkdir()
    engine = open_engine(small_disk)
    gate = small_disk.parent / "gate"
    run = start(engine, "say Before.", f"wait-for {gate}", "say-many 200", "say-big 30000", "finish")
    wait_until(lambda: (run_dir(engine, run) / artifacts.RESERVE).exists(), "space to be kept back")
    started(engine, run)
    fill(small_disk)
    gate.touch()
    run = wait_for_end(engine, run.run_id)
    result = result_of(engine, run)
    assert ("completed", 30_000) == (run.status, len(result.final_text or ""))
    assert "events.jsonl: No space left on device" in result.artifact_errors
    assert not (run_dir(engine, run) / artifacts.RESERVE).exists()


def test_no_run_on_a_full_disk(small_disk: Path) -> None:
    """A disk that is full before the launch is an error with its path, and no run exists."""
    from subdeck.core.errors import LaunchError

    (small_disk / ".git").mkdir()
    engine = open_engine(small_disk)
    run_to_end(engine, "answer ok")
    fill(small_disk)
    with pytest.raises(LaunchError, match="No space left"):
        engine.launch([request("answer two")] * 2, background=False)
    assert 1 == len(engine.snapshots())


def test_a_lost_run_on_a_full_disk(small_disk: Path) -> None:
    """A run whose result cannot be written is unknown, and is finished once there is room."""
    (small_disk / ".git").mkdir()
    engine = open_engine(small_disk)
    run = start(engine, "hang")
    pids = started(engine, run)
    fill(small_disk)
    os.unlink(run_dir(engine, run) / artifacts.RESERVE)
    fill(small_disk)
    os.kill(pids.pid, 9)
    (shown,) = wait_until(lambda: [one for one in engine.snapshots() if one.elsewhere], "the run to be unknown")
    assert not shown.has_ended
    wait_until_gone(pids.child_pid)
    (small_disk / "filler").unlink()
    assert ["lost"] == [one.reason for one in engine.snapshots()]


def test_a_run_directory_deleted_under_us(project_dir: Path) -> None:
    """A run deleted with all runs of its project leaves the list, and its agent is ended."""
    engine = open_engine(project_dir)
    gate = project_dir / "gate"
    run = start(engine, "say One.", f"wait-for {gate}", "say-many 50", "hang")
    pids = started(engine, run)
    os.rename(engine.project.runs, project_dir / "taken away")  # in one step, while the wrapper writes
    gate.touch()
    wait_until_gone(pids.child_pid, pids.pid)
    assert () == engine.snapshots()
    assert [] == os.listdir(engine.project.active)


def test_a_truncated_meta(project_dir: Path) -> None:
    """A queued run with a broken meta.json and no second copy starts nothing and fails with an error; it can be shown
    and deleted.
    """
    engine = open_engine(project_dir, max_running=1)
    first, run = queued_run(engine, "answer ok")
    meta = run_dir(engine, run) / "meta.json"
    second_copy.remove(str(meta.parent))
    meta.write_text(meta.read_text()[:100])
    engine.stop([first.run_id])
    broken = wait_for_end(Engine.open(str(project_dir)), run.run_id)
    assert ("failed", "start_failed") == (broken.status, broken.reason)
    message = "meta.json is damaged: invalid JSON (empty or truncated); nothing was started"
    assert message == end_of(broken).message
    assert (run.run_id,) == engine.delete([run.run_id])


def test_caps_of_the_logs(project_dir: Path) -> None:
    """A log that reaches its cap ends with a note; events continue."""
    engine = open_engine(project_dir, logs={"stdout_mb": 0.01, "stderr_mb": 0.001})
    run = run_to_end(engine, *["complain " + "y" * 100] * 20, "say-many 100", "answer End.")
    for name, most in (("stdout.log", 10_486), ("stderr.log", 1_049)):
        lines = (run_dir(engine, run) / name).read_bytes().splitlines(keepends=True)
        assert b"[subdeck: the rest is left out, the log has reached its cap]\n" == lines[-1]
        assert sum(map(len, lines[:-1])) <= most
    assert ("End.", 101) == (end_of(run).message, run.usage.turns)


def test_caps_of_events_and_transcript(project_dir: Path) -> None:
    """Beyond their caps, events and transcript note it once; agent starts, last text and end are still written."""
    engine = open_engine(project_dir, logs={"events_mb": 0.01, "transcript_mb": 0.002})
    run = run_to_end(engine, "say-many 400", "answer The end of it.")
    events = events_of(engine, run)
    numbers = [event.seq for event in events]
    assert sorted(set(numbers)) == numbers
    cut = events[-3]
    assert isinstance(cut, Notice) and "events.jsonl has reached its size limit" in cut.text
    assert ["AssistantText", "RunEnded"] == [type(event).__name__ for event in events[-2:]]
    assert numbers[-1] - numbers[-3] > 100, "the numbers show how many were left out"
    lines = (run_dir(engine, run) / "transcript.log").read_text().splitlines()
    assert [
        "[subdeck: the rest is left out, the log has reached its cap]",
        "The end of it.",
        "completed: done",
    ] == lines[-3:]
    sizes = [(run_dir(engine, run) / name).stat().st_size for name in ("events.jsonl", "transcript.log")]
    assert sizes[0] < 12_000 and sizes[1] < 3_000
    assert ("The end of it.", 401) == (result_of(engine, run).final_text, run.usage.turns)


def test_a_last_text_before_the_cap_is_not_written_twice(project_dir: Path) -> None:
    """Only the omitted part is written at the end."""
    engine = open_engine(project_dir, logs={"events_mb": 0.003})
    run = run_to_end(engine, "say First and last.", *["tool read"] * 30, "finish")
    assert 1 == [type(event).__name__ for event in events_of(engine, run)].count("AssistantText")


def test_a_clock_that_goes_back(project_dir: Path) -> None:
    """With a clock that keeps going back, durations stay true and events stay in order."""
    write_settings()
    sitecustomize = (
        "import itertools, runpy, sys, time\n"
        "now, steps = time.time(), itertools.count()\n"
        "time.time = lambda: now - 3600.0 * next(steps)\n"
        "sys.argv = ['wrapper', *sys.argv[1:]]\n"
        "runpy.run_module('subdeck.core.wrapper', run_name='__main__')\n"
    )
    engine = Engine.open(str(project_dir))
    from tests.factories import make_meta, make_run

    meta, lock = make_run(engine.project, make_meta(task="say One.\nanswer Two.", session_path="s.jsonl"))
    arguments = [engine.project.run_dir(meta.run_id), os.path.join(engine.project.active, meta.run_id)]
    subprocess.run([sys.executable, "-c", sitecustomize, *arguments], check=True, timeout=30)
    os.close(lock)
    (run,) = engine.snapshots()
    result = result_of(engine, run)
    assert run.status == "completed" and result.started_at is not None
    assert result.ended_at < result.started_at
    assert result.duration_ms is not None and 0 <= result.duration_ms < 30_000
    events = events_of(engine, run)
    assert list(range(1, len(events) + 1)) == [event.seq for event in events]
    assert [event.ts for event in events] == sorted((event.ts for event in events), reverse=True)


@pytest.mark.parametrize("error", ["OSError(28, 'No space left on device')", "ImportError('nothing opens')"])
def test_what_reads_the_child_cannot_be_loaded(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str
) -> None:
    """If the agent's decoder cannot be loaded, the agent is ended at once, and the run gives the reason."""
    change = f"""
from subdeck.core.agents.pi.child import PiChild
import traceback
def fail(*_):
    raise {error}
PiChild.stream = traceback.print_exception = fail
"""
    run_wrappers_with(monkeypatch, change)
    engine = open_engine(project_dir)
    run = run_to_end(engine, f"detach {tmp_path}/child", "hang")
    assert ("failed", "start_failed") == (run.status, run.reason)
    assert error.split("'")[1] in (end_of(run).message or "")
    assert not (tmp_path / "child").exists() or not lives(pid_in(tmp_path / "child"))


def test_a_fault_of_the_wrapper(project_dir: Path) -> None:
    """A command that no system call accepts ends in a result that names the fault."""
    engine = Engine.open(str(project_dir))
    from tests.factories import make_meta, make_run

    meta, lock = make_run(engine.project, make_meta(agent_command=(*PUPPET, "a\0b")))
    arguments = [engine.project.run_dir(meta.run_id), os.path.join(engine.project.active, meta.run_id)]
    subprocess.run(
        [sys.executable, "-P", "-m", "subdeck.core.wrapper", *arguments], check=True, capture_output=True, timeout=30
    )
    os.close(lock)
    (run,) = engine.snapshots()
    assert ("failed", "start_failed") == (run.status, run.reason)
    assert "ValueError: a null byte" in end_of(run).message


def test_a_warning_of_the_tools_is_an_event(project_dir: Path) -> None:
    """A launch warning about tools is the first event."""
    engine = open_engine(project_dir)
    run = run_to_end(engine, "answer ok", tools=("read", "no_such_tool"))
    if warnings := engine.meta(run.run_id).tools.warnings:
        first = events_of(engine, run)[0]
        assert isinstance(first, Notice) and warnings[0] == first.text


def test_results_are_for_machines_and_people(project_dir: Path) -> None:
    """result.json is one JSON document over several lines, with the documented keys."""
    engine = open_engine(project_dir)
    run = run_to_end(engine, "answer ok")
    text = (run_dir(engine, run) / "result.json").read_text()
    assert len(text.splitlines()) > 10
    wanted = {
        "schemaVersion", "runId", "status", "reason", "exitCode", "signal", "stopReason", "errorMessage", "finalText",
        "finalized", "attempts", "resolvedModel", "childSessionId", "usage", "startedAt", "endedAt", "durationMs",
        "artifactErrors", "notEnded", "writtenBy", "partial", "conversation", "undelivered", "changes",
        "check", "snapshot", "branch", "tampered", "mark",
    }  # fmt: skip
    assert wanted == json.loads(text).keys()


def test_a_fault_while_the_child_is_at_work(project_dir: Path) -> None:
    """A wrapper that fails after the start gives its start time and error, not a failure to start."""
    engine = Engine.open(str(project_dir))
    from tests.factories import make_meta, make_run

    meta, lock = make_run(engine.project, make_meta(task="answer ok", agent_command=PUPPET))
    arguments = [engine.project.run_dir(meta.run_id), os.path.join(engine.project.active, meta.run_id)]
    code = (
        "import sys; from subdeck.core.agents.pi.stream import PiStream\n"
        "from subdeck.core.wrapper.__main__ import main\n"
        "def feed(stream, line): raise KeyError('odd')\n"
        "PiStream.feed = feed; main(sys.argv[1:])\n"
    )
    subprocess.run([sys.executable, "-P", "-c", code, *arguments], check=True, capture_output=True, timeout=30)
    os.close(lock)
    (run,) = engine.snapshots()
    result = engine.result(run.run_id)
    assert result is not None
    assert ("failed", "lost") == (result.status, result.reason)
    assert "its wrapper failed with KeyError: 'odd'" == result.error_message
    assert result.started_at is not None and result.duration_ms is not None


class Disk:
    """A fake `os` for a module that writes: its disk takes `room` bytes, then nothing until it has room again."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def write(self, descriptor: int, content: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = os.write(descriptor, memoryview(content)[: self.room])
        self.room -= written
        return written


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(room=10)
    for module in (records, _event_file):
        monkeypatch.setattr(module, "os", disk)
    monkeypatch.setattr(_event_file, "AGAIN_S", 0.0)
    return disk


def test_a_disk_that_is_full_for_a_while(tmp_path: Path, disk: Disk) -> None:
    """Pieces that the disk refuses are written with a later one, whole and in order, without an error."""
    troubles: list[str] = []
    file = AppendedFile(str(tmp_path), "events.jsonl", lambda name, error: troubles.append(name), 1 << 20)
    for piece in (b"first\n", b"second\n", b"third\n"):
        file.append(piece)
    assert b"first\nseco" == (tmp_path / "events.jsonl").read_bytes()
    disk.room = 1000
    file.append(b"fourth\n")
    assert b"first\nsecond\nthird\nfourth\n" == (tmp_path / "events.jsonl").read_bytes()
    file.close()
    assert [] == troubles


def test_a_disk_that_is_full_until_the_end(tmp_path: Path, disk: Disk) -> None:
    """Pieces refused to the end are missing and reported once, and only few are held in memory."""
    troubles: list[str] = []
    files = [AppendedFile(str(tmp_path), name, lambda name, error: troubles.append(name), 1 << 30) for name in "ab"]
    for file in files:
        file.append(b"0123456789")
    disk.room = 0
    files[0].append(b"lost\n")
    files[1].append(b"x" * (MOST_HELD + 1))
    assert ["b"] == troubles
    disk.room = 1000
    files[1].append(b"after a gap\n")
    disk.room = 0
    for file in files * 2:
        file.close()
    assert ["b", "a"] == troubles
    assert b"" == (tmp_path / "b").read_bytes()


def test_too_many_files_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that could not be opened at first gets all its text later."""
    open_private = files.open_private

    def too_many(path: str, flags: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(_event_file, "AGAIN_S", 0.0)
    monkeypatch.setattr(files, "open_private", too_many)
    troubles: list[str] = []
    file = AppendedFile(str(tmp_path), "events.jsonl", lambda name, error: troubles.append(name), 1 << 20)
    file.append(b"first\n")
    monkeypatch.setattr(files, "open_private", open_private)
    file.append(b"second\n")
    file.close()
    assert (b"first\nsecond\n", []) == ((tmp_path / "events.jsonl").read_bytes(), troubles)


def test_a_place_that_is_taken_while_it_is_restored(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If restoring events fails because the run's directory was replaced, a later check writes them."""
    monkeypatch.setattr(_event_file, "AGAIN_S", 0.0)
    run_dir = project_dir / "run"
    run_dir.mkdir()
    file = EventFile(str(run_dir), lambda name, error: None, 1 << 20)
    file.keep(b"first\n")
    file.append(b"first\n")
    (run_dir / "events.jsonl").unlink()
    open_private = files.open_private

    def taken(path: str, flags: int) -> int:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    monkeypatch.setattr(files, "open_private", taken)
    assert "events.jsonl was removed" in file.restore()
    monkeypatch.setattr(files, "open_private", open_private)
    assert "" == file.restore()
    assert b"first\n" == (run_dir / "events.jsonl").read_bytes()
    file.close()


def test_a_piece_of_the_sentence_that_is_refused(tmp_path: Path, disk: Disk) -> None:
    """The unfinished sentence on disk has no gap after the disk refused a piece of it."""
    file, sentence = WritingFile(str(tmp_path)), Sentence()
    kept: list[str] = []
    for room, text in ((1000, b"So far"), (0, b" so good"), (5, b" and"), (1000, b" so on")):
        disk.room = room
        sentence.add(text)
        file.write(1, sentence)
        kept.append(artifacts.read_writing(str(tmp_path), 1))
    assert ["So far", "So far", "", "So far so good and so on"] == kept
