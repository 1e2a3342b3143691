"""The program of an agent: where it is, and what the package around it says, without running it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ..errors import AgentUnavailable
from ..paths import is_demo
from ..system import files
from ..system.processes import find_program
from ..text.decoding import UNDECODABLE, decode

_LEVELS = 5
"""How far above the program its package.json is looked for."""


class Package(Struct):
    """A package.json."""

    name: str = ""
    version: str = ""
    engines: Any = None


def executable(command: Sequence[str], *, where: str, install: str) -> tuple[str, ...]:
    """Return the command with its program as an absolute path. Raises AgentUnavailable: `where` is the setting that
    names it, `install` says how it is got.
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
    """Return the command of the agent of that name as `executable` does. `install` says how the usual program of its
    kind is got, which helps only who uses that: any other is known by who named it.
    """
    setting = f"agents.{name}.command"
    is_usual = kind in (name, os.path.basename(command[0]) if command else "")
    install = f"{install}, or set its program in {setting}" if is_usual else f"set its program in {setting}"
    return executable(command, where=setting, install=install)


def package_dir(command: Sequence[str], name: str) -> str | None:
    """Return the directory of the package, by its name without a scope, above the program; None where there is none.

    Of a command like `node /opt/pi/dist/cli.js` every part that is a path is looked at.
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
    """Read the package.json of a directory; an empty one where there is none."""
    try:
        return decode(files.read(os.path.join(directory, "package.json")), Package)
    except (OSError, *UNDECODABLE):
        return Package()


def is_since(version: str | None, since: tuple[int, ...]) -> bool | None:
    """Tell whether a version is at least another one; None where it is not known."""
    numbers = version_numbers(version or "")
    return numbers >= since if numbers else None


def version_numbers(text: str) -> tuple[int, ...]:
    """Read `v22.19.0` or `>=22.19` as numbers, at most three; empty where there are none."""
    return tuple(int(number) for number in re.findall(r"[0-9]{1,9}", text)[:3])
