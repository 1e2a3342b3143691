"""The hosts that a relay has heard of: what they said last, and which of them can be asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ... import paths
from ...config.host_settings import HostsSettings
from ...run.hosts import HostState, HostStates, read_host_states, write_host_states
from ...run.model import RunMeta
from ...text.plain import one_line
from .._carrier import Carrier, Link
from ..protocol import BadMessage, HostFacts, Pulled
from .admission import Room
from .pins import Claimed, Pins
from .remote import Remote

WRITE_S = 1.0
"""Least time between two writes of what is known of the hosts."""
FORGET_S = 600.0
"""After which a host that has left, and has no run of ours, is not told of any more."""
BOTH_S = 10.0
"""As long as a host was heard of so lately, another one with its spool is none."""
MOST_NAMES = 1000
"""Of hosts that have left, to be told from those that there never were."""
BEAT_S = 10.0
"""After which it is written although nothing changed but when each was heard of, and its load."""


class Host:
    """A host, by the spool that it has: under whatever key its carrier knows it now."""

    def __init__(self, spool: str, name: str) -> None:
        self.spool = spool
        self.name = name
        self.carrier: Carrier | None = None
        self.key = ""
        self.via = ""
        """Its address, where its carrier knows who answers there."""
        self.facts = HostFacts()
        self.labels: Mapping[str, float] = {}
        self.heard = 0.0
        """By `time.monotonic`."""
        self.heard_at = ""
        self.known: frozenset[str] = frozenset()
        """The runs of this relay that are there."""
        self.ours = 0
        """Of them, those that had no result when it was last heard of."""
        self.deleted: set[str] = set()
        """Runs that it has and whose directory is not here any more."""
        self.told: set[str] = set()
        """Runs that it has and that it was told to end, as nobody waits for them any more."""
        self.strays_since: float | None = None
        """Since when it has had such runs all the time; None where it has none."""

    @property
    def handle(self) -> str:
        """Name it among those of all carriers; empty where it cannot be asked."""
        return f"{self.carrier.name} {self.key}" if self.can_be_asked and self.carrier else ""

    def suits(self, meta: RunMeta) -> bool:
        """Return whether a run may go there, by what it asks for."""
        return meta.host in ("", self.name) and all(
            self.labels.get(label, 0.0) >= count for label, count in meta.needs.items()
        )

    def reached_by(self, settings: HostsSettings) -> str:
        """Return how ssh reaches it for a person; empty where that is not known."""
        return settings.attach.get(self.name, "") or (self.key if self.carrier and self.carrier.name == "ssh" else "")

    def is_another(self, carrier: Carrier, link: Link) -> bool:
        """Return whether it can be asked, and not by that link."""
        return self.can_be_asked and (self.carrier, self.key) != (carrier, link.key)

    @property
    def can_be_asked(self) -> bool:
        return self.carrier is not None and self.key in self.carrier.links

    @property
    def why_not(self) -> str:
        """Why no run can be started there now, in words; empty where one can, and where it cannot be asked."""
        link = self.carrier.links.get(self.key) if self.carrier else None
        return link.why_not if link else ""


class Roster:
    def __init__(self, project: paths.Project, note: Callable[[str], None] = lambda _: None) -> None:
        """`note` takes what a person may want to know, a line each."""
        earlier = read_host_states(project)
        self._earlier = dict.fromkeys((host.name for host in earlier.hosts) if earlier else (), "")
        """The names that an earlier relay knew, and those of hosts that have left."""
        self._pins = Pins(note)
        self._namesakes: dict[str, tuple[Carrier, Link, str]] = {}
        """By address the hosts that call themselves as others do, and how that is."""
        self._hosts: dict[str, Host] = {}
        """By their spools."""
        self._odd: dict[tuple[str, str], tuple[Carrier, Link, str]] = {}
        """The links whose last answer was not understood, and why."""
        self._written = HostStates(at="")
        self._written_at = 0.0

    def __iter__(self) -> Iterator[Host]:
        return iter(self._hosts.values())

    @property
    def names(self) -> dict[str, str]:
        """The names of all hosts that were ever heard of, as far as that is known, with why one takes no runs now."""
        known = self._earlier | {host.name: host.why_not for host in self}
        others = {host.name: (host.carrier, host.key) for host in self}
        odd = {
            link.name: why
            for carrier, link, why in self._misunderstood
            if others.get(link.name, (carrier, link.key)) == (carrier, link.key)
        }
        return known | odd

    @property
    def faults(self) -> list[str]:
        """Why hosts that answer are of no use, in words, each with its carrier before it."""
        namesakes = (told for told in self._namesakes.values() if told[1].key in told[0].links)
        # A name is what the host says of itself; by its address it is known where nothing that it says is believed.
        return [
            f"{carrier.name}: {link.key if carrier.address(link.key) else link.name}: {why}"
            for carrier, link, why in (*self._misunderstood, *namesakes)
        ]

    @property
    def has_unfit(self) -> bool:
        """Whether there is a host that may not get a run though its carrier reaches it."""
        return bool(self._misunderstood) or any(host.why_not for host in self)

    @property
    def _misunderstood(self) -> list[tuple[Carrier, Link, str]]:
        return [(carrier, link, why) for carrier, link, why in self._odd.values() if link.key in carrier.links]

    def misunderstand(self, carrier: Carrier, link: Link, why: str) -> None:
        """Note that what a host answers is not understood; it gets no runs until it is."""
        self._odd[carrier.name, link.key] = (carrier, link, one_line(why, 300))

    def forget_faults(self) -> None:
        """Forget who was misunderstood: there are other carriers now."""
        self._odd.clear()
        self._namesakes.clear()

    def takes_runs(self, host: Host) -> bool:
        """Return whether runs can be started on a host now."""
        is_odd = host.carrier is not None and (host.carrier.name, host.key) in self._odd
        return host.can_be_asked and not is_odd and not host.why_not

    def get(self, spool: str) -> Host | None:
        return self._hosts.get(spool)

    def host_of(self, run: Remote) -> Host | None:
        """Return the host that a run has the permit for, where that was heard of."""
        host = self._hosts.get(run.spool)
        return host if host and run.is_at(host.spool, host.via) else None

    def believed(self, carrier: Carrier, link: Link, pulled: Pulled, carriers: Iterable[Carrier]) -> Pulled:
        """Return what a host has answered with the name by which it goes here: its address, if its own is another's.

        Raises BadMessage where it says that it has the spool of another one.
        """
        address = carrier.address(link.key)
        if address:
            present = frozenset(f"{one.name} {key}" for one in carriers for key in one.addresses)
            try:
                name = self._pins.believe(address, pulled.spool, pulled.host, present)
            except Claimed as error:
                raise BadMessage(str(error)) from error
            self._namesakes.pop(address, None)
            if not name:
                why = f"it calls itself {pulled.host}, as another host does; it goes by its address"
                self._namesakes[address] = (carrier, link, why)
                pulled = replace(pulled, host=link.key)
        former = self._hosts.get(pulled.spool)
        if former and former.is_another(carrier, link) and time.monotonic() - former.heard < BOTH_S:
            raise BadMessage(f"it says that it has the spool of {former.name}, which still answers as {former.key}")
        return pulled

    def hear(self, carrier: Carrier, link: Link, pulled: Pulled, ours: int) -> Host:
        """Take in what a host has answered; `ours` is how many open runs of ours it has."""
        self._odd.pop((carrier.name, link.key), None)
        for former in [host for host in self if host.key == link.key and host.carrier is carrier]:
            if former.spool != pulled.spool:
                self._forget(former)
        host = self._hosts.setdefault(pulled.spool, Host(pulled.spool, pulled.host))
        host.name, host.carrier, host.key, host.facts = pulled.host, carrier, link.key, pulled.facts
        host.via = carrier.address(link.key)
        host.labels = pulled.facts.labels or link.labels
        host.heard, host.heard_at = time.monotonic(), paths.now_iso()
        host.known, host.ours = frozenset(pulled.known), ours
        return host

    def _forget(self, host: Host) -> None:
        """Know no more of a host but that there was one of that name."""
        del self._hosts[host.spool]
        if len(self._earlier) < MOST_NAMES:
            self._earlier[host.name] = ""

    def rooms(self) -> list[Room]:
        """Return the hosts that take runs."""
        return [
            Room(host.handle, host.name, host.facts.slots, host.labels, max(0, host.facts.used - host.ours))
            for host in self
            if self.takes_runs(host)
        ]

    def _forget_old(self, runs: Mapping[str, int]) -> None:
        """Forget the hosts that nobody asks after any more."""
        for host in list(self):
            if not runs.get(host.spool) and time.monotonic() - host.heard >= FORGET_S:
                self._forget(host)

    def write(
        self, project: paths.Project, settings: HostsSettings, runs: Mapping[str, int], faults: Sequence[str]
    ) -> None:
        """Write down what is known of all hosts, where that is due; `runs` counts ours by spool. Raises OSError."""
        now = time.monotonic()
        if now - self._written_at < WRITE_S:
            return
        self._forget_old(runs)
        states = HostStates(
            at=paths.now_iso(),
            hosts=tuple(sorted((_state(host, settings, runs.get(host.spool, 0)) for host in self), key=_by_name)),
            faults=tuple(one_line(fault, 300) for fault in (*faults, *self.faults) if fault),
        )
        if now - self._written_at < BEAT_S and _lasting(states) == _lasting(self._written):
            return
        write_host_states(project, states)
        self._written, self._written_at = states, now


def _state(host: Host, settings: HostsSettings, runs: int) -> HostState:
    facts = host.facts
    return HostState(
        name=host.name,
        carrier=host.carrier.name if host.carrier else "",
        in_reach=time.monotonic() - host.heard < settings.unreachable_after,
        address=host.reached_by(settings),
        heard_at=host.heard_at,
        slots=facts.slots,
        used=facts.used,
        runs=runs,
        load=facts.load,
        cores=facts.cores,
        memory_mb=facts.memory_mb,
        labels=dict(facts.labels),
        subdeck=one_line(facts.subdeck, 40),
        python=one_line(facts.python, 40),
        carrier_version=one_line(facts.carrier, 80),
    )


def _by_name(state: HostState) -> tuple[str, str]:
    return (state.name, state.carrier)


def _lasting(states: HostStates) -> HostStates:
    """Return them without what changes all the time."""
    return replace(
        states, at="", hosts=tuple(replace(host, heard_at="", load=0.0, memory_mb=0) for host in states.hosts)
    )
