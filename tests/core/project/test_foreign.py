"""Untrusted runs: shown, never believed, and trusted only on request."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.config.settings import Retention
from subdeck.core.delegation.channels import Emitter
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.project import liveness, ownership
from subdeck.core.project.diagnosis import DiagnosisReader, explain
from subdeck.core.project.liveness import Proof, reconcile
from subdeck.core.project.registry import Registry, count
from subdeck.core.project.session import SessionFile
from subdeck.core.run import describe, second_copy
from subdeck.core.run.artifacts import RunnerFacts, TmuxPane
from subdeck.core.run.events import Event, RunStarted, encode_event
from subdeck.core.system import processes
from subdeck.core.work import deletion

from tests.core.command_line import subdeck
from tests.core.project.following import following
from tests.factories import (
    ahead_of,
    copy_run,
    end_of,
    lives,
    make_finished,
    make_meta,
    make_run,
    open_engine,
    request,
    rewrite_meta,
    run_dir,
    run_to_end,
    start,
    started,
    wait_for_end,
    write_runner,
)
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands", "forked_wrappers")]

NOW = datetime.now(UTC)
STARTED = RunStarted(seq=1, ts=paths.now_iso(), pid=1, child_pid=1, attempt=1, max_attempts=1)


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def unmark(directory: Path) -> None:
    """Remove a record's signature, as if it was written by hand or by an old version."""
    path = directory / paths.META
    record = json.loads(path.read_bytes())
    del record["mark"]
    path.write_text(json.dumps(record, indent=1))


def forge(directory: Path) -> None:
    """Give a record a well-formed signature made without the key."""
    unmark(directory)
    path = directory / paths.META
    path.write_bytes(path.read_bytes().removesuffix(b"\n}") + b',\n "mark": "' + b"5" * 32 + b'"\n}')


def other_key(directory: Path) -> None:
    """Leave a record with another user's signature."""
    Path(paths.key_file()).write_bytes(os.urandom(32))


def break_meta(directory: Path) -> None:
    (directory / paths.META).write_text('{"runId":')


def no_meta(directory: Path) -> None:
    (directory / paths.META).unlink()


def give_away(directory: Path) -> None:
    os.chown(directory, 65534, -1)


def by_link(directory: Path) -> None:
    """Move the directory elsewhere, with a link in its place."""
    elsewhere = directory.parents[3] / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    directory.rename(elsewhere / directory.name)
    directory.symlink_to(elsewhere / directory.name)


ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
WAYS = [unmark, forge, other_key, break_meta, no_meta, by_link, pytest.param(give_away, marks=ROOT_ONLY)]


def facts(**others: Any) -> RunnerFacts:
    here = {"host": processes.host(), "boot_id": processes.boot_id(), "pid_namespace": processes.pid_namespace()}
    return RunnerFacts(**{"kind": "process", "pid": 1, "pid_started": 0, **here, **others})


def open_run(engine: Engine, *events: Event, runner: RunnerFacts | None = None, **meta: Any) -> Path:
    """Make a run without a holder and without a result."""
    made, lock = make_run(engine.project, make_meta(**meta))
    os.close(lock)
    directory = Path(engine.project.run_dir(made.run_id))
    (directory / paths.EVENTS).write_bytes(b"".join(map(encode_event, events or (STARTED,))))
    if runner:
        write_runner(str(directory), runner)
    return directory


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_it_is_never_finished(engine: Engine, way: Callable[[Path], None]) -> None:
    """An untrusted run without a holder gets no result and no lock, and reading it never changes its files."""
    directory = open_run(engine)
    way(directory)
    (directory / paths.LOCK).unlink()
    before = contents(directory)
    for _ in range(2):
        assert Proof.FOREIGN is reconcile(engine.project, directory.name, by="test")
        (run,) = engine.snapshots()
        assert (True, "queued" if way is by_link else "running") == (run.foreign, run.status)
    assert before == contents(directory)


