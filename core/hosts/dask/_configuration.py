"""What dask is told to be: quiet, patient on busy machines, without web pages, and never to do a thing twice."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping

_OURS: Mapping[str, str | int] = {
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "15s",  # below 11 s each connection fails an assertion
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": "60s",  # longer than a worker's loop ever stops
    "distributed.admin.tick.limit": "30s",  # that a machine is busy is no news
    "distributed.admin.log-length": 100,
    "distributed.admin.low-level-log-length": 20,  # the last messages are kept whole, among others
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.log-length": 60,
    "distributed.admin.system-monitor.disk": "false",
    "distributed.admin.system-monitor.gil.enabled": "false",
    "distributed.worker.profile.enabled": "false",
    "logging.distributed": "warning",
}
"""Each of these yields to the variable of the environment that dask takes for it."""
_ALWAYS: Mapping[str, str] = {"distributed.scheduler.http.routes": "[]", "distributed.worker.http.routes": "[]"}
"""Nothing is shown over HTTP: that knows neither certificates nor secrets."""


_DASKS_OWN = ("DASK_INTERNAL_INHERIT_CONFIG", "__DASK_PARENT_PID")


def variables(*, encrypted: bool) -> dict[str, str]:
    """Return what the environment of a scheduler or worker has more than ours."""
    ours = {_variable(key): str(value) for key, value in _OURS.items()}
    always = {**_ALWAYS, "distributed.comm.require-encryption": "true" if encrypted else "false"}
    return {name: os.environ.get(name, value) for name, value in ours.items()} | {
        _variable(key): value for key, value in always.items()
    }


def drop_variables() -> None:
    """Take them out of this process's environment, once dask has read them: they are no business of children."""
    for name in (*variables(encrypted=True), *_DASKS_OWN):
        os.environ.pop(name, None)


def apply() -> None:
    """Configure this process as a client; before distributed is imported, which then logs no more than it should."""
    import dask.config  # not for who only starts other programs

    dask.config.set({key: value for key, value in _OURS.items() if _variable(key) not in os.environ})
    dask.config.set({"logging": {"distributed": "critical", "distributed.client": "critical"}})
    warnings.filterwarnings("ignore", module=r"distributed\.")  # of versions, or with a peer's text


def _variable(key: str) -> str:
    return f"DASK_{key.replace('.', '__').replace('-', '_').upper()}"
