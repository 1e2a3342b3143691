"""Stopping: soft, forced, while queued, before the wrapper is up, and by signals without a request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts
from subdeck.core.run.describe import doing
from subdeck.core.run.events import AssistantText, RunStarted
from subdeck.core.run.model import StopRequest
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.runners.process import WrapperCall

from tests.factories import (
    end_of,
    events_of,
    lives,
    make_run,
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
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

FOREVER = 60.0
"""A grace in seconds that no test waits for: a test that ends earlier did not need it."""


def ending(run: RunSnapshot) -> tuple[str, str]:
    return (run.status.value, run.reason.value if run.reason else "")


def busy(engine: Engine, place: Path, *script: str, **others: Any) -> tuple[RunSnapshot, list[int]]:
    """Start an agent with two processes in their own sessions; return the run and all their pids."""
    run = start(engine, *script, f"detach {place}/a", f"detach-unmarked {place}/b", "say Working.", "hang", **others)
    return run, [started(engine, run).child_pid, pid_in(place / "a"), pid_in(place / "b")]


def test_a_soft_stop_takes_the_whole_tree(project_dir: Path, tmp_path: Path) -> None:
    """A stop ends the agent and all its processes by TERM, and the result names the requester."""
    engine = open_engine(project_dir, grace_seconds=FOREVER)
    run, pids = busy(engine, tmp_path)
    assert (run.run_id,) == engine.stop([run.run_id])
    run = wait_for_end(engine, run.run_id)
    assert (("aborted", "stopped"), "SIGTERM") == (ending(run), result_of(engine, run).signal)
    assert "stopped by the user" == end_of(run).message
    assert [False] * 3 == [lives(pid) for pid in pids]


def partial_texts(engine: Engine, run: RunSnapshot) -> list[tuple[str, bool]]:
    return [(event.text, event.partial) for event in events_of(engine, run) if isinstance(event, AssistantText)]


@pytest.mark.parametrize("how", ["stop", "kill", "timeout", "stall", "crash"])
def test_what_was_being_written_is_kept(project_dir: Path, how: str) -> None:
    """However a run is ended, its answer is the unfinished sentence, marked as incomplete."""
    limits = {"timeout": {"limits": {"timeout": "2s"}}, "stall": {"limits": {"stall": "2s"}}}.get(how, {})
    engine = open_engine(project_dir, **limits)
    end = "die SIGKILL" if how == "crash" else "hang"
    run = start(engine, "say Interim.", "update So far", "update  so go", "linger 0.2", end)
    if how in ("stop", "kill"):
        wait_until(lambda: engine.snapshots([run.run_id])[0].sentence == "So far so go", "the sentence")
        engine.stop([run.run_id], force=how == "kill")
    run = wait_for_end(engine, run.run_id)
    result = result_of(engine, run)
    assert ("So far so go", True) == (result.final_text, result.partial), ending(run)
    assert [("Interim.", False), ("So far so go", True)] == partial_texts(engine, run)
    transcript = (run_dir(engine, run) / paths.TRANSCRIPT).read_text()
    assert "So far so go\n[incomplete: the text was cut off here]\n" in transcript
    assert doing(run).endswith(" (partial answer)")


def test_a_stop_between_two_messages_breaks_nothing_off(project_dir: Path) -> None:
    """A text that was whole when its run was stopped is not called partial."""
    engine = open_engine(project_dir)
    run = start(engine, "update Who", "say Whole.", "hang")
    wait_until(lambda: partial_texts(engine, run), "the text")
    engine.stop([run.run_id])
    run = wait_for_end(engine, run.run_id)
    result = result_of(engine, run)
    assert ("Whole.", False) == (result.final_text, result.partial)


def test_a_child_deaf_to_a_stop(project_dir: Path, tmp_path: Path) -> None:
    """An agent that ignores TERM gets KILL with its tree after the grace; the run was stopped, not killed."""
    engine = open_engine(project_dir)
    run, pids = busy(engine, tmp_path, "deaf")
    engine.stop([run.run_id])
    run = wait_for_end(engine, run.run_id)
    assert (("aborted", "stopped"), "SIGKILL") == (ending(run), result_of(engine, run).signal)
    assert [False] * 3 == [lives(pid) for pid in pids]


def test_a_hard_stop_does_not_wait(project_dir: Path, tmp_path: Path) -> None:
    """A forced stop kills the whole tree at once, without grace, even if TERM is ignored."""
    engine = open_engine(project_dir, grace_seconds=FOREVER)
    run, pids = busy(engine, tmp_path, "deaf")
    engine.stop([run.run_id], force=True)
    run = wait_for_end(engine, run.run_id)
    assert (("aborted", "killed"), "SIGKILL") == (ending(run), result_of(engine, run).signal)
    assert [False] * 3 == [lives(pid) for pid in pids]


def test_a_soft_stop_becomes_a_hard_one(project_dir: Path, tmp_path: Path) -> None:
    """A forced stop after a soft one takes effect without the rest of the grace."""
    engine = open_engine(project_dir, grace_seconds=FOREVER)
    run, _ = busy(engine, tmp_path, "deaf")
    engine.stop([run.run_id])
    engine.stop([run.run_id], force=True)
    assert ("aborted", "killed") == ending(wait_for_end(engine, run.run_id))


def test_repeating_a_stop_never_escalates(project_dir: Path, tmp_path: Path) -> None:
    """An agent that cleans up after TERM keeps its grace, however often the stop is repeated."""
    engine = open_engine(project_dir, grace_seconds=FOREVER)
    cleaner = tmp_path / "cleaner.py"
    cleaner.write_text(
        "import os, signal, sys, time\n"
        "def clean(*_):\n"
        "    open('cleaning', 'w').close()\n"
        "    while not os.path.exists('enough'):\n"
        "        time.sleep(0.005)\n"
        "    open('cleaned', 'w').close()\n"
        "    os._exit(7)\n"
        "signal.signal(signal.SIGTERM, clean)\n"
        "open('ready', 'w').close()\n"
        "signal.pause()\n"
    )
    engine = open_engine(project_dir, [sys.executable, "-I", "-S", str(cleaner)], grace_seconds=FOREVER)
    run = start(engine, "-", cwd=str(tmp_path))
    wrapper = started(engine, run).pid
    wait_until((tmp_path / "ready").exists, "the child to be ready")
    engine.stop([run.run_id])
    wait_until((tmp_path / "cleaning").exists, "the child to clean up")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(wrapper, number)
        assert (run.run_id,) == engine.stop([run.run_id])
    (tmp_path / "enough").touch()
    run = wait_for_end(engine, run.run_id)
    assert (("aborted", "stopped"), 7) == (ending(run), result_of(engine, run).exit_code)
    assert (tmp_path / "cleaned").exists()


def test_the_first_wish_stays(project_dir: Path, tmp_path: Path) -> None:
    """A later soft stop neither cancels force nor changes the requester."""
    engine = open_engine(project_dir, max_running=1)
    started(engine, start(engine, "hang"))
    run = start(engine, "answer ok")
    wish = StopRequest(by="first", force=True, at=paths.now_iso())
    artifacts.write_stop(str(run_dir(engine, run)), wish)
    engine.stop([run.run_id])
    assert wish == artifacts.read_stop(str(run_dir(engine, run)))
    engine.stop([other.run_id for other in engine.snapshots()])
    assert "killed by first" == end_of(wait_for_end(engine, run.run_id)).message


def test_a_stop_while_queued(project_dir: Path) -> None:
    """A queued run that is stopped ends at once without starting an agent, and the queue continues."""
    engine = open_engine(project_dir, max_running=1)
    first = start(engine, "hang")
    started(engine, first)
    second, third = start(engine, "answer two"), start(engine, "answer three")
    engine.stop([second.run_id], reason="cancelled")
    stopped = wait_for_end(engine, second.run_id)
    assert (("aborted", "cancelled"), None, None) == (ending(stopped), stopped.started_at, end_of(stopped).duration_ms)
    assert [] == [event for event in events_of(engine, stopped) if isinstance(event, RunStarted)]
    engine.stop([first.run_id])
    assert ("completed", "done") == ending(wait_for_end(engine, third.run_id))


def test_a_stop_before_the_wrapper_is_up(project_dir: Path, tmp_path: Path) -> None:
    """A wrapper finds a stop request older than itself, even without a free slot, and starts nothing."""
    engine = open_engine(project_dir, max_running=1)
    started(engine, start(engine, "hang"))
    model = engine.meta(engine.snapshots()[0].run_id)
    meta, lock = make_run(engine.project, replace(model, run_id=paths.new_run_id(), task="answer ok"))
    directory = engine.project.run_dir(meta.run_id)
    artifacts.write_stop(directory, StopRequest(by="early", force=False, at=paths.now_iso()))
    bell = os.path.join(engine.project.active, meta.run_id)
    slots = ("--slots", "1", os.path.join(engine.project.slots, "project"))
    subprocess.run(
        [sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", directory, bell, *slots], check=True, timeout=30
    )
    os.close(lock)
    result = engine.result(meta.run_id)
    assert result is not None
    assert ("stopped", "stopped by early", None) == (result.reason, result.error_message, result.started_at)
    engine.stop([run.run_id for run in engine.snapshots()], force=True)
    engine.wait([run.run_id for run in engine.snapshots()])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_signal_without_a_wish(project_dir: Path, tmp_path: Path, name: str) -> None:
    """A signal without a stop request is a soft stop, and the result names it."""
    engine = open_engine(project_dir, grace_seconds=FOREVER)
    run, pids = busy(engine, tmp_path)
    os.kill(started(engine, run).pid, getattr(signal, name))
    run = wait_for_end(engine, run.run_id)
    assert (("aborted", "signal"), f"its wrapper was ended by {name}") == (ending(run), end_of(run).message)
    assert [False] * 3 == [lives(pid) for pid in pids]


def test_a_stop_after_the_end_is_too_late(project_dir: Path) -> None:
    """A finished run is not stopped and does not change."""
    engine = open_engine(project_dir)
    run = run_to_end(engine, "answer ok")
    assert () == engine.stop([run.run_id], force=True)
    assert [run] == list(engine.snapshots([run.run_id]))


def test_a_child_that_finished_was_not_stopped(project_dir: Path) -> None:
    """A stop during the exit of a finished agent does not discard its answer."""
    engine = open_engine(project_dir, grace_seconds=FOREVER)
    run = start(engine, "answer The answer.", "hang")
    wait_until(
        lambda: "agent_settled" in run_dir(engine, run).joinpath("stdout.log").read_text(), "the child's last word"
    )
    engine.stop([run.run_id])
    run = wait_for_end(engine, run.run_id)
    assert (("completed", "done"), "The answer.") == (ending(run), end_of(run).message)


@pytest.mark.parametrize(
    ("limits", "script", "reason"),
    [
        ({"timeout": 1.0}, ("say Working.", "hang"), "timeout"),
        ({"stall": 1.0}, ("say Working.", "hang"), "stalled"),
        ({"max_turns": 3}, ("ask-for-more a", "ask-for-more b", "ask-for-more c", "hang"), "max_turns"),
    ],
)
def test_a_limit_ends_a_run(
    project_dir: Path, tmp_path: Path, limits: dict, script: tuple[str, ...], reason: str
) -> None:
    """A run that exceeds a limit is ended with its tree, and the result names the limit."""
    engine = open_engine(project_dir, limits=limits)
    run = start(engine, f"detach {tmp_path}/a", *script)
    child = started(engine, run).child_pid
    run = wait_for_end(engine, run.run_id)
    assert ("aborted", reason) == ending(run)
    wait_until_gone(child, pid_in(tmp_path / "a"))


def test_stops_of_many(project_dir: Path) -> None:
    """One call stops several runs, queued and running."""
    engine = open_engine(project_dir, max_parallel=2)
    runs = engine.launch([request("hang")] * 4, background=False)
    ids = [run.run_id for run in runs]
    assert set(ids) == set(engine.stop(ids))
    assert [("aborted", "stopped")] * 4 == [ending(run) for run in engine.wait(ids, timeout=30)]


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("is_written", [True, False], ids=["with runner.json", "without"])
def test_a_stopped_wrapper_is_reached(project_dir: Path, force: bool, is_written: bool) -> None:
    """A wrapper suspended by SIGSTOP is woken for a stop request, even without runner.json."""
    engine = open_engine(project_dir)
    run = start(engine, "hang")
    pids = started(engine, run)
    os.kill(pids.pid, signal.SIGSTOP)
    if not is_written:
        (run_dir(engine, run) / paths.RUNNER).unlink()
    engine.stop([run.run_id], force=force)
    assert ("aborted", "killed" if force else "stopped") == ending(wait_for_end(engine, run.run_id))
    wait_until_gone(*[pids.pid, pids.child_pid])


@pytest.mark.parametrize("for_good", [False, True])
def test_a_request_that_the_disk_does_not_read(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, for_good: bool
) -> None:
    """A signal counts as the reason only after reading the stop request has failed several times."""
    run_wrappers_with(
        monkeypatch,
        f"""
