"""A broken record is shown in its run's row; that run can be read and removed, and all other runs are listed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.project.diagnosis import DiagnosisReader, Evidence, explain
from subdeck.core.run import describe
from subdeck.core.run.markdown import run_markdown
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.system import processes

from tests.core.command_line import subdeck
from tests.factories import make_finished, make_meta, make_run, open_engine

pytestmark = pytest.mark.usefixtures("forked_commands")

BROKEN: dict[str, bytes] = {
    "empty": b"",
    "cut": b'{"runId": "x',
    "not UTF-8": b'{"runId": "\xff", "type": "assistant_text", "text": "\xff", "sentence": "\xff", "by": "\xff"}',
    "deep": b"[" * 5000,
    "deep within": b'{"type": "tool_call", "sentence": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
    "another type": b'"text"',
    "null": b"null",
    "wrong types": b'{"runId": 5, "type": 7, "seq": "x", "sentence": [], "by": {}, "pid": "1", "task": null}',
    "NaN": b'{"seq": NaN}',
    "1e308": b'{"seq": 1e308, "pid": 1e308, "force": 1e308, "usage": {"cost": 1e308}, "type": "x"}',
    "huge": b'{"seq": ' + b"9" * 4000 + b', "pid": 99999999999999999999, "type": "x"}',
    "endless": b'{"seq": ' + b"9" * 9000 + b', "type": "x"}',
    "negative": b'{"seq": -1, "pid": -1, "kind": "process", "host": "", "bootId": "", "pidNamespace": "", "type": "x"}',
    "half a pair": b'{"runId": "\\ud800", "type": "assistant_text", "text": "\\ud800", "sentence": "\\udfff"}',
    "NUL": b"\0" * 100,
}


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


@pytest.fixture
def good(engine: Engine) -> str:
    return make_finished(engine.project).run_id


@pytest.fixture
def live(engine: Engine) -> Iterator[str]:
    """A run held by this process, with an activity file."""
    meta, lock = make_run(engine.project)
    yield meta.run_id
    os.close(lock)


def seen(engine: Engine, run_id: str) -> RunSnapshot:
    (run,) = (run for run in engine.snapshots() if run.run_id == run_id)
    return run


def look_at(engine: Engine, run: RunSnapshot) -> str:
    """Read a run in every way that the engine has; return the line that says why it is not done."""
    now = datetime.now(UTC)
    reader = DiagnosisReader(engine.project, run.run_id)
    evidence = Evidence(result=engine.result(run.run_id)) if run.has_ended else reader.read(run)
    assert describe.state(run)
    assert describe.elapsed(run, now)
    assert describe.doing(run)
    assert "".join(run_markdown(run, engine.events(run.run_id), engine.result(run.run_id)))
    return explain(run, evidence, now)


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", [paths.META, paths.RESULT])
def test_a_record_of_a_finished_run(engine: Engine, good: str, name: str, what: str) -> None:
    """A damaged meta or result is named in its run's row, and the run can be read and removed."""
    bad = make_finished(engine.project).run_id
    Path(engine.project.run_dir(bad), name).write_bytes(BROKEN[what])
    run = seen(engine, bad)
    assert {good, bad} == {other.run_id for other in engine.snapshots()}
    assert f"{name} is damaged: " in f"{run.meta.task} {describe.doing(run)}"
    assert look_at(engine, run)
    assert (bad,) == engine.delete([bad])


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", [paths.EVENTS, paths.RUNNER, paths.STOP])
def test_a_record_of_a_lost_run(engine: Engine, good: str, name: str, what: str) -> None:
    """A damaged record keeps no lost run from its result, nor from being removed."""
    meta, lock = make_run(engine.project)
    os.close(lock)
    Path(engine.project.run_dir(meta.run_id), name).write_bytes(BROKEN[what] + b"\n")
    run = seen(engine, meta.run_id)
    assert ("failed", "lost") == (run.status, run.reason)
    assert look_at(engine, run)
    assert {good, meta.run_id} == {other.run_id for other in engine.snapshots()}
    assert (meta.run_id,) == engine.delete([meta.run_id])


