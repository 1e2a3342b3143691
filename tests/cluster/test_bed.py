"""The bed itself: hosts are separate, and nothing outlives its maker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until

from .bed import MARK, NET, TAG, WORKER, Bed, remove_left_overs, why_not

MAKER = """
import sys
from pathlib import Path
from tests.cluster.bed import Bed
from tests.waiting import wait_until
with Bed(Path(sys.argv[1]), hosts=1) as bed:
    # Who starts a host may be killed before it has asked the kernel to kill the host with it.
    wait_until((bed.home("h1") / "worker.log").exists, "the host")
    print("up", flush=True)
    sys.stdin.read()
"""


def test_nothing_outlives_its_maker(tmp_path: Path) -> None:
    """When the maker of a bed is killed all its processes end, and the next bed removes its namespaces."""
    if why := why_not():
        pytest.skip(why)
    root = Path(__file__).resolve().parents[2]
    command = (sys.executable, "-c", MAKER, str(tmp_path / "bed"))
    maker = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with maker:
        assert maker.stdout and b"up\n" == maker.stdout.readline()
        assert _marked(maker.pid)
        maker.kill()
    wait_until(lambda: not _marked(maker.pid), "its processes to end")
    remove_left_overs()
    assert f"{TAG}-{maker.pid}-" not in subprocess.check_output(("ip", "netns", "list"), text=True)


def _marked(maker: int) -> list[str]:
    """Return the processes of a bed."""
    found: list[str] = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            environment = Path("/proc", pid, "environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={TAG}-{maker}-".encode() in environment:
            found.append(pid)
    return found


def test_hosts_are_machines_of_their_own(bed: Bed) -> None:
    """Each has its own network, id and processes; a cut host is unreachable until it is healed."""
    ids = {(bed.home(host) / "machine-id").read_text() for host in bed.hosts}
    assert 2 == len(ids)
    with bed.inside("h2"):
        addresses = subprocess.check_output(("ip", "-br", "addr"), text=True)
    assert f"{NET}.4/24" in addresses and f"{NET}.3/24" not in addresses
    wait_until(lambda: bed.find(WORKER, "h1"), "its worker")
    assert not set(bed.find("", "h1")).intersection(bed.find("", "h2"))
