"""The four guarantees for runs on hosts, under any fault."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from subdeck.core import paths
from subdeck.core.run import artifacts
from subdeck.core.run.enumerations import RunReason
from subdeck.core.system import processes

from tests.waiting import wait_until

from .operator import Operator, Watch

MIRRORED = (paths.STDERR, paths.STDOUT, paths.TRANSCRIPT, paths.EVENTS, paths.CHILD_SESSION)

LINE = re.compile(r'"text":"[0-9.]+ line ([0-9]+)"')


def check(operator: Operator, watch: Watch, runs: Iterable[str], *, starts: int = 1, delivered: bool = True) -> None:
    """Check that each child was started once and on one host, that its records equal its host's byte by byte and
    contain all its output once, that no process is left, and that it was not called lost before its host reported that.

    `delivered`: whether a host had anything to deliver; not if a run was abandoned or never placed.
    """
    runs = tuple(runs)
    watch.end()
    assert dict.fromkeys(runs, starts) == {run: len(operator.starts(run)) for run in runs}
    if delivered:
        assert {} == {run: fault for run in runs if (fault := difference(operator, run))}
        assert {} == {run: wrong for run in runs if (wrong := not_once(operator, run))}
    for run in runs:
        wait_until(lambda run=run: not processes.marked(run), f"nothing to be left of {run}")
        result = artifacts.read_result(str(operator.run_dir(run)))
        assert result, f"{run} has no result"
        if RunReason.LOST in watch.words(run):
            assert ("host", RunReason.LOST) == (result.written_by, result.reason)


def difference(operator: Operator, run_id: str) -> str:
    """Return the difference between a run's records and those archived by its host; empty if they are equal."""
    wait_until(
        lambda: any(path.parent.name == "done" for path in spooled(operator, run_id)), f"{run_id} to be put aside"
    )
    (run_dir,) = spooled(operator, run_id)
    own = operator.run_dir(run_id)
    for name in MIRRORED:
        there, here = _content(run_dir / name), _content(own / name)
        if there != here:
            return f"{name} has {len(here):,} bytes here and {len(there):,} there"
    there, here = artifacts.read_result(str(run_dir)), artifacts.read_result(str(own))
    if there is None or here is None:
        return f"result here: {bool(here)}, there: {bool(there)}"
    told = ("status", "reason", "final_text", "started_at", "ended_at", "exit_code")
    ends = [{name: getattr(result, name) for name in told} for result in (there, here)]
    return "" if ends[0] == ends[1] else f"results: {msgspec.json.encode(ends).decode()}"


def lines(run_dir: Path) -> list[int]:
    """Return the line numbers of a counted child's output in the events of its run."""
    content = _content(run_dir / paths.EVENTS).decode()
    return [int(number) for number in LINE.findall(content)]


def not_once(operator: Operator, run_id: str) -> list[int]:
    """Return the lines that the operator does not have exactly once, up to the last on the host."""
    counted = Counter(lines(operator.run_dir(run_id)))
    last = max((number for run_dir in spooled(operator, run_id) for number in lines(run_dir)), default=0)
    return [number for number in range(1, last + 1) if counted[number] != 1]


def spooled(operator: Operator, run_id: str) -> list[Path]:
    """Return the directories of a run on hosts, acknowledged or not; fails if it is there twice."""
    spools = [operator.bed.spool(host) for host in operator.bed.hosts]
    # A directory may be moved while it is read: `os.walk` skips it.
    walked = (place for spool in spools for place in os.walk(spool))
    found = [Path(at) for at, _, names in walked if paths.META in names and os.path.basename(at) == run_id]
    there = [path for path in found if path.exists()]  # one that is being moved is found twice
    assert len(there) <= 1, there
    return there


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
