"""A wrapper started before its run is known: it loads while the launcher reads and plans.

It waits on a pipe for the arguments of one run. If the pipe closes first, because nothing is launched or the launcher
died, it exits. The command line imports this module before anything else, so it imports only `os` and `sys`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTION = "--standby"
"""The wrapper's only argument when it is started by this module."""

WRAPPER = "subdeck.core.wrapper"
"""The first argument of a wrapper that is started with its run; other processes recognize it by that."""

WRAPPER_PROGRAM = "from subdeck.core.wrapper.__main__ import program; program()"
"""Like `-m subdeck.core.wrapper`, but without `runpy`, which loads half a megabyte."""
_PROGRAM = f"import gc; gc.disable(); {WRAPPER_PROGRAM}"
"""Without garbage collection it loads 4 ms faster."""

LOAD_TIMEOUT_S = 10.0
"""Seconds that a run waits for it to load; after that another wrapper is started."""

MARK = "SUBDECK_RUN_ID"
"""`processes.RUN_MARK`, without importing that module."""
UNMARKED = "-" * 22
"""Placeholder for the run id in the environment that others see; overwritten once it is known."""

_FOR_AGENT = "SUBDECK_AGENT_ENVIRONMENT"
"""`paths.AGENT_ENVIRONMENT`, for the same reason."""

_SIGKILL = 9

_END = b"\0\0"
"""Ends the arguments; if it is missing, the launcher was killed while writing."""


class Standby:
    """The launcher's side of a standby wrapper."""

    def __init__(self, pid: int, orders: int, loaded: int) -> None:
        self._pid = pid
        self._orders = orders
        self._loaded = loaded
        self._environment = dict(os.environ)
        self._gone = False

    def hand_over(self, arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Give it a run once it has loaded; return False if it has exited, takes too long to load, or has another
        environment than the run needs. Variables for the agent only are sent with the arguments.
        """
        for_agent = environment.get(_FOR_AGENT, "")
        if {name: value for name, value in environment.items() if name != _FOR_AGENT} != self._environment:
            return False
        import select  # here, because little may be imported before this wrapper is started

        poller = select.poll()
        poller.register(self._loaded, select.POLLIN)
        try:
            if not poller.poll(LOAD_TIMEOUT_S * 1000) or not os.read(self._loaded, 1):
                return False
            os.write(self._orders, b"\0".join(map(os.fsencode, (for_agent, *arguments))) + _END)
        except OSError:
            return False
        self._close()
        return True

    def has_gone(self) -> bool:
        """Return whether it has exited, without waiting."""
        return self._gone or self._reap(os.WNOHANG)

    def dismiss(self) -> None:
        """Kill it: it has no run."""
        self._close()
        if not self.has_gone():
            try:
                os.kill(self._pid, _SIGKILL)
            except ProcessLookupError:
                pass  # it has just exited
            self._reap(0)

    def _reap(self, options: int) -> bool:
        try:
            self._gone = os.waitpid(self._pid, options)[0] != 0
        except ChildProcessError:  # reaped elsewhere
            self._gone = True
        return self._gone

    def _close(self) -> None:
        ends, self._orders, self._loaded = (self._orders, self._loaded), -1, -1
        for end in ends:
            if end >= 0:
                os.close(end)


_standby: Standby | None = None


def start() -> None:
    """Start a wrapper for this process's next run; if that fails, the run only starts later."""
    global _standby
    pipes: list[int] = []
    try:
        pipes += os.pipe()
        pipes += os.pipe()
    except OSError:  # too many files are open
        for descriptor in pipes:
            os.close(descriptor)
        return
    orders, our_orders, our_loaded, loaded = pipes
    pid = _spawn(orders, loaded)
    os.close(orders)
    os.close(loaded)
    if pid is None:
        os.close(our_orders)
        os.close(our_loaded)
    else:
        _standby = Standby(pid, our_orders, our_loaded)


def _spawn(orders: int, loaded: int) -> int | None:
    if min(orders, loaded) <= 2:
        return None  # started without stdin or stdout: the pipes would overwrite each other
    streams = (
        (os.POSIX_SPAWN_DUP2, orders, 0),
        (os.POSIX_SPAWN_DUP2, loaded, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    )
    argv = (sys.executable, "-P", "-E", *loading(), OPTION)
    try:
        environment = {**os.environ, MARK: UNMARKED}
        return os.posix_spawn(sys.executable, argv, environment, file_actions=streams, setsid=True)
    except (OSError, NotImplementedError):
        return None


def loading(program: str = _PROGRAM) -> tuple[str, ...]:
    """Return the interpreter's arguments that find and start the wrapper, or another program of subdeck.

    If subdeck is installed beside its dependencies, they include that directory: finding it takes 2 ms.
    """
    *parts, package, _, _, _ = os.path.abspath(__file__).split(os.sep)
    if package == "subdeck" and parts[-1:] in (["site-packages"], ["dist-packages"]):
        directory = os.sep.join(parts)
        if os.path.isdir(f"{directory}/msgspec"):
            return ("-S", "-c", f"import sys; sys.path.append({directory!r}); {program}")
    return ("-c", program)


def waiting() -> Standby | None:
    """Return the standby wrapper, unless it was dismissed or forgotten."""
    return _standby


def forget() -> None:
    """Forget the standby wrapper, which has a run now."""
    global _standby
    _standby = None


def dismiss() -> None:
    """Kill the standby wrapper if it still waits."""
    if _standby:
        _standby.dismiss()
        forget()


def receive() -> list[str] | None:
    """Wait, in the wrapper, for the arguments of a run; return None if there is no run."""
    os.write(1, b"\n")
    message = b""
    while not message.endswith(_END):
        part = os.read(0, 65536)
        if not part:
            return None
        message += part
    for_agent, *arguments = os.fsdecode(message[: -len(_END)]).split("\0")
    if for_agent:
        os.environ[_FOR_AGENT] = for_agent
    return arguments
