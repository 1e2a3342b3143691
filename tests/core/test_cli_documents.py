"""The JSON documents that the reference describes are those that the commands print."""

from __future__ import annotations

import pytest

from tests.house.reference import recording
from tests.house.reference.json_documents import NAMED_BY_USER, described, recorded


@pytest.fixture(scope="module")
def played() -> recording.Recorded:
    return recording.record()


@pytest.mark.parametrize("name", recorded())
def test_the_documents_have_the_fields_of_the_reference(name: str, played: recording.Recorded) -> None:
    """A field that came, went or changed its type is in the recording, too."""
    named = NAMED_BY_USER.get(name, ())
    now, before = (
        {path: set(kinds.split(" or ")) - {"null"} for path, kinds in described(_documents(calls, name), named)}
        for calls in (played, recorded())
    )
    how = "run `python -m tests.house.reference --record`"
    assert set(now) == set(before), how
    assert {path: kinds for path, kinds in now.items() if kinds and before[path] and kinds != before[path]} == {}, how


def _documents(calls: recording.Recorded, name: str) -> list[object]:
    return [call["document"] for call in calls[name]]
