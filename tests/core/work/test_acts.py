"""The stack of acts that can be undone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.errors import RunBusy, SubdeckError
from subdeck.core.paths import Project
from subdeck.core.presets.trash import delete_preset
from subdeck.core.project import trash
from subdeck.core.run.model import PresetSource
from subdeck.core.work import acts, deletion
from subdeck.core.work.acts import last_act, take_back
from subdeck.core.work.operation import ActKind
from subdeck.core.work.records import WorkRecord, all_work_dirs, read_record, work_dirs, write_record

from tests.factories import make_finished, make_meta, make_run, open_engine


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


def stacked(project: Project) -> list[str]:
    return [act.title for act in acts.read(project)]


def test_the_last_is_the_first_out(project: Project) -> None:
    """The last act is named and undone first, and the project directory stores none of them."""
    assert last_act(project) is None
    acts.record(project, ActKind.APPLY, "scout 4ae0bd", {"files": 3})
    merge = acts.record(project, ActKind.MERGE, "scout 7f3a9c", {})
    assert merge == last_act(project)
    assert "merging scout 7f3a9c" == merge.title
    assert acts.drop(project, merge.id) and not acts.drop(project, merge.id)
    assert ["applying scout 4ae0bd"] == stacked(project)
    assert not os.path.exists(project.home)


def test_what_has_begun_is_told_from_what_is_done(project: Project) -> None:
    """A half-done act stands on the stack as begun until it is recorded as done."""
    act = acts.record(project, ActKind.APPLY, "scout 4ae0bd", {"step": 1}, begun=True)
    found = last_act(project)
    assert found is not None and found.begun
    done = acts.finish(project, act, {"step": 2})
    assert [done] == acts.read(project)
    assert (False, {"step": 2}) == (done.begun, done.data)


def test_the_stack_does_not_grow(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest acts leave the stack, with the data kept for them."""
    monkeypatch.setattr(acts, "MOST", 2)
    first = acts.record(project, ActKind.APPLY, "a", {})
    Path(acts.undo_directory(project, first.id), "objects").mkdir(parents=True)
    for name in "bc":
        acts.record(project, ActKind.APPLY, name, {})
    assert ["applying b", "applying c"] == stacked(project)
    assert not os.path.exists(acts.undo_directory(project, first.id))


def test_a_broken_line_hides_no_other(project: Project) -> None:
    """Unreadable lines are skipped, and a name that leads elsewhere is not an act."""
    good = acts.record(project, ActKind.APPLY, "scout 4ae0bd", {})
    file = Path(paths.works_dir(project), "undo.jsonl")
    hostile = file.read_text().replace(good.id, "../../../../precious")
    file.write_text(f"{file.read_text()}{{\n\xff\n{hostile}")
    assert good == last_act(project)
    assert [good] == acts.read(project)


def test_deleted_runs_come_back(project: Project) -> None:
    """A deletion of runs is undone as a whole and then leaves the stack."""
    metas = [make_finished(project) for _ in range(2)]
    run_ids = trash.delete(project, [meta.run_id for meta in metas])
    act = acts.record(project, ActKind.DELETE_RUNS, "2 runs", {"runIds": run_ids})
    assert act.id == (last_act(project) or act).id and act.is_deletion
    back = take_back(project, act)
    assert ("restored 2 runs", run_ids) == (back.outcome, back.run_ids)
    assert [] == acts.read(project)


def test_what_left_the_trash_is_passed_over(project: Project) -> None:
    """A deletion that cannot be undone is not offered; a partial undo reports its count."""
    run_ids = [make_finished(project).run_id for _ in range(3)]
    older = acts.record(project, ActKind.DELETE_RUNS, "2 runs", {"runIds": trash.delete(project, run_ids[:2])})
    acts.record(project, ActKind.DELETE_RUNS, "1 run", {"runIds": trash.delete(project, run_ids[2:])})
    trash.purge(project, run_ids[1:])
    found = last_act(project)
    assert found is not None and older.id == found.id
    with pytest.raises(RunBusy, match="1 of 2 restored"):
        take_back(project, found)
    assert last_act(project) is None


def test_a_deleted_preset_comes_back(project: Project) -> None:
    """The deletion of a preset is on the same stack."""
    file = Path(project.home, "scout.md")
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: scout\n---\n")
    gone = delete_preset(str(file), PresetSource.PROJECT, project)
    acts.record(project, ActKind.DELETE_PRESET, "the preset scout", {"path": gone.path, "kept": gone.kept})
    act = last_act(project)
    assert act is not None and "deleting the preset scout" == act.title
    assert str(file) == take_back(project, act).path
    assert file.exists() and last_act(project) is None


def test_what_only_a_newer_one_can_take_back(project: Project) -> None:
    """An act of unknown kind is refused with an error and stays on the stack."""
    acts.record(project, ActKind("transplant"), "scout 4ae0bd", {})
    act = last_act(project)
    assert act is not None
    with pytest.raises(SubdeckError, match="cannot undo transplant scout 4ae0bd"):
        take_back(project, act)
    assert act == last_act(project)


