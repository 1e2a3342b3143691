"""Diagnose problems of hosts, with a fix for each. All hosts are asked at once."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from msgspec import Struct

from .. import __version__
from ..agent_kinds import bundled
from ..agents.choice import AUTO, choose_agent, installed_agents
from ..config.host_settings import TlsFiles, needs_words
from ..config.settings import Settings
from ..doctor import Check, State
from ..errors import SubdeckError
from ..run.describe import span
from ..text.plain import one_line
from .protocol import AgentVersion, Examine, Examined
from .survey import Survey, Surveyed

PATIENCE_S = 15.0
"""Seconds that finding hosts may take."""
CLOCK_S = 5.0
"""Seconds by which clocks may differ without a warning; run records carry their host's time."""
SAME = "install the same version on both machines"
SOON_S = 30 * 24 * 3600.0
"""Seconds left below which certificates cause a warning."""
_ANEW = (
    "remove the old certificates on all machines, create new ones (subdeck hosts keys), copy "
    "them to all machines, and restart the cluster"
)


class HostChecks(Struct, frozen=True):
    """Checks of one host, or of the way to all hosts."""

    host: str
    """Empty for checks of all hosts."""
    checks: tuple[Check, ...]


def wanted(settings: Settings) -> tuple[tuple[str, ...], str]:
    """Return the agents that a host should have: the usable ones here and the default; and the default's name, which is
    empty if none is usable.
    """
    try:
        usual = choose_agent(settings.agent, settings).name
    except SubdeckError:
        usual = "" if settings.agent == AUTO else settings.agent
    here = [choice.name for choice in installed_agents(settings)]
    return tuple(dict.fromkeys(filter(None, (usual, *here)))), usual


def question(settings: Settings) -> Examine:
    """Return the request to every host. An empty list of agents would ask for all of them."""
    agents, _ = wanted(settings)
    return Examine(variables=settings.hosts.env[:1000], agents=(*agents[:99], *bundled()))


def diagnose(survey: Survey, settings: Settings, only: str = "") -> tuple[HostChecks, ...]:
    """Return the checks: the way to the hosts first, then each host, or only the one named."""
    hosts = [host for host in survey.hosts if only in ("", *_names(host))]
    general = HostChecks("", tuple(_general(survey, settings, only)))
    return (general, *(HostChecks(_name(host), tuple(_of(host, settings))) for host in hosts))


def _names(host: Surveyed) -> tuple[str, ...]:
    return (_name(host), host.link.name, host.link.key)


def _name(host: Surveyed) -> str:
    return host.examined.host if host.examined else one_line(host.link.name, 64)


# --- the way to all hosts --------------------------------------------------------------------------------------------


def _general(survey: Survey, settings: Settings, only: str) -> Iterator[Check]:
    hosts = settings.hosts
    if hosts.scheduler:
        yield _tls(hosts.scheduler, hosts.tls)
    for fault in survey.faults:
        yield Check("reach", State.PROBLEM, fault, _mending(fault))
    if not survey.hosts and not survey.faults:
        yield Check(
            "hosts",
            State.PROBLEM,
            "the cluster has no hosts",
            f"start some: subdeck hosts serve {hosts.scheduler or ''}".rstrip(),
        )
    elif only and not any(only in _names(host) for host in survey.hosts):
        names = ", ".join(sorted(_name(host) for host in survey.hosts)) or "none"
        yield Check("hosts", State.PROBLEM, f"unknown host {one_line(only, 64)}", f"known hosts: {names}")
    missing = [name for name in hosts.env if name not in os.environ]
    if missing:
        yield Check(
            "variables",
            State.WARN,
            f"hosts.env lists {', '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not set here",
            "set it where you start subdeck, or on the hosts, or remove it from hosts.env",
        )


def _tls(address: str, tls: TlsFiles) -> Check:
    """Check the certificates for the cluster, by the same rules that refuse a run."""
    from ..config.certificates import certificates
    from .dask.security import expiry

    try:
        files = certificates(address, tls)
    except SubdeckError as error:
        return Check("tls", State.PROBLEM, f"{error.where}: {error.what}", error.hint)
    if files is None:
        return Check("tls", State.OK, f"none; {address} is only for this machine")
    if os.stat(files.key).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        what = f"other users can read {files.key} and use it to run programs on every host"
        return Check("tls", State.PROBLEM, what, f"chmod 600 {files.key}")
    directory = os.path.dirname(files.cert)
    return _expiry("tls", expiry(files.ca, files.cert), f"{address} with the certificates in {directory}")


def _expiry(name: str, until: float, well: str) -> Check:
    """Check when certificates expire; `well` is the text if that is far off."""
    seconds_left = until - time.time()
    if not until or seconds_left >= SOON_S:
        return Check(name, State.OK, well)
    date = f"{datetime.fromtimestamp(until).astimezone():%Y-%m-%d}"
    if seconds_left <= 0:
        return Check(name, State.PROBLEM, f"the certificates expired on {date} and are no longer accepted", _ANEW)
    return Check(name, State.WARN, f"the certificates expire on {date}, in {span(seconds_left)}", _ANEW)


