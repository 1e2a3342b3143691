"""Commands on existing runs: status, wait, logs, stop, rm, attach."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK, Done, run_dirs, start, subdeck, write_preset, write_settings
from tests.factories import rewrite_meta
from tests.replay import RECORDINGS
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

STREAM = RECORDINGS / "0.73.1" / "b_read_grep_find_ls" / "stdout.jsonl"


@pytest.fixture
def project(project_dir: Path, home: Path) -> Path:
    write_preset(project_dir)
    gate = project_dir / "gate"
    held = f"head -n 25 {STREAM}; while [ ! -e {gate} ]; do sleep 0.05; done; tail -n +26 {STREAM}"
    write_settings(home, sleeper="exec sleep 60", crasher="echo boom >&2; exit 7", held=held, recorded=f"cat {STREAM}")
    return project_dir


def launch(project: Path, agent: str = "sleeper", *words: str) -> str:
    """Launch a background run. Return its id."""
    done = subdeck("bg", "scout", "look at \x1b[31mall\x1b[0m doors", "--agent", agent, *words, cwd=project)
    return done.out.strip()


def finished(project: Path, agent: str = "recorded") -> str:
    run_id = launch(project, agent)
    subdeck("wait", run_id, cwd=project)
    return run_id


def statuses(project: Path) -> dict[str, str]:
    return {run["runId"]: run["status"] for run in subdeck("status", "--json", cwd=project).document["runs"]}


def in_terminal(*words: str, cwd: Path, typed: bytes = b"") -> str:
    """Run one command, which has to succeed, in its own terminal. Return the terminal's output."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    with subprocess.Popen([*SUBDECK, *words], cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            pass  # a terminal reports in this way that its last program has exited
        assert 0 == process.wait(timeout=30)
    os.close(ours)
    return shown.decode()


def test_status_of_a_new_project_says_how_to_start(project: Path) -> None:
    """Without runs, the next step is printed, and nothing is created."""
    before = sorted(project.rglob("*"))
    done = subdeck("status", cwd=project)
    assert 0 == done.code
    assert "subdeck run PRESET" in done.out
    assert {"counts", "runs", "spending"} == set(subdeck("status", "--json", cwd=project).document)
    assert before == sorted(project.rglob("*"))


def test_status_shows_runs_newest_first(project: Path) -> None:
    """A line has state, id, preset, task and outcome. Another shell sees a running run."""
    ended, going = finished(project, "crasher"), launch(project)
    done = subdeck("status", cwd=project)
    assert 0 == done.code
    first, second, _, summary = done.out.splitlines()
    assert first.startswith(f"● running  {going[-6:]}  scout  look at all doors")
    assert second.startswith(f"✗ failed   {ended[-6:]}  scout  look at all doors  crasher  agent_exit: the agent")
    assert "2 runs: 1 running, 1 failed" == summary
    subdeck("stop", "--kill", going, cwd=project)
    subdeck("wait", going, cwd=project)


def test_status_answers_for_the_named_runs(project: Path) -> None:
    """Ids, short ids and prefixes name a run. An unknown one gives exit code 2."""
    one, other = finished(project), finished(project)
    for word in (one, one[-6:]):
        assert [one] == [run["runId"] for run in subdeck("status", word, "--json", cwd=project).document["runs"]]
    assert 2 == len(subdeck("status", one, other, "--json", cwd=project).document["runs"])
    ambiguous = subdeck("status", one[:8], cwd=project)
    assert (2, "") == (ambiguous.code, ambiguous.out)
    assert "2 runs match" in ambiguous.err
    unknown = subdeck("status", "nope", cwd=project)
    assert 2 == unknown.code
    assert 'no run matches "nope"' in unknown.err


