"""Following runs through failures: nothing is lost, no result is reported twice, and a lasting failure is an error."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import jsonschema
import pytest
from subdeck.core.cli import output
from subdeck.core.cli.execution import run as run_command
from subdeck.core.cli.status import wait as wait_command
from subdeck.core.delegation.schema import SUBAGENT_OUTPUT
from subdeck.core.errors import FollowingFailed, SettingsError, SubdeckError, explained, reason
from subdeck.core.mcp._results import brief
from subdeck.core.project import follower, follower as follow
from subdeck.core.project.follower import Update, steady
from subdeck.core.project.registry import count
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.delegation.delegating import call, parent_engine, task
from tests.factories import make_meta, make_snapshot, open_engine, run_to_end, start

NEVER = threading.Event()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "DELAYS_S", (0.0,) * 3)


def a_run(number: int, status: str = "running", **fields: object) -> RunSnapshot:
    return make_snapshot(make_meta(run_id=f"20260101-00000{number}-abcdef"), status, **fields)


def an_update(*runs: RunSnapshot, ended: Sequence[RunSnapshot] = (), complete: bool = True) -> Update:
    counts = count(runs)
    return Update(
        runs=runs,
        removed=(),
        ended=tuple(ended),
        counts=counts,
        background=counts,
        complete=complete,
        presets_changed=False,
    )


def followed(*streams: Sequence[Update], last: Exception | None = None) -> Iterator[Update]:
    """Follow streams that fail one after the other. The last one ends, or fails at each start."""
    left = list(streams)

    def begin() -> Iterator[Update]:
        yield from left.pop(0) if left else ()
        if left or last:
            raise last or KeyError(13)

    return steady(begin, NEVER)


def ids(runs: Sequence[RunSnapshot]) -> list[str]:
    return [run.run_id[14] for run in runs]


def test_a_stream_that_fails_is_continued() -> None:
    """After a failure each run is shown as it is now, and each result and removal in between is reported once."""
    soon = "2999-01-01T00:00:00.000Z"
    running, over, deleted = a_run(1), a_run(2, "completed"), a_run(3, "completed")
    before = an_update(running, over, deleted)
    ended_meanwhile, launched_meanwhile = a_run(1, "failed"), a_run(4)
    after = an_update(ended_meanwhile, over, launched_meanwhile, a_run(5, "completed", ended_at=soon))
    later = an_update(a_run(4, "completed"), ended=(a_run(4, "completed"),))
    first, second, third = followed([before], [after, later])
    assert before == first
    assert (["1", "2", "4", "5"], [deleted.run_id], ["1"]) == (
        ids(second.runs),
        list(second.removed),
        ids(second.ended),
    )
    assert (["4"], ["4"], ()) == (ids(third.runs), ids(third.ended), third.removed)


def test_what_was_launched_and_ended_during_a_failure_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown run is reported if it ended after the reader started, not if it ended before."""
    monkeypatch.setattr(follower, "now_iso", iter(("2026-01-01T10:00", *["2026-01-01T11:00"] * 9)).__next__)
    old, new = a_run(1, "completed", ended_at="2026-01-01T09:59"), a_run(2, "completed", ended_at="2026-01-01T10:30")
    _, second = followed([an_update(a_run(3))], [an_update(a_run(3), old, new)])
    assert ["2"] == ids(second.ended)


def test_a_fresh_stream_is_passed_on_when_it_is_complete() -> None:
    """While a large project is read again, readers get quiet updates with the last counts."""
    before = an_update(a_run(1), a_run(2), a_run(3))
    part = an_update(a_run(1), complete=False)
    whole = an_update(a_run(2, "completed"))
    _, quiet, second = followed([before], [part, whole])
    assert (True, before.counts) == (quiet.is_quiet, quiet.counts)
    assert (["1", "2"], [a_run(3).run_id]) == (ids(second.runs), list(second.removed))


