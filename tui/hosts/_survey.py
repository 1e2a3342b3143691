"""Query the hosts once, as the command line does: in a separate process, which loads the modules for it."""

from __future__ import annotations

import subprocess
import sys
from typing import TypeVar

from msgspec import Struct

from ...core.doctor import Check
from ...core.errors import SubdeckError, reason
from ...core.run.placement import HostStates
from ...core.text.decoder import UNDECODABLE, decode, why as undecodable_why
from ...core.text.plain import one_line

SECONDS = 60.0
"""Maximum seconds for that."""
PROGRAM = "import sys; from subdeck.core.cli.main import main; sys.exit(main(lambda *_: 1, sys.argv[1:]))"


class Failure(Struct, frozen=True):
    what: str = ""
    hint: str = ""


class Answer(Struct, frozen=True):
    """The output of any command that fails."""

    error: Failure | None = None


class Examined(Struct, frozen=True):
    host: str | None = None
    """None for checks that concern all hosts."""
    checks: tuple[Check, ...] = ()


class Findings(Struct, frozen=True):
    """The output of `subdeck hosts doctor --json`."""

    hosts: tuple[Examined, ...] = ()


T = TypeVar("T")


def ask_hosts(cwd: str) -> HostStates:
    """Return the current state of a project's hosts. Takes seconds. Raises SubdeckError."""
    return _asked(cwd, ("hosts", "--json"), HostStates)


def examine_host(cwd: str, name: str) -> tuple[Examined, ...]:
    """Return the checks of a host, and the checks of all hosts together. Takes seconds. Raises SubdeckError."""
    return _asked(cwd, ("hosts", "doctor", "--json", "--", name), Findings).hosts


def _asked(cwd: str, words: tuple[str, ...], kind: type[T]) -> T:
    try:
        done = subprocess.run(
            (sys.executable, "-P", "-E", "-c", PROGRAM, *words),
            cwd=cwd,
            check=False,
            capture_output=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
        why, hint = one_line(done.stderr.decode(errors="replace"), 300) or f"exit code {done.returncode}", ""
        if done.stdout:
            failure = decode(done.stdout, Answer).error
            if failure is None:
                return decode(done.stdout, kind)
            why, hint = one_line(failure.what, 300), one_line(failure.hint, 300)
    except subprocess.TimeoutExpired:
        why, hint = f"no response in {SECONDS:g} s", ""
    except OSError as error:
        why, hint = one_line(reason(error), 300), ""
    except UNDECODABLE as error:
        why, hint = undecodable_why(error), ""
    raise SubdeckError(f"cannot query the hosts: {why}", hint=hint or "run subdeck hosts doctor to find the cause")
