"""The host shown for a run on another machine."""

from __future__ import annotations

import pytest
from subdeck.core.run.placement import Place, PlaceState

from ...factories import make_meta, make_snapshot

ON_H07 = Place(PlaceState.PLACED, host="h07")


def test_the_host_is_where_it_is() -> None:
    """The host is the one reported by the relay, by default the requested one; a local run has none."""
    asked = make_meta(runner="hosts", host="h01")
    assert ["h07", "h01", ""] == [
        make_snapshot(asked, "running", place=ON_H07).host,
        make_snapshot(asked, "queued", place=Place(PlaceState.WAITS)).host,
        make_snapshot(make_meta(host="h01"), "running", place=ON_H07).host,
    ]


@pytest.mark.parametrize(
    ("runner", "status", "place", "elsewhere", "expected"),
    [
        ("hosts", "running", ON_H07, True, True),
        ("hosts", "running", None, True, True),
        ("hosts", "running", ON_H07, False, False),
        ("hosts", "queued", Place(PlaceState.WAITS), True, False),
        ("hosts", "completed", ON_H07, True, False),
        ("process", "running", None, True, False),
    ],
)
def test_out_of_reach(runner: str, status: str, place: Place | None, elsewhere: bool, expected: bool) -> None:
    """Only an unfinished run on one of the user's hosts is unreachable, if no one confirms it."""
    run = make_snapshot(make_meta(runner=runner), status, place=place, elsewhere=elsewhere)
    assert expected == run.is_out_of_reach
