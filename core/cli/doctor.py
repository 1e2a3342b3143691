"""`subdeck doctor`: check what is missing here, and how to fix it."""

from __future__ import annotations

import click

from ..doctor import SYMBOLS, Check, State, examine
from ..text.plain import one_line
from .options import json_option
from .output import document, say

PROBLEMS = 1


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Check everything that subdeck needs, without starting or changing anything.

    The exit code is 1 if something keeps runs from being started here, else 0.
    """
    checks = examine()
    broken = any(check.state is State.PROBLEM for check in checks)
    if as_json:
        document({"ok": not broken, "checks": checks})
    else:
        say("\n".join(line for check in checks for line in _lines(check)))
    return PROBLEMS if broken else 0


def _lines(check: Check) -> list[str]:
    first = f"{SYMBOLS[check.state]} {check.state:<8} {check.name:<9} {one_line(check.detail)}"
    return [first, f"  {'':<8} {'':<9} → {one_line(check.fix)}"] if check.fix else [first]
