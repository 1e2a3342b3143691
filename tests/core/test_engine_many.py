"""Two hundred runs at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core.run.events import RunEnded, RunQueued, RunStarted

from tests.factories import BRIEF, ahead_of, end_of, events_of, open_engine, request
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

MANY = 200


@pytest.mark.xdist_group("many")
def test_two_hundred_at_once(project_dir: Path) -> None:
    """Two hundred runs launched together complete in order of their requests and leave only their records."""
    engine = open_engine(project_dir, BRIEF, max_parallel=4)
    runs = engine.launch([request(f"task {number}") for number in range(MANY)], background=False)
    assert MANY == len(runs)
    waiting = [run for run in runs if run.status == "queued"]
    aheads = [ahead_of(run) for run in waiting]
    assert aheads == list(range(len(waiting)))
    ends = engine.wait([run.run_id for run in runs], timeout=100)
    assert {("completed", "done", "ok")} == {(run.status.value, str(run.reason), end_of(run).message) for run in ends}
    assert [f"task {number}" for number in range(MANY)] == [run.meta.task for run in ends]
    wait_until(lambda: not os.listdir(engine.project.active), "the last wrapper to clean up behind its result")
    for run in ends:
        kinds = [type(event) for event in events_of(engine, run) if not isinstance(event, RunQueued)]
        assert (RunStarted, RunEnded) == (kinds[0], kinds[-1])
