"""The order of runs, and what merging updates keeps."""

from __future__ import annotations

from msgspec.structs import replace
from subdeck.core.follow import Update
from subdeck.core.runs import Counts, RunSnapshot, RunStatus, Usage
from subdeck.tui.board import BULK, Board
from subdeck.tui.merging import merged

from .fake_engine import a_run, run_id


def an_update(*runs: RunSnapshot, removed: tuple[str, ...] = (), ended: tuple[RunSnapshot, ...] = ()) -> Update:
    return Update(
        runs=runs,
        removed=removed,
        ended=ended,
        counts=Counts(),
        background=Counts(),
        complete=True,
        presets_changed=False,
    )


def order(board: Board) -> list[int]:
    return [int(board.run_at(row).run_id[-6:], 16) for row in range(len(board))]


def test_running_first_then_queue_then_newest() -> None:
    """Running runs newest first, the queue in its order, finished ones newest first."""
    board = Board()
    runs = [a_run(1, "completed"), a_run(2), a_run(3, "queued"), a_run(4, "failed"), a_run(5), a_run(6, "queued")]
    board.apply(an_update(*runs))
    assert order(board) == [5, 2, 3, 6, 4, 1]


def test_rows_and_runs_agree() -> None:
    """The row of a run is where that run is, also after many changes and a bulk."""
    board = Board()
    board.apply(an_update(*(a_run(number, ("running", "queued", "failed")[number % 3]) for number in range(BULK * 3))))
    board.apply(an_update(*(a_run(number, "completed") for number in range(0, BULK * 3, 2))))
    board.apply(an_update(removed=(run_id(7), run_id(8))))
    assert [board.row_of(board.run_at(row).run_id) for row in range(len(board))] == list(range(BULK * 3 - 2))


def test_totals_follow_changes() -> None:
    """Tokens and cost are the sums over the runs that are there."""
    board = Board()
    board.apply(an_update(a_run(1, usage=Usage(input=10, cost=0.5)), a_run(2, usage=Usage(input=5))))
    board.apply(an_update(a_run(1, usage=Usage(input=30, cost=0.75)), removed=(run_id(2),)))
    assert (board.tokens, board.cost) == (30, 0.75)


def test_only_failures_need_the_operator() -> None:
    """An answer or an ordered stop needs nobody, a failure does until it is looked at."""
    board = Board()
    runs = (a_run(1, "completed"), a_run(2, "failed"), a_run(3, "aborted"), a_run(4, "failed"))
    board.apply(an_update(*runs, ended=runs))
    assert board.unseen == {run_id(2), run_id(4)}
    assert board.next_unseen(run_id(4), 1) == run_id(2)
    assert board.next_unseen(run_id(2), 1) == run_id(4)
    assert board.next_unseen(run_id(3), -1) == run_id(4)


def test_merged_updates_say_what_both_say() -> None:
    """The later state of a run wins, every end is kept, a run that came back is not removed."""
    over = a_run(2, "completed")
    first = replace(an_update(a_run(1), a_run(2), removed=(run_id(3),), ended=(over,)), presets_changed=True)
    second = an_update(replace(a_run(1), activity="later"), a_run(3), removed=(run_id(2),), ended=(a_run(4, "failed"),))
    both = merged(first, second)
    assert {run.run_id: run.activity for run in both.runs} == {run_id(1): "later", run_id(3): ""}
    assert both.removed == (run_id(2),)
    assert [run.status for run in both.ended] == [RunStatus.COMPLETED, RunStatus.FAILED]
    assert both.presets_changed
