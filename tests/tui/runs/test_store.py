"""The sums over all runs, the unread ones, and the merging of updates."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core.paths import iso_time, now_iso, project_key, state_file
from subdeck.core.project.read_marks import NEW, SEEN, line, mark_read, marks_file
from subdeck.core.run.describe import activity
from subdeck.core.run.model import RunReason, Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.system import files
from subdeck.tui.feed.bridge import FRAME_S, RECENTLY_S, SLOWEST_S, FramePace, merged
from subdeck.tui.runs import store
from subdeck.tui.runs.seen import HANDED_OVER_S, SeenFile
from subdeck.tui.runs.store import RunStore, Totals

from ...factories import changed
from ...waiting import wait_until
from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened
from ..sample_runs import an_update


def test_totals_follow_changes() -> None:
    """Tokens and cost are the sums over the existing runs."""
    run_store = RunStore()
    run_store.apply(an_update(a_run(1, usage=Usage(input=10, cost=0.5)), a_run(2, usage=Usage(input=5))))
    run_store.apply(an_update(a_run(1, usage=Usage(input=30, cost=0.75)), removed=(run_id(2),)))
    assert run_store.whole == Totals(30, 0.75)


SINCE_LONG = b"since 2020-01-01T00:00:00.000Z\nwaited-since 2020-01-01T00:00:00.000Z\n"
"""The start of the marks, before any run of these tests."""


def a_store(marks: bytes = SINCE_LONG) -> RunStore:
    run_store = RunStore()
    run_store.take_marks(marks)
    return run_store


def test_only_failures_need_the_operator() -> None:
    """A failure needs attention until it is read; an answer or a requested stop does not."""
    run_store = a_store()
    runs = (a_run(1, "completed"), a_run(2, "failed"), a_run(3, "aborted"), a_run(4, "failed"))
    run_store.apply(an_update(*runs, ended=runs))
    assert run_store.unseen == {run_id(2), run_id(4)}
    assert run_store.mark_seen(run_id(2))
    assert run_store.unseen == {run_id(4)}


def test_an_end_of_a_newer_schema_needs_nobody() -> None:
    """A run recorded by a newer schema has an unknown outcome, so it is not unread."""
    run_store = a_store()
    run = a_run(1, "failed", newer_schema=2)
    run_store.apply(an_update(run, ended=(run,)))
    assert not run_store.is_unseen(run_id(1))


@pytest.mark.parametrize(
    ("status", "reason", "unread"),
    [
        ("completed", RunReason.DONE, True),
        ("aborted", RunReason.TIMEOUT, True),
        ("aborted", RunReason.STOPPED, False),
        ("aborted", RunReason.KILLED, False),
    ],
)
def test_other_ends_are_unread_unless_ordered(status: str, reason: RunReason, unread: bool) -> None:
    """An answer and an end by a limit are unread; a requested stop is not."""
    run_store = a_store()
    run = a_run(1, status, reason=reason)
    run_store.apply(an_update(run, ended=(run,)))
    assert (run_id(1) in run_store.unread, run_store.unseen) == (unread, set())
    assert run_store.mark_seen(run_id(1)) is unread
    assert not run_store.is_unseen(run_id(1))


def foreground(number: int, *, seconds_ago: float = 3600.0, **fields: object) -> RunSnapshot:
    """Return a failed run that a command has waited for."""
    ended_at = iso_time(time.time() - seconds_ago)
    return a_run(number, "failed", meta_background=False, ended_at=ended_at, **fields)


@pytest.mark.parametrize("is_followed", [True, False])
@pytest.mark.parametrize(
    ("more", "is_unread"),
    [("", True), (f"seen {run_id(1)}\n", False), (f"seen {run_id(1)}\nnew {run_id(1)}\n", True)],
)
def test_the_file_alone_decides(more: str, is_unread: bool, is_followed: bool) -> None:
    """A result is unread in an open app if and only if it is in one that starts later."""
    for run in (a_run(1, "failed"), foreground(1)):
        run_store = a_store()
        if is_followed:
            run_store.apply(an_update(replace(run, state=a_run(1).state)))
        run_store.apply(an_update(run, ended=(run,)))
        run_store.take_marks(SINCE_LONG + more.encode())
        assert is_unread == run_store.is_unseen(run_id(1))


def test_a_command_has_time_to_print_a_result() -> None:
    """A waited-for result is unread only if the command does not mark it soon after the run's end."""
    run_store = a_store()
    run_store.apply(an_update(foreground(1, seconds_ago=0.0), foreground(2, seconds_ago=0.0)))
    assert (set(), {run_id(1), run_id(2)}) == (run_store.unseen, run_store.handed_over)
    assert run_store.mark_seen(run_id(2))
    run_store.apply(an_update(foreground(1, seconds_ago=HANDED_OVER_S), foreground(2, seconds_ago=HANDED_OVER_S)))
    assert ({run_id(1)}, set()) == (run_store.unseen, run_store.handed_over)


