"""Refresh agents' lists of models in a separate process, which kills them when its starter exits.

`python -P -E -m subdeck.core.agents.model_refresh`, with the time limit and the agents as a line of JSON on stdin,
which stays open. The results are in the files of the lists.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from threading import Thread

import msgspec

from ..text.decoder import decode
from ._query import end_all
from .agent import AgentChoice
from .installed import refresh_all


def refresh_apart(agents: Sequence[AgentChoice], timeout: float, answered: Callable[[], None] = lambda: None) -> None:
    """Start the process and wait until each agent answered or was killed; call `answered` after each.

    Skips an agent whose path is not valid text. Raises OSError.
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
    os.read(0, 1)  # nothing more arrives on stdin: returns when the starter exits
    end_all()
    os._exit(1)


if __name__ == "__main__":
    main()
