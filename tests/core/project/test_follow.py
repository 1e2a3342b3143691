"""Following a project: the first update, every change, each end once, and no lost event."""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.project import follower as follow
from subdeck.core.project.follower import Update
from subdeck.core.project.registry import Registry
from subdeck.core.run import artifacts
from subdeck.core.run.describe import activity
from subdeck.core.run.events import AssistantText, RunStarted, encode_event
from subdeck.core.run.open_run import OpenRun
from subdeck.core.run.snapshot import Counts
from subdeck.core.system import line_file
from subdeck.core.system.line_file import HeldFile

from tests.factories import (
    ahead_of,
    end_of,
    make_finished,
    make_meta,
    make_result,
    make_run,
    open_engine,
    request,
    run_dir,
    run_to_end,
    start,
    started,
)
from tests.waiting import wait_until

from .following import following

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

IDS = [f"20260101-0000{second:02}-abcdef" for second in range(16)]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def test_the_first_update(engine: Engine) -> None:
    """The first update has the runs, newest first, their counts, and the request to read presets."""
    runs = [run_to_end(engine, "answer one", background=False), run_to_end(engine, "leave 1")]
    with following(engine) as followed:
        first = followed.updates[0]
    newest_first = sorted((run.run_id for run in runs), reverse=True)
    assert newest_first == [run.run_id for run in first.runs]
    assert (Counts(completed=1, failed=1, total=2), Counts(failed=1, total=1)) == (first.counts, first.background)
    assert (True, True, (), ()) == (first.complete, first.presets_changed, first.ended, first.removed)


def test_an_empty_project(engine: Engine, project_dir: Path) -> None:
    """Following a project without runs creates nothing in it, and sees its first run."""
    with following(engine) as followed:
        assert ((), Counts()) == (followed.updates[0].runs, followed.updates[0].counts)
        assert [".git"] == os.listdir(project_dir)
        run = start(engine, "answer ok")
        followed.wait_for(run.run_id, lambda run: run.has_ended, "the run to end")
        assert [run.run_id] == followed.ended


def test_from_start_to_end(engine: Engine, tmp_path: Path) -> None:
    """A run is followed through activity, sentence and usage to its end, which is reported once."""
    gates = [tmp_path / name for name in ("a", "b", "c")]
    script = [
        f"wait-for {gates[0]}",
        "ask-for-more I will look.",
        "tool read",
        "update Half a sen",
        f"wait-for {gates[1]}",
        "answer Done.",
        f"wait-for {gates[2]}",
    ]
    with following(engine) as followed:
        run = start(engine, *script)
        followed.wait_for(run.run_id, lambda run: run.status == "running", "the run to start")
        gates[0].touch()
        seen = followed.wait_for(run.run_id, lambda run: run.sentence, "the sentence being written")
        assert ("Half a sen", 1, 1) == (seen.sentence, seen.usage.turns, seen.usage.tool_uses)
        gates[1].touch()
        gates[2].touch()
        ended = followed.wait_for(run.run_id, lambda run: run.has_ended, "the run to end")
        assert ("completed", "done", "Done.", "") == (ended.status, ended.reason, end_of(ended).message, ended.sentence)
        wait_until(lambda: followed.updates[-1].counts == Counts(completed=1, total=1), "the counts")
    assert [run.run_id] == followed.ended


@pytest.mark.parametrize("script", ["answer ok", "leave 1"])
def test_short_runs_end_once_too(engine: Engine, project_dir: Path, script: str) -> None:
    """A run of another program that begins and ends between two checks is reported as ended once."""
    other = Engine.open(str(project_dir))
    with following(engine) as followed:
        ids = [run_to_end(other, script).run_id for _ in range(3)]
        wait_until(lambda: set(ids) <= set(followed.ended), "the ends")
        last = start(other, "answer last")
        followed.wait_for(last.run_id, lambda run: run.has_ended, "the last run to end")
        wait_until(lambda: last.run_id in followed.ended, "the last end")
    assert sorted([*ids, last.run_id]) == sorted(followed.ended)


def test_a_run_made_in_one_moment(engine: Engine) -> None:
    """A finished run that appears at once is reported as ended."""
    with following(engine) as followed:
        meta = make_finished(engine.project, ended_at=paths.now_iso())
        followed.wait_for(meta.run_id, lambda run: run.has_ended, "the run to be seen")
    assert [meta.run_id] == followed.ended


