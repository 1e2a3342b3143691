"""The tmux runner, in a real tmux on its own socket."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import astuple, replace
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import RunnerUnavailable, SubdeckError
from subdeck.core.run import artifacts
from subdeck.core.run.model import WorktreeFrom
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.runners.tmux import attach_command, find_pane, session_name, window_name

from tests.factories import (
    RECORDER,
    end_of,
    events_of,
    lives,
    make_result,
    open_engine,
    pid_in,
    request,
    result_of,
    run_dir,
    run_to_end,
    start,
    started,
    wait_for_end,
    wait_until_gone,
    write_runner,
)
from tests.repositories import make_repository
from tests.waiting import wait_until

pytestmark = pytest.mark.tmux

SOCKET = "deck-test"


def tmux(*arguments: str) -> str:
    return subprocess.run(
        ["tmux", "-L", SOCKET, *arguments], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir, runner="tmux", tmux={"socket": SOCKET})


def place_of(engine: Engine, run: RunSnapshot) -> artifacts.TmuxPane:
    facts = artifacts.read_runner(str(run_dir(engine, run)))
    assert facts is not None and facts.tmux is not None
    return facts.tmux


def screen(engine: Engine, run: RunSnapshot) -> str:
    return tmux("capture-pane", "-p", "-S", "-", "-t", place_of(engine, run).pane)


def test_same_files_and_events(engine: Engine) -> None:
    """A run in tmux leaves the same files and event types as a plain one."""
    script = ("complain a word", "tool read", "answer Done.")
    one, other = run_to_end(engine, *script), run_to_end(engine, *script, runner="process")
    assert [("completed", "Done.")] * 2 == [(run.status, end_of(run).message) for run in (one, other)]
    assert [type(event) for event in events_of(engine, other)] == [type(event) for event in events_of(engine, one)]
    assert set(engine.artifacts(other.run_id)) == set(engine.artifacts(one.run_id))
    read = [(run_dir(engine, run) / "stdout.log").read_bytes() for run in (one, other)]
    assert read[0] == read[1]


def test_in_a_worktree(project_dir: Path) -> None:
    """A run in a pane works in a worktree as a plain one does, and the pane shows that it was made."""
    engine = open_engine(make_repository(project_dir), runner="tmux", tmux={"socket": SOCKET})
    run = run_to_end(engine, "save a.txt theirs", "answer Done.", worktree=WorktreeFrom.FILES)
    assert "completed" == run.status
    assert ("theirs", "one\ntwo\nthree\n") == tuple(
        (Path(place) / "a.txt").read_text() for place in (run.meta.cwd, project_dir)
    )
    wait_until(lambda: "its worktree is ready" in screen(engine, run), "the words in the pane")


def test_the_pane_shows_the_transcript_and_stays(engine: Engine) -> None:
    """The pane shows the transcript during the run and after its end."""
    gate = Path(engine.project.root, "gate")
    run = start(engine, "say One moment.", f"wait-for {gate}", "answer Red \x1b[31mherring.")
    started(engine, run)
    wait_until(lambda: "One moment." in screen(engine, run), "the first words in the pane")
    gate.touch()
    wait_for_end(engine, run.run_id)
    wait_until(lambda: "Red herring." in screen(engine, run), "the answer in the pane")
    dead = ("display-message", "-p", "-t", place_of(engine, run).pane, "#{pane_dead}")
    wait_until(lambda: tmux(*dead).strip() == "1", "the pane to outlive its wrapper")
    assert "Red herring." in screen(engine, run)


def test_deleting_closes_the_pane(engine: Engine) -> None:
    """Deleting a run closes its pane, and no other one."""
    one, other = run_to_end(engine, "answer one"), run_to_end(engine, "answer two")
    places = [(place_of(engine, run), run.run_id) for run in (one, other)]
    assert [place.pane for place, _ in places] == [find_pane(*place) for place in places]
    engine.delete([one.run_id])
    assert [None, places[1][0].pane] == [find_pane(*place) for place in places]


def test_a_strange_pane_is_not_closed(engine: Engine) -> None:
    """The server knows each pane's run: another pane named in `runner.json` is neither shown nor closed."""
    for socket in ("default", SOCKET):
        mine = ["tmux", "-L", socket, "-f", "/dev/null", "new-session", "-d", "-P", "-F", "#{pane_id} #{pane_pid}"]
        named = subprocess.check_output([*mine, "-s", "work", "-n", "editor", "cat"], text=True).split()
        run = run_to_end(engine, "answer ok")
        directory = str(run_dir(engine, run))
        facts = artifacts.read_runner(directory)
        assert facts
        place = artifacts.TmuxPane(socket, "work", "editor", named[0])
        write_runner(directory, replace(facts, tmux=place))
        if socket == "default":
            with pytest.raises(SubdeckError, match="tmux pane no longer exists"):
                engine.attach_command(run.run_id)
        else:
            assert engine.attach_command(run.run_id).argv[-1] not in named
        engine.delete([run.run_id])
        assert lives(int(named[1]))


