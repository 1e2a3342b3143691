"""Results count only with the signature of the user whose subdeck wrote them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.project import trash
from subdeck.core.project.liveness import Proof, reconcile
from subdeck.core.project.ownership import adopt
from subdeck.core.run import artifacts, proven, signature
from subdeck.core.run.events import RunEnded, encode_event
from subdeck.core.run.model import RunReason, RunResult, StopRequest
from subdeck.core.search.pattern import Pattern
from subdeck.core.search.scan import search

from tests.factories import make_meta, make_result, make_run, open_engine, result_of, run_dir, run_to_end


def record_of(result: RunResult) -> bytes:
    """Return a result's file content without a signature."""
    return msgspec.json.format(msgspec.json.encode(result), indent=1)


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


@pytest.fixture
def forged(engine: Engine) -> tuple[Path, int]:
    """A held run with a result that its agent wrote."""
    meta, lock = make_run(engine.project, make_meta(result_signed=True))
    directory = Path(engine.project.run_dir(meta.run_id))
    (directory / paths.RESULT).write_bytes(record_of(make_result(meta.run_id, final_text="ALL TESTS PASS")))
    return directory, lock


@pytest.mark.processes
def test_new_results_are_signed(engine: Engine) -> None:
    """A new run's meta announces a signed result, and the result is signed."""
    run = run_to_end(engine, "answer ok")
    assert run.meta.result_signed
    assert b'"mark": "' in (run_dir(engine, run) / paths.RESULT).read_bytes()
    assert "done" == result_of(engine, run).reason


def test_a_result_without_a_signature_is_none(engine: Engine, forged: tuple[Path, int]) -> None:
    """A run whose agent wrote a result stays alive, and no search finds the forged text."""
    directory, lock = forged
    (seen,) = engine.snapshots()
    assert not seen.has_ended and not seen.foreign
    assert artifacts.read_result(str(directory)) is None
    assert not list(search(engine.project.runs, [directory.name], Pattern("ALL TESTS"), lambda: False))
    (stored,) = trash.read_stock(engine.project).runs
    assert stored.ended is None
    os.close(lock)


def test_who_finishes_the_run_moves_it_aside(engine: Engine, forged: tuple[Path, int]) -> None:
    """A run without a holder ends with its real outcome, and the forged result is kept beside it."""
    directory, lock = forged
    os.close(lock)
    (seen,) = engine.snapshots()
    assert ("failed", "lost") == (seen.status, seen.reason)
    assert b"ALL TESTS PASS" in (directory / "result.json.rejected-1").read_bytes()


@pytest.mark.parametrize("is_prepared", [False, True])
def test_one_that_is_forged_at_the_last_moment(forged: tuple[Path, int], is_prepared: bool) -> None:
    """A result forged at the last moment is moved aside, and the run ends with the real one."""
    directory, lock = forged
    end = make_result(directory.name, RunReason.STOPPED)
    if is_prepared:
        artifacts.prepare_result(str(directory), end)
        assert artifacts.publish_result(str(directory))
    else:
        assert artifacts.write_result(str(directory), end)
    result = artifacts.read_result(str(directory))
    assert result and result.reason is RunReason.STOPPED
    assert b"ALL TESTS PASS" in (directory / "result.json.rejected-1").read_bytes()
    os.close(lock)