def test_a_reader_gets_turns_while_nothing_can_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two attempts there are quiet updates, so that a wait with a timeout ends in time."""
    monkeypatch.setattr(follower, "DELAYS_S", (1000.0,))
    monkeypatch.setattr(follower, "BEAT_S", 0.001)
    updates = followed([an_update(a_run(1))], [])
    assert [False, True, True] == [next(updates).is_quiet for _ in range(3)]


def test_what_fails_again_and_again_ends_with_an_error() -> None:
    """After several failures in a row, the reader gets a readable error."""
    updates = followed([an_update(a_run(1))], last=ZeroDivisionError("13"))
    with pytest.raises(FollowingFailed, match=r"the runs can no longer be followed: an unexpected error \(ZeroDiv"):
        list(updates)


def test_an_error_that_a_person_can_act_on_is_passed_on() -> None:
    """Broken settings are reported at once, because another attempt would not help."""
    with pytest.raises(SettingsError):
        list(followed(last=SettingsError("broken")))


def fail_once(monkeypatch: pytest.MonkeyPatch, times: int = 1) -> None:
    """Make following the runs fail this many times."""
    watch, left = follow.watch, [None] * times

    def failing(*args: object, **kwargs: object) -> Iterator[follow.Changes]:
        if left:
            left.pop()
            raise KeyError(13)
        return watch(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(follow, "watch", failing)


@pytest.mark.processes
def test_a_wait_survives_a_failure(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait gets the run's result and each update, although the follower failed."""
    engine = open_engine(project_dir)
    run = start(engine, "answer 42")
    fail_once(monkeypatch)
    ended: list[str] = []
    (waited,) = engine.wait([run.run_id], timeout=30, on_update=lambda update: ended.extend(ids(update.ended)))
    assert ("completed", 1) == (waited.status, len(ended))


@pytest.mark.processes
def test_a_wait_that_cannot_go_on_says_so(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the runs can no longer be followed, `wait` prints an error and exits with 70. The run continues."""
    engine = open_engine(project_dir)
    run = start(engine, "answer 42", background=True)
    monkeypatch.setattr(follow.Follower, "updates", broken)
    monkeypatch.chdir(project_dir)
    code = output.run_to_end(lambda: wait_command.main([run.run_id], standalone_mode=False), as_json=True)
    error = json.loads(capsys.readouterr().err)["error"]
    assert (70, "the runs can no longer be followed: an unexpected error (KeyError)") == (code, error["what"])
    assert "subdeck status shows them" in error["hint"]
    monkeypatch.undo()
    run_to_end(open_engine(project_dir), "answer 1")


@pytest.mark.processes
def test_a_foreground_run_that_cannot_be_followed_says_so(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If its run can no longer be followed, `run` exits with 70. The run continues."""
    engine = open_engine(project_dir)
    monkeypatch.setattr(follow.Follower, "updates", broken)
    monkeypatch.chdir(project_dir)
    code = output.run_to_end(lambda: run_command(["answer 42"], no_preset=True))
    assert 70 == code
    assert "subdeck: the runs can no longer be followed: an unexpected error (KeyError)\n" in capsys.readouterr().err
    monkeypatch.undo()
    (run,) = engine.snapshots()
    assert "completed" == engine.wait([run.run_id], timeout=30)[0].status


@pytest.mark.processes
def test_a_call_whose_runs_cannot_be_followed_names_them(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parent gets the runs of its call, which were asked to stop."""
    engine = parent_engine(project_dir)
    monkeypatch.setattr(follow.Follower, "updates", broken)
    answer = call(engine, "subagent", task("hang"))
    monkeypatch.undo()
    (row,) = answer.structured["runs"]
    (run,) = engine.wait([row["runId"]], timeout=30)
    assert answer.is_error and ("aborted", "cancelled") == (run.status, run.reason)
    assert row["runId"] in answer.text and "asked to stop" in answer.text
    assert "continue" not in answer.text and "Nothing was started" not in answer.text
    shown = brief(answer.structured, 10_000, lambda *_: "")
    assert (row["runId"], 0) == (shown["runs"][0]["runId"], shown["completed"])
    jsonschema.validate(shown, SUBAGENT_OUTPUT)


def broken(*_: object) -> Iterator[Update]:
    raise KeyError(13)


def test_an_unexpected_error_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is printed with its kind and how to log details, and exits with 70."""
    err = io.StringIO()
    monkeypatch.setattr("sys.stderr", err)

    def fail() -> None:
        raise KeyError("secret")

    assert 70 == output.run_to_end(fail)
    assert "subdeck: an unexpected error (KeyError)\n  hint: set SUBDECK_LOG=FILE to log details\n" == err.getvalue()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SubdeckError("it is full", where="the disk", hint="empty it"), "the disk: it is full"),
        (FileNotFoundError(2, "No such file or directory", "/a/b"), "/a/b: No such file or directory"),
        (PermissionError(13, "Permission denied", b"/a"), "/a: Permission denied"),
        (OSError(24, "Too many open files"), "Too many open files"),
        (TimeoutError(), "timed out"),
        (OSError("odd"), "an unexpected error (OSError)"),
        (KeyError(13), "an unexpected error (KeyError)"),
    ],
)
def test_an_error_in_words(error: Exception, words: str) -> None:
    """No error is shown as a raw Python message."""
    assert words == reason(error)
    assert isinstance(explained(error), SubdeckError)
