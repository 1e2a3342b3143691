"""Agents of tests that are Python programs, run in the fork of a wrapper that would start them.

Starting Python and loading modules takes most of an agent's time: half a second for a bridge of ACP. All other programs
are started as usual.
"""

from __future__ import annotations

import ctypes
import gc
import os
import runpy
import signal
import sys
import traceback
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

from subdeck.core.agents.acp._programs import _PROGRAM as BRIDGE
from subdeck.core.system import processes

EXECVE = os.execve
OFFLINE = "subdeck.core.offline_agent"
HERE = Path(__file__).parent
SCRIPTS = ("puppet.py", "conversing.py", "counted.py", "scripted/claude.py", "scripted/codex.py", "scripted/pi.py")
WRAPPER, AGENT = b"subdeck.core.wrapper", b"tests.children.agent"
"""The last argument of a wrapper, and of an agent in a fork of one, as other processes see it."""


def prepare(become: Callable[[dict[str, str]], None]) -> None:
    """Load the modules of agents, and let forks of this process run them; `become` sets a process's environment."""
    from subdeck.core.acp_bridge import __main__ as bridge  # noqa: F401
    from subdeck.core.offline_agent import __main__ as offline  # noqa: F401

    scripts = {str(HERE / name): compile((HERE / name).read_text(), HERE / name, "exec") for name in SCRIPTS}
    os.execve = partial(_run_or_exec, scripts, become)


@cache
def load_bridge() -> None:
    """Load the SDK of ACP too. It is so large that each fork takes twice as long afterwards."""
    from subdeck.core.acp_bridge import _sdk

    _sdk.prepare()
    from subdeck.core.acp_bridge import _session  # noqa: F401


def _run_or_exec(
    scripts: dict[str, CodeType],
    become: Callable[[dict[str, str]], None],
    program: str,
    argv: list[bytes],
    environment: dict[bytes, bytes],
) -> None:
    words = [os.fsdecode(word) for word in argv]
    run: Callable[[], Any]
    match words[1:] if program == sys.executable else []:
        case ["-P", "-E", "-m", name, *rest] if name == OFFLINE:
            run = partial(runpy.run_module, OFFLINE, run_name="__main__", alter_sys=True)
        case ["-P", "-E", "-c", name, *rest] if name == BRIDGE:
            run = partial(exec, BRIDGE, {"__name__": "__main__"})
        case ["-I", "-S", name, *rest] if name in scripts:
            run = partial(exec, scripts[name], {"__name__": "__main__", "__file__": name})
        case _:
            EXECVE(program, argv, environment)
            return
    processes.close_inherited()  # so that the starter learns of the start
    become({os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()})
    _change_last_argument()
    _reset_signals()
    sys.argv[:] = [name, *rest]
    gc.enable()
    _run(run)


def _change_last_argument() -> None:
    """Keep others from taking this process for a wrapper."""
    start, end = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:47])
    line = ctypes.string_at(start, end - start)
    if (place := line.find(WRAPPER)) >= 0:
        ctypes.memmove(start + place, AGENT, len(AGENT))


def _reset_signals() -> None:
    """Handle signals as a new Python does."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _run(run: Callable[[], Any]) -> NoReturn:
    """Run a program to its end, as Python does with its main program."""
    code: Any = 0
    try:
        run()
    except SystemExit as ended:
        code = ended.code
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            code = 120
        os._exit(code or 0)
