"""Hosts started by a batch system: a shell on any machine runs the job's script."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from subdeck.core.config.effective_hosts import keys_dir
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.hosts._carrier import Wish
from subdeck.core.hosts.dask.certificates import make_keys
from subdeck.core.hosts.dask.trial import _free_port

from tests.core.command_line import SUBDECK
from tests.core.hosts.clusters import asking, carrying, may_drop_a_connection
from tests.core.hosts.hosting import host_meta
from tests.factories import write_settings

pytestmark = [pytest.mark.processes, may_drop_a_connection]

# dask-jobqueue's command for a cluster with worker_extra_args=["--resources", "subdeck=4", "--preload", …].
OF_JOBQUEUE = (
    f"{shlex.quote(sys.executable)} -m distributed.cli.dask_worker {{address}} --name dummy-0 --nthreads 4"
    " --memory-limit 3.73GiB --no-nanny --death-timeout 60 --resources subdeck=4"
    " --preload subdeck.core.hosts.dask.preload --spool $SCRATCH/spool-$JOB_ID --protocol tls://"
    " --tls-ca-file {keys.ca} --tls-cert {keys.cert} --tls-key {keys.key}"
)
OF_OURS = f"exec {shlex.join(SUBDECK)} hosts serve {{address}} --slots 4 --spool $SCRATCH/spool-$JOB_ID"


@contextmanager
def started(argv: list[str], **environment: str) -> Iterator[None]:
    """Run a process, and kill its group at the end."""
    process = subprocess.Popen(argv, env={**os.environ, **environment}, stderr=subprocess.DEVNULL, process_group=0)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("command", [OF_JOBQUEUE, OF_OURS], ids=["jobqueue", "serve"])
async def test_a_job_is_a_host(tmp_path: Path, command: str) -> None:
    """A job is a host that completes runs, with jobqueue's worker command or with subdeck's own."""
    write_settings()
    keys = make_keys(keys_dir())
    address = f"tls://127.0.0.1:{_free_port()}"
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH -J dask-worker\n{command.format(address=address, keys=keys)}\n")
    with (
        started([*SUBDECK, "hosts", "scheduler", address]),
        started(["/bin/sh", str(script)], SCRATCH=str(tmp_path), JOB_ID="17"),
    ):
        async with carrying(HostsSettings(scheduler=address)) as carrier:
            (link,) = carrier.links.values()
            assert 4 == link.slots
            relay, meta = await asking(carrier, link.key), host_meta()
            carrier.want({meta.run_id: Wish(meta.run_id)})
            while meta.run_id not in (await relay.pull(wait=0.2)).offers:
                continue
            await relay.begin("answer 42", meta=meta)
            assert "42" == (await relay.pull_end(meta.run_id)).final_text
            assert (tmp_path / "spool-17" / "id").is_file()
