"""The four things that hold for runs on hosts whatever happened to them."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec
from subdeck.core import paths
from subdeck.core.run import artifacts
from subdeck.core.run.kinds import RunReason
from subdeck.core.system import processes

from tests.waiting import wait_until

from .operator import Operator, Watch

MIRRORED = (paths.STDERR, paths.STDOUT, paths.TRANSCRIPT, paths.EVENTS, paths.CHILD_SESSION)

LINE = re.compile(r'"text":"[0-9.]+ line ([0-9]+)"')


def check(operator: Operator, watch: Watch, runs: Iterable[str], *, starts: int = 1, delivered: bool = True) -> None:
    """Each child was started once and on one host, its records are those of its host byte by byte and have all that it
    said once, nothing of it is left, and nobody was told that it was lost before its host said so.

    `delivered`: whether a host had anything to deliver; not where a run was given up or never placed.
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
    """Say how the records of a run differ from those that its host has put aside; empty where they are the same."""
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
    """Return the numbers of the lines that a counted child said, as they stand in the events of its run."""
    content = _content(run_dir / paths.EVENTS).decode()
    return [int(number) for number in LINE.findall(content)]


def not_once(operator: Operator, run_id: str) -> list[int]:
    """Return the numbers of the lines that the operator has not exactly once, up to the last that the host has."""
    counted = Counter(lines(operator.run_dir(run_id)))
    last = max((number for run_dir in spooled(operator, run_id) for number in lines(run_dir)), default=0)
    return [number for number in range(1, last + 1) if counted[number] != 1]


def spooled(operator: Operator, run_id: str) -> list[Path]:
    """Return the directories of a run on hosts, acknowledged or not; at most one, or it is there twice."""
    spools = [operator.bed.spool(host) for host in operator.bed.hosts]
    # What is being put aside goes while its directory is read: `os.walk` passes over it.
    walked = (place for spool in spools for place in os.walk(spool))
    found = [Path(at) for at, _, names in walked if paths.META in names and os.path.basename(at) == run_id]
    there = [path for path in found if path.exists()]  # one that is being put aside is found twice
    assert len(there) <= 1, there
    return there


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
