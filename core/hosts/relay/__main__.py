"""`python -P -E -m subdeck.core.hosts.relay ROOT`: the relay of a project, unless it has one already."""

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
from .journal import Journal
from .means import MeansFinder
from .relay import Relay, relay_id

TRY_S = 0.5
"""How long the lock is tried: somebody may just be looking whether it is free."""
MOST_FAILURES = 5
"""In a row, before the relay ends; whoever looks at its runs starts another."""
AGAIN_S = 1.0
"""Seconds before it begins again after a failure, and as many more for each one before."""
STEADY_S = 60.0
"""Seconds of work after which a failure is the first of its row."""
MOST_FILES = 1 << 20
"""What some systems allow beyond that makes programs slow which go through all descriptors."""


def main(root: str) -> None:
    project = paths.Project(root)
    try:
        lock = files.open_lock(project.relay_lock)
        if not files.lock_soon(lock, TRY_S):
            return
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)  # for a person who looks
    except OSError:
        return  # there is no project, or nothing can be written there
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
    """Let as many files be open as may be: each run that is vouched for is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _serve(project: paths.Project, journal: Journal, lock: int) -> None:
    """Work until there is nothing to do, also for who came in the last moment; a signal to end is heeded."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        if task is not None:
            loop.add_signal_handler(number, task.cancel)
    finder = MeansFinder(project, relay_id(project), journal)
    failures = 0
    try:
        while True:
            relay = Relay(project, finder, journal)
            began = time.monotonic()
            try:
                await relay.run()
            except Exception as error:  # another one finds all it needs in the files
                failures = failures + 1 if time.monotonic() - began < STEADY_S else 1
                if failures > MOST_FAILURES:
                    raise
                log_fault("running the relay of a project", error)
                journal.note(f"the relay failed and restarts: {reason(error)}")
                await asyncio.sleep(failures * AGAIN_S)
                continue
            # Whoever leaves a run looks at the lock after that: either they start another relay, or it is found here.
            files.unlock(lock)
            if not relay.has_work() or not files.lock_soon(lock, TRY_S):
                return
    except asyncio.CancelledError:
        return


if __name__ == "__main__":
    main(sys.argv[1])