def test_its_lock_is_not_even_tried(engine: Engine) -> None:
    """An untrusted run's `lock` is not tried, because another program may use a file of that name."""
    directory = open_run(engine)
    unmark(directory)
    opened = os.open(directory / paths.LOCK, os.O_RDWR)
    fcntl.flock(opened, fcntl.LOCK_SH)
    os.chmod(directory / paths.LOCK, 0)
    assert Proof.FOREIGN is reconcile(engine.project, directory.name, by="test")
    os.close(opened)


@pytest.mark.parametrize("way", [unmark, forge, other_key])
def test_it_is_shown_as_foreign(engine: Engine, way: Callable[[Path], None]) -> None:
    """State and diagnosis show that a run is untrusted, ended or not, and its own record can be read."""
    ended = run_dir(engine, run_to_end(engine, "answer Thirty-one."))
    going = open_run(engine)
    for directory in (ended, going):
        way(directory)
    by_id = {run.run_id: run for run in engine.snapshots()}
    assert {"◇ untrusted"} == {describe.state(run) for run in by_id.values()}
    assert "completed: Thirty-one." == describe.doing(by_id[ended.name])
    assert "running: starting" == describe.doing(by_id[going.name])
    for run in by_id.values():
        said = explain(run, DiagnosisReader(engine.project, run.run_id).read(run), NOW)
        assert said.startswith("untrusted · ")
        assert f"{run.status} according to its files · subdeck adopt {run.meta.short_id} trusts it" in said


def test_a_foreign_run_that_waits(engine: Engine) -> None:
    """An untrusted queued run is shown as queued, but has no position, and no run waits behind it."""
    earlier = open_run(engine, max_running=1, created_at="2026-01-01T00:00:00.000Z")
    (earlier / paths.EVENTS).write_text('{"type":"queued","seq":1,"ts":"2026-01-01T00:00:00.000Z","for":"slot"}\n')
    unmark(earlier)
    meta, lock = make_run(engine.project, make_meta(max_running=1))
    by_id = {run.run_id: run for run in engine.snapshots()}
    assert ("queued", True) == (describe.doing(by_id[earlier.name]), by_id[earlier.name].foreign)
    assert 0 == ahead_of(by_id[meta.run_id])
    assert 0 == ahead_of(engine.snapshots((meta.run_id,))[0])
    os.close(lock)


def test_it_is_not_counted(engine: Engine) -> None:
    """An untrusted run is in no count: of all runs, background runs or a session's."""
    own = make_finished(engine.project, make_meta(background=True))
    directory = open_run(engine, background=True)
    unmark(directory)
    registry = Registry(engine.project, by="test")
    registry.look(registry.names(), prove=True)
    assert (1, 1, 0) == (registry.counts.total, registry.background.total, registry.background.running)
    assert {directory.name, own.run_id} == {run.run_id for run in registry.snapshots()}
    assert 1 == count(registry.snapshots()).total


def test_no_end_of_it_is_reported(engine: Engine, project_dir: Path) -> None:
    """The end of an untrusted run is not news for a user or a parent, even if its record names their session."""
    meta = make_finished(engine.project, make_meta(background=True))
    SessionFile(engine.project, "operator").add_run(meta)
    unmark(Path(engine.project.run_dir(meta.run_id)))
    assert () == engine.unseen()
    (run,) = engine.snapshots()
    assert not engine.claim(run)


def test_an_old_wrapper_ends_its_run_truthfully(engine: Engine) -> None:
    """A run without signature and second copy continues under its wrapper: shown as running, then with its result."""
    run = start(engine, "ask-for-more Looking.", "wait-for copy-removed", "say Found.", "wait-for gate", "answer Done.")
    started(engine, run)
    second_copy.remove(str(run_dir(engine, run)))
    # The wrapper may be restoring the record from the copy at this moment; with the agent's words it is past that.
    Path(run.meta.cwd, "copy-removed").touch()
    wait_until(lambda: "Found." in (run_dir(engine, run) / paths.EVENTS).read_text(), "the wrapper to go on")
    unmark(run_dir(engine, run))
    (going,) = engine.snapshots()
    assert (True, "running") == (going.foreign, going.status)
    Path(run.meta.cwd, "gate").touch()
    done = wait_for_end(engine, run.run_id)
    assert (True, "completed", "Done.") == (done.foreign, done.status, end_of(done).message)
    assert "wrapper" == json.loads((run_dir(engine, run) / paths.RESULT).read_bytes())["writtenBy"]


