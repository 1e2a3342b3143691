"""The JSON documents in the reference match the output of the commands."""

from __future__ import annotations

import pytest

from tests.house.reference import recording
from tests.house.reference.json_documents import NAMED_BY_USER, described, recorded

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

REWRITE = "run `python -m tests.house.reference --record`"


@pytest.mark.timeout(900)  # all commands, one after the other
def test_the_documents_have_the_fields_of_the_reference() -> None:
    """A field that was added, removed or changed its type must be recorded."""
    now, before = recording.record(), recorded()
    assert set(now) == set(before), REWRITE
    for name in now:
        played, kept = _fields(now, name), _fields(before, name)
        assert set(played) == set(kept), f"{name}: {REWRITE}"
        other = {path: kinds for path, kinds in played.items() if kinds and kept[path] and kinds != kept[path]}
        assert other == {}, f"{name}: {REWRITE}"


def _fields(calls: recording.Recorded, name: str) -> dict[str, set[str]]:
    """Return the fields of a command's documents with their types, without null, which may differ each time."""
    rows = described([call["document"] for call in calls[name]], NAMED_BY_USER.get(name, ()))
    return {path: set(kinds.split(" or ")) - {"null"} for path, kinds in rows}