def test_a_socket_is_a_name(engine: Engine, tmp_path: Path) -> None:
    """A path in place of a socket name would lead to another server, so such a record is ignored."""
    run = run_to_end(engine, "answer ok")
    facts = artifacts.read_runner(str(run_dir(engine, run)))
    assert facts is not None and facts.tmux is not None
    record = msgspec.to_builtins(facts)
    record["tmux"]["socket"] = f"../../../../{tmp_path}/s"
    (run_dir(engine, run) / paths.RUNNER).write_bytes(msgspec.json.encode(record))
    assert artifacts.read_runner(str(run_dir(engine, run))) is None


def test_a_pane_of_an_earlier_version(engine: Engine) -> None:
    """A pane whose server knows no run is identified by its place and its process."""
    run = run_to_end(engine, "answer ok")
    place, pids = place_of(engine, run), started(engine, run)
    tmux("set-option", "-w", "-u", "-t", place.pane, "@subdeck_run")
    assert place.pane == find_pane(place, run.run_id, pids.pid)
    assert find_pane(place, run.run_id) is None
    assert find_pane(place, run.run_id, pids.pid + 1) is None
    assert find_pane(replace(place, window="another"), run.run_id, pids.pid) is None
    engine.delete([run.run_id])
    assert find_pane(place, run.run_id, pids.pid) is None


def test_deleting_without_a_server(engine: Engine) -> None:
    """A run whose tmux server has gone can be deleted."""
    run = run_to_end(engine, "answer one")
    tmux("kill-server")
    assert (run.run_id,) == engine.delete([run.run_id])