def test_followers_emit_nothing_of_it(engine: Engine) -> None:
    """Programs that follow runs get no events of an untrusted one."""
    unmark(open_run(engine))
    emitter = Emitter(engine)
    with following(engine) as followed:
        (run,) = followed.updates[0].runs
        assert run.foreign
        assert [] == list(emitter.take(followed.updates[0]))


# --- acting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_it_is_not_stopped(engine: Engine, way: Callable[[Path], None]) -> None:
    """Stopping an untrusted run writes and signals nothing; the error explains it and has the way out."""
    victim = subprocess.Popen(["sleep", "1000"])
    directory = open_run(engine, runner=facts(pid=victim.pid, pid_started=processes.start_time(victim.pid)))
    way(directory)
    before = contents(directory)
    with pytest.raises(SubdeckError, match="is not trusted: ") as refused:
        engine.stop([directory.name], force=True)
    assert f"subdeck adopt {directory.name[-6:]}" in refused.value.hint
    assert before == contents(directory)
    assert lives(victim.pid)
    victim.kill()
    victim.wait()


def test_a_run_that_became_foreign_since_it_was_read(engine: Engine) -> None:
    """Every action checks trust again, even if the snapshot was trusted."""
    directory = open_run(engine)
    lock = os.open(directory / paths.LOCK, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_SH)
    (run,) = engine.snapshots()
    assert not run.foreign
    unmark(directory)
    with pytest.raises(SubdeckError, match="is not trusted"):
        liveness.ask_to_stop(engine.project, run, force=False, by="test", reason="stopped")
    assert not (directory / paths.STOP).exists()
    os.close(lock)


def test_it_is_not_attached_to(engine: Engine) -> None:
    """The pane that an untrusted run names is not searched."""
    place = TmuxPane("default", "main", "editor", "%0")
    directory = open_run(engine, runner=facts(kind="tmux", tmux=place))
    unmark(directory)
    with pytest.raises(SubdeckError, match="is not trusted"):
        engine.attach_command(directory.name)


def test_nothing_is_launched_from_it(engine: Engine, home: Path) -> None:
    """An untrusted run's answer is not used, and its conversation is not continued."""
    run = run_to_end(engine, "answer Secret.")
    unmark(run_dir(engine, run))
    with pytest.raises(SubdeckError, match="is not trusted"):
        engine.launch([request("look at {previous}", previous=run.run_id)], background=False)
    session = run.meta.child_session_id
    assert session
    with pytest.raises(SubdeckError, match="is not trusted"):
        engine.launch([request("go on", child_session=session)], background=False)
    assert [run.run_id] == [seen.run_id for seen in engine.snapshots()]


def test_a_session_path_is_believed_by_where_it_lies(engine: Engine, tmp_path: Path) -> None:
    """A record with a conversation path elsewhere, or a link there, is not used as a conversation."""
    secret = tmp_path / "id_rsa"
    secret.write_text("PRIVATE KEY")
    run = run_to_end(engine, "answer ok")
    directory, session = run_dir(engine, run), run.meta.child_session_id
    rewrite_meta(directory, sessionPath=str(secret))
    continued = engine.launch([request("answer ok", child_session=session)], background=False)[0]
    wait_for_end(engine, continued.run_id)
    assert b"PRIVATE" not in (run_dir(engine, continued) / paths.CHILD_SESSION).read_bytes()
    for each in (directory, run_dir(engine, continued)):
        (each / paths.CHILD_SESSION).unlink()
        (each / paths.CHILD_SESSION).symlink_to(secret)
    with pytest.raises(SubdeckError, match="no agent session"):
        engine.launch([request("answer ok", child_session=session)], background=False)
    rewrite_meta(directory, sessionPath=str(secret), sessionLock=f"{secret}.lock")
    with pytest.raises(SubdeckError, match="no agent session"):
        engine.launch([request("answer ok", child_session=session)], background=False)