def test_old_results_do_not_become_unread(tmp_path: Path) -> None:
    """An older file gets a start time for the results of foreground runs, once."""
    file = Path(state_file("seen", project_key(str(tmp_path))))
    file.parent.mkdir(parents=True)
    file.write_bytes(SINCE_LONG.splitlines(keepends=True)[0])
    later = iso_time(time.time() + 60)
    read = SeenFile(str(tmp_path)).read(now_iso())
    assert read == SeenFile(str(tmp_path)).read(later) == file.read_bytes()
    run_store = a_store(read)
    run_store.apply(an_update(foreground(1), a_run(2, "failed")))
    assert {run_id(2)} == run_store.unseen


def test_a_large_file_of_marks_is_shortened(tmp_path: Path) -> None:
    """The shortened file means the same in every app, and keeps marks added during the shortening."""
    file = SeenFile(str(tmp_path))
    file.read(now_iso())
    path = Path(marks_file(str(tmp_path)))
    old = [line(SEEN, run_id(number)) for number in range(5000, 5200)]
    path.write_bytes(SINCE_LONG + b"".join([*old, line(SEEN, run_id(1)), line(NEW, run_id(3)), line(SEEN, run_id(7))]))
    recent = [foreground(number, seconds_ago=0.0) for number in (5, 6)]
    runs = (a_run(1, "failed"), a_run(2, "failed"), a_run(3, "failed"), foreground(4), *recent, a_run(7))
    file.add(SEEN, [run_id(6)])
    run_store = a_store(content := file.read(now_iso()))
    run_store.apply(an_update(*runs))
    assert set(map(run_id, (2, 3, 4, 5))) == run_store.unseen | run_store.handed_over
    shorter = run_store.marks.shortened(run_store.runs, time.time())
    file.add(SEEN, [run_id(2)])
    file.shorten(content, shorter)
    assert len(path.read_bytes()) < len(content) // 2
    later = a_store(file.read(now_iso()))
    later.apply(an_update(*runs[:-1], a_run(7, "failed")))
    assert set(map(run_id, (3, 4, 5))) == later.unseen | later.handed_over


