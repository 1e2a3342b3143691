"""`subdeck hosts doctor`: check the hosts, and show how to fix problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click
from msgspec.structs import replace

from ..config.effective_hosts import effective_hosts
from ..doctor import SYMBOLS, Check, State
from ..engine import Engine
from ..errors import RunnerUnavailable
from ..paths import user_settings_file
from ..text.plain import one_line
from ._command import Document, command, preface
from .output import Note, Output, Piece


class CheckedHost(Document, frozen=True):
    host: str | None
    """Null for checks of this machine."""
    checks: tuple[Check, ...]


class HostsReport(Document, frozen=True):
    """The checks of all hosts."""

    ok: bool
    """Whether no check found a problem."""
    hosts: tuple[CheckedHost, ...]


@command(
    "doctor",
    "subdeck hosts doctor",
    "subdeck hosts doctor h1",
)
@click.argument("host", metavar="[HOST]", required=False, default="")
def doctor(host: str) -> Output[HostsReport]:
    """Check every host, or only HOST, for everything that runs need there, and show how to fix problems.

    The only program it starts there is `git version`. The exit code is 1 if something is wrong, otherwise 0.
    """
    from ..hosts.doctor import PATIENCE_S, diagnose, question
    from ..hosts.survey import survey

    settings = Engine.open().settings
    settings = replace(settings, hosts=effective_hosts(settings.hosts))
    if not settings.hosts.is_set:
        raise RunnerUnavailable(
            "no hosts to check",
            where=user_settings_file(),
            hint="subdeck hosts shows how to set up hosts; subdeck hosts try 3 starts three on this machine",
        )
    preface(Note("Checking the hosts …"))
    checked_hosts = diagnose(survey(settings.hosts, question(settings), patience=PATIENCE_S), settings, host)
    is_broken = any(check.state is State.PROBLEM for checked in checked_hosts for check in checked.checks)
    report = HostsReport(
        not is_broken, tuple(CheckedHost(checked.host or None, checked.checks) for checked in checked_hosts)
    )
    return Output(report, _text(report.hosts), int(is_broken))


def _text(hosts: Sequence[CheckedHost]) -> Iterator[Piece]:
    for host in hosts:
        if not host.checks:
            continue
        if host.host:
            yield f"\n{host.host}"
        for check in host.checks:
            mark = f"{SYMBOLS[check.state]} {check.state:<8}"
            yield f"{mark} {one_line(check.name, 20):<12} {one_line(check.detail, 1000)}"
            if check.fix:
                yield f"{'':<24}→ {one_line(check.fix, 500)}"
