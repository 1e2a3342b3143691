"""Agents asked for their models by a process of its own, which ends them with itself when its starter has gone.

`python -P -E -m subdeck.core.agents.model_refresh`, with the time they get and the agents as a line of JSON on stdin,
which stays open. What they tell is in the files where their lists are kept.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from threading import Thread

import msgspec

from ..text.decoding import decode
from ._query import end_all
from .agent import AgentChoice
from .offered import refresh_all


def refresh_apart(agents: Sequence[AgentChoice], timeout: float, answered: Callable[[], None] = lambda: None) -> None:
    """Start the process, and wait until all have answered or were ended; `answered` is called after each of them.

    One whose path is no text is not asked. Raises OSError.
    """
    request = msgspec.json.encode((timeout, list(filter(_is_text, agents))))
    process = subprocess.Popen(
        (sys.executable, "-P", "-E", "-m", __name__),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    if process.stdin and process.stdout:
        try:
            process.stdin.write(request + b"\n")
            process.stdin.flush()
            for _ in process.stdout:
                answered()
        finally:
            process.stdin.close()
            process.stdout.close()
            process.wait()


def _is_text(agent: AgentChoice) -> bool:
    try:
        msgspec.json.encode(agent)
    except UnicodeEncodeError:
        return False
    return True


def main() -> None:
    timeout, agents = decode(sys.stdin.buffer.readline(), tuple[float, list[AgentChoice]])

    def ask() -> None:
        refresh_all(agents, timeout, lambda: print(flush=True))
        os._exit(0)

    Thread(target=ask, daemon=True).start()
    os.read(0, 1)  # nothing is said any more: this ends with the one who listens
    end_all()
    os._exit(1)


if __name__ == "__main__":
    main()
