"""A wrapper that is started before it is known what it will run: it loads while its launcher still reads and plans.

It waits on a pipe for the arguments of one run. Where the pipe is closed without them, because nothing is launched or
because the launcher died, it ends, and nothing was started. The command line imports this before anything else: nothing
but `os` and `sys`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OPTION = "--standby"
"""The wrapper's only argument when it is started by this module."""

_PROGRAM = "import gc; gc.disable(); from subdeck.core.wrapper.__main__ import program; program()"
"""As `-m subdeck.core.wrapper`, but 4 ms sooner: it loads neither `runpy` nor looks for garbage meanwhile."""

LOAD_TIMEOUT_S = 10.0
"""How long a run waits until it has loaded; then another wrapper is started."""

MARK = "SUBDECK_RUN_ID"
"""`processes.RUN_MARK`, without what that module loads."""
UNMARKED = "-" * 22
"""Room for a run's id in the environment that others see: written over once it is known."""

_FOR_AGENT = "SUBDECK_AGENT_ENVIRONMENT"
"""`paths.AGENT_ENVIRONMENT`, likewise."""

_SIGKILL = 9

_END = b"\0\0"
"""After the last argument. Without it the launcher was killed while it wrote."""


class Standby:
    """The launcher's side of one such wrapper."""

    def __init__(self, pid: int, orders: int, loaded: int) -> None:
        self._pid = pid
        self._orders = orders
        self._loaded = loaded
        self._environment = dict(os.environ)
        self._gone = False

    def hand_over(self, arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
        """Give it a run, as soon as it has loaded; return False when it has ended instead, loads for too long, or has
        another environment than the run is to get. What is for the agent alone it is told.
        """
        for_agent = environment.get(_FOR_AGENT, "")
        if {name: value for name, value in environment.items() if name != _FOR_AGENT} != self._environment:
            return False
        import select  # here, because little may be loaded before this wrapper is started

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
        """Return True once it has ended, without waiting."""
        return self._gone or self._reap(os.WNOHANG)

    def dismiss(self) -> None:
        """End it: it has been given nothing to run."""
        self._close()
        if not self.has_gone():
            try:
                os.kill(self._pid, _SIGKILL)
            except ProcessLookupError:
                pass  # it has ended just now
            self._reap(0)

    def _reap(self, options: int) -> bool:
        try:
            self._gone = os.waitpid(self._pid, options)[0] != 0
        except ChildProcessError:  # somebody else has
            self._gone = True
        return self._gone

    def _close(self) -> None:
        ends, self._orders, self._loaded = (self._orders, self._loaded), -1, -1
        for end in ends:
            if end >= 0:
                os.close(end)


_standby: Standby | None = None


def start() -> None:
    """Start one for the next run of this process; where that cannot be, a run only starts later."""
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
        return None  # we were started without stdin or stdout; as they are the pipes would overwrite each other
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


def loading() -> tuple[str, ...]:
    """Return how its interpreter finds and starts the wrapper. Where we are installed beside what we need, it is told
    that place: to find out by itself takes it 2 ms.
    """
    *place, package, _, _, _ = os.path.abspath(__file__).split(os.sep)
    if package == "subdeck" and place[-1:] in (["site-packages"], ["dist-packages"]):
        directory = os.sep.join(place)
        if os.path.isdir(f"{directory}/msgspec"):
            return ("-S", "-c", f"import sys; sys.path.append({directory!r}); {_PROGRAM}")
    return ("-c", _PROGRAM)


def waiting() -> Standby | None:
    """Return the one that was started, until it is dismissed or forgotten."""
    return _standby


def forget() -> None:
    """Leave the one that was started to its run."""
    global _standby
    _standby = None


def dismiss() -> None:
    """End the one that was started, if it still waits."""
    if _standby:
        _standby.dismiss()
        forget()


def receive() -> list[str] | None:
    """Wait, as the wrapper, for the arguments of a run; return None where there is nothing to run."""
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