@pytest.mark.parametrize("is_gone", [False, True])
def test_an_end_that_comes_while_a_forged_one_is_moved(
    engine: Engine, forged: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
    """A real result that replaces the forged one while that is moved is restored, and stays the only one.

    If the place is empty by then nothing is moved.
    """
    directory, lock = forged
    look = proven.has_result

    def has_result(run_dir: str, *, certain: bool = False) -> bool:
        had = look(run_dir, certain=certain)
        (directory / paths.RESULT).unlink(missing_ok=True)
        if not had and not is_gone:
            artifacts.write_result(run_dir, make_result(directory.name, RunReason.STOPPED))
        return had

    monkeypatch.setattr(proven, "has_result", has_result)
    assert is_gone is proven.reject_result(str(directory))
    monkeypatch.undo()
    result = artifacts.read_result(str(directory))
    assert (None if is_gone else RunReason.STOPPED) == (result and result.reason)
    assert not list(directory.glob("*.rejected-*"))
    os.close(lock)


@pytest.mark.processes
def test_all_names_for_what_is_moved_aside_are_taken(engine: Engine) -> None:
    """A run ends even if each name for rejected results is taken, the last one by a tree too deep to be removed."""
    meta, lock = make_run(engine.project, make_meta(result_signed=True))
    directory = Path(engine.project.run_dir(meta.run_id))
    (directory / paths.RESULT).write_text("forged")
    for number in range(1, 20):
        (directory / f"{paths.RESULT}.rejected-{number}").touch()
    deep = directory / f"{paths.RESULT}.rejected-20"
    subprocess.run(["mkdir", "-p", f"{deep}/{'a/' * 1500}"], check=True)  # deeper than Python can make it
    os.close(lock)
    try:
        assert Proof.FINISHED is reconcile(engine.project, meta.run_id, by="test")
        result = artifacts.read_result(str(directory))
        assert result and result.reason is RunReason.LOST
        assert "forged" in [path.read_text() for path in directory.glob(f"{paths.RESULT}.rejected-*") if path.is_file()]
    finally:
        subprocess.run(["rm", "-rf", str(deep)], check=True)


@pytest.mark.processes
@pytest.mark.parametrize(
    "kind", ["pipe", "directory", "link to outside", "link to another run", "broken link", "device"]
)
def test_whatever_stands_there_is_moved_itself(engine: Engine, tmp_path: Path, kind: str) -> None:
    """A pipe, a directory or a link in place of a result is moved aside; a link's target stays unchanged."""
    other = run_dir(engine, run_to_end(engine, "answer other"))
    outside = tmp_path / "outside"
    outside.write_text("mine")
    before = (other / paths.RESULT).read_bytes()
    meta, lock = make_run(engine.project, make_meta(result_signed=True))
    path = Path(engine.project.run_dir(meta.run_id), paths.RESULT)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            (path / "full").mkdir(parents=True)
        case "link to outside":
            path.symlink_to(outside)
        case "link to another run":
            path.symlink_to(other / paths.RESULT)
        case "broken link":
            path.symlink_to(tmp_path / "nowhere")
        case _:
            path.symlink_to("/dev/zero")
    assert Proof.ALIVE is reconcile(engine.project, meta.run_id, by="test", patience=0)
    os.close(lock)
    assert Proof.FINISHED is reconcile(engine.project, meta.run_id, by="test")
    result = artifacts.read_result(str(path.parent))
    assert result and result.reason is RunReason.LOST
    assert os.path.lexists(path.with_name("result.json.rejected-1"))
    assert "mine" == outside.read_text() and before == (other / paths.RESULT).read_bytes()
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.processes
def test_the_result_of_another_run(engine: Engine) -> None:
    """A signed result copied from another run does not count."""
    other = run_dir(engine, run_to_end(engine, "answer other"))
    meta, lock = make_run(engine.project, make_meta(result_signed=True))
    shutil.copy(other / paths.RESULT, engine.project.run_dir(meta.run_id))
    (seen,) = engine.snapshots([meta.run_id])
    assert not seen.has_ended
    os.close(lock)
    (seen,) = engine.snapshots([meta.run_id])
    assert "lost" == seen.reason


def test_a_record_of_another_kind(engine: Engine) -> None:
    """A signed run record or stop request does not count as a result."""
    meta, lock = make_run(engine.project, make_meta(result_signed=True))
    directory = engine.project.run_dir(meta.run_id)
    artifacts.write_stop(directory, StopRequest(by="me", force=False, at=""))
    for name in (paths.META, paths.STOP):
        shutil.copy(f"{directory}/{name}", f"{directory}/{paths.RESULT}")
        assert Proof.ALIVE is reconcile(engine.project, meta.run_id, by="test", patience=0)
    os.close(lock)


@pytest.mark.processes
def test_any_changed_byte_breaks_it(engine: Engine) -> None:
    """A result changed after it was signed does not count."""
    run = run_to_end(engine, "answer ok")
    path = run_dir(engine, run) / paths.RESULT
    path.write_bytes(path.read_bytes().replace(b'"finalText": "ok"', b'"finalText": "no"'))
    assert artifacts.read_result(str(path.parent)) is None


@pytest.mark.processes
def test_a_signed_result_is_never_replaced(engine: Engine) -> None:
    """A second result is refused, and the signed one stays."""
    run = run_to_end(engine, "answer ok")
    directory = run_dir(engine, run)
    before = (directory / paths.RESULT).read_bytes()
    assert not artifacts.write_result(str(directory), make_result(run.run_id, RunReason.LOST))
    artifacts.prepare_result(str(directory), make_result(run.run_id, RunReason.LOST))
    assert not artifacts.publish_result(str(directory))
    assert before == (directory / paths.RESULT).read_bytes()
    assert not list(directory.glob("*.rejected-*"))


def test_a_forged_end_is_not_believed(engine: Engine) -> None:
    """Unsigned, neither an end in the events nor a prepared result completes a run."""
    meta, lock = make_run(engine.project, make_meta(result_signed=True))
    directory = Path(engine.project.run_dir(meta.run_id))
    end = RunEnded(seq=1, status="completed", reason="done", mark="0" * 32)  # pyright: ignore[reportArgumentType]
    (directory / paths.EVENTS).write_bytes(encode_event(end))
    (directory / artifacts.PREPARED).write_bytes(record_of(make_result(meta.run_id)))
    os.close(lock)
    (seen,) = engine.snapshots()
    assert "lost" == seen.reason


def test_a_forged_request_to_stop_is_not_believed(engine: Engine) -> None:
    """An unsigned stop request does not count."""
    meta, lock = make_run(engine.project, make_meta(result_signed=True))
    directory = engine.project.run_dir(meta.run_id)
    Path(directory, paths.STOP).write_text('{"by": "you", "force": true, "at": ""}')
    assert artifacts.read_stop(directory) is None
    os.close(lock)


def test_an_older_run_keeps_its_rule(engine: Engine) -> None:
    """A run of an earlier version ends with any readable result."""
    meta, lock = make_run(engine.project, make_meta())
    os.close(lock)
    Path(engine.project.run_dir(meta.run_id), paths.RESULT).write_bytes(record_of(make_result(meta.run_id)))
    (seen,) = engine.snapshots()
    assert "done" == seen.reason


@pytest.mark.processes
def test_adopting_signs_the_result(engine: Engine) -> None:
    """A finished run of another user keeps its outcome when it is trusted."""
    run = run_to_end(engine, "answer ok")
    os.unlink(paths.key_file())
    signature.make_key()
    (seen,) = engine.snapshots()
    assert seen.foreign
    adopt(engine.project, run.run_id)
    (seen,) = engine.snapshots()
    assert (False, "done") == (seen.foreign, seen.reason)
