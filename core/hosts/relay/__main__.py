"""`python -P -E -m subdeck.core.hosts.relay ROOT`: run the relay of a project, unless one is already running."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import time

from ... import paths
from ...errors import reason
from ...system import files
from ...system.log import log_fault
from .connections import CarrierLoader
from .journal import Journal
from .relay import Relay, relay_id

TRY_S = 0.5
"""Seconds to wait for the lock: another process may just be testing it."""
MOST_FAILURES = 5
"""Failures in a row after which the relay ends; the next command that reads its runs starts another."""
AGAIN_S = 1.0
"""Seconds to pause after the first failure in a row; each further one adds as much."""
STEADY_S = 60.0
"""Seconds of work after which a failure counts as the first."""
MOST_FILES = 1 << 20
"""Highest limit of open files: a higher one slows programs that go through all descriptors."""


def main(root: str) -> None:
    project = paths.Project(root)
    try:
        lock = files.open_lock(project.relay_lock)
        if not files.lock_soon(lock, TRY_S):
            return
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)  # for people to read
    except OSError:
        return  # the project does not exist, or is not writable
    os.umask(0o077)
    allow_many_files()
    journal = Journal(project.relay_log)
    journal.note(f"the relay starts, pid {os.getpid()}")
    try:
        asyncio.run(_serve(project, journal, lock))
    except Exception as error:
        journal.note(f"the relay fails: {reason(error)}")
        log_fault("running the relay of a project", error)
        sys.exit(1)
    journal.note("the relay stops")


def allow_many_files() -> None:
    """Raise the limit of open files: each run whose lock is held needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _serve(project: paths.Project, journal: Journal, lock: int) -> None:
    """Work until no runs are left, even from a launch at the last moment, or until a signal."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        if task is not None:
            loop.add_signal_handler(number, task.cancel)
    load_carriers = CarrierLoader(project, relay_id(project), journal)
    failures = 0
    try:
        while True:
            relay = Relay(project, load_carriers, journal)
            began = time.monotonic()
            try:
                await relay.run()
            except Exception as error:  # a new relay reads everything from the files
                failures = failures + 1 if time.monotonic() - began < STEADY_S else 1
                if failures > MOST_FAILURES:
                    raise
                log_fault("running the relay of a project", error)
                journal.note(f"the relay failed and restarts: {reason(error)}")
                await asyncio.sleep(failures * AGAIN_S)
                continue
            # A launcher tests the lock after it has written a run: it starts another relay, or the run is found here.
            files.unlock(lock)
            if not relay.has_work() or not files.lock_soon(lock, TRY_S):
                return
    except asyncio.CancelledError:
        return


if __name__ == "__main__":
    main(sys.argv[1])
