"""The rows of the run list: order, groups, filters and sorts under all changes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core.run.columns import SORTS, Section, sort_titled
from subdeck.core.run.model import Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.runs._listing import BULK, Listing, Row
from subdeck.tui.runs.filter import EVERYTHING, Flags, parse_filter
from subdeck.tui.runs.order import section_of
from subdeck.tui.runs.store import RunStore

from ..fake_engine import a_run, run_id
from ..sample_runs import a_group, a_mate, an_update


def listed(*runs: RunSnapshot) -> tuple[RunStore, Listing]:
    run_store = RunStore()
    listing = Listing(run_store)
    tell(run_store, listing, *runs)
    return run_store, listing


def tell(run_store: RunStore, listing: Listing, *runs: RunSnapshot, removed: tuple[str, ...] = ()) -> None:
    update = an_update(*runs, removed=removed)
    run_store.apply(update)
    listing.take(update)


def shown(listing: Listing) -> list[int | str]:
    """Return each row: the number of its run, or the text of the group's head."""
    rows = [listing.row(place) for place in range(len(listing))]
    return [int(row.run_id[-6:], 16) if row.run_id else listing.group(row.group_key).size for row in rows]


def head(listing: Listing) -> Row:
    return next(row for place in range(len(listing)) if not (row := listing.row(place)).run_id)


def test_running_first_then_queue_then_newest() -> None:
    """Running runs newest first, the queue in its order, finished ones newest first."""
    runs = [a_run(1, "completed"), a_run(2), a_run(3, "queued"), a_run(4, "failed"), a_run(5), a_run(6, "queued")]
    _, listing = listed(*runs)
    assert shown(listing) == [5, 2, 3, 6, 4, 1]
    assert listing.active == 4


def test_runs_of_one_second_are_in_the_order_of_their_launch() -> None:
    """Of two ids in one second, whose rest is random, the later launch is the newer run."""
    second = "20260101-000001-"
    early = a_run(1, meta_run_id=f"{second}ffffff", meta_created_at="2026-01-01T00:00:01.100Z")
    late = a_run(1, meta_run_id=f"{second}000001", meta_created_at="2026-01-01T00:00:01.900Z")
    _, listing = listed(early, late)
    assert [listing.row(place).run_id for place in (0, 1)] == [late.run_id, early.run_id]


def test_a_change_without_another_place_moves_nothing() -> None:
    """An update of a run's activity does not change the order."""
    run_store, listing = listed(a_run(1, usage=Usage(input=4)), a_run(2))
    before = listing.order
    tell(run_store, listing, a_run(1, activity="Reading", usage=Usage(input=5)))
    assert listing.order == before


# --- groups ----------------------------------------------------------------------------------------------------------


def test_a_group_stands_together_under_its_head() -> None:
    """A group has the place of a run with its state and age, and its runs are in launch order."""
    _, listing = listed(a_run(10), *a_group("completed", "failed", "running", "queued", first=3), a_run(1))
    assert shown(listing) == [10, "×4", 3, 4, 5, 6, 1]


@pytest.mark.parametrize(
    ("statuses", "state"),
    [
        (("running", "failed"), "● running"),
        (("queued", "completed"), "◌ queued"),
        (("failed", "aborted", "completed"), "✗ failed"),
        (("aborted", "completed"), "⊘ aborted"),
        (("completed", "completed"), "✓ completed"),
    ],
)
def test_the_state_of_the_whole(statuses: tuple[str, ...], state: str) -> None:
    """A group is running while any run is, and has failed if any run has."""
    _, listing = listed(*a_group(*statuses))
    assert listing.group(head(listing).group_key).state == state


def test_a_head_sums_up() -> None:
    """Tokens and cost are sums, the time is the longest, states are counted."""
    runs = a_group("completed", "failed", "completed", usage=Usage(input=100, cost=0.25))
    _, listing = listed(*runs[:2], replace(runs[2], state=replace(runs[2].state, duration_ms=65_000)))
    group = listing.group(head(listing).group_key)
    assert (group.texts["tokens"], group.texts["cost"], group.longest_ms) == ("300", "$0.75", 65_000)
    assert group.tally == "1 ✗  2 ✓"


