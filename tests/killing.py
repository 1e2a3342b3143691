"""Kill a process at each step in turn: at each change of a file, and before each program that it starts."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import TypeVar

STEPS = frozenset({
    "os.chmod", "os.link", "os.mkdir", "os.putenv", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate",
    "os.utime", "shutil.rmtree", "subprocess.Popen",
})  # fmt: skip
"""Python's audit events; opening a file for writing counts too."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
MOST = 400
IS_WHOLE = bool(os.environ.get("SUBDECK_EVERY_STEP"))
"""Whether to try every step, as `make soak` does, or a sample of them."""

SAMPLE = int(os.environ.get("SUBDECK_SAMPLE") or date.today().toordinal())
"""The sample to try, another one each day. The variable repeats the sample of another day."""

T = TypeVar("T")


def sampled(values: Sequence[T], every: int, *, turn: int = 0) -> Sequence[T]:
    """Return each n-th of some values, others in each turn; all of them for `make soak` and `make fuzz`.

    If the test fails, its output says how to repeat it.
    """
    if IS_WHOLE:
        return values
    if not turn:
        print(f"SUBDECK_SAMPLE={SAMPLE} repeats this choice")
    return values[(SAMPLE + turn) % every :: every]


def kill_at(step: int) -> None:
    """Let this process be killed before its n-th step, counted from 1."""
    taken = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal taken
        if event in STEPS or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING):
            taken += 1
            if taken == step:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def deaths(prepare: Callable[[], T], act: Callable[[T], object], *, every: int = 1) -> Iterator[T]:
    """Yield a prepared state after a process that acts on it was killed at its first step, at its second, and so on.

    The last process is no longer killed. With `every` only each n-th step is tried, beginning at another one each day;
    `make soak` tries all.
    """
    if IS_WHOLE:
        every = 1
    elif every > 1:
        print(f"SUBDECK_SAMPLE={SAMPLE} repeats this choice")
    step, is_killed = 1 + SAMPLE % every, False
    while True:
        assert step < MOST, "it never comes to its end"
        prepared = prepare()
        pid = os.fork()
        if not pid:
            code = 3
            try:
                kill_at(step)
                act(prepared)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        assert status in (0, signal.SIGKILL), f"at step {step} it failed by itself: {status}"
        yield prepared
        if status == 0 and is_killed:
            return
        is_killed |= status == signal.SIGKILL
        assert is_killed or step > 1, "it has no step to be killed at"
        step = step + every if is_killed else step // 2  # an act may have fewer steps than the first one tried
