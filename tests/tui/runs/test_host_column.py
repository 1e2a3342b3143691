"""Runs on hosts: a column of the list, a filter, and sorting by it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from subdeck.core.run.columns import BY_AGE, HOST, SORTS, TASK, sort_titled
from subdeck.core.run.placement import Place, PlaceState
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.palette._offers import filter_offers
from subdeck.tui.runs._listing import Listing
from subdeck.tui.runs._rows import RowFlags, head_cells
from subdeck.tui.runs.column_layout import DEFAULT, WITH_HOST, for_listed, layout
from subdeck.tui.runs.filter import Flags, parse_filter
from subdeck.tui.runs.order import summarize
from subdeck.tui.runs.store import RunStore

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import Deck, opened
from ..sample_runs import a_mate, an_update

NO_FLAGS = Flags(unseen=False, marked=False)


def a_remote_run(number: int = 1, status: str = "running", host: str = "h07", **fields: Any) -> RunSnapshot:
    """Return a run on a host, or one waiting for any host."""
    place = Place(PlaceState.PLACED, host=host) if host else Place(PlaceState.WAITS)
    return a_run(number, status, **({"meta_runner": "hosts", "place": place} | fields))


def headings(deck: Deck) -> str:
    return deck.rows(deck.main.runs)[0]


async def test_the_column_comes_with_a_remote_run() -> None:
    """The column of hosts is shown only while a remote run is listed."""
    async with opened(FakeEngine(a_run(1))) as deck:
        assert "host" not in headings(deck)
        deck.app.clear_notifications()
        deck.main.bridge.engine.tell(a_remote_run(2))  # type: ignore[attr-defined]
        await deck.until(lambda: "h07" in deck.screen_text, "the host of the run")
        assert "host" in headings(deck)
        deck.main.bridge.engine.tell(removed=(run_id(2),))  # type: ignore[attr-defined]
        await deck.until(lambda: "host" not in headings(deck), "the room of the column again")


@pytest.mark.parametrize(("width", "shown"), [(40, False), (76, True), (116, True), (196, True)])
def test_the_column_has_its_place(width: int, shown: bool) -> None:
    """The column is shown in lists of 80 columns too, and dropped before the texts get too narrow."""
    assert shown == (layout(width, WITH_HOST).span_of(HOST) is not None)


def test_columns_of_local_runs_stay() -> None:
    """Without a remote run the chosen columns are shown except this one, but never none."""
    assert DEFAULT == for_listed(DEFAULT, remote=False)
    assert WITH_HOST == for_listed(DEFAULT, remote=True)
    assert (TASK,) == for_listed((TASK, HOST), remote=False)
    assert DEFAULT == for_listed((HOST,), remote=False)


def test_only_listed_runs_count() -> None:
    """A remote run that the filter hides brings no column."""
    store = RunStore()
    listing = Listing(store)
    update = an_update(a_run(1, meta_task="near"), a_remote_run(2, meta_task="far"))
    store.apply(update)
    listing.take(update)
    assert listing.has_remote
    listing.filter_by(parse_filter("near"))
    assert not listing.has_remote


def test_a_group_names_its_host() -> None:
    """The head of a group names the host of all its runs, or the number of hosts."""
    runs = [
        a_mate(number, size=2, meta_runner="hosts", place=Place(PlaceState.PLACED, host=host))
        for number, host in ((1, "h01"), (2, "h02"))
    ]
    for members, expected in ((runs, "2 hosts"), (runs[:1] * 2, "h01")):
        cells = head_cells(summarize(members, 2), RowFlags(), layout(116, WITH_HOST), datetime.now(UTC))
        assert f" {expected} " in "".join(text for text, _ in cells)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("host:h07", {1}), ("host:H0", {1, 2}), ("-host:h07", {2, 3}), ("host:", {1, 2, 3}), ("is:unknown", {2})],
)
def test_runs_are_filtered_by_host(text: str, expected: set[int]) -> None:
    """A part of a host's name is enough; local runs have none."""
    runs = {1: a_remote_run(1), 2: a_remote_run(2, host="h01", elsewhere=True), 3: a_run(3)}
    wanted = parse_filter(text)
    assert expected == {number for number, run in runs.items() if wanted.passes(run, NO_FLAGS)}


def test_a_host_can_be_asked_for() -> None:
    """A run waiting for its required host is found by that host."""
    run = a_remote_run(1, "queued", host="", meta_host="h03")
    assert parse_filter("host:h03").passes(run, NO_FLAGS)


def test_the_palette_offers_hosts() -> None:
    """Each host of a run is offered once."""
    titles = [offer.title for offer in filter_offers("", (), ("h02", "h01", "h02"))]
    assert ["host:h01", "host:h02"] == [title for title in titles if title.startswith("host:")]


def test_hosts_sort_by_a_heading_alone() -> None:
    """The key for sorting skips the order by host, which most lists do not have."""
    sort, seen = BY_AGE.next, [BY_AGE]
    while sort is not BY_AGE:
        seen.append(sort)
        sort = sort.next
    assert set(SORTS) - {sort_titled("by host")} == set(seen)
    assert BY_AGE is sort_titled("by host").next
