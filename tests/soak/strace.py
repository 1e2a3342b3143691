"""Command lines of strace, and how to read its log."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .plan import ERRORS, KILLED_AT, Calls, Trap

WATCHED = ",".join(dict.fromkeys((*KILLED_AT, *ERRORS)))
FORK_TO_EXEC_US = 150_000
"""Delay of each exec, to hit the moment before it."""

_CALL = re.compile(rb"(?:\[pid +\d+\] )?(?:\d+ +)?(\w+)\(")


def is_usable() -> bool:
    """Return whether there is a strace that may trace: in some containers none may."""
    if shutil.which("strace") is None:
        return False
    trial = ["strace", "-D", "-q", "-o", os.devnull, "-e", "inject=getppid:error=EIO", "true"]
    return subprocess.run(trial, capture_output=True).returncode == 0


def trapping(trap: Trap, log: Path) -> list[str]:
    """Return the words before a command that let it be hit; it keeps the pid that it would have had."""
    what = f"error={trap.error}" if trap.error else "signal=KILL"
    when = f"{trap.count}+" if trap.for_good else str(trap.count)
    return [*_beginning(log), "-e", f"trace={trap.call}", "-e", f"inject={trap.call}:{what}:when={when}"]


def counting(log: Path) -> list[str]:
    return [*_beginning(log), "-e", f"trace={WATCHED}"]


def slow_exec(log: Path) -> list[str]:
    """Delay the process and its children before each exec."""
    return [*_beginning(log), "-f", "-e", "trace=execve", "-e", f"inject=execve:delay_enter={FORK_TO_EXEC_US}"]


def _beginning(log: Path) -> list[str]:
    return ["strace", "-D", "-q", "-s", "200", "-o", str(log)]


def has_hit(log: Path) -> bool:
    """Return whether the trapped call came."""
    contents = [path.read_bytes() for path in log.parent.glob(f"{log.name}*")]
    return any(b"(INJECTED" in content or b"+++ killed by SIGKILL" in content for content in contents)


def usual_calls(log: Path, own: Sequence[str]) -> dict[str, Calls]:
    """Count the calls in a log; those before the first that names one of `own` belong to Python's start."""
    marks = [mark.encode() for mark in own]
    before: Counter[str] = Counter()
    total: Counter[str] = Counter()
    has_begun = False
    for line in log.read_bytes().splitlines():
        if not (match := _CALL.match(line)):
            continue
        has_begun = has_begun or any(mark in line for mark in marks)
        total[match[1].decode()] += 1
        if not has_begun:
            before[match[1].decode()] += 1
    return {call: Calls(before[call], count) for call, count in total.items()}