def test_status_document_has_meta_result_activity_and_paths(project: Path) -> None:
    """The JSON document has everything about a run."""
    run_id = finished(project)
    document = subdeck("status", run_id, "--json", cwd=project).document
    (run,) = document["runs"]
    (run_dir,) = run_dirs(project)
    meta, result = (json.loads((run_dir / name).read_bytes()) for name in ("meta.json", "result.json"))
    del meta["systemPrompt"], meta["mark"], result["mark"]
    told_better = {"resolvedModel", "childSessionId", "check"}
    assert {key: run[key] for key in meta if key not in told_better} == {
        key: value for key, value in meta.items() if key not in told_better
    }
    changes = result.pop("changes")
    assert changes.items() <= run["changes"].items()
    assert {key: run[key] for key in result} == result
    assert {"activity", "sentence", "ahead", "unknown", "lastEventAt", "artifacts"} <= set(run)
    assert str(run_dir / "events.jsonl") == run["artifacts"]["events.jsonl"]
    assert {
        "running": 0,
        "completed": 1,
        "failed": 0,
        "aborted": 0,
        "total": 1,
        "queued": 0,
        "waiting": 0,
        "outOfReach": 0,
    } == document["counts"]


def test_status_document_of_a_running_run_has_the_same_keys(project: Path) -> None:
    """Unknown values are null, so readers need only one format."""
    run_id = launch(project, "held")
    wait_until(lambda: "Looking around." in subdeck("logs", run_id, cwd=project).out, "the first text")
    (going,) = subdeck("status", run_id, "--json", cwd=project).document["runs"]
    assert ("running", None, None) == (going["status"], going["reason"], going["finalText"])
    assert going["activity"]
    (project / "gate").touch()
    assert 0 == subdeck("wait", run_id, cwd=project).code
    (ended,) = subdeck("status", run_id, "--json", cwd=project).document["runs"]
    assert sorted(going) == sorted(ended)
    assert ("completed", "All done.") == (ended["status"], ended["finalText"])


def copied(run_dir: Path, name: str, **fields: str) -> None:
    """Make a finished run from another run's files."""
    copy = run_dir.with_name(name)
    copy.mkdir()
    for file in ("meta.json", "result.json"):
        (copy / file).write_text((run_dir / file).read_text().replace(run_dir.name, name))
    rewrite_meta(copy, **fields)


def test_status_shows_the_last_twenty_unless_all_are_asked_for(project: Path) -> None:
    """Older runs are shown with --all, and the output mentions it."""
    run_id = finished(project)
    (run_dir,) = run_dirs(project)
    for number in range(24):
        copy = f"{run_id[:-6]}{number:06x}"
        copied(run_dir, copy)
    done = subdeck("status", cwd=project)
    assert 20 == sum("scout" in line for line in done.out.splitlines())
    assert "--all shows every run" in done.out
    assert 25 == len(subdeck("status", "--all", "--json", cwd=project).document["runs"])
    assert 2 == subdeck("status", "--all", run_id, cwd=project).code


@pytest.mark.parametrize("words", [["status"], ["status", "--all"]], ids=" ".join)
def test_the_plain_list_is_what_the_whole_command_line_prints(project: Path, words: list[str]) -> None:
    """It is read without the options library, with the same output, errors and exit codes."""

    def same() -> Done:
        done = subdeck(*words, cwd=project)
        assert subdeck("-C", ".", *words, cwd=project) == done
        return done

    assert "No runs in" in same().out
    run_id = finished(project)
    (run_dir,) = run_dirs(project)
    for number in range(24):
        copied(run_dir, f"{run_id[:-6]}{number:06x}")
    assert "25 runs" in same().out if "--all" in words else "--all shows every run" in same().out
    settings = project / ".pi" / "subagents" / "config.yaml"
    settings.write_text("nonsense: 1\n")
    assert (2, "") == same()[:2]
    assert "nonsense" in same().err


def test_the_reader_of_the_plain_list_may_go(project: Path) -> None:
    """If the reader is gone, nothing is printed on stderr."""
    finished(project)
    with start("status", cwd=project) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert b"" == process.stderr.read()
    assert 1 == process.returncode


def test_runs_of_one_second_are_in_the_order_of_their_start(project: Path) -> None:
    """An id only has the second, so runs are sorted by creation time."""
    finished(project)
    (run_dir,) = run_dirs(project)
    second = "20261121-120000"
    for millisecond, short in enumerate(("bbbbbb", "cccccc", "aaaaaa")):
        copied(run_dir, f"{second}-{short}", createdAt=f"2026-11-21T12:00:00.{millisecond:03}Z")
    shown = [run["runId"] for run in subdeck("status", "--json", cwd=project).document["runs"]]
    assert ["aaaaaa", "cccccc", "bbbbbb"] == [run[-6:] for run in shown if run.startswith(second)]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_status_fits_the_terminal(project: Path, columns: int) -> None:
    """No line is wider than the terminal, even with wide characters."""
    subdeck("run", "scout", "東京" * 60, "--agent", "recorded", cwd=project)
    lines = subdeck("status", cwd=project, COLUMNS=str(columns)).out.splitlines()
    wide = sum(2 if "\u3000" < sign < "\uff00" else 1 for sign in lines[0])
    assert wide <= columns


