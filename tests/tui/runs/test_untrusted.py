"""Runs that this user's subdeck did not make are shown as untrusted, can be read and deleted, and nothing else."""

from __future__ import annotations

import pytest
from subdeck.core.errors import SubdeckError
from subdeck.core.run.model import RunnerKind, Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.keys.actions import BY_ID
from subdeck.tui.keys.command import ActionContext
from subdeck.tui.runs._listing import Listing
from subdeck.tui.runs._questions import what_is_lost
from subdeck.tui.runs.filter import Flags, parse_filter
from subdeck.tui.runs.store import RunStore, Totals

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened
from ..sample_runs import a_group, a_mate, an_update


def foreign(number: int, status: str = "running") -> RunSnapshot:
    return a_run(number, status, foreign=True, meta_session_path="/s.jsonl", meta_child_session_id="abc")


@pytest.mark.parametrize("status", ["running", "completed"])
@pytest.mark.parametrize("action", ["stop", "kill", "rerun", "rerun_edited", "follow_up", "with_context"])
def test_what_is_refused(action: str, status: str) -> None:
    """Actions on an untrusted run are refused, and the refusal names the command to trust it."""
    needs = BY_ID[action].needs
    assert needs
    refusal = needs(ActionContext(run=foreign(1, status)))
    assert f"subdeck adopt {run_id(1)[-6:]} trusts it" in refusal
    assert "foreign" not in needs(ActionContext(run=a_run(1, status)))


@pytest.mark.parametrize("action", ["open", "detail", "copy_id", "copy_answer", "save_run", "view", "delete"])
def test_what_is_allowed(action: str) -> None:
    """An untrusted run can be read like any other, and deleted."""
    needs = BY_ID[action].needs
    assert needs is not None
    assert needs(ActionContext(run=foreign(1))) == ""


def test_it_stands_among_the_finished() -> None:
    """An untrusted run is below the running ones, even if its record says running."""
    run_store = RunStore()
    listing = Listing(run_store)
    update = an_update(foreign(3), a_run(1), a_run(2, "completed"))
    run_store.apply(update)
    listing.take(update)
    assert [listing.row(place).run_id for place in range(3)] == [run_id(1), run_id(3), run_id(2)]


def test_it_joins_no_group() -> None:
    """An untrusted record that names our group is not shown in it."""
    run_store = RunStore()
    listing = Listing(run_store)
    update = an_update(*a_group("running", "running"), a_mate(3, foreign=True, size=2))
    run_store.apply(update)
    listing.take(update)
    assert listing.group_key_of(run_id(3)) == run_id(3)


def test_what_it_used_is_not_added_up() -> None:
    """The header's sums omit untrusted runs."""
    run_store = RunStore()
    used = Usage(input=1000, cost=5.0)
    run_store.apply(an_update(a_run(1, "completed", usage=used, foreign=True)))
    assert run_store.whole == run_store.today == Totals()
    run_store.apply(an_update(a_run(1, "completed", usage=used)))
    assert run_store.whole == Totals(1000, 5.0)


def test_its_failure_needs_nobody() -> None:
    """The failure of an untrusted run needs no attention."""
    run_store = RunStore()
    failed = foreign(1, "failed")
    run_store.apply(an_update(failed, ended=(failed,)))
    assert not run_store.is_unseen(run_id(1))


def test_they_can_be_filtered() -> None:
    """`is:untrusted` shows untrusted runs, `-is:untrusted` all others."""
    for text, found in (("is:untrusted", True), ("-is:untrusted", False)):
        assert parse_filter(text).passes(foreign(1), Flags(False, False)) is found
        assert parse_filter(text).passes(a_run(1), Flags(False, False)) is not found


def test_the_question_says_what_stays() -> None:
    """The question for deleting an untrusted run says that nothing is stopped."""
    said = what_is_lost([foreign(1)], 0)
    assert "stopped first" not in said
    assert "panes and other files are not touched" in said


async def test_its_row_and_its_deletion() -> None:
    """The row says untrusted, and deleting moves the run without stopping anything."""
    engine = FakeEngine(foreign(1))
    async with opened(engine) as deck:
        await deck.until_text("untrusted · ")
        await deck.press("x")
        await deck.until(lambda: any("subdeck adopt" in toast for toast in deck.toasts), "the refusal")
        await deck.press("d")
        await deck.until_text("are only moved")
        await deck.press("y")
        await deck.until(lambda: engine.deleted == [run_id(1)], "the deletion")
        assert all(not stopped for stopped, _ in engine.stopped)


async def test_marked_ones_are_left_out() -> None:
    """Of several marked runs only this user's are stopped."""
    engine = FakeEngine(foreign(1), a_run(2))
    async with opened(engine) as deck:
        await deck.act("mark_all")
        await deck.press("x", "y")
        await deck.until(lambda: engine.stopped == [((run_id(2),), False)], "the one of ours to be stopped")


async def test_its_pane_is_not_shown() -> None:
    """The engine refuses to attach to an untrusted run, and the app shows the reason."""
    engine = FakeEngine(a_run(1, foreign=True, meta_runner=RunnerKind.TMUX))
    engine.attach = SubdeckError("run 000001 is not trusted: it has no mark")
    async with opened(engine) as deck:
        await deck.press("a")
        await deck.until(lambda: any("is not trusted" in toast for toast in deck.toasts), "the refusal")