def test_a_group_of_one_has_no_head() -> None:
    """A group of one run has no head, even if its other runs were deleted."""
    run_store, listing = listed(a_mate(1, size=1), *a_group("running", "running", first=5))
    tell(run_store, listing, removed=(run_id(5),))
    assert shown(listing) == [6, 1]


def test_a_folded_group_is_one_row() -> None:
    """A folded group is only its head, where its runs are found."""
    run_store, listing = listed(*a_group("running", "completed"), a_run(9, "completed"))
    group_key = head(listing).group_key
    listing.fold(group_key, True)
    assert shown(listing) == ["×2", 9]
    assert listing.row_of(run_id(2)) == Row(group_key, "")
    tell(run_store, listing, *a_group("failed", "completed"))
    assert shown(listing) == [9, "×2"]
    listing.fold(group_key, False)
    assert shown(listing) == [9, "×2", 1, 2]


# --- filters ---------------------------------------------------------------------------------------------------------


def test_a_filter_counts_what_it_passes() -> None:
    """Runs that do not match are hidden; a group keeps the matching ones."""
    _, listing = listed(a_run(1), a_run(2, "failed"), *a_group("failed", "running", "failed", first=5))
    listing.filter_by(parse_filter("status:failed"))
    assert (shown(listing), listing.shown) == (["2 of 3", 5, 7, 2], 3)
    listing.filter_by(EVERYTHING)
    assert listing.shown == 5


def test_one_match_of_a_group_needs_no_head() -> None:
    """A group's only shown run is a row like others, sorted by its state."""
    _, listing = listed(a_run(9, "completed"), *a_group("failed", "running"))
    listing.filter_by(parse_filter("-status:running"))
    assert shown(listing) == [9, 1]


def test_runs_come_and_go_by_their_changes() -> None:
    """A run that begins to match appears, one that stops matching disappears."""
    run_store, listing = listed(a_run(1), a_run(2))
    listing.filter_by(parse_filter("status:failed"))
    tell(run_store, listing, a_run(1, "failed"))
    assert shown(listing) == [1]
    tell(run_store, listing, a_run(1, "completed"))
    assert shown(listing) == []


def test_a_held_run_stays_until_it_is_let_go() -> None:
    """The run under the cursor stays in the list."""
    run_store, listing = listed(a_run(1), a_run(2))
    listing.filter_by(parse_filter("status:running"))
    listing.pin(run_id(1))
    tell(run_store, listing, a_run(1, "completed"))
    assert shown(listing) == [2, 1]
    listing.pin(run_id(2))
    assert shown(listing) == [2]


def test_a_filter_by_marks_is_asked_again() -> None:
    """Marking and viewing change the result of a filter by them."""
    run_store, listing = listed(a_run(1), a_run(2))
    listing.filter_by(parse_filter("is:selected"))
    run_store.marked.add(run_id(1))
    listing.refilter([run_id(1)])
    assert shown(listing) == [1]


# --- sorts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("", [6, 5, 4, 3, 2, 1]),
        ("by cost", [5, 6, 1, 2, 4, 3]),
        ("by tokens", [5, 6, 4, 3, 2, 1]),
        ("by elapsed", [5, 6, 2, 4, 3, 1]),
        ("by preset", [5, 6, 4, 1, 3, 2]),
    ],
)
def test_sorts(sort: str, order: list[int]) -> None:
    """Each sort keeps running runs first, and equal ones newest first."""
    _, listing = listed(
        a_run(1, "completed", usage=Usage(cost=9.0), duration_ms=1, meta_preset="beta"),
        a_run(2, "failed", usage=Usage(cost=5.0, input=1), duration_ms=900, meta_preset="Gamma"),
        a_run(3, "completed", usage=Usage(cost=0.0, input=7), duration_ms=5, meta_preset="beta-2"),
        a_run(4, "completed", usage=Usage(cost=0.1, input=7), duration_ms=5, meta_preset="Alpha"),
        a_run(5, usage=Usage(cost=0.5, input=3), meta_preset="a"),
        a_run(6, usage=Usage(cost=0.1, input=2), meta_preset="b"),
    )
    listing.sort_by(sort_titled(sort))
    assert shown(listing) == order


