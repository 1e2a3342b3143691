"""Why a run needs you, decided in one place."""

from __future__ import annotations

import pytest
from subdeck.core.run.changes import CheckResult
from subdeck.core.run.events import Request
from subdeck.core.run.model import RequestKind, RunReason
from subdeck.core.run.need import Need, need_of
from subdeck.core.run.snapshot import RunSnapshot

from ...tui.fake_engine import a_run

ASKED = (Request(id="q1", kind=RequestKind.PERMISSION, title="wants to run a command", command="make"),)
FAILED_CHECK = CheckResult("tests", 2, 14.0, "2 failed")


@pytest.mark.parametrize(
    ("run", "is_unread", "is_idle", "need"),
    [
        (a_run(1, requests=ASKED), False, True, Need.WAITING),
        (a_run(1), False, True, Need.SILENT),
        (a_run(1), False, False, None),
        (a_run(1, "failed"), True, False, Need.FAILED),
        (a_run(1, "failed"), False, False, None),
        (a_run(1, "completed", check=FAILED_CHECK), True, False, Need.FAILED),
        (a_run(1, "completed", asks=True), True, False, Need.ASKS),
        (a_run(1, "completed"), True, False, Need.NEW),
        (a_run(1, "aborted", reason=RunReason.STOPPED), True, False, None),
        (a_run(1, "failed", foreign=True), True, False, None),
        (a_run(1, "failed", newer_schema=2), True, False, None),
    ],
)
def test_need(run: RunSnapshot, is_unread: bool, is_idle: bool, need: Need | None) -> None:
    """A request, an unread failure or question and an idle run need you; read results and ends by request do not."""
    assert need == need_of(run, is_unread=is_unread, is_idle=is_idle)


def test_needs_are_told_apart_by_their_words() -> None:
    """Every need has its own word and a glyph, so that no colour is necessary; an unread result can wait."""
    assert len({need.counted(2) for need in Need}) == len(Need)
    assert all(len(need.glyph) == 1 for need in Need)
    assert [need for need in Need if not need.needs_you] == [Need.NEW]
