"""A follower that reports results as the app does: those unseen at its first look, then each one as it comes.

It does so in the same order as `tui/feed/bridge.py`, so that its errors show here.

`teller.py PROJECT FILE` appends the id of every run whose result it has claimed to FILE.
"""

from __future__ import annotations

import os
import sys
import threading

from subdeck.core.engine import Engine
from subdeck.core.run.snapshot import RunSnapshot


def main(project: str, told: str) -> None:
    engine = Engine.open(project)
    descriptor = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def tell(runs: tuple[RunSnapshot, ...]) -> None:
        for run in runs:
            if engine.claim(run):
                os.write(descriptor, f"{run.run_id}\n".encode())

    for number, update in enumerate(engine.updates(threading.Event())):
        if not number:
            tell(engine.unseen())
        tell(update.ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