def test_a_sort_follows_what_changes() -> None:
    """A run that has used more than another passes it."""
    run_store, listing = listed(a_run(1, usage=Usage(input=1)), a_run(2, usage=Usage(input=2)))
    listing.sort_by(sort_titled("by tokens"))
    tell(run_store, listing, a_run(1, usage=Usage(input=3)))
    assert shown(listing) == [1, 2]


# --- all changes -----------------------------------------------------------------------------------------------------

FILTERS = ("", "status:failed,running", "-status:completed task", "is:selected", "preset:b -is:unread", "zzz")


def expected_groups(run_store: RunStore, listing: Listing) -> list[tuple[object, ...]]:
    """Sort everything again, the slow way: each group_key's key with its shown runs."""
    groups: dict[str, list[RunSnapshot]] = {}
    for run in run_store.runs:
        seen = Flags(run_store.is_unseen(run.run_id), run.run_id in run_store.marked)
        if listing.filter.passes(run, seen):
            groups.setdefault(run.meta.group.id if run.meta.group else run.run_id, []).append(run)
    return sorted(tuple(sorted(run.run_id for run in runs)) for runs in groups.values())


@pytest.mark.parametrize("seed", range(12))
def test_random_changes_keep_the_rows_true(seed: int) -> None:
    """After any updates, filters, sorts, folds and marks the rows equal those of a complete new sort."""
    chance = random.Random(seed)
    run_store, listing = listed()
    statuses = ("queued", "running", "completed", "failed", "aborted")

    def made(number: int) -> RunSnapshot:
        fields: dict[str, Any] = {
            "usage": Usage(input=chance.randrange(5), cost=chance.random()),
            "meta_preset": chance.choice(("a", "b", "B2")),
        }
        status = chance.choice(statuses)
        if status not in ("queued", "running"):
            fields["duration_ms"] = chance.randrange(9000)
        if number % 3:
            return a_run(number, status, **fields)
        return a_mate(number, status, first=number // 12 * 12, size=4, **fields)

    for _ in range(60):
        match chance.randrange(6):
            case 0:
                listing.filter_by(parse_filter(chance.choice(FILTERS)))
            case 1:
                listing.sort_by(chance.choice(SORTS))
            case 2 if len(listing):
                listing.fold(listing.row(chance.randrange(len(listing))).group_key, chance.random() < 0.5)
            case 3:
                changed = [run.run_id for run in run_store.runs if chance.random() < 0.1]
                run_store.marked.symmetric_difference_update(changed)
                listing.refilter(changed)
            case 4:
                gone = tuple(run.run_id for run in run_store.runs if chance.random() < 0.05)
                tell(run_store, listing, removed=gone)
            case _:
                many = chance.choice((1, 3, BULK * 2))
                tell(
                    run_store,
                    listing,
                    *{number: made(number) for number in chance.choices(range(150), k=many)}.values(),
                )
        check(run_store, listing)
    assert len(run_store)


def check(run_store: RunStore, listing: Listing) -> None:
    rows = [listing.row(place) for place in range(len(listing))]
    assert [listing.index_of(row) for row in rows] == list(range(len(rows)))
    shown_ids = listing.shown_ids()
    assert len(set(shown_ids)) == len(shown_ids) == listing.shown
    by_group: dict[str, list[str]] = {}
    for run_id_ in shown_ids:
        by_group.setdefault(listing.group_key_of(run_id_), []).append(run_id_)
    assert sorted(tuple(sorted(ids)) for ids in by_group.values()) == expected_groups(run_store, listing)
    groups = list(dict.fromkeys(row.group_key for row in rows))
    assert groups == list(by_group)
    sections = [group_section(run_store, ids) for ids in by_group.values()]
    assert sections == sorted(sections)
    assert listing.active == sum(
        1 if group_key in listing.folded and len(ids) > 1 else len(ids) + (len(ids) > 1)
        for (group_key, ids), section in zip(by_group.items(), sections, strict=True)
        if section is not Section.FINISHED
    )
    slow = sorted(run_store.runs, key=lambda run: listing.key_of(run.run_id))
    assert [run.run_id for run in slow if listing.row_of(run.run_id)] == shown_ids


def group_section(run_store: RunStore, ids: list[str]) -> Section:
    return min(section_of(run_store.get(run_id).status) for run_id in ids)