def test_what_comes_back_is_not_news(engine: Engine) -> None:
    """The end of a run deleted before following began is not news when the run is restored."""
    old = make_finished(engine.project)
    engine.delete([old.run_id])
    with following(engine) as followed:
        engine.restore([old.run_id])
        followed.wait_for(old.run_id, lambda run: run.has_ended, "the run to be back")
    assert [] == followed.ended


def test_what_came_back_did_not_end_again(engine: Engine) -> None:
    """A deleted run leaves the list, and its end is not news when it is restored."""
    old = make_finished(engine.project)
    with following(engine) as followed:
        new = run_to_end(engine, "answer ok")
        followed.wait_for(new.run_id, lambda run: run.has_ended, "the run to end")
        engine.delete([old.run_id, new.run_id])
        wait_until(lambda: not followed.runs, "the runs to be removed")
        assert Counts() == followed.updates[-1].counts
        engine.restore([old.run_id, new.run_id])
        wait_until(lambda: len(followed.runs) == 2, "the runs to be back")
        assert Counts(completed=2, total=2) == followed.updates[-1].counts
    assert [new.run_id] == followed.ended


@pytest.mark.parametrize("removed", ["meta.json", "result.json", "."])
def test_files_of_finished_runs_that_are_removed(engine: Engine, monkeypatch: pytest.MonkeyPatch, removed: str) -> None:
    """If files of a finished run are removed by hand, an open app shows the same as one started later.

    This works even if the directory's time of change stays the same.
    """
    monkeypatch.setattr(follow, "SWEEP", 0.0)
    monkeypatch.setattr(follow, "FINISHED_PER_SWEEP", 2)
    metas = [make_finished(engine.project, make_meta(run_id, background=True)) for run_id in IDS[:5]]
    with following(engine) as followed:
        ended = run_to_end(engine, "answer ok")
        followed.wait_for(ended.run_id, lambda run: run.has_ended, "the run to end")
        for run_id in (metas[2].run_id, ended.run_id):
            path, before = Path(engine.project.run_dir(run_id), removed), os.stat(engine.project.runs)
            shutil.rmtree(path) if removed == "." else path.unlink()
            os.utime(engine.project.runs, ns=(before.st_atime_ns, before.st_mtime_ns))
        completed = {"result.json": 5}.get(removed, 4)
        wait_until(lambda: followed.updates[-1].counts.completed == completed, "the counts")
        wait_until(lambda: {run.run_id: run for run in engine.snapshots()} == followed.runs, "equal rows")
    assert [ended.run_id] == followed.ended


def test_an_end_is_told_once_though_the_run_looks_open_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An end is reported once, even if the result was removed and another process holds the lock to write it again."""
    monkeypatch.setattr(follow, "SWEEP", 0.0)
    with following(engine) as followed:
        run = run_to_end(engine, "answer ok")
        followed.wait_for(run.run_id, lambda run: run.has_ended, "the run to end")
        directory = Path(engine.project.run_dir(run.run_id))
        lock = os.open(directory / paths.LOCK, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            (directory / "result.json").unlink()
            followed.wait_for(run.run_id, lambda run: not run.has_ended, "the run to look open")
        finally:
            os.close(lock)
        followed.wait_for(run.run_id, lambda run: run.has_ended, "its result to be made anew")
    assert [run.run_id] == followed.ended


def test_a_run_that_is_being_removed(engine: Engine) -> None:
    """A finished run whose files are being removed is not read until the next sweep, so that it gets no new result."""
    run_id = make_finished(engine.project).run_id
    run_dir = Path(engine.project.run_dir(run_id))
    os.utime(run_dir, (0, 0))  # or else a removal within the same tick of the clock would be no change
    registry = Registry(engine.project, by="operator", looks_again=True)
    registry.look([run_id])
    (run_dir / "result.json").unlink()
    assert set() == registry.look_at_finished(9)
    assert not (run_dir / "result.json").exists()
    shutil.rmtree(run_dir)
    assert {run_id} == registry.look_at_finished(9)
    assert () == registry.snapshots()


def test_a_finished_run_is_read_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unchanged run is not read again, not even if it cannot be read."""
    metas = [make_finished(engine.project) for _ in range(3)]
    Path(engine.project.run_dir(metas[0].run_id), "result.json").write_text("{")
    registry = Registry(engine.project, by="operator", looks_again=True)
    registry.look(registry.names())
    for _ in range(2):
        registry.look_at_finished(9)
    monkeypatch.setattr(Registry, "_look_at", lambda *_: pytest.fail("a run was looked at"))
    for _ in range(4):
        assert set() == registry.look_at_finished(2)