real, refused = artifacts.read_stop, []
def read_stop(run_dir, *, certain=False):
    found = real(run_dir, certain=certain)
    if found and ({for_good} or not refused):
        refused.append(found)
        if certain:
            raise OSError(5, "Input/output error")
        return None
    return found
artifacts.read_stop = read_stop
""",
    )
    engine = open_engine(project_dir)
    run = start(engine, "hang")
    started(engine, run)
    engine.stop([run.run_id])
    assert ("aborted", "signal" if for_good else "stopped") == ending(wait_for_end(engine, run.run_id))


def test_a_request_without_a_signal(project_dir: Path) -> None:
    """A wrapper checks for a stop request on its own, because the requester may die before the signal."""
    engine = open_engine(project_dir)
    run = start(engine, "hang")
    started(engine, run)
    artifacts.write_stop(str(run_dir(engine, run)), StopRequest(by="someone", force=False, at=""))
    assert ("aborted", "stopped") == ending(wait_for_end(engine, run.run_id))


def test_a_request_without_a_signal_in_the_queue(project_dir: Path) -> None:
    """A queued wrapper checks for a stop request on its own."""
    engine = open_engine(project_dir, max_running=1)
    first, second = start(engine, "hang"), start(engine, "answer ok")
    wait_until(lambda: engine.snapshots([second.run_id])[0].status == "queued", "the second run to wait")
    artifacts.write_stop(str(run_dir(engine, second)), StopRequest(by="someone", force=False, at=""))
    assert ("aborted", "stopped") == ending(wait_for_end(engine, second.run_id))
    engine.stop([first.run_id])
    wait_for_end(engine, first.run_id)


def test_a_child_that_nothing_ends(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that no signal can end does not keep the run from a result, which names the agent."""
    code = """
import os, subprocess, sys
from subdeck.core.system import processes, termination
termination.PERSISTENCE_S = 0.2
processes.send = lambda *_: False
os.kill = os.killpg = lambda *_: None
subprocess.Popen.send_signal = lambda *_: None
from subdeck.core.wrapper.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
    argv = property(lambda call: (sys.executable, "-P", "-E", "-c", code, *call.arguments))
    monkeypatch.setattr(WrapperCall, "argv", argv)
    engine = open_engine(project_dir, cgroup="off")
    run = start(engine, "hang")
    child = started(engine, run).child_pid
    engine.stop([run.run_id], force=True)
    run = wait_for_end(engine, run.run_id)
    os.kill(child, signal.SIGKILL)
    (name,) = result_of(engine, run).not_ended
    assert (("aborted", "killed"), True) == (ending(run), f"(pid {child})" in name)
    assert "could not be ended: " in doing(run)
