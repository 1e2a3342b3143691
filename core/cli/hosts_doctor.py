"""`subdeck hosts doctor`: what keeps runs from hosts, and how it is mended."""

from __future__ import annotations

import click
from msgspec.structs import replace

from ..config.hosts_in_force import hosts_in_force
from ..doctor import SYMBOLS, State
from ..engine import Engine
from ..errors import RunnerUnavailable
from ..paths import user_settings_file
from ..text.plain import one_line
from ._options import json_option
from .output import document, note, say


@click.command("doctor")
@click.argument("host", metavar="[HOST]", required=False, default="")
@json_option
def doctor(host: str, as_json: bool) -> int:
    """Check every host, or only HOST, for everything that runs need there, and show how to fix problems.

    The only program it starts there is `git version`. The exit code is 1 if something is wrong, otherwise 0.
    """
    from ..hosts.doctor import PATIENCE_S, diagnose, question
    from ..hosts.survey import survey

    settings = Engine.open().settings
    settings = replace(settings, hosts=hosts_in_force(settings.hosts))
    if not settings.hosts.is_set:
        raise RunnerUnavailable(
            "no hosts to check",
            where=user_settings_file(),
            hint="subdeck hosts shows how to set up hosts; subdeck hosts try 3 starts three on this machine",
        )
    if not as_json:
        note("Checking the hosts …")
    found = diagnose(survey(settings.hosts, question(settings), patience=PATIENCE_S), settings, host)
    is_broken = any(check.state is State.PROBLEM for checked in found for check in checked.checks)
    if as_json:
        document({"ok": not is_broken, "hosts": [{"host": one.host or None, "checks": one.checks} for one in found]})
        return 1 if is_broken else 0
    for one in found:
        if not one.checks:
            continue
        if one.host:
            say(f"\n{one.host}")
        for check in one.checks:
            say(
                f"{SYMBOLS[check.state]} {check.state:<8} {one_line(check.name, 20):<12} {one_line(check.detail, 1000)}"
            )
            if check.fix:
                say(f"{'':<24}→ {one_line(check.fix, 500)}")
    return 1 if is_broken else 0