def test_two_engines_see_the_same(engine: Engine, project_dir: Path, tmp_path: Path) -> None:
    """Two followers of one project reach equal states, and each reports each end once."""
    other = Engine.open(str(project_dir), session="other", kind="app")
    gate = tmp_path / "gate"
    with following(engine) as one, following(other) as two:
        runs = [start(engine, f"wait-for {gate}", "answer a"), start(other, f"wait-for {gate}", "leave 2")]
        for followed in (one, two):
            for run in runs:
                followed.wait_for(run.run_id, lambda run: run.status == "running", "the run to start")
        gate.touch()
        for followed in (one, two):
            wait_until(lambda followed=followed: len(followed.ended) == 2, "both ends")
    assert one.runs == two.runs
    assert sorted(one.ended) == sorted(two.ended) == sorted(run.run_id for run in runs)


def test_no_event_is_lost(engine: Engine, tmp_path: Path) -> None:
    """While many runs write at once, a follower reads every event of each file."""
    gate, lines = tmp_path / "gate", 300
    with following(engine) as followed:
        runs = [start(engine, f"wait-for {gate}", f"say-many {lines}", "hang") for _ in range(8)]
        gate.touch()
        last = 1 + 2 * lines
        for run in runs:
            seen = followed.wait_for(run.run_id, lambda run: run.last_seq == last, f"event {last} of each run")
            assert (lines, "running") == (seen.usage.turns, seen.status)
        for run in runs:
            assert last == (run_dir(engine, run) / "events.jsonl").read_bytes().count(b"\n")
        engine.stop([run.run_id for run in runs], force=True)
        wait_until(lambda: len(followed.ended) == 8, "all ends")
    counted = followed.updates[-1].counts
    assert Counts(aborted=8, total=8) == counted == followed.updates[-1].background


def test_events_without_a_doorbell(engine: Engine) -> None:
    """Events of a run without an activity file are found by the sweep."""
    meta, lock = make_run(engine.project, bell=False)
    events = Path(engine.project.run_dir(meta.run_id), paths.EVENTS)
    with following(engine) as followed:
        followed.wait_for(meta.run_id, lambda run: run.status == "queued", "the run to be seen")
        begun = RunStarted(seq=1, ts="now", pid=1, child_pid=1, attempt=1, max_attempts=1)
        events.write_bytes(encode_event(begun) + encode_event(AssistantText(seq=2, text="Hello.")))
        seen = followed.wait_for(meta.run_id, lambda run: run.last_seq == 2, "its events")
        assert ("running", "Hello.") == (seen.status, activity(seen))
        artifacts.write_result(engine.project.run_dir(meta.run_id), make_result(meta.run_id))
        followed.wait_for(meta.run_id, lambda run: run.has_ended, "its end")
    os.close(lock)


def test_runs_that_nobody_is_shown(engine: Engine) -> None:
    """A run that is not shown is read at most four times a second while it writes, and its last event is not lost."""
    locks = [make_run(engine.project, make_meta(run_id))[1] for run_id in IDS[:2]]
    begun = time.monotonic()
    with following(engine, shown=lambda: IDS[:1]) as followed:
        for seq in range(1, 101):
            for run_id in IDS[:2]:
                start = RunStarted(seq=seq, pid=1, child_pid=1, attempt=1, max_attempts=1)
                with open(f"{engine.project.run_dir(run_id)}/{paths.EVENTS}", "ab") as events:
                    events.write(encode_event(AssistantText(seq=seq, text="Hello.") if seq > 1 else start))
                Path(engine.project.active, run_id).write_bytes(b'{"seq":%d}\n' % seq)
            time.sleep(0.01)
        for run_id in IDS[:2]:
            followed.wait_for(run_id, lambda run: run.last_seq == 100, "the last event")
        over = time.monotonic() - begun
    shown, other = (
        sum(run.run_id == run_id for update in followed.updates for run in update.runs) for run_id in IDS[:2]
    )
    assert other <= 3 + over / follow.REST
    assert other <= shown
    for lock in locks:
        os.close(lock)


