"""Turns a dask worker into a host: `--preload subdeck.core.hosts.dask.preload --resources subdeck=4`.

The worker's resources are the slots and labels. This module's name is part of the protocol: tickets look it up.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from functools import partial
from importlib.metadata import version
from typing import Any

import click

from ...system.imports import import_msgspec

import_msgspec()  # before the imports that would load msgspec whole

from msgspec import Struct

from ... import paths
from ...errors import SubdeckError, in_one_line
from ...text.plain import one_line
from .. import protocol
from .._host_agent import HostAgent
from ..protocol import Answer, Said, Verb
from . import _configuration
from .security import expiry

SLOTS = "subdeck"
"""The dask resource that slots are counted in."""
HANDLER = "subdeck"
"""Name of the handler and of the host's entry in the scheduler's data."""


class Serving(Struct):
    """The agent of this process, and the task that renews its leases."""

    agent: HostAgent
    timer: asyncio.Task[None]


_serving: list[Serving] = []
"""At most one."""


@click.command()
@click.option("--spool", default="", help="Directory of the runs.")
@click.option("--host-name", default="", help="Name of the host.")
async def dask_setup(worker: Any, spool: str, host_name: str) -> None:
    """Create an agent and its handler. End the process if that fails: it would accept tickets without holding slots."""
    resources: dict[str, float] = worker.state.total_resources
    try:
        agent = HostAgent(
            spool or paths.spool_dir(),
            slots=int(resources.get(SLOTS, 1)),
            labels={label: count for label, count in resources.items() if label != SLOTS},
            carrier=f"distributed {version('distributed')}",
            name=host_name,
            expiry=partial(expiry, str(worker.security.tls_ca_file), str(worker.security.tls_worker_cert)),
        )
    except (SubdeckError, OSError) as error:
        sys.exit(f"subdeck: {one_line(in_one_line(error), 1000)}")
    _configuration.drop_variables()
    keep_little()
    _serving.append(Serving(agent, asyncio.create_task(agent.run())))
    worker.handlers[HANDLER] = answer
    worker.startup_information[HANDLER] = _entry


async def dask_teardown(_: Any) -> None:
    """Stop the agent; runs continue."""
    while _serving:
        serving = _serving.pop()
        serving.timer.cancel()
        serving.agent.close()


async def answer(verb: str, message: bytes) -> bytes:
    """Answer a relay's request: the handler."""
    if not _serving:
        return protocol.encode(Answer(Said.REFUSED, "the host's subdeck process has ended"))
    try:
        asked = Verb(verb)
    except ValueError:
        return protocol.encode(Answer(Said.REFUSED, f"unknown verb {one_line(str(verb), 40)}"))
    return await _serving[0].agent.answer(asked, bytes(message))


async def hold(relay: str, run: str) -> str:
    """Hold a slot for a run until it has finished; called by tickets. Return a value of `Said`."""
    return str(await _serving[0].agent.hold(relay, run) if _serving else Said.REFUSED)


async def _entry(_: Any) -> dict[str, object]:
    """Return the host's entry for the scheduler, which relays read."""
    agent = _serving[0].agent
    return {"name": agent.name, "spool": agent.spool_id}


# --- memory ----------------------------------------------------------------------------------------------------------

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
"""Parameters of `mallopt`."""
_LARGE = 128 * 1024
"""Bytes."""


def keep_little() -> None:
    """Make glibc return large blocks at once and use one arena, for a long-lived process.

    By default it learns from the first large messages to keep that much memory. Other C libraries are left unchanged.
    Existing objects are frozen, so that the garbage collector only scans new ones.
    """
    import ctypes

    gc.collect()
    gc.freeze()

    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LARGE)):
        set_option(option, value)
