"""`subdeck demo`: simulated runs with a living process, in a temporary directory."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.agents.choice import installed_agents
from subdeck.core.demo import playground
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError, UsageError
from subdeck.core.project.liveness import Proof, reconcile
from subdeck.core.run.events import Decision, Interrupted, Message
from subdeck.core.run.model import MessageState, RunReason, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.core.command_line import subdeck
from tests.factories import end_of, events_of, lives, result_of, wait_for_end, wait_until_gone
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

HOLDER = """
import sys
from subdeck.core.demo import playground
with playground.made() as directory:
    print(directory, flush=True)
    sys.stdin.read()
"""
"""A program that holds a demo like the app."""
INSIDE = """
import os, sys
from subdeck.core.demo import playground
playground.enter(sys.argv[1])
print(*(os.environ.get(name) for name in ("TERM", "COLORTERM", "LC_ALL", "HOME", "SECRET")))
"""
"""A program that prints what it knows inside a demo."""


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The demo that this process is in."""
    with playground.made() as made:
        for name, value in playground.environment(made).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(playground.project_of(made))
        yield Path(made)


@pytest.fixture
def engine(directory: Path) -> Engine:
    return Engine.open(session="operator")


def running(engine: Engine) -> list[RunSnapshot]:
    return [run for run in engine.snapshots() if not run.has_ended]


def asking(engine: Engine) -> RunSnapshot:
    (run,) = [run for run in running(engine) if run.requests]
    return run


def feeder_of(directory: Path) -> int:
    runner = next(Path(playground.project_of(str(directory))).glob(".pi/subagents/runs/*/runner.json"))
    return json.loads(runner.read_bytes())["pid"]


def hold() -> tuple[subprocess.Popen[bytes], Path]:
    """Start a program that holds a demo. Return it with the demo's directory."""
    pipe = subprocess.PIPE
    holder = subprocess.Popen([sys.executable, "-P", "-c", HOLDER], stdin=pipe, stdout=pipe)
    assert holder.stdout is not None
    return holder, Path(holder.stdout.readline().decode().strip())


def end(holder: subprocess.Popen[bytes]) -> None:
    holder.communicate()


def test_its_runs_are_proven_and_not_claimed(directory: Path, engine: Engine) -> None:
    """Of 300 runs, 30 are held by a living process. Without it, they are lost."""
    runs = engine.snapshots()
    alive = running(engine)
    assert (300, 30) == (len(runs), len(alive))
    assert {Proof.ALIVE} == {reconcile(engine.project, run.run_id, by=None) for run in alive}
    assert all(engine.is_own(run.run_id) for run in runs)
    os.kill(feeder_of(directory), signal.SIGKILL)
    wait_until(lambda: not running(engine), "the runs to be lost")
    assert RunReason.LOST == result_of(engine, alive[0]).reason


def test_its_runs_do_something(engine: Engine) -> None:
    """While the demo is open, agents write and use tools."""

    def progress() -> int:
        return sum(run.last_seq for run in running(engine))

    before = progress()
    wait_until(lambda: progress() > before + 5, "new events")
    active = Path(engine.project.active)
    wait_until(lambda: any(b'"sentence":"' in path.read_bytes() for path in active.iterdir()), "a sentence in progress")


@pytest.mark.parametrize(
    ("verdict", "word", "answer"),
    [
        (Verdict.ALLOW, "", "The branch is pushed."),
        (Verdict.ALLOW_RUN, "", "The branch is pushed."),
        (Verdict.DENY, "not on a Friday", "You denied that, so I do **not** push. You said: not on a Friday"),
    ],
)
def test_its_request_is_answered(engine: Engine, verdict: Verdict, word: str, answer: str) -> None:
    """The run continues according to the reply."""
    run = asking(engine)
    (request,) = run.requests
    assert ("bash", "git push origin refunds-idempotent", "bash") == (request.tool_name, request.command, request.rule)
    engine.reply(run.run_id, request.id, verdict, word)
    ended = wait_for_end(engine, run.run_id)
    (decision,) = [event for event in events_of(engine, ended) if isinstance(event, Decision)]
    assert (verdict, word, "operator") == (decision.verdict, decision.text, decision.by)
    result = result_of(engine, ended)
    assert RunReason.DONE == result.reason
    assert answer in (result.final_text or "")