@pytest.mark.parametrize("name", ["#(touch x)", "$(touch x)", "#{pane_id}", "a:b.c", "-n", "ä ö", "#[fg=red]"])
def test_names_execute_nothing(project_dir: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name of a preset, project or directory is run as a format or a shell command."""
    project = tmp_path / name / name
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    presets = project / ".pi" / "subagents"
    presets.mkdir(parents=True)
    (presets / "odd.md").write_text(f"---\nname: {json.dumps(name)}\ndescription: odd\n---\n")
    engine = open_engine(project, runner="tmux", tmux={"socket": SOCKET})
    (run,) = engine.launch([request("detach-unmarked pid", "answer ok", preset=name)], background=True)
    run = wait_for_end(engine, run.run_id)
    assert ("completed", name) == (run.status, run.meta.preset)
    place = place_of(engine, run)
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
    assert set(place.window + place.session) <= allowed
    assert f"{place.session} {place.window}" in tmux("list-panes", "-a", "-F", "#{session_name} #{window_name}")
    tmux("refresh-client", "-S") if tmux("list-clients") else None
    assert {".git", ".pi", "pid"} == set(os.listdir(project))


def test_the_environment_travels_in_private(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets its launcher's environment, not the server's; no argv has it, and its file is removed."""
    engine = open_engine(project_dir, RECORDER, runner="tmux", tmux={"socket": SOCKET})
    secrets = []
    for number in (1, 2):
        secret = f"secret {number} = ' \" $(id)\nsecond line"
        monkeypatch.setenv("RECORD", str(tmp_path / f"record{number}"))
        monkeypatch.setenv("A_KEY", secret)
        run = start(engine, "note this")
        argv = tmux("list-panes", "-a", "-F", "#{pane_start_command}")
        assert "secret" not in argv
        run = wait_for_end(engine, run.run_id)
        facts = json.loads((tmp_path / f"record{number}").read_text())
        secrets.append((secret, facts["environment"]["A_KEY"]))
        place = place_of(engine, run)
        assert place.pane == facts["environment"]["TMUX_PANE"]
        assert os.path.basename(facts["environment"]["TMUX"].partition(",")[0]) == SOCKET
        assert not (run_dir(engine, run) / "environment").exists()
    assert all(sent == got for sent, got in secrets)


def test_an_environment_file_is_private(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the owner may read the environment file, and a failed launch removes it."""
    refusing, modes = tmp_path / "bin" / "tmux", tmp_path / "modes"
    refusing.parent.mkdir()
    refusing.write_text(
        f'#!/bin/sh\n[ "$1" = -V ] && exec {shutil.which("tmux")} -V\n'
        f"stat -c %a {engine.project.runs}/*/environment >>{modes}\necho refused >&2\nexit 1\n"
    )
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(refusing.parent), prepend=os.pathsep)
    run = start(engine, "answer ok")
    assert ({"600"}, "failed", "start_failed") == (set(modes.read_text().split()), run.status, run.reason)
    assert not (run_dir(engine, run) / "environment").exists()


@pytest.mark.parametrize("comes", [True, False], ids=["a wrapper comes", "none comes"])
def test_the_environment_of_a_run_that_was_finished_meanwhile(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, comes: bool
) -> None:
    """A leftover environment file is removed by a late wrapper, or else by the launcher."""
    from subdeck.core.runners import tmux as runner

    open_window = runner.open_window

    def finish_first(*words: object) -> int:
        (name,) = artifacts.run_ids(engine.project.runs)
        artifacts.write_result(engine.project.run_dir(name), make_result(name))
        return open_window(*words) if comes else 2**22 - 1

    monkeypatch.setattr(runner, "open_window", finish_first)
    run = start(engine, "answer ok")
    environment = run_dir(engine, run) / "environment"
    wait_until(lambda: not environment.exists(), "the environment to be taken away")
    assert not (run_dir(engine, run) / "events.jsonl").exists()


def test_ctrl_c_in_the_pane(engine: Engine, tmp_path: Path) -> None:
    """A ctrl-C typed in the pane is a soft stop by a signal, and stops the whole process tree."""
    run = start(engine, f"detach {tmp_path}/a", "hang")
    pids = [started(engine, run).child_pid, pid_in(tmp_path / "a")]
    tmux("send-keys", "-t", place_of(engine, run).pane, "C-c")
    run = wait_for_end(engine, run.run_id)
    assert ("aborted", "signal", "its wrapper was ended by SIGINT") == (run.status, run.reason, end_of(run).message)
    wait_until_gone(*pids)


@pytest.mark.parametrize("key", ["C-s", "C-z"])
def test_keys_do_not_hold_up_a_run(engine: Engine, key: str) -> None:
    """Keys that stop a terminal's output or suspend its program do not delay a run's end."""
    gate = Path(engine.project.root, "gate")
    run = start(engine, "say One.", f"wait-for {gate}", "say-big 300000", "say-many 50", "answer End.")
    started(engine, run)
    tmux("send-keys", "-t", place_of(engine, run).pane, key)
    wait_until(lambda: "One." in screen(engine, run), "the pane to be drawn")
    gate.touch()
    run = wait_for_end(engine, run.run_id)
    assert ("completed", "End.") == (run.status, end_of(run).message)
    assert "line 49" in (run_dir(engine, run) / "transcript.log").read_text()


def test_a_killed_server(engine: Engine, tmp_path: Path) -> None:
    """If the tmux server is killed, the hang-up of its terminal ends the run and all its processes."""
    run = start(engine, f"detach {tmp_path}/a", "hang")
    pids = [started(engine, run).child_pid, pid_in(tmp_path / "a")]
    tmux("kill-server")
    run = wait_for_end(engine, run.run_id)
    assert ("aborted", "signal", "its wrapper was ended by SIGHUP") == (run.status, run.reason, end_of(run).message)
    wait_until_gone(*pids)


def test_a_killed_wrapper_in_its_pane(engine: Engine, tmp_path: Path) -> None:
    """A run whose wrapper is killed in its pane is lost like any other; its pane stays visible."""
    run = start(engine, f"detach {tmp_path}/a", "hang")
    pids, detached = started(engine, run), pid_in(tmp_path / "a")
    os.kill(pids.pid, signal.SIGKILL)
    run = wait_for_end(engine, run.run_id)
    assert ("failed", "lost") == (run.status, run.reason)
    wait_until_gone(pids.child_pid, detached)
    assert find_pane(place_of(engine, run), run.run_id) is not None


def test_stopping_in_tmux(engine: Engine) -> None:
    """A run in a pane is stopped as any other."""
    run = start(engine, "deaf", "hang")
    started(engine, run)
    engine.stop([run.run_id], force=True)
    run = wait_for_end(engine, run.run_id)
    assert ("aborted", "killed", "SIGKILL") == (run.status, run.reason, result_of(engine, run).signal)


def test_attaching_from_a_plain_terminal(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside tmux, attaching starts a client on the run's server that shows the run's pane."""
    run = run_to_end(engine, "answer ok")
    pane = place_of(engine, run).pane
    monkeypatch.delenv("TMUX", raising=False)
    expected = (shutil.which("tmux"), "-L", SOCKET, "attach-session", "-t", pane)
    assert (expected, ("ctrl+b", "d"), False) == astuple(engine.attach_command(run.run_id))


def test_attaching_inside_the_same_tmux(engine: Engine) -> None:
    """Inside the run's own server the client switches; the key to its last session leads back."""
    run = run_to_end(engine, "answer ok")
    place = place_of(engine, run)
    argv = (shutil.which("tmux"), "-L", SOCKET, "switch-client", "-t", place.pane)
    found = attach_command(place, run.run_id, {"TMUX": f"/tmp/tmux-0/{SOCKET},123,0"})
    assert (argv, ("ctrl+b", "L"), True) == astuple(found)


def test_attaching_inside_another_tmux(engine: Engine) -> None:
    """Another server's client may attach to this one; its prefix is pressed twice to reach the run's."""
    run = run_to_end(engine, "answer ok")
    place = place_of(engine, run)
    subprocess.run(["tmux", "-L", "outside", "-f", "/dev/null", "new-session", "-d", "cat"], check=True)
    socket = subprocess.check_output(["tmux", "-L", "outside", "display", "-p", "#{socket_path}"], text=True).strip()
    found = attach_command(place, run.run_id, {"TMUX": f"{socket},123,0"})
    argv = ("env", "-u", "TMUX", shutil.which("tmux"), "-L", SOCKET, "attach-session", "-t", place.pane)
    assert (argv, ("ctrl+b", "ctrl+b", "d"), False) == astuple(found)
    subprocess.run(["tmux", "-L", "outside", "set-option", "-g", "prefix", "C-a"], check=True)
    assert ("ctrl+b", "d") == attach_command(place, run.run_id, {"TMUX": f"{socket},123,0"}).leave


def test_an_operators_own_keys_are_told(engine: Engine) -> None:
    """The shown prefix and detach key are the server's, wherever they were set."""
    run = run_to_end(engine, "answer ok")
    tmux("set-option", "-g", "prefix", "M-a")
    tmux("unbind-key", "d")
    tmux("bind-key", "C-x", "detach-client")
    assert ("alt+a", "ctrl+x") == engine.attach_command(run.run_id).leave
    tmux("bind-key", "-n", "F12", "detach-client")
    tmux("unbind-key", "C-x")
    assert ("F12",) == engine.attach_command(run.run_id).leave


def test_attaching_works(engine: Engine) -> None:
    """The argv, run in a terminal of another server, shows a finished run's output there."""
    outside = ["tmux", "-L", "outside"]
    for name in ("first", "second"):
        run = run_to_end(engine, f"answer The {name}.")
        argv = attach_command(place_of(engine, run), run.run_id, {"TMUX": "/tmp/outside,1,0"}).argv
        subprocess.run([*outside, "new-session", "-d", "-s", name, *argv], check=True)
        look = [*outside, "capture-pane", "-p", "-t", name]
        wait_until(
            lambda look=look, said=f"The {name}.": said in subprocess.check_output(look, text=True),
            "the run's pane to be shown outside",
        )


def test_attaching_to_nothing(engine: Engine) -> None:
    """A plain run without a pane, and a closed pane, are errors with an alternative."""
    plain = run_to_end(engine, "answer ok", runner="process")
    with pytest.raises(SubdeckError, match="has no tmux pane"):
        engine.attach_command(plain.run_id)
    run = run_to_end(engine, "answer ok")
    tmux("kill-server")
    with pytest.raises(SubdeckError, match="tmux pane no longer exists"):
        engine.attach_command(run.run_id)


def test_launchers_share_one_session(engine: Engine, project_dir: Path) -> None:
    """Launchers that start at once, without a server, open windows of one tmux session."""
    together = threading.Barrier(4)
    runs: list[RunSnapshot] = []

    def launch() -> None:
        mine = Engine.open(str(project_dir))
        together.wait()
        runs.append(start(mine, "answer ok"))

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ends = engine.wait([run.run_id for run in runs], timeout=30)
    assert ["completed"] * 4 == [run.status for run in ends]
    windows = {place_of(engine, run).window for run in ends}
    assert windows == set(tmux("list-windows", "-a", "-F", "#{window_name}").split())
    assert [session_name(str(project_dir))] == tmux("list-sessions", "-F", "#{session_name}").split()


def test_a_group_in_tmux(project_dir: Path) -> None:
    """Queued runs wait in their panes and continue when a slot is free."""
    engine = open_engine(project_dir, runner="tmux", tmux={"socket": SOCKET}, max_parallel=1)
    runs = engine.launch([request(f"answer {number}") for number in range(3)], background=False)
    ends = engine.wait([run.run_id for run in runs], timeout=30)
    assert [("completed", "0"), ("completed", "1"), ("completed", "2")] == [
        (run.status, end_of(run).message) for run in ends
    ]


def test_tmux_missing(engine: Engine, project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tmux a launch names the package and creates nothing; other runners still work."""
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(RunnerUnavailable, match="apt install tmux"):
        engine.launch([request("answer ok")], background=True)
    assert [".git"] == os.listdir(project_dir)
    assert "completed" == run_to_end(engine, "answer ok", runner="process").status


def test_names() -> None:
    """Windows are named by preset and short id, tmux sessions by project, unambiguous even for equal names."""
    assert "scout-abc123" == window_name("scout", "abc123")
    assert "run-abc123" == window_name("…", "abc123")
    assert 40 + 7 == len(window_name("x" * 100, "abc123"))
    one, other = session_name("/a/deck"), session_name("/b/deck")
    assert one.startswith("deck-") and other.startswith("deck-") and one != other
    assert session_name("/").startswith("project-")


def test_the_wrapper_of_a_pane_survives_its_launcher(project_dir: Path, tmp_path: Path) -> None:
    """A run in tmux continues when its launcher is killed."""
    open_engine(project_dir, runner="tmux", tmux={"socket": SOCKET})
    gate = tmp_path / "gate"
    code = (
        "import os, sys; from subdeck.core.engine import Engine; from subdeck.core.spec.request import RunRequest\n"
        "(run,) = Engine.open().launch([RunRequest(task=sys.argv[1])], background=True)\n"
        "print(run.run_id, flush=True); os.kill(os.getpid(), 9)\n"
    )
    argv = [sys.executable, "-c", code, f"wait-for {gate}\nanswer ok"]
    run_id = subprocess.run(argv, cwd=project_dir, capture_output=True, text=True).stdout.strip()
    engine = Engine.open(str(project_dir))
    (run,) = engine.snapshots([run_id])
    assert "running" == run.status and lives(started(engine, run).pid)
    gate.touch()
    assert "completed" == wait_for_end(engine, run_id).status


def test_a_client_that_died_too_late(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a client is killed after the server opened the window, the window is found, and no second one is opened."""
    real, asked = shutil.which("tmux"), tmp_path / "asked"
    shim = tmp_path / "shim" / "tmux"
    shim.parent.mkdir()
    shim.write_text(
        f"""#!/bin/sh
case "$*" in *subdeck.core.wrapper*)
    echo "$*" >>{asked}
    {real} "$@" >/dev/null && kill -9 $$;;
esac
exec {real} "$@"
"""
    )
    shim.chmod(0o755)
    run_to_end(engine, "answer ok")
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    run = run_to_end(engine, "answer ok")
    place = place_of(engine, run)
    windows = tmux("list-windows", "-t", place.session, "-F", "#{window_name}").splitlines()
    assert ("completed", 1, 1) == (run.status, windows.count(place.window), len(asked.read_text().splitlines()))