def test_wait_answers_the_worst_outcome(project: Path) -> None:
    """A failed run outweighs an aborted one, which outweighs completed ones."""
    good, bad, stopped = finished(project), finished(project, "crasher"), launch(project)
    subdeck("stop", stopped, cwd=project)
    assert 3 == subdeck("wait", good, stopped, cwd=project).code
    assert 1 == subdeck("wait", good, stopped, bad, cwd=project).code
    done = subdeck("wait", good, good, "--json", cwd=project)
    assert 0 == done.code
    assert [False, [good]] == [done.document["timedOut"], [run["runId"] for run in done.document["runs"]]]


def test_wait_ends_with_the_run(project: Path) -> None:
    """`wait` returns when the run ends, not before."""
    run_id = launch(project, "held")
    waiter = start("wait", run_id, cwd=project)
    (project / "gate").touch()
    out, _ = waiter.communicate(timeout=30)
    assert 0 == waiter.returncode
    assert out.decode().startswith("✓ completed")


def test_wait_gives_up_in_time(project: Path) -> None:
    """--timeout has its own exit code and leaves the run running."""
    run_id = launch(project)
    done = subdeck("wait", run_id, "--timeout", "0.2", cwd=project)
    assert 124 == done.code
    assert "1 run has not finished after 0.2 s" in done.err
    as_json = subdeck("wait", run_id, "--timeout", "0", "--json", cwd=project)
    assert (124, True) == (as_json.code, as_json.document["timedOut"])
    assert {run_id: "running"} == statuses(project)
    subdeck("stop", run_id, cwd=project)
    assert 3 == subdeck("wait", run_id, cwd=project).code


def test_ctrl_c_ends_only_the_waiting(project: Path) -> None:
    """ctrl-C of `wait` does not end a run that was launched elsewhere."""
    run_id = launch(project)
    waiter = start("wait", run_id, cwd=project)
    wait_until(lambda: b"watchfiles" in Path(f"/proc/{waiter.pid}/maps").read_bytes(), "the waiter to watch")
    waiter.send_signal(signal.SIGINT)
    _, err = waiter.communicate(timeout=30)
    assert 130 == waiter.returncode
    assert "the runs continue" in err.decode()
    assert {run_id: "running"} == statuses(project)
    subdeck("stop", run_id, cwd=project)
    subdeck("wait", run_id, cwd=project)


def test_logs_show_the_transcript_or_another_record(project: Path) -> None:
    """The transcript is readable text. Raw, events and stderr are the files byte for byte."""
    run_id = finished(project)
    (run_dir,) = run_dirs(project)
    assert "Reading src/app.py" in subdeck("logs", run_id, cwd=project).out
    for option, name in (("--raw", "stdout.log"), ("--events", "events.jsonl"), ("--stderr", "stderr.log")):
        assert (run_dir / name).read_text() == subdeck("logs", run_id, option, cwd=project).out
    document = subdeck("logs", run_id, "--events", "--json", cwd=project).document
    assert (run_dir / "events.jsonl").read_text().splitlines() == document["lines"]
    assert ("completed", "events.jsonl") == (document["status"], document["name"])


def test_logs_make_a_markdown_document(project: Path) -> None:
    """The whole run is printed as markdown, and with --json as its lines. It cannot follow."""
    run_id = finished(project)
    shown = subdeck("logs", run_id, "--markdown", cwd=project).out
    assert shown.startswith(f"# scout {run_id[-6:]}: ")
    assert "**read** Reading src/app.py" in shown
    document = subdeck("logs", run_id, "--markdown", "--json", cwd=project).document
    assert (shown.rstrip().split("\n"), None) == (document["lines"], document["path"])
    assert 2 == subdeck("logs", run_id, "--markdown", "-f", cwd=project).code