def _mending(fault: str) -> str:
    """Return how to fix a carrier's fault; empty if the fault text already tells."""
    steps = {
        "has no subdeck": "start it with: subdeck hosts serve, which loads what subdeck needs there",
        "Permission denied": "add your key to ~/.ssh/authorized_keys there: ssh must work without a password",
        "certificates come from different authorities": "copy the files from one subdeck hosts keys to all machines",
        "no answer from": "check that the scheduler is running: subdeck hosts scheduler ADDRESS starts one",
        "is not installed there": "pip install subdeck there, on the PATH of ssh commands",
        "is reachable only through the scheduler": "make it reachable from here (subdeck hosts serve --listen ADDRESS),"
        " or set hosts.relay_secrets: true",
        "Could not resolve": "check the name in hosts.ssh, and ~/.ssh/config",
    }
    return next((step for words, step in steps.items() if words in fault), "")


# --- one host --------------------------------------------------------------------------------------------------------


def _of(host: Surveyed, settings: Settings) -> Iterator[Check]:
    examined = host.examined
    if examined is None:
        yield Check("answer", State.PROBLEM, host.fault or "it does not answer", _mending(host.fault))
        return
    facts = examined.facts
    labels = f", with {needs_words(facts.labels)}" if facts.labels else ""
    used = f"{facts.used} of {facts.slots} slots used{labels}, load {facts.load:.1f} on {facts.cores} cores"
    yield Check("answer", State.OK, f"by {host.carrier} after {round(host.seconds * 1000)} ms; {used}")
    if host.fault:
        yield Check("messages", State.PROBLEM, host.fault)
    if examined.certificates_until:
        until = datetime.fromtimestamp(examined.certificates_until).astimezone()
        yield _expiry("tls", examined.certificates_until, f"until {until:%Y-%m-%d}")
    yield from _versions(host, examined)
    yield from _agents(examined, settings)
    if examined.missing_variables:
        yield from _variables(examined.missing_variables)
    yield Check("spool", State.PROBLEM if examined.problems else State.OK, _spool(examined))
    yield (
        Check("git", State.OK, examined.git)
        if examined.git
        else Check("git", State.PROBLEM, "no usable git", "install git there")
    )
    yield _clock(host)


def _spool(examined: Examined) -> str:
    return "; ".join(one_line(problem, 300) for problem in examined.problems) or one_line(examined.spool, 300)


def _versions(host: Surveyed, examined: Examined) -> Iterator[Check]:
    facts = examined.facts
    there = one_line(facts.subdeck, 40) or "unknown"
    if there == __version__:
        yield Check("subdeck", State.OK, there)
    else:
        yield Check("subdeck", State.PROBLEM, f"{there} there, {__version__} here", SAME)
    python, ours = one_line(facts.python, 40), ".".join(map(str, sys.version_info[:3]))
    same = python.split(".")[:2] == ours.split(".")[:2]
    if same or host.carrier != "dask":
        yield Check("python", State.OK, python)
    else:
        what = f"{python} there, {ours} here: dask requires the same Python version"
        yield Check("python", State.PROBLEM, what, f"start its worker with Python {'.'.join(ours.split('.')[:2])}")
    name, _, number = one_line(facts.carrier, 80).partition(" ")
    if not number:
        return
    here = _installed(name)
    if here in (number, ""):
        yield Check(name, State.OK, number)
    else:
        yield Check(name, State.PROBLEM, f"{number} there, {here} here", SAME)


def _installed(package: str) -> str:
    try:
        return version(package)
    except (PackageNotFoundError, ValueError):
        return ""


def _agents(examined: Examined, settings: Settings) -> Iterator[Check]:
    names, usual = wanted(settings)
    agents: Mapping[str, AgentVersion] = {agent.name: agent for agent in examined.agents}
    for name in names:
        agent = agents.get(name)
        if agent is not None and not agent.problem:
            yield Check(name, State.OK, one_line(agent.version, 100) or "found")
            continue
        state = State.PROBLEM if name == usual else State.WARN
        why = one_line(agent.problem, 300) if agent else "it was not checked"
        yield Check(
            name, state, why, f"install {name} on {examined.host}, or add it under agents: in the settings there"
        )


def _variables(names: Sequence[str]) -> Iterator[Check]:
    """Report variables set neither on the host nor here: a run there would not have them."""
    lacking = [name for name in names if name not in os.environ]
    if lacking:
        yield Check(
            "variables",
            State.PROBLEM,
            f"{', '.join(one_line(name, 100) for name in lacking)}: not set here or there",
            "set it where you start subdeck, or where its worker is started",
        )


def _clock(host: Surveyed) -> Check:
    ahead = host.clock_ahead
    if abs(ahead) <= max(CLOCK_S, host.seconds):
        return Check(
            "clock", State.OK, f"within {max(1, round(max(abs(ahead), host.seconds)))} s of this machine's clock"
        )
    words = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's clock"
    return Check(
        "clock", State.WARN, f"{words}: times of its runs are wrong by this amount", "synchronize the clocks (NTP)"
    )