@pytest.mark.parametrize("kind", [kind for kind in ActKind if not acts.Act("1", kind, "", "").is_deletion])
@pytest.mark.parametrize("data", [{}, {"commonDir": 5, "root": [], "before": None, "name": {}, "runId": 1}])
def test_an_act_whose_data_are_damaged(project: Project, kind: ActKind, data: dict[str, Any]) -> None:
    """An act with damaged data is refused with its record's location, changes nothing and stays on the stack."""
    act = acts.record(project, kind, "reviewer 4ae0bd", data)
    with pytest.raises(SubdeckError, match="reviewer 4ae0bd: its record") as caught:
        take_back(project, act)
    assert caught.value.where == acts.file_of(project) and act.id in caught.value.hint
    assert act == last_act(project)


def test_work_is_found_by_its_record(project: Project, world: Path) -> None:
    """The directory of a run's work identifies its run, even after run or project have moved."""
    run_id = paths.new_run_id()
    directory = paths.work_dir(project, run_id)
    record = WorkRecord(
        run_id=run_id,
        project=project.root,
        root=project.root,
        common_dir=f"{project.root}/.git",
        branch="subdeck/scout-4ae0bd",
        base="0" * 40,
        made_at=paths.now_iso(),
    )
    write_record(directory, record)
    assert record == read_record(directory)
    assert [directory] == list(work_dirs(project)) == list(all_work_dirs())
    os.rename(directory, other := paths.work_dir(project, paths.new_run_id()))
    assert read_record(other) is None
    assert [] == list(work_dirs(Project(str(world))))


def test_the_engine_remembers_what_it_deletes(project_dir: Path) -> None:
    """One deletion is one act, named by its run or a count, and another engine can undo it."""
    engine = open_engine(project_dir)
    one, *others = [make_finished(engine.project, make_meta(preset="scout")).run_id for _ in range(3)]
    engine.delete([one])
    engine.delete(others)
    assert [f"deleting scout {one[-6:]}", "deleting 2 runs"] == stacked(engine.project)
    other = open_engine(project_dir)
    for expected in (2, 1):
        act = other.last_act()
        assert act is not None
        assert expected == len(other.take_back(act).run_ids)
    assert engine.last_act() is None


def test_what_is_remembered_of_a_half_done_deletion(project_dir: Path) -> None:
    """If the second run cannot be moved, the deletion of the first is still on the stack."""
    engine = open_engine(project_dir)
    gone = make_finished(engine.project)
    meta, lock = make_run(engine.project)
    with pytest.raises(RunBusy, match="still held"):
        deletion.delete(engine.project, [gone.run_id, meta.run_id])
    os.close(lock)
    act = engine.last_act()
    assert act is not None and (gone.run_id,) == engine.take_back(act).run_ids


def test_a_deletion_that_cannot_be_remembered(project_dir: Path) -> None:
    """A deletion works without a writable state directory, and the error says how to restore it from the trash."""
    engine = open_engine(project_dir)
    meta = make_finished(engine.project)
    state = Path(paths.state_file())
    state.mkdir(parents=True, exist_ok=True)
    (state / "work").touch()
    with pytest.raises(SubdeckError, match="1 run deleted, but subdeck undo cannot") as refusal:
        engine.delete([meta.run_id])
    assert f"subdeck rm --undo {meta.short_id}" in refusal.value.hint
    assert (meta.run_id,) == engine.restore([meta.run_id])
    engine.delete([meta.run_id], for_good=True)


@pytest.mark.processes
def test_a_failing_disk_below_the_stack(project_dir: Path) -> None:
    """`rm` exits with 1 and an error if the disk refuses the data for undo."""
    engine = open_engine(project_dir)
    meta = make_finished(engine.project)

    code = "import os, sys\ndef fail(_): raise OSError(5, os.strerror(5))\nos.fsync = fail\n"
    code += "from subdeck.tui.main import main\nsys.exit(main())"
    argv = (sys.executable, "-c", code, "rm", meta.run_id)
    done = subprocess.run(argv, cwd=project_dir, capture_output=True, text=True, timeout=60)
    assert 1 == done.returncode
    assert "cannot restore it" in done.stderr and "undo.jsonl: Input/output error" in done.stderr
    assert [meta.run_id] == engine.deleted()


def test_a_deletion_that_is_killed(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deletion killed after its first run can be undone from the stack."""
    engine = open_engine(project_dir)
    gone, still_there = (make_finished(engine.project) for _ in range(2))
    seen: list[tuple[bool, bool]] = []
    move = trash.delete

    def killed(project: Project, run_ids: tuple[str, ...]) -> tuple[str, ...]:
        moved = move(project, run_ids)
        (act,) = acts.read(project)
        seen.append((act.begun, Path(acts.file_of(project)).exists()))
        raise KeyboardInterrupt if moved else AssertionError

    monkeypatch.setattr(trash, "delete", killed)
    monkeypatch.setattr(acts, "finish", lambda *_: None)  # as after a kill
    with pytest.raises(KeyboardInterrupt):
        engine.delete([gone.run_id, still_there.run_id])
    assert [(True, True)] == seen
    monkeypatch.undo()
    act = open_engine(project_dir).last_act()
    assert act is not None and act.begun
    assert (gone.run_id,) == open_engine(project_dir).take_back(act).run_ids
    assert engine.last_act() is None


def test_a_clean_up_is_one_act(project_dir: Path) -> None:
    """A clean-up of several runs is one act, undone at once and named by its newest run."""
    engine = open_engine(project_dir)
    run_ids = [make_finished(engine.project).run_id for _ in range(3)]
    deletion.clean(engine.project, run_ids, for_good=False)
    act = engine.last_act()
    assert act is not None and tuple(run_ids[::-1]) == engine.take_back(act).run_ids
