"""A test cluster on this machine for trying hosts: a scheduler, and hosts with their own spools, on loopback.

Its certificates are created for it and removed with it, because other users of this machine could reach its ports.
"""

from __future__ import annotations

import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator

from ... import paths
from ...config import effective_hosts
from ...config.effective_hosts import TryCluster
from ...config.host_settings import TlsFiles, split_address
from ...errors import RunnerUnavailable, SubdeckError
from ...project.liveness import ask_to_stop
from ...run import artifacts
from ...run.model import StopReason
from ...run.snapshot import Queued, RunSnapshot
from ...system import files, processes
from .._spool import is_relay
from .certificates import make_keys
from .cluster import Host, Keeper, scheduler_program

UP_S = 60.0
"""Seconds that the scheduler has to listen."""
STOPPING_S, FETCHING_S = 15.0, 3.0
"""Seconds for runs to stop, and for their results to be fetched, when the cluster ends."""
LOOK_S = 0.1


def try_cluster(count: int, slots: int, *, say: Callable[[str], None], report: Callable[[str], None]) -> None:
    """Run a cluster of `count` hosts until a termination signal; then stop its runs.

    Raises RunnerUnavailable if one is already running or the scheduler does not start; OSError.
    """
    if cluster := effective_hosts.kept_cluster():
        what = f"a test cluster is already running (process {cluster.pid})"
        raise RunnerUnavailable(what, where=effective_hosts.try_file(), hint="use it, or stop it with ctrl-C")
    directory = paths.state_file("hosts", "try")
    keys = os.path.join(directory, "keys")
    files.remove_tree(keys)
    certificates = make_keys(keys)
    spools = [os.path.join(directory, f"h{number}") for number in range(1, count + 1)]
    address = f"tls://127.0.0.1:{_free_port()}"
    try:
        with Keeper(report) as keeper:
            keeper.add(scheduler_program(address, certificates, os.path.join(directory, "scheduler")))
            if _comes_up(keeper, address, certificates):
                return
            for spool in spools:
                name = os.path.basename(spool)
                keeper.add(Host(address, certificates, slots, spool, name=name, listen="127.0.0.1").program)
            pid = os.getpid()
            effective_hosts.publish(
                TryCluster(
                    scheduler=address,
                    ca=certificates.ca,
                    cert=certificates.cert,
                    key=certificates.key,
                    pid=pid,
                    started=processes.start_time(pid) or 0,
                    boot_id=processes.boot_id(),
                )
            )
            say(_next_steps(count, slots))
            keeper.run()
            _stop_runs(keeper, spools, report)
    finally:
        files.remove(effective_hosts.try_file())
        files.remove_tree(keys)


def _comes_up(keeper: Keeper, address: str, certificates: TlsFiles) -> bool:
    """Wait for the scheduler; return True on a termination signal. Raises RunnerUnavailable."""
    deadline = time.monotonic() + UP_S
    while not _listens(address, certificates):
        if keeper.run(LOOK_S):
            return True
        if time.monotonic() > deadline:
            raise RunnerUnavailable("the scheduler did not start", where=address, hint="see its output above")
    return False


def _stop_runs(keeper: Keeper, spools: list[str], report: Callable[[str], None]) -> None:
    """Stop all runs and keep the hosts until the relay has fetched the results; a second signal ends the wait."""
    going_on = list(_runs(spools, ended=False))
    for project, run_id in going_on:
        meta = artifacts.read_meta(project.run_dir(run_id)) or artifacts.unreadable_meta(project.run_dir(run_id))
        run = RunSnapshot(meta=meta, state=Queued())
        try:
            ask_to_stop(project, run, force=False, by="hosts try", reason=StopReason.STOPPED)
        except SubdeckError as error:
            report(error.advice)
    if going_on:
        report(f"Stopping {len(going_on)} run{'s' * (len(going_on) > 1)} …")
    for patience, ended in ((STOPPING_S, False), (FETCHING_S, True)):
        deadline = time.monotonic() + patience
        while any(_runs(spools, ended=ended)) and time.monotonic() < deadline:
            if keeper.run(LOOK_S):
                return


def _runs(spools: list[str], *, ended: bool) -> Iterator[tuple[paths.Project, str]]:
    """Yield the unfetched finished runs in spools, or the unfinished ones."""
    for spool in spools:
        for name in filter(is_relay, files.names(spool)):
            project = paths.Project(os.path.join(spool, name))
            for run_id in artifacts.run_ids(project.runs):
                if os.path.lexists(f"{project.run_dir(run_id)}/{paths.RESULT}") == ended:
                    yield project, run_id


def _next_steps(count: int, slots: int) -> str:
    hosts = "one host" if count == 1 else f"{count} hosts"
    return (
        f"Test cluster: {hosts} on this machine, {slots} parallel runs each.\nIn another "
        "terminal:\n  subdeck hosts                                                list the "
        'hosts\n  subdeck run --runner hosts --no-preset "List the modules"    run on one of them\n'
        "Press ctrl-C to stop the cluster and its runs."
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _listens(address: str, certificates: TlsFiles) -> bool:
    context = ssl.create_default_context(cafile=certificates.ca)
    context.load_cert_chain(certificates.cert, certificates.key)
    context.check_hostname = False  # as in dask, only the authority counts
    try:
        with socket.create_connection(split_address(address), timeout=5.0) as plain, context.wrap_socket(plain):
            return True
    except OSError:
        return False