def test_its_runs_can_be_talked_to_and_stopped(engine: Engine) -> None:
    """A message is delivered and answered, an interrupt waits for one, and a stop ends only its run."""
    talked, stopped, killed = [run.run_id for run in running(engine) if not run.requests][:3]
    engine.interrupt(talked)
    wait_until(lambda: any(run.run_id == talked and run.is_interrupted for run in running(engine)), "the interrupt")
    engine.send(talked, "And then?")
    engine.stop([stopped])
    engine.stop([killed], force=True)
    assert RunReason.STOPPED == end_of(wait_for_end(engine, stopped)).reason
    assert RunReason.KILLED == end_of(wait_for_end(engine, killed)).reason

    def events() -> list[type | MessageState]:
        (run,) = engine.snapshots([talked])
        told = (event for event in events_of(engine, run) if isinstance(event, Interrupted | Message))
        return [event.state if isinstance(event, Message) else Interrupted for event in told]

    wait_until(lambda: events() == [Interrupted, MessageState.ACCEPTED, MessageState.DELIVERED], "the message")
    wait_until(lambda: len(running(engine)) == 30, "others in their place")


def test_nothing_is_launched_and_no_agent_looked_for(engine: Engine) -> None:
    """A launch is refused with the reason, before any agent is searched."""
    request = RunRequest(task="Look.", preset="repo-scout", agent="claude")
    with pytest.raises(UsageError, match="this is a demo with simulated runs: nothing can be launched"):
        engine.launch([request], background=True)
    assert ["this is a demo with simulated runs: nothing can be launched"] == [
        problem.what for problem in engine.check(request)
    ]
    assert ["offline"] == [choice.name for choice in installed_agents(engine.settings)]
    assert 300 == len(engine.snapshots())


def test_nothing_of_the_user_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every path in its environment is its own, without the user's keys, settings or logs."""
    for name in ("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR", "GIT_DIR", "PI_CODING_AGENT_DIR", "SUBDECK_LOG", "EDITOR"):
        monkeypatch.setenv(name, "/home/me")
    variables = playground.environment("/demo")
    assert "/home/me" not in variables.values()
    outside = {name for name, value in variables.items() if value.startswith("/") and not value.startswith("/demo")}
    assert outside <= {"PATH", "SHELL", "TMUX", "TZ"}
    assert {
        "HOME",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
    } <= variables.keys()


def test_the_terminal_is_the_same_inside(tmp_path: Path) -> None:
    """The app in a demo knows its terminal, its colours and its language."""
    (tmp_path / "home" / "src" / "orders").mkdir(parents=True)
    terminal = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
    environment = {**os.environ, **terminal, "SECRET": "x"}
    out = subprocess.check_output([sys.executable, "-c", INSIDE, str(tmp_path)], env=environment, text=True)
    assert [*terminal.values(), str(tmp_path / "home"), "None"] == out.split()