def test_logs_follow_until_the_run_ends(project: Path) -> None:
    """-f shows the transcript so far and the rest, and exits with the run's exit code."""
    run_id = launch(project, "held")
    follower = start("logs", "-f", run_id, cwd=project)
    assert follower.stdout is not None
    lines = iter(follower.stdout.readline, b"")
    assert any(b"Looking around." in line for line in lines)
    (project / "gate").touch()
    rest = b"".join(lines)
    follower.communicate(timeout=30)
    assert 0 == follower.returncode
    assert rest.decode().endswith("All done.\ncompleted: done\n")


def test_logs_keep_control_sequences_from_a_terminal(project: Path, home: Path) -> None:
    """An agent's control sequences are removed on a terminal and kept in a pipe."""
    write_settings(home, painter=r"printf '\033]0;title\007\033[2Jred\n' >&2; exit 1")
    run_id = finished(project, "painter")
    assert "\x1b]0;title\x07\x1b[2Jred\n" == subdeck("logs", "--stderr", run_id, cwd=project).out
    assert "red\r\n" == in_terminal("logs", "--stderr", run_id, cwd=project)


def test_answer_keeps_control_sequences_from_a_terminal(project: Path, home: Path) -> None:
    """The answer of `run` is plain text on a terminal and unchanged in a pipe."""
    answer = "\x1b[31mred\x1b[0m"
    message = {"role": "assistant", "stopReason": "stop", "content": [{"type": "text", "text": answer}]}
    events = [{"type": "message_end", "message": message}, {"type": "agent_end", "messages": [message]}]
    (project / "said.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    write_settings(home, painter=f"cat {project}/said.jsonl")
    assert answer + "\n" == subdeck("run", "scout", "x", "--agent", "painter", cwd=project).out
    shown = in_terminal("run", "scout", "x", "--agent", "painter", cwd=project)
    assert "red" in shown
    assert "\x1b" not in shown


def test_stop_ends_runs_and_leaves_finished_ones(project: Path) -> None:
    """Stopping and finished runs are listed separately, and the result has who stopped it."""
    ended, going = finished(project), launch(project)
    done = subdeck("stop", going, ended, "--json", cwd=project)
    assert (0, {"stopping": [going], "ended": [ended]}) == (done.code, done.document)
    assert 3 == subdeck("wait", going, cwd=project).code
    result = json.loads((run_dirs(project)[0].parent / going / "result.json").read_bytes())
    assert ("aborted", "stopped", "stopped by the user") == (
        result["status"],
        result["reason"],
        result["errorMessage"],
    )
    assert "had already ended" in subdeck("stop", going, cwd=project).out


def test_kill_ends_a_run_that_ignores_being_told(project: Path, home: Path) -> None:
    """--kill ends a run without a grace period."""
    write_settings(home, deaf="trap '' TERM; while :; do sleep 1; done")
    going = launch(project, "deaf")
    assert 0 == subdeck("stop", "--kill", going, cwd=project).code
    assert 3 == subdeck("wait", going, cwd=project).code
    (run,) = subdeck("status", going, "--json", cwd=project).document["runs"]
    assert "killed" == run["reason"]


def test_rm_deletes_and_undoes(project: Path) -> None:
    """A deleted run is not listed, and can be restored."""
    run_id = finished(project)
    done = subdeck("rm", run_id[-6:], cwd=project)
    assert (0, f"{run_id[-6:]} deleted; subdeck rm --undo {run_id[-6:]} restores it\n") == (done.code, done.out)
    assert {} == statuses(project)
    assert {"restored": [run_id]} == subdeck("rm", "--undo", run_id[-6:], "--json", cwd=project).document
    assert {run_id: "completed"} == statuses(project)


def test_a_deleted_run_is_found_again(project: Path) -> None:
    """A command on a deleted run reports the deletion. `rm --undo` without a run lists the trash."""
    assert "the trash is empty" in subdeck("rm", "--undo", cwd=project).err
    run_id = finished(project)
    subdeck("rm", run_id, cwd=project)
    gone = subdeck("status", run_id[-6:], "--json", cwd=project)
    back = f"subdeck rm --undo {run_id[-6:]} restores it"
    assert (2, f"run {run_id[-6:]} was deleted", back) == (gone.code, gone.error["what"], gone.error["hint"])
    undo = subdeck("rm", "--undo", cwd=project)
    assert 2 == undo.code
    assert f"in the trash, newest first: {run_id[-6:]}" in undo.err


def test_rm_purges(project: Path) -> None:
    """--purge is permanent, for existing runs and for deleted ones."""
    one, other = finished(project), finished(project)
    subdeck("rm", one, cwd=project)
    done = subdeck("rm", "--purge", one, other, "--json", cwd=project)
    assert (0, {"purged": [one, other]}) == (done.code, done.document)
    undone = subdeck("rm", "--undo", one, cwd=project)
    assert 2 == undone.code
    assert "not purged" in undone.err
    assert {} == statuses(project)


def test_rm_leaves_what_was_deleted_lately(project: Path) -> None:
    """--purge without a run removes only runs deleted more than a day ago."""
    run_id = finished(project)
    subdeck("rm", run_id, cwd=project)
    assert 0 == subdeck("rm", "--purge", cwd=project).code
    assert 0 == subdeck("rm", "--undo", run_id, cwd=project).code


def test_rm_refuses_a_run_that_goes_on(project: Path) -> None:
    """A running run is not deleted, and the error has the step before."""
    run_id = launch(project)
    done = subdeck("rm", run_id, cwd=project)
    assert 2 == done.code
    assert "stop it first" in done.err
    assert 2 == subdeck("rm", cwd=project).code
    assert 2 == subdeck("rm", "--undo", "--purge", run_id, cwd=project).code
    subdeck("stop", run_id, cwd=project)
    subdeck("wait", run_id, cwd=project)


def test_attach_needs_a_pane(project: Path) -> None:
    """For a run without tmux, the error has the command that follows it."""
    run_id = finished(project)
    done = subdeck("attach", run_id, cwd=project)
    assert 2 == done.code
    assert f"subdeck logs -f {run_id[-6:]}" in done.err


def test_a_run_without_a_pane_opens_in_the_app(project: Path) -> None:
    """`open` shows the transcript of a run without a tmux pane."""
    run_id = finished(project)
    assert ["--run", run_id] == subdeck("open", run_id[-6:], "--json", cwd=project).document["argv"][-2:]
    done = subdeck("open", run_id, cwd=project)
    assert 2 == done.code
    assert "needs a terminal" in done.err and "subdeck logs -f" in done.err


def test_opening_a_working_agent_is_confirmed(project: Path) -> None:
    """`open --agent` asks before it ends a turn, and a no leaves the run alone."""
    run_id = launch(project)
    shown = in_terminal("open", "--agent", run_id, cwd=project, typed=b"n\n")
    subdeck("stop", run_id, cwd=project)
    subdeck("wait", run_id, cwd=project)
    assert "is working" in shown
    assert shown.endswith("nothing was opened\r\n")


@pytest.mark.tmux
def test_attach_names_the_command_and_needs_a_terminal(project: Path) -> None:
    """--json prints attach's command, which is not executed without a terminal."""
    run_id = launch(project, "sleeper", "--runner", "tmux")
    argv = subdeck("open", run_id, "--json", cwd=project).document["argv"]
    assert ["-L", "subdeck", "attach-session"] == argv[1:4]
    assert argv == subdeck("attach", run_id, "--json", cwd=project).document["argv"]
    done = subdeck("open", run_id, cwd=project)
    assert 2 == done.code
    assert "needs a terminal" in done.err
    subdeck("stop", run_id, cwd=project)
    subdeck("wait", run_id, cwd=project)


@pytest.mark.parametrize("words", [("apply",), ("merge",), ("merge", "--commit"), ("discard",)])
def test_a_run_is_looked_up_before_anybody_is_asked(project: Path, words: tuple[str, ...]) -> None:
    """An unknown run, or one without a worktree, is the error, not the missing terminal."""
    assert "no run" in subdeck(*words, "999999", cwd=project).err
    done = subdeck(*words, finished(project), cwd=project)
    assert (2, False) == (done.code, "not a terminal" in done.err) or words == ("apply",)


def test_nothing_to_undo_needs_no_question(project: Path) -> None:
    """Without a terminal, `undo` reports that there is nothing to undo."""
    assert "nothing to undo" in subdeck("undo", cwd=project).err
