"""Ending processes, and not believing that they are gone until the kernel says so."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from . import processes

PERSISTENCE_S = 10.0
"""How long KILL is repeated; what lives then cannot be ended."""
EMPTY_LOOKS = 4
"""Looks in a row that find nothing, where no kernel says that nothing is left: one misses what forks just then."""
MOST_LOOKS = 50
"""Searches for new descendants while a process tree is being stopped."""
_PAUSE_S = 0.005
_UNSEEN = "a process that /proc does not show"


class UnseenError(OSError):
    """Processes are left, and it cannot be looked which: who can look has to end them."""


def end_children(patience: float, kill_group: Callable[[], None] | None = None) -> tuple[str, ...]:
    """End all that is below this process, a subreaper: TERM, `patience` seconds, then KILL.

    Whatever has daemonised, or forks in a chain, is handed to a subreaper by the kernel sooner or later: nothing is
    left when that says that there are no children. `kill_group` kills the control group that they are in, where there
    is one. Returns what could not be ended, for a person. Raises UnseenError if it was not possible to look.
    """
    asked: set[int] = set()
    kill_from = time.monotonic() + patience
    while processes.reap_all():
        now = time.monotonic()
        if now > kill_from + PERSISTENCE_S:
            return tuple(map(_named, _left())) or (_UNSEEN,)
        if now < kill_from:
            for pid in _below():
                if pid not in asked:
                    asked.add(pid)
                    processes.send(pid, signal.SIGTERM)
        else:
            if kill_group:
                kill_group()
            kill_below()
        time.sleep(_PAUSE_S)
    return ()


def kill_below() -> None:
    """Send KILL to all that is below this process: to whole process groups, which no fork escapes, where it can."""
    own = os.getpgrp()
    for pid in processes.children():
        try:
            group = os.getpgid(pid)
            if group == own:
                os.kill(pid, signal.SIGKILL)
            else:
                os.killpg(group, signal.SIGKILL)
        except OSError:
            continue  # another user's, or gone with its group
    for pid in _below():
        processes.send(pid, signal.SIGKILL)


def kill_tree(child: int) -> None:
    """Send KILL to a child of this process and to all its descendants.

    They are stopped first, until a search finds no new ones: a process forked between search and kill would survive.
    """
    stopped: set[int] = set()
    for _ in range(MOST_LOOKS):
        try:
            found = {child, *processes.descendants(child)} - stopped
        except OSError:
            found = {child} - stopped
        if not found:
            break
        for pid in found:
            processes.send(pid, signal.SIGSTOP)
        stopped |= found
    for pid in stopped:
        processes.send(pid, signal.SIGKILL)


def end_found(
    find: Callable[[], dict[int, int]], patience: float, kill_group: Callable[[], None] | None = None
) -> tuple[str, ...]:
    """End what `find` returns, pids and start times of processes of others, likewise; it is asked again and again.

    What was found once has ended when it has gone, and all of it when several looks in a row have found nothing.
    Returns what could not be ended, for a person. Raises OSError where it was not possible to look.
    """
    asked: dict[int, int] = {}
    kill_from = time.monotonic() + patience
    empty = 0
    while empty < EMPTY_LOOKS:
        found = find() | {pid: started for pid, started in asked.items() if processes.is_alive(pid, started)}
        now = time.monotonic()
        if now > kill_from + PERSISTENCE_S:
            return tuple(map(_named, found))
        if found and kill_group and now >= kill_from:
            kill_group()
        for pid, started in found.items():
            if now >= kill_from:
                processes.send(pid, signal.SIGKILL, started)
            elif asked.get(pid) != started:
                processes.send(pid, signal.SIGTERM, started)
        asked |= found
        empty = 0 if found else empty + 1
        time.sleep(_PAUSE_S)
    return ()


def _below() -> list[int]:
    try:
        return processes.descendants(os.getpid())
    except OSError:  # the next look may do better
        return processes.children()


def _left() -> list[int]:
    """Return all that lives below this process. Raises UnseenError."""
    try:
        return processes.descendants(os.getpid())
    except OSError as error:
        raise UnseenError(
            error.errno, f"cannot inspect the run's remaining processes: {error.strerror}", "/proc"
        ) from error


def _named(pid: int) -> str:
    return f"{processes.name(pid) or 'a process'} (pid {pid})"
