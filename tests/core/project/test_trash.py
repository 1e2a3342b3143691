"""Deleting runs, restoring them, and purging them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import RunBusy, SubdeckError, UnknownRun
from subdeck.core.project import trash

from tests.factories import end_of, make_finished, make_run, open_engine, start, started, wait_for_end


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def ids(engine: Engine) -> set[str]:
    return {run.run_id for run in engine.snapshots()}


def test_delete_and_restore(engine: Engine) -> None:
    """A deleted run is gone from the list with all its files, and is restored whole."""
    meta, other = make_finished(engine.project), make_finished(engine.project)
    before = set(os.listdir(engine.project.run_dir(meta.run_id)))
    assert (meta.run_id,) == engine.delete([meta.run_id])
    assert {other.run_id} == ids(engine)
    assert (meta.run_id,) == engine.restore([meta.run_id])
    assert {meta.run_id, other.run_id} == ids(engine)
    assert before == set(os.listdir(engine.project.run_dir(meta.run_id)))


def test_purge(engine: Engine) -> None:
    """A purged run cannot be restored."""
    meta = make_finished(engine.project)
    engine.delete([meta.run_id])
    engine.purge([meta.run_id])
    assert ((), []) == (engine.restore([meta.run_id]), os.listdir(engine.project.trash))


def test_purging_what_is_old(engine: Engine) -> None:
    """A run deleted a day ago is purged, one deleted just now is not, however old the run is."""
    old, new = make_finished(engine.project), make_finished(engine.project)
    for meta in (old, new):
        os.utime(engine.project.run_dir(meta.run_id), (0, 0))
    engine.delete([old.run_id, new.run_id])
    day_ago = os.stat(os.path.join(engine.project.trash, old.run_id)).st_mtime - trash.KEPT - 1
    os.utime(os.path.join(engine.project.trash, old.run_id), (day_ago, day_ago))
    engine.purge()
    assert [new.run_id] == os.listdir(engine.project.trash)


def test_purging_nothing(engine: Engine) -> None:
    """Without a trash there is nothing to purge, and none is made."""
    engine.purge()
    assert not os.path.exists(engine.project.home)


@pytest.mark.processes
def test_a_run_that_goes_on_stays(engine: Engine) -> None:
    """Deleting a running run is refused with the reason."""
    run = start(engine, "hang")
    started(engine, run)
    with pytest.raises(RunBusy, match="is running"):
        engine.delete([run.run_id])
    assert {run.run_id} == ids(engine)
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)
    assert (run.run_id,) == engine.delete([run.run_id])


def test_a_held_run_stays(engine: Engine) -> None:
    """A run whose lock is held is not moved."""
    meta, lock = make_run(engine.project)
    with pytest.raises(RunBusy, match="still held"):
        trash.delete(engine.project, [meta.run_id])
    os.close(lock)
    assert os.path.isdir(engine.project.run_dir(meta.run_id))


def test_deleting_what_is_gone(engine: Engine) -> None:
    """A run that is already deleted causes no error, and the others are deleted."""
    meta, other = make_finished(engine.project), make_finished(engine.project)
    engine.delete([meta.run_id])
    assert (other.run_id,) == engine.delete([meta.run_id, other.run_id])


@pytest.mark.parametrize("name", ["..", "", ".slots", "../../..", "/etc", "20260101-000000-abcdef/../.."])
def test_only_runs_are_moved_and_removed(engine: Engine, name: str) -> None:
    """A name that is not a run id never becomes a path that is moved or removed."""
    meta = make_finished(engine.project)
    for act in (engine.delete, engine.restore, engine.purge):
        with pytest.raises(UnknownRun, match="not a run id"):
            act([name])
    assert {meta.run_id} == ids(engine)


def test_a_trash_that_cannot_be_made(engine: Engine) -> None:
    """A deletion that the disk refuses names the path, and the run stays."""
    meta = make_finished(engine.project)
    Path(engine.project.trash).touch()
    with pytest.raises(SubdeckError, match="cannot delete the run: trash is a file, not a directory"):
        engine.delete([meta.run_id])
    assert {meta.run_id} == ids(engine)


def test_restoring_over_a_run(engine: Engine) -> None:
    """An existing run is not replaced by one from the trash."""
    meta = make_finished(engine.project)
    engine.delete([meta.run_id])
    make_finished(engine.project, meta, final_text="another")
    assert () == engine.restore([meta.run_id])
    assert "another" == end_of(engine.snapshots()[0]).message


def test_a_deleted_run_takes_its_lock_along(engine: Engine) -> None:
    """Deleting a run releases its lock: the run can be restored and deleted again."""
    meta = make_finished(engine.project)
    for _ in range(3):
        assert (meta.run_id,) == engine.delete([meta.run_id])
        assert (meta.run_id,) == engine.restore([meta.run_id])