def test_more_runs_than_files_may_be_open(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are followed even if too many files are open."""
    monkeypatch.setattr(line_file, "MOST_HELD", 0)
    with following(engine) as followed:
        run = start(engine, "tool read", "answer ok")
        seen = followed.wait_for(run.run_id, lambda run: run.has_ended, "the run to end")
    assert ("completed", 1) == (seen.status, seen.usage.tool_uses)


def test_asking_for_an_end_keeps_no_file_open(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """If too many files are open, asking whether a run may have ended leaves no file open."""
    meta, lock = make_run(engine.project)
    monkeypatch.setattr(line_file, "MOST_HELD", 0)
    before = HeldFile.held
    run = OpenRun(engine.project, meta)
    assert not run.drain()
    assert not run.may_have_ended
    assert before == HeldFile.held
    os.close(lock)


def test_a_renamed_directory(engine: Engine) -> None:
    """A run's id is the name of its directory, even if its meta differs, whether it is open or finished."""
    made = [make_run(engine.project) for _ in range(2)]
    for (meta, _), name in zip(made, IDS, strict=False):
        os.rename(engine.project.run_dir(meta.run_id), engine.project.run_dir(name))
        os.rename(Path(engine.project.active, meta.run_id), Path(engine.project.active, name))
    (_, open_lock), (ended, ended_lock) = made
    artifacts.write_result(engine.project.run_dir(IDS[1]), make_result(ended.run_id))
    os.close(ended_lock)
    assert [(IDS[1], "completed"), (IDS[0], "queued")] == [(run.run_id, run.status) for run in engine.snapshots()]
    os.close(open_lock)


def test_without_any_watch(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the kernel refuses to watch files, all changes are still found."""

    def refuse(*_: object) -> Iterator[follow.Changes]:
        raise OSError(28, "inotify watch limit reached")
        yield

    monkeypatch.setattr(follow, "_watch", refuse)
    with following(engine) as followed:
        run = start(engine, "answer ok")
        followed.wait_for(run.run_id, lambda run: run.has_ended, "the run to end")
    assert [run.run_id] == followed.ended


def test_nothing_happens_nothing_is_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Idle running and queued runs cause no updates, however often they are checked."""
    engine = open_engine(Path(engine.project.root), max_running=1)
    monkeypatch.setattr(follow, "SWEEP", 0.0)
    runs = [start(engine, "hang"), start(engine, "hang"), start(engine, "hang")]
    started(engine, runs[0])
    with following(engine) as followed:
        wait_until(lambda: any(update.presets_changed for update in followed.updates[1:]), "the watch to begin")

        def is_silent() -> bool:
            before, turns = len(followed.updates), followed.turns
            wait_until(lambda: followed.turns > turns + 6, "more turns, each with a look at everything")
            return before == len(followed.updates)

        wait_until(is_silent, "turns without an update, once the agent has said its last words")
        assert ["queued", "queued", "running"] == sorted(run.status for run in followed.runs.values())
        engine.stop([run.run_id for run in runs])
        wait_until(lambda: len(followed.ended) == 3, "all ends")


def test_presets(engine: Engine, project_dir: Path) -> None:
    """A preset file that is written, changed or removed is news, even in a new directory."""
    place = project_dir / ".pi" / "subagents"
    with following(engine) as followed:

        def changed_by(act: Callable[[], object]) -> None:
            before = len(followed.updates)
            act()
            wait_until(lambda: any(one.presets_changed for one in followed.updates[before:]), "presets to change")

        place.mkdir(parents=True)
        file = place / "scout.md"
        changed_by(lambda: file.write_text("---\nname: scout\ndescription: x\n---\n"))
        wait_until(lambda: engine.presets().presets, "the preset")
        changed_by(lambda: file.write_text("---\nname: scout\ndescription: y\n---\n"))
        changed_by(file.unlink)


def test_a_preset_directory_that_comes_back(engine: Engine, project_dir: Path) -> None:
    """A directory of presets that is removed and made again is still watched."""
    place = project_dir / ".pi" / "subagents"
    place.mkdir(parents=True)
    with following(engine) as followed:
        for _ in range(2):
            place.rmdir()
            place.mkdir()
            before = len(followed.updates)
            wait_until(lambda: any(one.presets_changed for one in followed.updates[before:]), "the change")  # noqa: B023
            before = len(followed.updates)
            (place / "scout.md").touch()
            wait_until(lambda: any(one.presets_changed for one in followed.updates[before:]), "the file")  # noqa: B023
            (place / "scout.md").unlink()


def test_many_old_runs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest runs and all unfinished ones come first, older ones follow in batches, and no end is news."""
    monkeypatch.setattr(follow, "NEWEST", 5)
    monkeypatch.setattr(follow, "BATCH", 4)
    ids = IDS
    for run_id in ids[1:]:
        make_finished(engine.project, make_meta(run_id))
    _, lock = make_run(engine.project, make_meta(ids[0]))
    with following(engine) as followed:
        wait_until(lambda: followed.updates[-1].complete, "all runs")
        sizes = [len(update.runs) for update in followed.updates[:4]]
    assert [6, 4, 4, 2] == sizes
    assert {ids[0], *ids[-5:]} == {run.run_id for run in followed.updates[0].runs}
    assert [False, False, False, True] == [update.complete for update in followed.updates[:4]]
    assert ([], Counts(running=1, queued=1, completed=15, total=16)) == (followed.ended, followed.updates[3].counts)
    os.close(lock)


def test_an_old_run_that_ends_meanwhile(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of an older run is news only after the first update."""
    monkeypatch.setattr(follow, "NEWEST", 2)
    monkeypatch.setattr(follow, "BATCH", 2)
    ids = [f"20260101-0000{second:02}-abcdef" for second in range(6)]
    for run_id in ids[2:]:
        make_finished(engine.project, make_meta(run_id), ended_at=paths.now_iso())
    for run_id in ids[:2]:
        os.close(make_run(engine.project, make_meta(run_id), bell=False)[1])
    Engine.open(engine.project.root).snapshots([ids[1]])
    wait_until(lambda: paths.now_iso() > engine.result(ids[1]).ended_at, "a later moment")
    stop = threading.Event()
    updates = engine.updates(stop)
    told = [run for update in itertools.islice(updates, 2) for run in update.ended]
    engine.snapshots([ids[0]])
    told += [run for update in itertools.takewhile(lambda update: not update.is_quiet, updates) for run in update.ended]
    stop.set()
    assert [ids[0]] == [run.run_id for run in told]


def test_waiting_for_old_runs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for more runs than the first update has waits for all of them, even without activity files."""
    monkeypatch.setattr(follow, "NEWEST", 2)
    ids = [f"20260101-0000{second:02}-abcdef" for second in range(6)]
    for run_id in ids[1:]:
        make_finished(engine.project, make_meta(run_id))
    _, lock = make_run(engine.project, make_meta(ids[0]), bell=False)
    threading.Timer(0.1, os.close, (lock,)).start()
    assert ["lost", *["done"] * 5] == [run.reason for run in engine.wait(ids, timeout=30)]


def test_waiting_with_a_time_limit(engine: Engine) -> None:
    """A wait that times out returns the runs in their current state, in the order asked, without unknown ones."""
    done, running = run_to_end(engine, "answer ok"), start(engine, "hang")
    started(engine, running)
    stood = engine.wait([running.run_id, "20260101-000000-abcdef", done.run_id], timeout=0.3)
    assert [(running.run_id, "running"), (done.run_id, "completed")] == [(run.run_id, run.status) for run in stood]
    engine.stop([running.run_id])
    assert ("aborted",) == tuple(run.status for run in engine.wait([running.run_id], timeout=30))


def test_waiting_until_it_is_stopped(engine: Engine) -> None:
    """A stopped wait returns the runs in their current state, even after a long quiet period."""
    run = start(engine, "hang")
    started(engine, run)
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    assert ["running"] == [one.status for one in engine.wait([run.run_id], timeout=30, stop=stop)]
    engine.stop([run.run_id])
    engine.wait([run.run_id], timeout=30)


def test_who_follows_gets_turns(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower gets turns even if nothing happens, and during a quiet period."""
    monkeypatch.setattr(follow, "CALM_AFTER_S", 0.0)
    with following(engine) as followed:
        before = followed.turns
        wait_until(lambda: followed.turns > before + 3, "more turns")


def test_a_calm_ends_with_the_first_change(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a quiet period the watch checks less often; the first change ends that."""
    monkeypatch.setattr(follow, "CALM_AFTER_S", 0.2)
    pauses: list[float] = []
    is_set = follow._PacedStop.is_set
    monkeypatch.setattr(follow._PacedStop, "is_set", lambda self: (pauses.append(self.pause), is_set(self))[1])
    with following(engine) as followed:
        wait_until(lambda: follow.CALM_PAUSE_S in pauses, "the calm")
        pauses.clear()
        run = start(engine, "answer ok")
        followed.wait_for(run.run_id, lambda run: run.has_ended, "the run to end")
        wait_until(lambda: pauses.count(0.0) > pauses.count(follow.CALM_PAUSE_S), "more looks")


def test_a_project_that_has_gone_and_comes_back(tmp_path: Path) -> None:
    """If the project is gone its parent directory is not watched: its neighbours cause no work. Its return is seen."""
    project, stop = paths.Project(str(tmp_path / "gone")), threading.Event()
    others = watched_inodes()
    changes = follow.watch(project, lambda: (project.home,), stop)
    next(changes)
    assert set() == watched_inodes() - others
    os.makedirs(project.root)
    watched, begun = set[int](), time.monotonic()
    for _ in changes:
        watched |= watched_inodes() - others
        if watched or time.monotonic() - begun > 20:
            stop.set()
    assert {os.stat(project.root).st_ino} == watched


def watched_inodes() -> set[int]:
    """Return the inodes that this process watches, from the kernel's list."""
    told: list[str] = []
    for path in Path("/proc/self/fdinfo").iterdir():
        with suppress(FileNotFoundError):  # another thread may close it
            told.append(path.read_text())
    return {int(inode, 16) for inode in re.findall(r"^inotify wd:\S+ ino:(\S+)", "".join(told), re.MULTILINE)}


def test_a_busy_neighbour_is_no_reason_to_hurry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the project is gone, changes in its parent directory do not end the quiet period."""
    monkeypatch.setattr(follow, "CALM_AFTER_S", 0.2)
    project, stop = paths.Project(str(tmp_path / "gone")), threading.Event()
    pauses: list[float] = []
    is_set = follow._PacedStop.is_set
    monkeypatch.setattr(follow._PacedStop, "is_set", lambda self: (pauses.append(self.pause), is_set(self))[1])
    begun = time.monotonic()
    for number, _ in enumerate(follow.watch(project, tuple, stop)):
        (tmp_path / str(number)).touch()
        if follow.CALM_PAUSE_S in pauses or time.monotonic() - begun > 20:
            stop.set()
    assert follow.CALM_PAUSE_S in pauses


def test_waiting_tells_progress(engine: Engine) -> None:
    """A wait for a run gets only this run's updates."""
    gate = Path(engine.project.root, "gate")
    other = start(engine, f"wait-for {gate}", "say-many 20", "finish")
    run = start(engine, f"wait-for {gate}", "tool read", "answer ok")
    gate.touch()
    updates: list[Update] = []
    engine.wait([run.run_id], timeout=30, on_update=updates.append)
    assert {run.run_id} == {seen.run_id for update in updates for seen in update.runs}
    engine.wait([other.run_id], timeout=30)


def test_waiting_for_a_run_that_is_deleted(engine: Engine) -> None:
    """Waiting for a deleted run returns at once."""
    meta = make_finished(engine.project)
    engine.delete([meta.run_id])
    assert () == engine.wait([meta.run_id], timeout=30)


def test_groups_are_followed(project_dir: Path) -> None:
    """Each queued run of a group shows how many are ahead, until its turn comes."""
    engine = open_engine(project_dir, max_parallel=1)
    with following(engine) as followed:
        runs = engine.launch([request("hang") for _ in range(4)], background=False)
        ids = [run.run_id for run in runs]

        def picture() -> list[tuple[str, int | None]]:
            return sorted((run.status.value, ahead_of(run)) for run in followed.runs.values())

        wait_until(
            lambda: picture() == [("queued", 0), ("queued", 1), ("queued", 2), ("running", None)], "the queue", 20
        )
        (running,) = (run for run in followed.runs.values() if run.status == "running")
        engine.stop([running.run_id])
        wait_until(
            lambda: picture() == [("aborted", None), ("queued", 0), ("queued", 1), ("running", None)], "the next turn"
        )
        engine.stop(ids)
        wait_until(lambda: len(followed.ended) == 4, "all ends")