@pytest.mark.parametrize("what", BROKEN)
def test_a_meta_without_a_result(engine: Engine, good: str, what: str) -> None:
    """A run without a readable meta has no signature: it is never finished, but shows the reason and can be removed."""
    meta, lock = make_run(engine.project)
    os.close(lock)
    Path(engine.project.run_dir(meta.run_id), paths.META).write_bytes(BROKEN[what])
    run = seen(engine, meta.run_id)
    assert not run.has_ended
    assert "meta.json is damaged: " in run.meta.task
    assert look_at(engine, run)
    assert {good, meta.run_id} == {other.run_id for other in engine.snapshots()}
    assert (meta.run_id,) == engine.delete([meta.run_id])


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("name", [paths.EVENTS, paths.RUNNER, paths.STOP, "active"])
def test_a_record_of_a_living_run(engine: Engine, good: str, live: str, name: str, what: str) -> None:
    """A damaged record does not hide a held run, nor prevent a stop request."""
    path = os.path.join(engine.project.active, live) if name == "active" else f"{engine.project.run_dir(live)}/{name}"
    Path(path).write_bytes(BROKEN[what] + b"\n")
    assert {good, live} == {other.run_id for other in engine.snapshots()}
    run = seen(engine, live)
    assert not run.has_ended
    why = look_at(engine, run)
    if name == "active":
        assert [] == [other for other in run.warnings if "record in active/" not in other]
        assert (what != "empty") is bool(run.warnings) is describe.doing(run).startswith("its record")
    elif name in (paths.RUNNER, paths.STOP):
        assert f"{name} is damaged: " in why
    assert (live,) == engine.stop([live])


def test_a_session_file(engine: Engine) -> None:
    """Invalid lines of a session file are skipped; the other lines count."""
    meta = make_meta(background=True)
    make_finished(engine.project, meta)
    engine._session.add_run(meta)
    path = Path(engine.project.session_file("operator"))
    path.write_bytes(b"\n".join([*BROKEN.values(), path.read_bytes(), *BROKEN.values(), b""]))
    assert [meta.run_id] == [run.run_id for run in engine.unseen()]
    assert engine.claim(engine.unseen()[0])
    assert () == engine.unseen()


@pytest.mark.processes
def test_the_commands(engine: Engine, good: str, project_dir: Path) -> None:
    """A byte that is not UTF-8 causes no traceback in any command: list, one run, logs, stop, removal."""
    meta, lock = make_run(engine.project)
    directory = Path(engine.project.run_dir(meta.run_id))
    broken = b'{"type": "assistant_text", "text": "\xff"}\n'
    for path in (directory / paths.EVENTS, Path(engine.project.active, meta.run_id)):
        path.write_bytes(broken)
    bad = meta.run_id
    assert 0 == subdeck("stop", bad, cwd=project_dir).code
    (directory / paths.META).write_bytes(broken)
    for words in (["status"], ["status", "--json"], ["status", bad], ["logs", bad], ["logs", "--json", bad],
                  ["logs", "--markdown", bad]):  # fmt: skip
        done = subdeck(*words, cwd=project_dir)
        assert (0, "") == (done.code, done.err.replace("transcript.log has not been written yet\n", "")), words
    assert all(run_id[-6:] in subdeck("status", cwd=project_dir).out for run_id in (good, bad))
    os.close(lock)
    for words in (["rm", bad], ["rm", "--undo", bad], ["clean", "--keep", "0", "--yes"], ["rm", bad]):
        done = subdeck(*words, cwd=project_dir)
        assert (0, "") == (done.code, done.err), words
    assert () == engine.snapshots()


def test_a_pid_that_is_a_group_is_never_signalled(engine: Engine, live: str) -> None:
    """A pid of 0 or below, which kill would apply to a process group, makes a record damaged."""
    facts = (
        f'{{"kind":"process","host":"{processes.host()}","bootId":"{processes.boot_id()}",'
        f'"pidNamespace":"{processes.pid_namespace()}","pid":0}}'
    )
    Path(engine.project.run_dir(live), paths.RUNNER).write_text(facts)
    assert "runner.json is damaged: pid: " in look_at(engine, seen(engine, live))
    assert (live,) == engine.stop([live])
