"""Which old runs are removed, their disk usage, and their removal."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.config.settings import Retention
from subdeck.core.paths import Project
from subdeck.core.project.session import SessionFile
from subdeck.core.project.trash import DAY, MB, Stock, Stored, choose, read_stock
from subdeck.core.run.describe import size_text
from subdeck.core.run.model import RunMeta
from subdeck.core.system.directory import Directory
from subdeck.core.work.deletion import apply_retention, clean

from tests.factories import make_finished, make_meta, make_run, make_snapshot

NOW = 1_800_000_000.0


def stored(number: int, size: int = MB, *, finished: bool = True) -> Stored:
    """A run that ended `number` days ago."""
    return Stored(f"20260101-000000-{number:06x}", size, NOW - number * DAY if finished else None)


def taken(rule: Retention, *runs: Stored, needed: tuple[int, ...] = ()) -> list[int]:
    """Return the ages in days of the removed runs, in their order of removal."""
    ids = {stored(number).run_id for number in needed}
    return [int(run.run_id[-6:], 16) for run in choose(Stock(runs), rule, NOW, ids).going]


RUNS = tuple(stored(number) for number in (3, 1, 5, 2, 4))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (Retention(), []),
        (Retention(days=3), [5, 4]),
        (Retention(days=0.5), [5, 4, 3, 2, 1]),
        (Retention(days=30), []),
        (Retention(keep=2), [5, 4, 3]),
        (Retention(keep=0), [5, 4, 3, 2, 1]),
        (Retention(keep=9), []),
        (Retention(max_mb=3), [5, 4]),
        (Retention(max_mb=2.5), [5, 4, 3]),
        (Retention(max_mb=0), [5, 4, 3, 2, 1]),
        (Retention(max_mb=99), []),
        (Retention(days=4.5, keep=4, max_mb=3), [5, 4]),
        (Retention(days=4.5, keep=2, max_mb=99), [5, 4, 3]),
    ],
)
def test_rules(rule: Retention, expected: list[int]) -> None:
    """Each rule selects the oldest runs; a run is removed if any rule selects it."""
    assert taken(rule, *RUNS) == expected


def test_unfinished_runs_never_go() -> None:
    """A running run stays under every rule, and its size counts."""
    going_on = stored(9, 10 * MB, finished=False)
    selection = choose(Stock((*RUNS, going_on)), Retention(days=0, keep=0, max_mb=0), NOW)
    assert len(selection.going) == 5
    assert selection.unfinished == 1
    assert taken(Retention(max_mb=12), *RUNS, going_on) == [5, 4, 3]


def test_needed_runs_never_go() -> None:
    """A needed run stays and is counted; a size limit then removes other runs instead, a number limit does not."""
    assert taken(Retention(days=3), *RUNS, needed=(5, 1)) == [4]
    assert taken(Retention(keep=2), *RUNS, needed=(4,)) == [5, 3]
    assert taken(Retention(max_mb=3), *RUNS, needed=(5,)) == [4, 3]
    selection = choose(Stock(RUNS), Retention(max_mb=3, days=3), NOW, {stored(5).run_id})
    assert (selection.needed, selection.size) == (1, 2 * MB)


def test_unreported_ends_are_counted() -> None:
    """A selection counts its unreported ends."""
    stock = Stock(RUNS, unreported=frozenset({stored(5).run_id, stored(1).run_id}))
    assert choose(stock, Retention(days=3), NOW).unreported == 1


def test_a_clock_that_went_back() -> None:
    """A run that ended in the future is the newest, not an error."""
    ahead = Stored("20260101-000000-ffffff", MB, NOW + DAY)
    assert taken(Retention(days=3, keep=1), ahead, *RUNS) == [5, 4, 3, 2, 1]


def test_ten_thousand_runs() -> None:
    """A selection from ten thousand runs adds up."""
    runs = tuple(stored(number) for number in range(10_000))
    selection = choose(Stock(runs), Retention(keep=100, max_mb=50), NOW)
    assert (len(selection.going), selection.size) == (9950, 9950 * MB)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (10_240, "10 KB"), (1.5 * MB, "1.5 MB"), (5000 * MB, "4.9 GB")],
)
def test_sizes_in_words(size: float, text: str) -> None:
    """Sizes have three digits."""
    assert size_text(size) == text


# --- on the disk -------------------------------------------------------------------------------------------------


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


def finished(project: Project, days: float = 0.0, *, kilobytes: int = 0) -> RunMeta:
    meta = make_finished(project)
    run_dir = Path(project.run_dir(meta.run_id))
    if kilobytes:
        (run_dir / "stdout.log").write_bytes(b"x" * 1024 * kilobytes)
    then = time.time() - days * DAY
    os.utime(run_dir / paths.RESULT, (then, then))
    return meta


def test_the_stock(project: Project) -> None:
    """Every run has its disk usage, including subdirectories, and its end time; half-made runs are not listed."""
    old, big = finished(project, 3), finished(project, kilobytes=500)
    going_on, lock = make_run(project)
    os.close(lock)
    for meta in (big, going_on):
        nested = Path(project.run_dir(meta.run_id), "deep", "er")
        nested.mkdir(parents=True)
        (nested / "result.json").write_bytes(b"x" * 300_000)
    (nested / "loop").symlink_to("/")
    Path(project.runs, ".20260101-000000-aaaaaa").mkdir()
    Path(project.runs, "notes.txt").write_text("mine")
    runs = {run.run_id: run for run in read_stock(project).runs}
    assert set(runs) == {old.run_id, big.run_id, going_on.run_id}
    assert runs[going_on.run_id].ended is None
    ended = runs[old.run_id].ended
    assert ended is not None and abs(time.time() - 3 * DAY - ended) < 60
    assert runs[big.run_id].size - runs[old.run_id].size >= 800_000
    assert 0 < runs[old.run_id].size < 200_000


def test_the_stock_of_a_new_project(project: Project) -> None:
    """Reading a project without runs gives an empty stock, and creates nothing."""
    assert read_stock(project) == Stock(())
    assert not os.path.exists(project.home)


def test_unreported_ends_are_read_from_the_sessions(project: Project) -> None:
    """A background run is unreported until its session was notified; unknown files there are ignored."""
    told, unreported = finished(project), finished(project)
    session = SessionFile(project, "pi-1")
    for meta in (told, unreported):
        session.add_run(meta)
    session.claim(make_snapshot(told))
    Path(project.sessions, "not ours.jsonl").write_text("{}\n")
    assert read_stock(project).unreported == {unreported.run_id}


def test_to_the_trash_and_for_good(project: Project) -> None:
    """Runs go to the trash, where their size still counts, or at once for good."""
    one, other = finished(project, kilobytes=100), finished(project)
    before = read_stock(project).size
    assert clean(project, [one.run_id], for_good=False).moved == (one.run_id,)
    stock = read_stock(project)
    assert stock.size + stock.trash_size == before
    assert [run.run_id for run in stock.trash] == [one.run_id]
    assert clean(project, [other.run_id], for_good=True).moved == (other.run_id,)
    assert [run.run_id for run in read_stock(project).trash] == [one.run_id]
    assert read_stock(project).runs == ()


def test_what_cannot_go_keeps_nothing_else(project: Project) -> None:
    """A held run stays and is named; a run that has gone is skipped."""
    gone, other = finished(project), finished(project)
    held, lock = make_run(project)
    clean(project, [gone.run_id], for_good=True)
    cleaned = clean(project, [gone.run_id, held.run_id, other.run_id], for_good=True)
    os.close(lock)
    assert cleaned.moved == (other.run_id,)
    assert [run_id for run_id, _ in cleaned.left] == [held.run_id]
    assert "still held" in cleaned.left[0][1]
    assert os.path.isdir(project.run_dir(held.run_id))


def test_hostile_names_are_no_paths(project: Project) -> None:
    """A name that is not a run id is never removed."""
    cleaned = clean(project, ["../../..", "/etc"], for_good=True)
    assert [run_id for run_id, _ in cleaned.left] == ["../../..", "/etc"]


def test_by_itself_it_spares_what_nobody_was_told_of(project: Project) -> None:
    """The settings' automatic rules remove no run with an unreported end, and only move runs to the trash."""
    old, unreported = finished(project, 40), finished(project, 50)
    new = finished(project)
    SessionFile(project, "operator").add_run(unreported)
    selection, cleaned = apply_retention(project, Retention(days=30), time.time())
    assert (cleaned.moved, selection.needed) == ((old.run_id,), 1)
    assert {run.run_id for run in read_stock(project).runs} == {new.run_id, unreported.run_id}
    assert [run.run_id for run in read_stock(project).trash] == [old.run_id]


def test_a_directory_that_goes_while_it_is_measured(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run removed while the stock is read is skipped."""
    there, gone = finished(project), make_meta()
    monkeypatch.setattr(Directory, "names", lambda _: [gone.run_id, there.run_id])
    assert [run.run_id for run in read_stock(project).runs] == [there.run_id]
    assert read_stock(project).trash == ()