def test_no_mark_is_lost_while_the_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark added while another process replaces the file goes into the new one."""
    SeenFile(str(tmp_path)).read(now_iso())
    path, lock, is_open = marks_file(str(tmp_path)), files.lock, threading.Event()
    adding = threading.Thread(target=mark_read, args=(str(tmp_path), [run_id(1)]))

    def note_and_lock(descriptor: int) -> None:
        if threading.current_thread() is adding:
            is_open.set()
        lock(descriptor)

    monkeypatch.setattr(files, "lock", note_and_lock)
    with open(path, "rb") as file:
        lock(file.fileno())
        adding.start()
        wait_until(lambda: is_open.is_set() or not adding.is_alive(), "the file to be open")
        files.write_whole(path, SINCE_LONG)
    adding.join()
    assert SINCE_LONG + line(SEEN, run_id(1)) == Path(path).read_bytes()


def test_what_was_noted_of_a_run_goes_with_it() -> None:
    """A deleted run is neither marked nor unread."""
    run_store = a_store()
    runs = (a_run(1, "failed"), a_run(2, "completed"))
    run_store.apply(an_update(*runs, ended=runs))
    run_store.marked.update((run_id(1), run_id(2)))
    run_store.apply(an_update(removed=(run_id(1), run_id(2))))
    assert (run_store.unseen, run_store.unread, run_store.marked, len(run_store)) == (set(), set(), set(), 0)


def test_frames_are_slower_while_much_happens() -> None:
    """Frames are drawn more slowly while many runs change, including frames in between with one change."""
    pace = FramePace()
    assert pytest.approx(FRAME_S, abs=0.002) == pace.next_after(1.0, 1) - 1.0
    slow = pace.next_after(2.0, 60) - 2.0
    assert FRAME_S < slow < SLOWEST_S
    assert pytest.approx(slow) == pace.next_after(2.1, 1) - 2.1
    assert pytest.approx(SLOWEST_S) == pace.next_after(2.2, 1000) - 2.2
    quiet = 2.3 + RECENTLY_S
    assert pytest.approx(FRAME_S, abs=0.002) == pace.next_after(quiet, 1) - quiet


def test_merged_updates_say_what_both_say() -> None:
    """Of two merged updates the later state wins, every ending is kept, and a restored run is not removed."""
    over = a_run(2, "completed")
    first = replace(an_update(a_run(1), a_run(2), removed=(run_id(3),), ended=(over,)), presets_changed=True)
    second = an_update(changed(a_run(1), activity="later"), a_run(3), removed=(run_id(2),), ended=(a_run(4, "failed"),))
    both = merged(first, second)
    assert {run.run_id: activity(run) for run in both.runs} == {run_id(1): "later", run_id(3): ""}
    assert (both.removed, both.presets_changed) == ((run_id(2),), True)
    assert [run.run_id for run in both.ended] == [run_id(2), run_id(4)]


def test_the_sums_of_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The day's sums cover runs launched since midnight, and restart when it passes."""
    monkeypatch.setattr(store, "midnights", lambda: ("2026-11-21T23:00:00.000Z", "2026-11-22T23:00:00.000Z"))
    monkeypatch.setattr(store, "now_iso", lambda: "2026-11-22T10:00:00.000Z")
    run_store = RunStore()
    times = ("2026-11-21T22:59:59.999Z", "2026-11-21T23:00:00.000Z", "2026-11-22T22:00:00.000Z")
    runs = [a_run(n, meta_created_at=at, usage=Usage(input=n, cost=n)) for n, at in enumerate(times, 1)]
    run_store.apply(an_update(*runs))
    run_store.apply(an_update(a_run(2, meta_created_at=times[1], usage=Usage(input=20, cost=4.0))))
    assert (run_store.whole, run_store.today) == (Totals(24, 8.0), Totals(23, 7.0))
    monkeypatch.setattr(store, "midnights", lambda: ("2026-11-22T23:00:00.000Z", "2026-11-23T23:00:00.000Z"))
    monkeypatch.setattr(store, "now_iso", lambda: "2026-11-22T23:00:00.000Z")
    run_store.apply(an_update(a_run(4, meta_created_at="2026-11-22T23:00:00.000Z", usage=Usage(input=1))))
    assert (run_store.whole.tokens, run_store.today.tokens) == (25, 1)


async def test_the_header_says_what_it_totals() -> None:
    """The header labels its sums as today's; its tooltip has all sums and where to find more."""
    before = a_run(1, "completed", meta_created_at="2020-01-01T00:00:00.000Z", usage=Usage(input=9000, cost=2.0))
    today = a_run(2, "completed", meta_created_at=now_iso(), usage=Usage(input=3000, cost=0.31))
    async with opened(FakeEngine(before, today)) as deck:
        await deck.until_text("today 3.0k tok $0.31")
        assert str(deck.main._header.tooltip) == (
            "Today's runs: 3.0k tok $0.31\nAll runs: 12k tok $2.31\n$ shows details"
        )