def test_no_rule_deletes_it(engine: Engine) -> None:
    """Clean-up by age, number or size skips untrusted runs, by settings and by hand, and reports their number."""
    own, foreign = make_finished(engine.project), make_finished(engine.project)
    unmark(Path(engine.project.run_dir(foreign.run_id)))
    selection, cleaned = deletion.apply_retention(
        engine.project, Retention(days=0, keep=0, max_mb=0), NOW.timestamp() + 9
    )
    assert ((own.run_id,), 1, 0) == (cleaned.moved, selection.foreign, selection.needed)
    cleaned = deletion.clean(engine.project, [foreign.run_id], for_good=True)
    assert () == cleaned.moved
    assert "is not trusted" in cleaned.left[0][1]
    done = subdeck("rm", "--keep", "0", "--yes", "--json", cwd=Path(engine.project.root))
    assert (1, []) == (done.document["foreign"], done.document["moved"])


@pytest.mark.parametrize("way", WAYS)
def test_it_is_deleted_by_name(engine: Engine, way: Callable[[Path], None]) -> None:
    """An untrusted run can be deleted by name even while it is held; a process that it names lives on."""
    victim = subprocess.Popen(["sleep", "1000"])
    directory = open_run(engine, runner=facts(pid=victim.pid, pid_started=processes.start_time(victim.pid)))
    lock = os.open(directory / paths.LOCK, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_SH)
    way(directory)
    assert (directory.name,) == engine.delete([directory.name])
    assert () == engine.snapshots()
    assert lives(victim.pid)
    assert (directory.name,) == engine.restore([directory.name])
    assert [True] == [run.foreign for run in engine.snapshots()]
    os.close(lock)
    victim.kill()
    victim.wait()


def test_a_pid_is_believed_only_of_the_runs_own_process(engine: Engine) -> None:
    """A pid from `runner.json` is signalled only if the process has the run's mark or its lock."""
    victim = subprocess.Popen(["sleep", "1000"])
    directory = open_run(engine, runner=facts(pid=victim.pid, pid_started=processes.start_time(victim.pid)))
    lock = os.open(directory / paths.LOCK, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_SH)
    assert (directory.name,) == engine.stop([directory.name], force=True)
    assert (directory / paths.STOP).exists()
    assert lives(victim.pid)
    victim.kill()
    victim.wait()
    for holder in (
        subprocess.Popen(["sleep", "1000"], pass_fds=(lock,)),
        subprocess.Popen(["sleep", "1000"], env=os.environ | {processes.RUN_MARK: directory.name}),
    ):
        known = processes.start_time(holder.pid)
        write_runner(str(directory), facts(pid=holder.pid, pid_started=known and known + 1))
        engine.stop([directory.name])
        assert lives(holder.pid)
        write_runner(str(directory), facts(pid=holder.pid, pid_started=known))
        engine.stop([directory.name])
        assert -signal.SIGTERM == holder.wait()
    os.close(lock)


# --- contents of records ---------------------------------------------------------------------------------------------


def test_a_copied_run_hides_no_other(engine: Engine) -> None:
    """A run's id is its directory's name: a copy under another name is a separate untrusted run."""
    run = run_to_end(engine, "answer ok")
    copy = run_dir(engine, run).with_name("20260101-000000-abcdef")
    copy_run(engine, run, copy)
    assert {run.run_id: False, copy.name: True} == {seen.run_id: seen.foreign for seen in engine.snapshots()}


