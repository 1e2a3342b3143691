"""Run the benchmarks: all of them, or those named in the arguments.

Each prints its table when it is done. If one breaks, it is reported, and the others continue. All take about twelve
minutes. `long_life` is the short form: an hour's events in two minutes. With `--smoke` each measures so little that all
take about a minute; that shows whether they work, and targets are not judged.
"""

from __future__ import annotations

import argparse
import importlib
import os
import secrets
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests import isolation

from .figures import Figure, begin_smoke, print_table

ENGINE = (
    "start_up",
    "first_request",
    "wrapper",
    "unmatched",
    "following",
    "many_runs",
    "searching",
    "work",
    "hosts_code",
    "parent_session",
    "mcp_door",
    "acp_child",
    "claude_child",
    "codex_child",
    "talk",
    "notify",
    "web",
    "hosts",
    "hosts_memory",
)
APP = ("app_start", "app_live", "app_cpu", "tiles", "run_list", "big_transcript", "changes", "long_life")
ALL = (*ENGINE, *APP)
SMOKE_LIMIT_S = 120.0
"""Maximum time of a benchmark in smoke mode, even on a slow machine: one that hangs counts as broken."""


TO_END_S = 3.0
"""Time for a benchmark's processes to end after it."""


class TookTooLong(Exception):
    """A benchmark does not end."""


def main(arguments: Sequence[str]) -> int:
    options = _read(arguments)
    if options.smoke:
        begin_smoke()
    figures: list[Figure] = []
    failed: list[str] = []
    with _world() as marker:
        for name in options.names or ALL:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            began = time.monotonic()
            measured, reasons = _measured(name, marker, limit_s=SMOKE_LIMIT_S if options.smoke else 0.0)
            print(f"\n{name}, {time.monotonic() - began:.1f} s")
            if measured:
                print_table(measured)
            _print_all("FAILED", reasons)
            figures += measured
            failed += reasons
    print()
    if not options.smoke:
        print_table(figures)
    _print_all("SKIPPED", [f"{figure.name}: {figure.measured}" for figure in figures if figure.is_skipped])
    missed = [] if options.smoke else [figure for figure in figures if not figure.reached]
    _print_all("MISSED", [f"{figure.name}: {figure.measured}, must reach {figure.target}" for figure in missed])
    _print_all("FAILED", failed)
    if not failed and not missed:
        print("what was measured works" if options.smoke else "what was measured reaches its targets")
    return 1 if failed or missed else 0


def _read(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all without any: " + ", ".join(ALL))
    parser.add_argument("--smoke", action="store_true", help="measure little, and judge no target: does each work?")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in ALL]:
        parser.error(f"unknown benchmark {unknown[0]}; there are {', '.join(ALL)}")
    return options


def _measured(name: str, marker: str, *, limit_s: float) -> tuple[list[Figure], list[str]]:
    """Return a benchmark's figures, and why it broke; a limit of 0 means no limit."""
    figures: list[Figure] = []
    reasons: list[str] = []
    try:
        with _limit(limit_s):
            for figure in importlib.import_module(f".{name}", __package__).measure():
                figures.append(figure)
    except Exception as error:
        traceback.print_exc()
        reasons.append(f"{name}: {type(error).__name__}: {error}")
    left = isolation.end_left_overs(marker, patience=TO_END_S)
    return figures, [*reasons, *(f"{name}: left a process behind: {process}" for process in left)]
    return figures, reasons


@contextmanager
def _world() -> Iterator[str]:
    """Enter a separate world, like tests; processes started there inherit the yielded marker."""
    before, marker = dict(os.environ), secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="sdbench-", dir="/tmp", ignore_cleanup_errors=True) as root:
        isolation.enter(isolation.variables(Path(root)) | {isolation.MARKER: marker})
        try:
            yield marker
        finally:
            isolation.enter(before)


@contextmanager
def _limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong after so many seconds; 0 means no limit."""

    def end(_number: int, _frame: object) -> None:
        raise TookTooLong(f"it has not ended within {seconds:g} s")

    handler = signal.signal(signal.SIGALRM, end)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def _print_all(word: str, reasons: Sequence[str]) -> None:
    for reason in reasons:
        print(f"{word}  {reason}", flush=True)


if __name__ == "__main__":
    isolation.reset_signals()
    sys.exit(main(sys.argv[1:]))
