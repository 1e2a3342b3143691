"""A process that has loaded the wrapper of runs, and forks one for each request of `tests/loaded.py`.

Its stdin is the socket for requests; it ends when that is closed.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from subdeck.core import paths
from subdeck.core.run import artifacts
from subdeck.core.runners import standby
from subdeck.core.system import cgroup, processes
from subdeck.core.wrapper import __main__ as wrapper

sys.path.append(str(Path(__file__).parents[2]))
from tests.children import agents

LIBC = ctypes.CDLL(None)
LIBC.getenv.restype = ctypes.c_void_p
LIBC.putenv.argtypes = [ctypes.c_void_p]
MARKS = {
    name: (LIBC.getenv(name.encode()), len(os.environ.get(name, ""))) for name in ("SUBDECK_TEST_ID", standby.MARK)
}
"""Variables that identify a process to others, with the addresses of their values visible to others, and their
lengths.
"""
LARGEST = 512 * 1024


def serve() -> dict[str, Any] | None:
    """Return the request in each forked process; here None, once no more requests can come."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that the kernel reaps them
    asking = socket.socket(fileno=0)
    while True:
        message, streams, _, _ = socket.recv_fds(asking, LARGEST, 3)
        if not message:
            return None
        order: dict[str, Any] = json.loads(message)
        if is_for_bridge(order["arguments"][0]):
            agents.load_bridge()
        pid = os.fork()
        if not pid:
            break
        for stream in streams:
            os.close(stream)
        asking.send(b"%d" % pid)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    asking.detach()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    processes.close_inherited()
    return order


def is_for_bridge(run_dir: str) -> bool:
    """Return whether the agent of a run uses ACP."""
    try:
        return b'"agentKind":"acp"' in Path(run_dir, paths.META).read_bytes()
    except OSError:
        return False


def become(environment: dict[str, str]) -> None:
    """Take the environment of the requester, including its marks as seen from outside."""
    os.environ.clear()
    os.environ.update(environment)
    for name, (address, length) in MARKS.items():
        worn = environment.get(name, "").encode()
        if address and len(worn) == length:
            ctypes.memmove(address, worn, length)
            LIBC.putenv(address - len(name) - 1)  # the whole of NAME=VALUE: changing it changes what others see
    time.tzset()


def main() -> None:
    wrapper._load("ctypes", with_usual_kind=True)
    agents.prepare(become)
    order = serve()
    if order is None:
        return
    become(order["environment"])
    os.umask(order["umask"])
    os.setsid()
    sys.argv[1:] = order["arguments"]
    exec(order["change"], {"artifacts": artifacts, "cgroup": cgroup})
    wrapper.program()


if __name__ == "__main__":
    main()
