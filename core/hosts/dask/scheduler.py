"""The scheduler of a cluster: how it is started. It is dask's own, and needs nothing of ours."""

from __future__ import annotations

import os
import sys

from ...config.host_settings import TlsFiles, split_address
from ...system import files
from . import configuration, security
from .keeper import Program


def scheduler_program(address: str, certificates: TlsFiles | None, directory: str) -> Program:
    """Return what is to be kept; it listens on that address and no other. Raises OSError.

    `directory` is made where it is missing; nothing is kept in it.
    """
    host, port = split_address(address)
    files.make_private_directory(directory)
    return Program(
        title="the scheduler",
        argv=[
            *(sys.executable, "-P", "-E", "-m", "distributed.cli.dask_scheduler"),
            *("--host", host, "--port", str(port), "--protocol", address.partition("://")[0]),
            *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
            *security.options(certificates),
        ],
        environment=configuration.variables(encrypted=certificates is not None),
        cwd=os.path.abspath(directory),
    )
