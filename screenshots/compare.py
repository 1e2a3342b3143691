"""A picture of three copies of one task compared; the runs are made."""

from __future__ import annotations

from collections.abc import Callable

from subdeck.core.run.changes import ChangedFile, Changes, CheckResult, FileStatus
from subdeck.core.run.model import Group, Usage
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.tui.app import SubdeckApp

from tests.tui.deck import opened
from tests.tui.fake_engine import FakeEngine, a_run, run_id

Picture = Callable[[SubdeckApp, str], None]

ANSWERS = (
    "The test slept 50 ms and hoped that the worker was done by then. It now waits on the event that the worker sets,"
    " for 5 s at the most.\n\nRan it 200 times: no failure.",
    "The test is retried up to three times where it fails.",
    "I rewrote the fixture, so that each test has a worker of its own, and removed the sleeps from all of them.",
)
FILES = (
    (("src/worker.py", 5, 1), ("tests/test_worker.py", 9, 2)),
    (("tests/test_worker.py", 2, 2),),
    (("tests/conftest.py", 31, 4), ("tests/test_queue.py", 12, 14), ("tests/test_worker.py", 37, 23)),
)
CHECKS = (
    CheckResult("tests", 0, 14.0),
    CheckResult("tests", 1, 21.0, "1 failed, 63 passed"),
    CheckResult("tests", 0, 12.0),
)
FIGURES = ((0.21, 8, 48_200, 131_000), (0.09, 3, 20_100, 52_000), (0.34, 14, 97_500, 248_000))
"""Cost, turns, tokens, milliseconds."""


def _copy(number: int) -> RunSnapshot:
    named = tuple(ChangedFile(path, FileStatus.MODIFIED, added, gone) for path, added, gone in FILES[number])
    changes = Changes(
        files=len(named),
        added=sum(file.added or 0 for file in named),
        removed=sum(file.removed or 0 for file in named),
        named=named,
    )
    cost, turns, tokens, milliseconds = FIGURES[number]
    return a_run(
        number + 1,
        "completed",
        meta_task="fix the flaky test of the worker",
        meta_preset="fixer",
        meta_check="tests",
        meta_group=Group(run_id(1), number, 3, 3),
        meta_resolved_model="anthropic/claude-haiku-4-5",
        usage=Usage(cost=cost, turns=turns, output=tokens),
        duration_ms=milliseconds,
        changes=changes,
        check=CHECKS[number],
        message=ANSWERS[number].split("\n")[0],
    )


async def compare(picture: Picture) -> None:
    """Take the picture `compare`."""
    engine = FakeEngine(*map(_copy, range(3)))
    engine.work.answers = {run_id(number): answer for number, answer in enumerate(ANSWERS, 1)}
    async with opened(engine, (120, 30)) as deck:
        deck.app.clear_notifications()
        await deck.press("V")
        await deck.until_text("I rewrote the fixture")
        picture(deck.app, "compare")