@pytest.mark.parametrize(
    "fields", [{"status": "running"}, {"status": "queued", "reason": "running"}, {"reason": "lost"}]
)
def test_a_result_that_is_no_end(engine: Engine, fields: dict[str, str]) -> None:
    """A result whose status is not final, or does not match its reason, is damaged: the run does not run forever."""
    meta = make_finished(engine.project)
    path = Path(engine.project.run_dir(meta.run_id), paths.RESULT)
    path.write_text(json.dumps(json.loads(path.read_bytes()) | fields))
    (run,) = engine.wait([meta.run_id], timeout=10)
    assert ("failed", "lost") == (run.status, run.reason)
    assert "result.json is damaged" in end_of(run).message
    assert engine.result(meta.run_id) is None


# --- trusting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [unmark, forge, other_key])
def test_an_adopted_run_is_ones_own(engine: Engine, way: Callable[[Path], None]) -> None:
    """A trusted run is finished, stopped and cleaned up as any other; trusting it writes only its record."""
    directory = open_run(engine)
    way(directory)
    before = contents(directory)
    engine.adopt([directory.name])
    after = contents(directory)
    assert ownership.is_own(str(directory))
    assert before | {paths.META: after[paths.META]} == after
    (run,) = engine.snapshots()
    assert (False, "lost") == (run.foreign, run.reason)


def test_a_copy_can_be_adopted(engine: Engine) -> None:
    """A trusted copy gets the directory's name and its own conversation."""
    run = run_to_end(engine, "answer ok")
    copy = run_dir(engine, run).with_name("20260101-000000-abcdef")
    copy_run(engine, run, copy)
    engine.adopt([copy.name])
    meta = engine.meta(copy.name)
    assert (copy.name, str(copy / paths.CHILD_SESSION)) == (meta.run_id, meta.session_path)
    assert {False} == {seen.foreign for seen in engine.snapshots()}


def test_adopting_forgets_a_strange_conversation(engine: Engine, tmp_path: Path) -> None:
    """Trusting a run drops a conversation path elsewhere."""
    secret = tmp_path / "id_rsa"
    secret.write_text("PRIVATE KEY")
    directory = open_run(engine, session_path=str(secret), session_lock=str(secret))
    unmark(directory)
    engine.adopt([directory.name])
    assert engine.meta(directory.name).session_path is None


def test_an_old_run_can_be_adopted_and_stopped(engine: Engine) -> None:
    """A run with a wrapper of an earlier version can be trusted and stopped."""
    run = start(engine, "ask-for-more Looking.", "wait-for never")
    started(engine, run)
    unmark(run_dir(engine, run))
    engine.adopt([run.run_id])
    assert (run.run_id,) == engine.stop([run.run_id])
    assert "stopped" == wait_for_end(engine, run.run_id).reason


def a_link(directory: Path) -> None:
    (directory / "notes").symlink_to("/etc/passwd")


def a_pipe(directory: Path) -> None:
    os.mkfifo(directory / "notes")


def a_hard_link(directory: Path) -> None:
    os.link(directory / paths.PROMPT, directory.parent / "elsewhere")


def a_directory(directory: Path) -> None:
    (directory / "notes").mkdir()


def a_file_of_another(directory: Path) -> None:
    os.chown(directory / paths.PROMPT, 65534, -1)


@pytest.mark.parametrize(
    "way",
    [
        *(a_link, a_pipe, a_hard_link, a_directory, by_link, break_meta, no_meta),
        *(pytest.param(way, marks=ROOT_ONLY) for way in (a_file_of_another, give_away)),
    ],
)
def test_what_is_not_adopted(engine: Engine, way: Callable[[Path], None]) -> None:
    """A run with irregular or another user's files, or with an unreadable record, cannot be trusted."""
    directory = open_run(engine)
    unmark(directory)
    way(directory)
    before = contents(directory) if way is not a_pipe else {}
    with pytest.raises(SubdeckError, match="cannot be trusted: "):
        engine.adopt([directory.name])
    assert way is a_pipe or before == contents(directory)
    assert not ownership.is_own(str(directory))


