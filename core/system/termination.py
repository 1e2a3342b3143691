"""End processes; they count as gone only when the kernel confirms it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping

from . import processes

PERSISTENCE_S = 10.0
"""Seconds for which KILL is repeated; a process that survives it cannot be ended."""
EMPTY_LOOKS = 4
"""Empty searches in a row that count as the end, if the kernel cannot confirm it: one misses a process that just
forks.
"""
MOST_LOOKS = 50
"""Searches for new descendants while a process tree is being stopped."""
NOTHING_SPARED: Mapping[int, int] = {}
_PAUSE_S = 0.005
_UNSEEN = "a process that /proc does not show"


class UnseenError(OSError):
    """Processes are left that this process cannot see: one that can has to end them."""


def end_children(
    patience: float, kill_group: Callable[[], None] | None = None, spared: Mapping[int, int] = NOTHING_SPARED
) -> tuple[str, ...]:
    """End all processes below this one, a subreaper: TERM, `patience` seconds, then KILL.

    The kernel hands daemonized processes and chains of forks to a subreaper sooner or later: nothing is left when it
    reports no children. `kill_group` kills their control group, if there is one. `spared` are children, pids and start
    times, that stay with everything below them. Returns the processes that could not be ended, for the user. Raises
    UnseenError if they cannot be listed.
    """
    asked: set[int] = set()
    kill_from = time.monotonic() + patience
    empty = 0
    while processes.reap_all():
        now = time.monotonic()
        empty = empty + 1 if spared and _is_empty(spared) else 0
        if empty >= EMPTY_LOOKS:
            return ()
        if now > kill_from + PERSISTENCE_S:
            return tuple(map(_named, _remaining(spared))) or (_UNSEEN,)
        if now < kill_from:
            for pid in _below(spared):
                if pid not in asked:
                    asked.add(pid)
                    processes.send(pid, signal.SIGTERM)
        else:
            if kill_group:
                kill_group()
            kill_below(spared)
        time.sleep(_PAUSE_S)
    return ()


def kill_below(spared: Mapping[int, int] = NOTHING_SPARED) -> None:
    """Send KILL to all processes below this one: to whole process groups, which no fork escapes, if possible.

    `spared` children stay, with everything below them.
    """
    own_group = os.getpgrp()
    for pid in processes.children():
        if _is_spared(pid, spared):
            continue
        try:
            group = os.getpgid(pid)
            if group == own_group:
                os.kill(pid, signal.SIGKILL)
            else:
                os.killpg(group, signal.SIGKILL)
        except OSError:
            continue  # another user's, or gone with its group
    for pid in _below(spared):
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
    """End the processes that `find` returns, pids and start times, in the same way; it is called repeatedly.

    Each has ended when it is gone, and all of them when several searches in a row have found nothing. Returns the
    processes that could not be ended, for the user. Raises OSError if the search fails.
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


def _is_spared(pid: int, spared: Mapping[int, int]) -> bool:
    """Return whether a living child is one of the spared ones, and not another process with its pid."""
    return pid in spared and processes.is_alive(pid, spared[pid])


def _descendants(spared: Mapping[int, int]) -> list[int]:
    """Return all living processes below this one, without the spared ones and those below them. Raises OSError."""
    parents = processes.living()
    roots = [pid for pid in spared if parents.get(pid) == os.getpid() and _is_spared(pid, spared)]
    kept = {*roots, *processes.below(roots, parents)}
    return [pid for pid in processes.below([os.getpid()], parents) if pid not in kept]


def _below(spared: Mapping[int, int]) -> list[int]:
    try:
        return _descendants(spared)
    except OSError:  # the next search may succeed
        return [pid for pid in processes.children() if not _is_spared(pid, spared)]


def _is_empty(spared: Mapping[int, int]) -> bool:
    """Return whether a search finds only spared processes; one misses a process that just forks."""
    try:
        return not _descendants(spared)
    except OSError:
        return False


def _remaining(spared: Mapping[int, int]) -> list[int]:
    """Return all living processes below this one but the spared ones. Raises UnseenError."""
    try:
        return _descendants(spared)
    except OSError as error:
        raise UnseenError(
            error.errno, f"cannot inspect the run's remaining processes: {error.strerror}", "/proc"
        ) from error


def _named(pid: int) -> str:
    return f"{processes.name(pid) or 'a process'} (pid {pid})"
