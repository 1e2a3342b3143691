"""What is known about pi before it is started: where it is, its version, its tools. Node is not run for any of it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ...errors import AgentUnavailable
from ...models.catalog import LEVELS
from ...system import files
from ...system.processes import find_program

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
"""What pi offers when it is told nothing."""

BUILTIN_TOOLS = (*DEFAULT_TOOLS, "grep", "find", "ls")
"""All that pi brings along; extensions may add more."""

_INSTALL = "install it (npm install -g @mariozechner/pi-coding-agent), or name its program in agents.pi.command"
_PACKAGE = "pi-coding-agent"
_LEVELS = 5
"""How far above the program its package.json is looked for."""

MAX_SINCE = (0, 80, 6)
"""The version of pi that brought the thinking level `max`."""


class _Package(Struct):
    name: str = ""
    version: str = ""


def find_pi(command: Sequence[str] = ("pi",)) -> tuple[str, ...]:
    """Return the command with its program as an absolute path; raises AgentUnavailable saying what to do."""
    program = os.path.expanduser(command[0]) if command else ""
    if not program:
        raise AgentUnavailable("the command of pi is empty", where="agents.pi.command", hint=_INSTALL)
    if os.sep not in program:
        found = find_program(program)
        if found is None:
            raise AgentUnavailable(f"{program} is not on PATH", where="agents.pi.command", hint=_INSTALL)
        return (os.path.abspath(found), *command[1:])
    program = os.path.abspath(program)
    if not os.path.isfile(program):
        raise AgentUnavailable("there is no such program", where=program, hint=_INSTALL)
    if not os.access(program, os.X_OK):
        raise AgentUnavailable("the program is not executable", where=program, hint=f"chmod +x {program}")
    return (program, *command[1:])


def pi_version(command: Sequence[str]) -> str | None:
    """Return the version in the package.json above the program, as `0.73.1`; None where there is none to read."""
    directory = package_dir(command)
    return (_package(directory).version or None) if directory else None


def package_dir(command: Sequence[str]) -> str | None:
    """Return the directory of pi's package above the program; None where there is none.

    Of a command like `node /opt/pi/dist/cli.js` every part that is a path is looked at.
    """
    for part in command:
        if os.sep in part and (directory := _package_above(os.path.realpath(part))):
            return directory
    return None


def thinking_levels(version: str | None) -> tuple[str, ...]:
    """Return the levels that this version of pi takes; without a known version, all."""
    numbers = tuple(int(number) for number in re.findall(r"[0-9]+", version or "")[:3])
    return LEVELS[:-1] if numbers and numbers < MAX_SINCE else LEVELS


def _package_above(path: str) -> str | None:
    for _ in range(_LEVELS):
        path = os.path.dirname(path)
        if _package(path).name.rpartition("/")[2] == _PACKAGE:
            return path
    return None


def _package(directory: str) -> _Package:
    try:
        return msgspec.json.decode(files.read(os.path.join(directory, "package.json")), type=_Package)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return _Package()
