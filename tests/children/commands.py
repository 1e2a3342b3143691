"""Runs commands of subdeck in forks of one process that has loaded their modules: `commands.py SOCKET`.

Each connection to the socket brings stdin, stdout and stderr, and a line of JSON: arguments, directory, environment.
The reply is the exit code; without one the connection is closed. The process ends when its stdin does. The wrapper on
standby for a launch is also a fork, identified by its last argument, `subdeck.core.wrapper`.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import select
import socket
import sys
import traceback
from contextlib import suppress
from pathlib import Path

from subdeck.core.runners import standby
from subdeck.core.system import processes
from subdeck.core.wrapper import __main__ as wrapper

sys.path.append(str(Path(__file__).parents[2]))
from tests.children import agents
from tests.children.loaded import become

LARGEST = 1 << 20


PACKAGES = (
    *("cli", "alerts", "budget", "launch", "permissions", "project", "work"),
    *("agents.claude", "agents.codex", "agents.offline", "agents.pi"),
)
"""Packages whose modules most commands load, below `subdeck.core`."""


def load():
    for name in PACKAGES:
        package = importlib.import_module(f"subdeck.core.{name}")
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    for name in ("base64", "difflib", "encodings.utf_8_sig", "hashlib", "yaml"):
        importlib.import_module(name)
    wrapper._load("ctypes", with_usual_kind=True)
    agents.prepare(become)
    agents.load_bridge()
    standby._spawn = stand_by


def stand_by(orders, loaded):
    """Do the same as `standby._spawn`."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for source, number in ((orders, 0), (loaded, 1), (os.open(os.devnull, os.O_WRONLY), 2)):
            os.dup2(source, number)
        processes.close_inherited()
        become({**os.environ, standby.MARK: standby.UNMARKED})
        sys.argv[1:] = [standby.OPTION]
        wrapper.program()
    except SystemExit as ended:
        os._exit(ended.code or 0)
    finally:
        os._exit(1)


def serve(listener):
    running = {}
    while True:
        ready = select.select([listener, sys.stdin, *running], [], [])[0]
        if sys.stdin in ready:
            return
        for ended in running.keys() & ready:
            pid, connection = running.pop(ended)
            os.close(ended)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            with connection, suppress(OSError):  # it may no longer be waited for
                connection.sendall(str(code).encode())
        if listener in ready:
            connection = listener.accept()[0]
            pid = os.fork()
            if not pid:
                answer(connection)
            running[os.pidfd_open(pid)] = (pid, connection)


def answer(connection):
    said, streams, _, _ = socket.recv_fds(connection, LARGEST, 3)
    while not said.endswith(b"\n"):
        said += connection.recv(LARGEST)
    run(json.loads(said), streams)


def run(said, streams):
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    processes.close_inherited()
    become(said["environment"])
    os.chdir(said["directory"])
    sys.argv[:] = ["subdeck", *said["arguments"]]
    from subdeck.tui.main import program

    try:
        program()  # never returns
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


def main():
    load()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        print("ready", flush=True)
        serve(listener)


if __name__ == "__main__":
    main()