def test_those_who_follow_see_it(engine: Engine) -> None:
    """An open app shows that a finished run was trusted."""
    meta = make_finished(engine.project)
    unmark(Path(engine.project.run_dir(meta.run_id)))
    with following(engine) as followed:
        assert followed.runs[meta.run_id].foreign
        engine.adopt([meta.run_id])
        followed.wait_for(meta.run_id, lambda run: not run.foreign, "the run to be one's own")
        assert 1 == followed.updates[-1].counts.total


@pytest.mark.parametrize("comes", ["before", "later"])
def test_a_trusted_run_has_not_just_ended(engine: Engine, comes: str) -> None:
    """The end of an untrusted run is not news when it is trusted, whenever its directory came."""
    meta = make_finished(engine.project)
    directory = Path(engine.project.run_dir(meta.run_id))
    unmark(directory)
    aside = directory.rename(Path(engine.project.root, "aside"))
    if comes == "before":
        aside.rename(directory)
    with following(engine) as followed:
        if comes == "later":
            aside.rename(directory)
            followed.wait_for(meta.run_id, lambda run: run.foreign, "the untrusted run to be seen")
        engine.adopt([meta.run_id])
        followed.wait_for(meta.run_id, lambda run: not run.foreign, "the run to be one's own")
    assert [] == followed.ended


# --- on the command line ---------------------------------------------------------------------------------------------


def test_status_says_foreign(engine: Engine) -> None:
    """An untrusted run is marked in the row, beside the counts, below a named run, and in the document."""
    directory = open_run(engine)
    unmark(directory)
    place = Path(engine.project.root)
    listed = subdeck("status", cwd=place).out
    assert "◇ untrusted" in listed
    assert listed.endswith("\n0 runs; 1 untrusted, not counted\n")
    named = subdeck("status", directory.name, cwd=place)
    assert "it has no signature" in named.out
    document = subdeck("status", "--json", cwd=place).document
    assert [True] == [run["foreign"] for run in document["runs"]]
    assert 0 == document["counts"]["total"]


def test_adopt_asks_first(engine: Engine) -> None:
    """Without a terminal and without --yes no run is trusted, and the error has a way out."""
    directory = open_run(engine)
    unmark(directory)
    place = Path(engine.project.root)
    for words in (("adopt", directory.name), ("adopt", directory.name, "--json")):
        refused = subdeck(*words, cwd=place)
        assert 2 == refused.code
        assert "--yes" in refused.err
    assert not ownership.is_own(str(directory))
    done = subdeck("adopt", directory.name, "--yes", cwd=place)
    assert (0, f"{directory.name[-6:]} is trusted now\n") == (done.code, done.out)
    again = subdeck("adopt", directory.name, "--json", cwd=place)
    assert {"adopted": [], "own": [directory.name]} == again.document


def test_refusals_name_the_way_out(engine: Engine) -> None:
    """`stop` and `attach` report that the run is untrusted, why, and how to trust it."""
    directory = open_run(engine)
    unmark(directory)
    for command in ("stop", "attach"):
        refused = subdeck(command, directory.name, "--json", cwd=Path(engine.project.root)).error
        assert "is not trusted: it has no signature" in refused["what"]
        assert f"subdeck adopt {directory.name[-6:]}" in refused["hint"]


def test_a_key_that_cannot_be_used(engine: Engine) -> None:
    """With an unusable key runs are listed as untrusted with the reason, and nothing can be launched."""
    directory = open_run(engine)
    Path(paths.key_file()).chmod(0o644)
    (run,) = engine.snapshots()
    assert run.foreign
    assert "other users can access it" in explain(run, DiagnosisReader(engine.project, run.run_id).read(run), NOW)
    assert ["other users can access it" in problem.what for problem in engine.check(request("answer ok"))] == [True]
    with pytest.raises(SubdeckError, match="other users can access it"):
        engine.launch([request("answer ok")], background=False)
    assert [directory.name] == [seen.run_id for seen in engine.snapshots()]
