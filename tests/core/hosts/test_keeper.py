"""The keeper of a cluster's programs restarts each one that ends, with growing delays unless it ran for long."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from subdeck.core.hosts.dask import cluster
from subdeck.core.hosts.dask.cluster import Keeper, Program

pytestmark = pytest.mark.processes

ENDS = """
import sys, time
with open(sys.argv[1], "a+") as starts:
    starts.write(".")
    starts.flush()
    starts.seek(0)
    if len(starts.read()) == 4:
        time.sleep(3)
"""


def test_the_wait_grows_until_one_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in {"FIRST_WAIT_S": 0.02, "LONGEST_WAIT_S": 0.1, "LASTED_S": 2.0}.items():
        monkeypatch.setattr(cluster, name, seconds)
    monkeypatch.setattr(cluster._Kept.__init__, "__defaults__", (None, 0.0, 0.02, 0.0))
    waits: list[float] = []
    kept = Keeper(lambda line: waits.append(kept._kept[0].wait))
    with kept:
        kept.add(Program("it", [sys.executable, "-I", "-S", "-c", ENDS, str(tmp_path / "starts")], {}, "/"))
        while len(waits) < 5:
            assert not kept.run(0.1)
    assert [0.04, 0.08, 0.1, 0.02, 0.04] == waits[:5]
