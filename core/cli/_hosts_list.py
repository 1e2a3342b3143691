"""The list of hosts that `subdeck hosts` prints: from the relay, or without a relay by asking each host once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import structs

from ..agent_kinds import bundled
from ..config.effective_hosts import effective_hosts, ssh_addresses
from ..config.host_settings import needs_words
from ..engine import Engine
from ..paths import now_iso, user_settings_file
from ..run.describe import ago, runs_word, size_text
from ..run.placement import HostState, HostStates, read_host_states
from ..runners.hosts import has_relay
from ..text.column import Column
from ..text.plain import one_line
from ._command import Document
from ._table import table
from .output import Output, Piece, terminal_width

PATIENCE_S = 6.0
"""Seconds to find the hosts without a relay."""
ANSWER_S = 5.0

COLUMNS = (
    Column(40, least=6),
    Column(14),
    Column(12, right=True),
    Column(9, right=True),
    Column(16),
    Column(40, least=4),
    Column(80, least=8),
    Column(12),
)
IN_REACH, OUT_OF_REACH = "● online", "? unreachable"

EMPTY = (
    "No hosts are set up.\nTry it on this machine:  subdeck hosts try 3\nAdd your hosts to "
    "{file}:\n  hosts: {{ssh: [me@h1, me@h2]}}                  over ssh; subdeck must be "
    "installed on each\n  hosts: {{scheduler: tls://head:8786}}           a dask cluster: see "
    "subdeck hosts keys, scheduler and serve"
)


class HostRow(HostState, frozen=True, kw_only=True, omit_defaults=False):
    """A host, with all its fields."""


class HostList(Document, frozen=True):
    """The hosts of the settings."""

    relay: bool
    """Whether a relay keeps the list up to date. Otherwise, the hosts were asked just now."""
    at: str
    """Time of the list."""
    hosts: tuple[HostRow, ...]
    faults: tuple[str, ...]
    """Why hosts are missing."""


def hosts_list() -> Output[HostList]:
    """List the hosts, including unreachable ones."""
    engine = Engine.open()
    states, has_relay = known_hosts(engine)
    hosts = tuple(HostRow(**structs.asdict(host)) for host in states.hosts)
    return Output(HostList(has_relay, states.at, hosts, states.faults), _text(engine, states))


def _text(engine: Engine, states: HostStates) -> Iterator[Piece]:
    if not states.hosts and not states.faults:
        is_set = effective_hosts(engine.settings.hosts).is_set
        yield "No hosts are online." if is_set else EMPTY.format(file=one_line(user_settings_file()))
    if states.hosts:
        yield rows(states.hosts)
        yield f"\n{totals(states.hosts)}"
    for fault in states.faults:
        yield f"! {one_line(fault, 1000)}"


def known_hosts(engine: Engine) -> tuple[HostStates, bool]:
    """Return the hosts, and whether a relay keeps them up to date. Otherwise, they were asked just now."""
    settings = effective_hosts(engine.settings.hosts)
    reported = read_host_states(engine.project, ssh_addresses(settings))
    if reported is not None and has_relay(engine.project):
        return reported, True
    former = reported.hosts if reported else ()
    runs = Counter(run.place.host for run in engine.snapshots(last=0) if run.is_remote and run.place)
    if not settings.is_set:
        return HostStates(at=now_iso(), hosts=_absent(former, (), runs)), False
    from ..hosts.protocol import Examine
    from ..hosts.survey import survey

    survey_result = survey(settings, Examine(agents=bundled()), patience=PATIENCE_S, answer_s=ANSWER_S)
    asked = tuple(
        HostState(
            name=host.examined.host,
            carrier=host.carrier,
            in_reach=True,
            heard_at=now_iso(),
            slots=facts.slots,
            used=facts.used,
            runs=runs[host.examined.host],
            load=facts.load,
            cores=facts.cores,
            memory_mb=facts.memory_mb,
            labels=facts.labels,
            subdeck=one_line(facts.subdeck, 40),
            python=one_line(facts.python, 40),
            carrier_version=one_line(facts.carrier, 80),
            address=host.link.key if host.carrier == "ssh" else "",
        )
        for host in survey_result.hosts
        if host.examined is not None
        for facts in (host.examined.facts,)
    )
    silent = tuple(f"{one_line(host.link.name, 64)}: {host.fault}" for host in survey_result.hosts if host.fault)
    hosts = (*asked, *_absent(former, asked, runs))
    return HostStates(at=now_iso(), hosts=hosts, faults=(*silent, *survey_result.faults)), False


def _absent(former: Sequence[HostState], present: Sequence[HostState], runs: Counter[str]) -> tuple[HostState, ...]:
    """Return the former hosts that are missing now but have runs of this project."""
    names = {host.name for host in present}
    return tuple(
        structs.replace(host, in_reach=False, runs=runs[host.name])
        for host in former
        if host.name not in names and runs[host.name]
    )


def rows(hosts: Sequence[HostState]) -> list[str]:
    now = datetime.now(UTC)
    cells = [
        (
            host.name,
            IN_REACH if host.in_reach else OUT_OF_REACH,
            f"{host.used}/{host.slots} slots",
            runs_word(host.runs) if host.runs else "",
            f"load {host.load:.1f}/{host.cores}",
            ", ".join(filter(None, (size_text(host.memory_mb * 2**20) if host.memory_mb else "", _labels(host)))),
            versions(host),
            ago(host.heard_at, now) if host.heard_at else "",
        )
        for host in hosts
    ]
    return table(COLUMNS, cells, terminal_width())


def _labels(host: HostState) -> str:
    return needs_words(host.labels)


def versions(host: HostState) -> str:
    """`subdeck 0.1.0, Python 3.11.7, distributed 2026.8.0`"""
    parts = (
        f"subdeck {host.subdeck}" if host.subdeck else "",
        f"Python {host.python}" if host.python else "",
        host.carrier_version,
    )
    return ", ".join(filter(None, parts))


def totals(hosts: Sequence[HostState]) -> str:
    """`2 of 3 hosts online, 5 of 12 slots used`"""
    there = [host for host in hosts if host.in_reach]
    count = "1 host" if len(hosts) == 1 else f"{len(hosts)} hosts"
    slots, used = sum(host.slots for host in there), sum(host.used for host in there)
    return f"{len(there)} of {count} online, {used} of {slots} slots used"
