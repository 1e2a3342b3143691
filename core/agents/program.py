"""An agent's program: its path, and its package's metadata, without running it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ..errors import AgentUnavailable
from ..paths import is_demo
from ..system.processes import find_program
from ..system.record import read_record

_LEVELS = 5
"""Directories above the program that are searched for its package.json."""


class Runtime(Struct, frozen=True):
    """The interpreter of an agent's program."""

    program: str
    """Its command, such as `node`."""
    oldest: str
    """The oldest version that the agent accepts, such as `22.19.0`; empty if the agent names none."""
    way_out: str
    """The command that installs a version of the agent for an older one."""


class Package(Struct):
    """A package.json."""

    name: str = ""
    version: str = ""
    engines: Any = None


def executable(command: Sequence[str], *, where: str, install: str) -> tuple[str, ...]:
    """Return the command with its program as an absolute path. Raises AgentUnavailable: `where` is the setting that
    names the program, `install` how to install it.
    """
    if is_demo():
        raise AgentUnavailable("agents cannot be started in a demo", where=where)
    program = os.path.expanduser(command[0]) if command else ""
    if not program:
        raise AgentUnavailable("the command is empty", where=where, hint=install)
    if os.sep not in program:
        found = find_program(program)
        if found is None:
            raise AgentUnavailable(f"{program} is not on PATH", where=where, hint=install, code="agent.not_installed")
        return (os.path.abspath(found), *command[1:])
    program = os.path.abspath(program)
    if not os.path.isfile(program):
        raise AgentUnavailable("the program does not exist", where=program, hint=install, code="agent.not_installed")
    if not os.access(program, os.X_OK):
        raise AgentUnavailable("the program is not executable", where=program, hint=f"chmod +x {program}")
    return (program, *command[1:])


def own_or_installed(command: Sequence[str], name: str, *, kind: str, install: str) -> tuple[str, ...]:
    """Return the named agent's command as `executable` does. `install` is the hint for the kind's default program; for
    any other program, the hint names the setting instead.
    """
    setting = f"agents.{name}.command"
    is_usual = kind in (name, os.path.basename(command[0]) if command else "")
    install = f"{install}, or set its program in {setting}" if is_usual else f"set its program in {setting}"
    return executable(command, where=setting, install=install)


def package_dir(command: Sequence[str], name: str) -> str | None:
    """Return the package's directory above the program, by its name without a scope; None if there is none.

    In a command like `node /opt/pi/dist/cli.js`, every part that is a path is checked.
    """
    for part in command:
        if os.sep in part and (directory := _above(os.path.realpath(part), name)):
            return directory
    return None


def _above(path: str, name: str) -> str | None:
    for _ in range(_LEVELS):
        path = os.path.dirname(path)
        if package(path).name.rpartition("/")[2] == name:
            return path
    return None


def package(directory: str) -> Package:
    """Read a directory's package.json; an empty one if it is missing."""
    return read_record(os.path.join(directory, "package.json"), Package, Package())


def is_since(version: str | None, since: tuple[int, ...]) -> bool | None:
    """Whether a version is at least `since`; None if unknown."""
    numbers = version_numbers(version or "")
    return numbers >= since if numbers else None


def version_numbers(text: str) -> tuple[int, ...]:
    """Parse `v22.19.0` or `>=22.19` to at most three numbers; empty if there are none."""
    return tuple(int(number) for number in re.findall(r"[0-9]{1,9}", text)[:3])
