"""The worker of dask that makes this machine a host of a cluster: how it is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...config.host_settings import TlsFiles
from ...system import files
from . import configuration, security
from .keeper import Program

MEMORY_OF_A_CHILD_MB = 400
"""What pi takes."""
SLOTS_OF_A_CORE = 4
"""Children wait for models most of the time."""
_DASKS_OWN = "dask-scratch-space"
"""The directory in which dask creates files that others may read: its umask is that of the runs' agents."""
PRELOAD = "subdeck.core.hosts.dask.preload"


@dataclass(frozen=True)
class Host:
    """A host that this machine is to be."""

    scheduler: str
    certificates: TlsFiles | None
    slots: int
    spool: str
    labels: Mapping[str, float] = field(default_factory=dict[str, float])
    name: str = ""
    """Empty for the machine's."""
    listen: str = ""
    """The address by which others reach it; empty for the one by which it reaches the scheduler."""

    @property
    def program(self) -> Program:
        """Return what is to be kept. Raises OSError where the spool cannot be made."""
        scratch = os.path.join(self.spool, "tmp")
        files.make_private_directory(os.path.join(scratch, _DASKS_OWN))
        resources = {"subdeck": self.slots, **self.labels}
        return Program(
            title=f"the worker {self.name}".rstrip(),
            argv=[
                *(sys.executable, "-P", "-E", "-m", "distributed.cli.dask_worker", self.scheduler),
                *("--nthreads", str(self.slots), "--no-nanny", "--memory-limit", "0"),
                *("--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--local-directory", scratch),
                *("--resources", " ".join(f"{label}={count:g}" for label, count in resources.items())),
                *(("--host", self.listen) if self.listen else ()),
                *security.options(self.certificates),
                *("--preload", PRELOAD, "--spool", self.spool),
                *(("--host-name", self.name) if self.name else ()),
            ],
            environment=configuration.variables(encrypted=self.certificates is not None),
            cwd=scratch,
        )


def usual_slots() -> int:
    """Return how many children this machine has room for: by its free memory, and by its cores."""
    return max(1, min(_free_megabytes() // MEMORY_OF_A_CHILD_MB, len(os.sched_getaffinity(0)) * SLOTS_OF_A_CORE))


def _free_megabytes() -> int:
    for line in files.content("/proc/meminfo").splitlines():
        if line.startswith(b"MemAvailable:"):
            return int(line.split()[1]) // 1024
    return MEMORY_OF_A_CHILD_MB
