"""The lease of a run on a host: renewed by the host's agent, and over without contact."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core.run.model import Limits, RunReason, Usage
from subdeck.core.runners import process, standby
from subdeck.core.system import files
from subdeck.core.wrapper import _lease as leases
from subdeck.core.wrapper._lease import Lease
from subdeck.core.wrapper._limits import Watchdog

from tests.factories import end_of, open_engine, result_of, start, wait_for_end

pytestmark = pytest.mark.processes

NOW = 10_000.0
CERTAIN_SOON = "from subdeck.core.wrapper import _lease; _lease.CERTAIN_S = 0.5"
"""For wrappers in tests that do not measure how long a lease must be over."""


class Clocks:
    """The two clocks of a lease."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.boot, self.awake = NOW, 50.0
        monkeypatch.setattr(leases, "now", lambda: self.boot)
        monkeypatch.setattr(leases.time, "monotonic", lambda: self.awake)

    def pass_(self, seconds: float, *, asleep: bool = False) -> None:
        self.boot += seconds
        self.awake += 0 if asleep else seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def looked(lease: Lease, clocks: Clocks, seconds: float) -> str:
    """Advance time, checking each second; return the lease's words then."""
    for _ in range(int(seconds)):
        clocks.pass_(1)
        lease.look()
    return lease.words


def test_a_lease_that_is_renewed(tmp_path: Path, clocks: Clocks) -> None:
    """A lease lasts while agent and user renew it in time."""
    path = tmp_path / "lease"
    lease = Lease(str(path), 15, 60)
    for _ in range(20):
        path.write_text(f"{clocks.boot} {clocks.boot}\n")
        assert "" == looked(lease, clocks, 14)


@pytest.mark.parametrize(
    ("agent", "operator", "words"),
    [
        (90, 0, "no subdeck process ran on its host for 90 s, so the run could not have been stopped"),
        (900, 0, "no subdeck process ran on its host for 15 min, so the run could not have been stopped"),
        (0, 7200, "its host had no contact with you for 2 h"),
    ],
)
def test_who_was_not_heard_of(tmp_path: Path, clocks: Clocks, agent: float, operator: float, words: str) -> None:
    """A lease is over shortly after its time, names the missing party, and stays over."""
    path = tmp_path / "lease"
    path.write_text(f"{NOW} {NOW}\n")
    lease = Lease(str(path), agent, operator)
    assert "" == looked(lease, clocks, max(agent, operator) + leases.CERTAIN_S)
    assert words == looked(lease, clocks, 1)
    path.write_text(f"{clocks.boot} {clocks.boot}\n")
    assert words == looked(lease, clocks, 10)


def test_never(tmp_path: Path, clocks: Clocks) -> None:
    """A lease of zero never ends."""
    assert "" == looked(Lease(str(tmp_path / "lease"), 0, 0), clocks, 5000)


def test_a_machine_that_slept(tmp_path: Path, clocks: Clocks) -> None:
    """After the machine slept, a wrapper gives the agent time to renew the lease."""
    path = tmp_path / "lease"
    path.write_text(f"{NOW} {NOW}\n")
    lease = Lease(str(path), 900, 0)
    clocks.pass_(8 * 3600, asleep=True)
    assert "" == looked(lease, clocks, 3)
    path.write_text(f"{clocks.boot} {NOW}\n")
    assert "" == looked(lease, clocks, 600)


@pytest.mark.parametrize("content", ["", "torn", "1", "1 2 3", "nan nan", "inf inf", "9e99 9e99", "-5 -5"])
def test_a_lease_that_cannot_be_read(tmp_path: Path, clocks: Clocks, content: str) -> None:
    """An unreadable lease neither renews nor ends at once; the time counts from the start."""
    path = tmp_path / "lease"
    if content:
        path.write_text(content)
    lease = Lease(str(path), 60, 60)
    assert "" == looked(lease, clocks, 60)
    looked(lease, clocks, 100)
    assert lease.is_over


def test_it_ends_a_run_that_waits_for_a_person(tmp_path: Path, clocks: Clocks) -> None:
    """The lease never pauses, even while the run waits for a person, who could not be reached."""
    lease = Lease(str(tmp_path / "lease"), 10, 0)
    watchdog = Watchdog(Limits(), 0.0, lease)
    watchdog.pause(1.0)
    assert watchdog.exceeded(2.0, Usage(), False) is None
    looked(lease, clocks, 20)
    assert RunReason.LEASE is watchdog.exceeded(3.0, Usage(), False)


def lease_runs(monkeypatch: pytest.MonkeyPatch, options: dict[str, tuple[str, ...]]) -> None:
    """Give the wrappers of later runs extra options, by the first words of their tasks."""
    begin = process._start_process

    def with_options(call: process.WrapperCall) -> process.HasGone:
        return begin(replace(call, arguments=(*call.arguments, *options[call.meta.task.partition(" ")[0]])))

    def argv(call: process.WrapperCall) -> tuple[str, ...]:
        return (sys.executable, "-P", "-E", "-c", f"{CERTAIN_SOON}; {standby._PROGRAM}", *call.arguments)

    monkeypatch.setattr(process, "_start_process", with_options)
    monkeypatch.setattr(process.WrapperCall, "argv", property(argv))


def test_runs_go_by_their_leases(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without contact, a run ends with the reason and keeps its output, and a queued run ends without an agent.

    A run with a renewed lease continues.
    """
    lease, slots = tmp_path / "lease", tmp_path / "slots"
    lease.write_text("0 0\n")
    files.make_private_directory(str(slots))
    taken = files.open_lock(str(slots / "0"))
    files.lock(taken)
    over = ("--lease", str(lease), "1", "0")
    lasting = ("--lease", str(lease), "3600", "0")
    lease_runs(monkeypatch, {"say": over, "touch": ("--slots", "1", str(slots), *over), "wait-for": lasting})
    engine = open_engine(project_dir)
    soft = start(engine, "say So far.", "hang")
    queued = start(engine, f"touch {tmp_path}/begun", "answer 1")
    lasts = start(engine, f"wait-for {tmp_path}/over", "answer 1")
    run = wait_for_end(engine, soft.run_id)
    assert ("aborted", "lease") == (run.status, run.reason)
    assert end_of(run).message.startswith(
        "the run lost contact and its lease expired: no subdeck process ran on its host for 1 s"
    )
    result = result_of(engine, run)
    assert ("SIGTERM", "So far.") == (result.signal, result.final_text)

    run = wait_for_end(engine, queued.run_id)
    os.close(taken)
    assert ("aborted", "lease", None) == (run.status, run.reason, end_of(run).started_at)
    assert not (tmp_path / "begun").exists()

    (tmp_path / "over").touch()
    run = wait_for_end(engine, lasts.run_id)
    assert ("completed", "done") == (run.status, run.reason)
