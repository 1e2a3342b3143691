"""dask's configuration: quiet, patient with busy machines, no web pages, no retries."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

_OURS: Mapping[str, str | int] = {
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "15s",  # below 11 s each connection fails an assertion
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": "60s",  # longer than a worker's loop ever stalls
    "distributed.admin.tick.limit": "30s",  # a busy machine needs no warning
    "distributed.admin.log-length": 100,
    "distributed.admin.low-level-log-length": 20,  # the latest messages are kept whole
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.log-length": 60,
    "distributed.admin.system-monitor.disk": "false",
    "distributed.admin.system-monitor.gil.enabled": "false",
    "distributed.worker.profile.enabled": "false",
    "logging.distributed": "warning",
}
"""Defaults; dask's own environment variables override them."""
_ALWAYS: Mapping[str, str] = {"distributed.scheduler.http.routes": "[]", "distributed.worker.http.routes": "[]"}
"""No HTTP pages: they check neither certificates nor secrets."""


_DASKS_OWN = ("DASK_INTERNAL_INHERIT_CONFIG", "__DASK_PARENT_PID")


def variables(*, encrypted: bool) -> dict[str, str]:
    """Return the extra environment variables of a scheduler or worker."""
    ours = {_variable(key): str(value) for key, value in _OURS.items()}
    always = {**_ALWAYS, "distributed.comm.require-encryption": "true" if encrypted else "false"}
    return {name: os.environ.get(name, value) for name, value in ours.items()} | {
        _variable(key): value for key, value in always.items()
    }


def drop_variables() -> None:
    """Remove them from this process's environment once dask has read them: runs must not inherit them."""
    for name in (*variables(encrypted=True), *_DASKS_OWN):
        os.environ.pop(name, None)


def apply() -> None:
    """Configure this process as a client, before distributed is imported, which limits what it logs."""
    import dask.config  # not needed by processes that only start other programs

    dask.config.set({key: value for key, value in _OURS.items() if _variable(key) not in os.environ})
    dask.config.set({"logging": {"distributed": "critical", "distributed.client": "critical"}})
    warnings.filterwarnings("ignore", module=r"distributed\.")  # about versions, or with text from a peer


def _variable(key: str) -> str:
    return f"DASK_{key.replace('.', '__').replace('-', '_').upper()}"
