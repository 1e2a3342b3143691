"""`subdeck hosts agent`, started by ssh: connect stdin and stdout to the spool's agent, which it starts if needed."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping
from subprocess import DEVNULL, Popen

from ... import __version__
from ...errors import SubdeckError, UsageError
from ...system import files, processes
from ...text.plain import one_line
from ..protocol import PROTOCOL
from . import _spool_socket
from ._frames import MAGIC

START_S = 30.0
"""Seconds that a new agent has to listen, and an outdated one to exit."""
OTHER_S = 3.0
"""Seconds that another process has if it is about to listen."""
MOST_LINE = 200
BLOCK = 64 * 1024
LARGEST_LOG = 1024 * 1024
_OF_THE_LOGIN = ("SSH_CLIENT", "SSH_CONNECTION", "SSH_ORIGINAL_COMMAND", "SSH_TTY")
"""Variables of the login's connection, which the agent outlives."""


def join(root: str, *, slots: int = 0, labels: Mapping[str, float] | None = None) -> None:
    """Copy data between stdin, stdout and the agent until one of them ends. Raises SubdeckError, OSError."""
    if not sys.stdin or not sys.stdout or sys.stdin.isatty():
        raise UsageError(
            "only programs use it, through ssh",
            where="subdeck hosts agent",
            hint="list this machine under hosts: ssh: in the settings of the machine that starts runs",
        )
    stdin, stdout = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    os.dup2(2, 1)  # keeps all other output away from the frames
    files.make_private_directory(root)
    agent = _agent(root, slots, labels or {})
    _write(stdout, MAGIC)
    threading.Thread(target=_pass_in, args=(stdin, agent), daemon=True).start()
    try:
        while block := agent.recv(BLOCK):
            _write(stdout, block)
    except OSError:
        return  # stdout or the agent is gone, which ends the connection


def _pass_in(stdin: int, agent: socket.socket) -> None:
    try:
        while block := os.read(stdin, BLOCK):
            agent.sendall(block)
        agent.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other thread notices it


def _write(descriptor: int, content: bytes) -> None:
    unwritten = memoryview(content)
    while unwritten:
        unwritten = unwritten[os.write(descriptor, unwritten) :]


def _agent(root: str, slots: int, labels: Mapping[str, float]) -> socket.socket:
    """Connect to the spool's agent: the running one, unless it is outdated, or a new one."""
    deadline = time.monotonic() + START_S
    why = ""
    while True:
        try:
            agent = _spool_socket.connected(root)
        except BlockingIOError as error:
            raise SubdeckError(
                "the subdeck process there accepts no connections",
                where=root,
                hint="end it there (pgrep -f hosts.ssh.server); its runs continue",
            ) from error
        if agent is not None:
            if not _is_older(_version_line(agent)):
                return agent
            _end(agent, deadline)
        if time.monotonic() > deadline:
            raise SubdeckError(why or f"subdeck does not listen there after {START_S:g} s", where=root)
        if why:
            time.sleep(0.2)  # a process started at the same time may be about to listen
        fault = _start(root, slots, labels)
        if fault and not why:
            deadline = min(deadline, time.monotonic() + OTHER_S)
        why = fault


def _start(root: str, slots: int, labels: Mapping[str, float]) -> str:
    """Start an agent that outlives this process; return why it failed, empty once it listens."""
    log = os.path.join(root, _spool_socket.LOG)
    descriptor, writing = os.pipe()
    words = (root, str(writing), str(slots), *(f"{name}={value:g}" for name, value in labels.items()))
    environment = {name: value for name, value in os.environ.items() if name not in _OF_THE_LOGIN}
    try:
        with open(log, "ab", opener=files.open_private) as stderr:
            if os.fstat(stderr.fileno()).st_size > LARGEST_LOG:
                os.ftruncate(stderr.fileno(), 0)
            Popen(
                # -E: no PYTHON* variable of a user may change the supervisor; -P: nor a module in a directory.
                (sys.executable, "-P", "-E", "-m", "subdeck.core.hosts.ssh.server", *words),
                stdin=DEVNULL,
                stdout=stderr,
                stderr=stderr,
                cwd="/",
                env=environment,
                pass_fds=(writing,),
                start_new_session=True,
            )
    finally:
        os.close(writing)
    with open(descriptor, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], START_S)
        return pipe.read(4000).decode("utf-8", "replace") if ready else f"it does not listen after {START_S:g} s"


def _version_line(agent: socket.socket) -> bytes:
    """Read a connection's first line, empty if the agent has ended. Raises SubdeckError if it does not answer."""
    agent.settimeout(START_S)
    line = b""
    try:
        while not line.endswith(b"\n") and len(line) < MOST_LINE:
            byte = agent.recv(1)
            if not byte:
                break
            line += byte
    except ConnectionError:
        return b""
    except TimeoutError as error:
        pid = _spool_socket.peer_pid(agent)
        agent.close()
        raise SubdeckError(
            f"the subdeck process there ({pid}) does not answer",
            hint=f"end it there with kill -9 {pid}; its runs continue",
        ) from error
    agent.settimeout(None)
    return line


def _is_older(line: bytes) -> bool:
    """Return whether the agent's version is unknown or before this program's."""
    words = one_line(line.decode("ascii", "replace")).split()
    if len(words) != 3 or not words[2].isdecimal():
        return True
    return (int(words[2]), _numbers(words[1])) < (PROTOCOL, _numbers(__version__))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".") if number.isdecimal()]


def _end(agent: socket.socket, deadline: float) -> None:
    """Stop an outdated agent; its runs continue, and the next agent manages them."""
    pid = _spool_socket.peer_pid(agent)
    started = processes.start_time(pid)
    agent.close()
    if started is None or not processes.send(pid, signal.SIGTERM, started):
        return
    while processes.is_alive(pid, started) and time.monotonic() < deadline:
        time.sleep(0.05)