def test_a_repository_around_it_is_not_its_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the temporary directory is inside a repository, neither the engine nor git uses that as the project."""
    subprocess.run(("git", "init", "-q", tmp_path), check=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with playground.made() as directory:
        variables = playground.environment(directory)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(playground.project_of(directory))
        assert playground.project_of(directory) == Engine.open(session="operator").project.root
        asked = subprocess.run(("git", "rev-parse", "--git-dir"), env=variables, capture_output=True)
        assert 128 == asked.returncode


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_whoever_shows_it(number: signal.Signals) -> None:
    """However the app ends, the process behind its runs ends and the directory is removed."""
    holder, directory = hold()
    feeder = feeder_of(directory)
    holder.send_signal(number)
    end(holder)
    wait_until_gone(feeder)
    wait_until(lambda: not directory.exists(), "its directory to be removed")


def test_what_a_dead_demo_left_is_removed_by_the_next() -> None:
    """The lock shows that it is dead, and a living demo stays."""
    holder, dead = hold()
    feeder = feeder_of(dead)
    os.kill(feeder, signal.SIGSTOP)
    os.kill(feeder, signal.SIGKILL)
    holder.kill()
    end(holder)
    wait_until_gone(feeder)
    assert dead.exists()
    other, alive = hold()
    with playground.made() as directory:
        assert not dead.exists()
        assert alive.exists() and directory != str(alive)
    end(other)
    assert not alive.exists() and not Path(directory).exists()


def test_what_only_looks_like_a_dead_demo_stays(tmp_path: Path) -> None:
    """A directory open to others or without a lock, a link, a file, and a demo with a held lock all stay."""
    place = Path(os.environ["TMPDIR"])
    made = {name: place / f"{playground.PREFIX}{name}" for name in ("open", "bare", "linked", "pipe", "held", "gone")}
    for name in ("open", "bare", "pipe", "held", "gone"):
        made[name].mkdir(mode=0o700)
    for name in ("open", "held", "gone"):
        (made[name] / "lock").touch(mode=0o600)
    made["open"].chmod(0o755)
    os.mkfifo(made["pipe"] / "lock")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "lock").touch(mode=0o600)
    made["linked"].symlink_to(elsewhere)
    (place / f"{playground.PREFIX}file").touch()
    with (made["held"] / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with playground.made():
            left = {name for name, path in made.items() if path.exists()}
    assert {"open", "bare", "linked", "pipe", "held"} == left
    assert elsewhere.exists()


def test_commands_run_inside_the_demo_that_is_open(home: Path, tmp_path: Path) -> None:
    """The command line shows the demo and replies in it, even if the user's settings are broken. Without a demo it is
    an error.
    """
    refused = subdeck("demo", "status", cwd=tmp_path)
    assert (2, "") == (refused.code, refused.out)
    assert "no demo is running" in refused.err and "subdeck demo" in refused.err
    settings = home / ".config" / "subdeck" / "config.yaml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text("nonsense: [")
    before = sorted(home.rglob("*"))
    holder, directory = hold()
    try:
        assert 300 == subdeck("demo", "status", "--all", "--json", cwd=tmp_path).document["counts"]["total"]
        (request,) = subdeck("demo", "requests", "--json", cwd=tmp_path).document["requests"]
        read = ("--request", request["id"], "--hash", request["hash"])
        unread = subdeck("demo", "reply", request["runId"], "allow", cwd=tmp_path)
        assert f"subdeck demo reply {request['runId'][-6:]} {' '.join(read)} allow" in unread.err
        assert "subdeck demo requests RUN shows" in subdeck("demo", "requests", cwd=tmp_path).out
        done = subdeck("demo", "reply", request["runId"], "allow", *read, cwd=tmp_path)
        assert (0, "") == (done.code, done.err)
        launched = subdeck("demo", "bg", "repo-scout", "look", cwd=tmp_path)
        assert 2 == launched.code and "this is a demo" in launched.err
        assert 2 == subdeck("demo", "demo", cwd=tmp_path).code
        assert lives(feeder_of(directory))
    finally:
        end(holder)
    assert before == sorted(home.rglob("*"))


def test_a_directory_that_cannot_be_made_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the reason, the directory and the fix."""

    def full(**_: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(SubdeckError) as refusal, playground.made():
        pass
    assert "cannot create the demo's directory: No space left on device" == refusal.value.what
    assert (os.environ["TMPDIR"], True) == (refusal.value.where, "TMPDIR" in refusal.value.hint)


def test_without_a_terminal_nothing_stays(tmp_path: Path) -> None:
    """The demo's directory is removed."""
    done = subdeck("demo", cwd=tmp_path)
    assert 2 == done.code and "the app needs a terminal" in done.err
    assert not [name for name in os.listdir(os.environ["TMPDIR"]) if playground.PREFIX in name]
