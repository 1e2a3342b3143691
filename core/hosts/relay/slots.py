"""The hosts that a relay has seen: their last reports, whether they are online, and their slots.

A host reports its own spool and name. If its carrier identifies hosts, as ssh does by host keys, both are stored by
address at first sight, for the relays of all projects. Another address that later reports the same spool or name is not
believed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ... import paths
from ...config.host_settings import HostsSettings
from ...run.model import RunMeta
from ...run.placement import HostState, HostStates, read_host_states, write_host_states
from ...system import files
from ...system.record import read_record
from ...text.plain import one_line
from .._carrier import Carrier, Link
from ..protocol import BadMessage, HostFacts, HostName, Pulled, SpoolId
from .runs import RemoteRun

NO_NAME = ""
"""The name of a host that reports another host's name."""
WRITE_S = 1.0
"""Least seconds between writes of the hosts' state."""
FULL_WRITE_S = 10.0
"""Seconds after which it is written even if only last contacts and load have changed."""
FORGET_S = 600.0
"""Seconds after which an offline host without open runs is no longer listed."""
TAKEN_S = 10.0
"""Seconds after its last answer during which a host keeps its spool: another host that reports it is refused."""
MOST_NAMES = 1000
"""Most remembered names of former hosts, which distinguish them from hosts that never existed."""


class KnownHost(Struct, frozen=True):
    """The spool and name that the host at an address has reported."""

    spool: SpoolId
    name: HostName | None = None
    """None if another host had the name first."""


class SpoolTaken(Exception):
    """A host reports the spool of another host."""


def known_hosts_file() -> str:
    return paths.state_file("hosts", "known.json")


class KnownHosts:
    """The known hosts of this user, by address."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """`note` receives problems with their file, in words."""
        self._note = note
        self._entries: dict[str, KnownHost] = {}
        self._settled: dict[str, tuple[str, str, Set[str], str]] = {}
        """The last report of each address, and the name settled for it."""

    def settle_name(self, address: str, spool: str, name: str, present: Set[str]) -> str:
        """Return the name of the host at an address: the reported name, or `NO_NAME` if another host has it.

        `present` are the addresses of all configured hosts; entries for other addresses do not count. Raises SpoolTaken
        if another host has that spool.
        """
        settled = self._settled.get(address)
        if settled and settled[:3] == (spool, name, present):
            return settled[3]
        self._read()
        other_hosts = {
            other_address: entry
            for other_address, entry in self._entries.items()
            if other_address != address and other_address in present
        }
        for other_address, entry in other_hosts.items():
            if entry.spool == spool:
                whose = entry.name or plain_address(other_address)
                raise SpoolTaken(
                    f"it says that it has the spool of {whose}, which {plain_address(other_address)} was first to have"
                )
        is_free = all(entry.name != name for entry in other_hosts.values())
        self._keep(address, KnownHost(spool, name if is_free else None))
        settled_name = name if is_free else NO_NAME
        self._settled[address] = (spool, name, present, settled_name)
        return settled_name

    def _keep(self, address: str, host: KnownHost) -> None:
        if self._entries.get(address) == host:
            return
        other_hosts = {
            other_address: entry for other_address, entry in self._entries.items() if entry.spool != host.spool
        }
        self._entries = {**other_hosts, address: host}
        try:
            files.write_state(known_hosts_file(), msgspec.json.encode(self._entries))
        except OSError as error:
            self._note(f"which spool a host has cannot be noted: {error}")

    def _read(self) -> None:
        """Read the entries of all relays; an unreadable file is written again."""

        def report(error: Exception) -> None:
            self._note(f"which spools hosts have had cannot be read: {error}")

        self._entries = read_record(known_hosts_file(), dict[str, KnownHost], self._entries, report=report)


def plain_address(address: str) -> str:
    """Return an address without its carrier."""
    return address.partition(" ")[2]


class Capacity(Struct, frozen=True):
    """The slots and labels of a host that takes runs now."""

    key: str
    """Handle of the host."""
    name: str
    slots: int
    labels: Mapping[str, float] = {}
    others: int = 0
    """Slots held by other operators' runs."""


class Host:
    """A host, identified by its spool: the key under which its carrier reaches it may change."""

    def __init__(self, spool: str, name: str) -> None:
        self.spool = spool
        self.name = name
        self.carrier: Carrier | None = None
        self.key = ""
        self.via = ""
        """Its address, if its carrier identifies hosts."""
        self.facts = HostFacts()
        self.labels: Mapping[str, float] = {}
        self.last_seen = 0.0
        """By `time.monotonic`."""
        self.last_seen_at = ""
        self.known: frozenset[str] = frozenset()
        """This relay's runs on it."""
        self.open_runs = 0
        """How many of these runs had no result at its last answer."""
        self.deleted: set[str] = set()
        """Runs on it that were deleted here."""
        self.stopped_orphans: set[str] = set()
        """Orphaned runs on it that were sent a stop request."""
        self.orphans_since: float | None = None
        """Since when it has had orphaned runs; None if it has none."""

    @property
    def handle(self) -> str:
        """Its key among the hosts of all carriers; empty if it is offline."""
        return f"{self.carrier.name} {self.key}" if self.can_be_asked and self.carrier else ""

    def suits(self, meta: RunMeta) -> bool:
        """Return whether it meets the requirements of a run."""
        return meta.host in ("", self.name) and all(
            self.labels.get(label, 0.0) >= count for label, count in meta.needs.items()
        )

    def reached_by(self, settings: HostsSettings) -> str:
        """Return the address for a person's ssh; empty if unknown."""
        return settings.attach.get(self.name, "") or (self.key if self.carrier and self.carrier.name == "ssh" else "")

    def is_another(self, carrier: Carrier, link: Link) -> bool:
        """Return whether it is online by another link."""
        return self.can_be_asked and (self.carrier, self.key) != (carrier, link.key)

    @property
    def can_be_asked(self) -> bool:
        return self.carrier is not None and self.key in self.carrier.links

    @property
    def why_not(self) -> str:
        """Why it cannot start runs now, in words; empty if it can or is offline."""
        link = self.carrier.links.get(self.key) if self.carrier else None
        return link.why_not if link else ""


class Hosts:
    """The hosts by spool, and problems with hosts that answer."""

    def __init__(self, project: paths.Project, note: Callable[[str], None] = lambda _: None) -> None:
        """`note` receives lines for the log."""
        states = read_host_states(project)
        self._former = dict.fromkeys((host.name for host in states.hosts) if states else (), "")
        """Names of former hosts, and of hosts that an earlier relay knew."""
        self._known_hosts = KnownHosts(note)
        self._namesakes: dict[str, tuple[Carrier, Link, str]] = {}
        """Hosts that report another host's name, by address, each with a sentence."""
        self._by_spool: dict[str, Host] = {}
        self._not_understood: dict[tuple[str, str], tuple[Carrier, Link, str]] = {}
        """Links whose last answer was not understood, and why."""
        self._written = HostStates(at="")
        self._written_at = 0.0

    def __iter__(self) -> Iterator[Host]:
        return iter(self._by_spool.values())

    @property
    def names(self) -> dict[str, str]:
        """Names of all hosts ever seen, if known, each with the reason if it takes no runs now."""
        reasons = self._former | {host.name: host.why_not for host in self}
        seen = {host.name: (host.carrier, host.key) for host in self}
        not_understood = {
            link.name: why
            for carrier, link, why in self._misunderstood
            if seen.get(link.name, (carrier, link.key)) == (carrier, link.key)
        }
        return reasons | not_understood

    @property
    def faults(self) -> list[str]:
        """Why hosts that answer cannot be used, in words, each after its carrier's name."""
        namesakes = (entry for entry in self._namesakes.values() if entry[1].key in entry[0].links)
        # The name is the host's own claim; a host that is not believed is named by its address.
        return [
            f"{carrier.name}: {link.key if carrier.address(link.key) else link.name}: {why}"
            for carrier, link, why in (*self._misunderstood, *namesakes)
        ]

    @property
    def has_unfit(self) -> bool:
        """Whether a host may not get runs although its carrier reaches it."""
        return bool(self._misunderstood) or any(host.why_not for host in self)

    @property
    def _misunderstood(self) -> list[tuple[Carrier, Link, str]]:
        return [entry for entry in self._not_understood.values() if entry[1].key in entry[0].links]

    def misunderstand(self, carrier: Carrier, link: Link, why: str) -> None:
        """Note that a host's answer is not understood; it gets no runs until one is."""
        self._not_understood[carrier.name, link.key] = (carrier, link, one_line(why, 300))

    def forget_faults(self) -> None:
        """Forget all problems, because there are new carriers."""
        self._not_understood.clear()
        self._namesakes.clear()

    def takes_runs(self, host: Host) -> bool:
        """Return whether runs can be started on a host now."""
        is_misunderstood = host.carrier is not None and (host.carrier.name, host.key) in self._not_understood
        return host.can_be_asked and not is_misunderstood and not host.why_not

    def get(self, spool: str) -> Host | None:
        return self._by_spool.get(spool)

    def host_of(self, run: RemoteRun) -> Host | None:
        """Return the host that a run is permitted on, if it has been seen."""
        host = self._by_spool.get(run.spool)
        return host if host and run.is_at(host.spool, host.via) else None

    def checked(self, carrier: Carrier, link: Link, pulled: Pulled, carriers: Iterable[Carrier]) -> Pulled:
        """Return a host's answer with its settled name: its address, if the reported name is another host's.

        Raises BadMessage if it reports another host's spool.
        """
        address = carrier.address(link.key)
        if address:
            present = frozenset(f"{one.name} {key}" for one in carriers for key in one.addresses)
            try:
                name = self._known_hosts.settle_name(address, pulled.spool, pulled.host, present)
            except SpoolTaken as error:
                raise BadMessage(str(error)) from error
            self._namesakes.pop(address, None)
            if not name:
                why = f"it calls itself {pulled.host}, as another host does; it goes by its address"
                self._namesakes[address] = (carrier, link, why)
                pulled = replace(pulled, host=link.key)
        former = self._by_spool.get(pulled.spool)
        if former and former.is_another(carrier, link) and time.monotonic() - former.last_seen < TAKEN_S:
            raise BadMessage(f"it says that it has the spool of {former.name}, which still answers as {former.key}")
        return pulled

    def update(self, carrier: Carrier, link: Link, pulled: Pulled, open_runs: int) -> Host:
        """Record a host's answer; `open_runs` counts this relay's open runs on it."""
        self._not_understood.pop((carrier.name, link.key), None)
        for former in [host for host in self if host.key == link.key and host.carrier is carrier]:
            if former.spool != pulled.spool:
                self._forget(former)
        host = self._by_spool.setdefault(pulled.spool, Host(pulled.spool, pulled.host))
        host.name, host.carrier, host.key, host.facts = pulled.host, carrier, link.key, pulled.facts
        host.via = carrier.address(link.key)
        host.labels = pulled.facts.labels or link.labels
        host.last_seen, host.last_seen_at = time.monotonic(), paths.now_iso()
        host.known, host.open_runs = frozenset(pulled.known), open_runs
        return host

    def _forget(self, host: Host) -> None:
        """Forget a host except for its name."""
        del self._by_spool[host.spool]
        if len(self._former) < MOST_NAMES:
            self._former[host.name] = ""

    def capacities(self) -> list[Capacity]:
        """Return the slots of hosts that take runs."""
        return [
            Capacity(host.handle, host.name, host.facts.slots, host.labels, max(0, host.facts.used - host.open_runs))
            for host in self
            if self.takes_runs(host)
        ]

    def _forget_old(self, runs: Mapping[str, int]) -> None:
        """Forget hosts that have been offline for long and have no open runs."""
        for host in list(self):
            if not runs.get(host.spool) and time.monotonic() - host.last_seen >= FORGET_S:
                self._forget(host)

    def write(
        self, project: paths.Project, settings: HostsSettings, runs: Mapping[str, int], faults: Sequence[str]
    ) -> None:
        """Write the state of all hosts for readers, when due; `runs` counts the open runs by spool. Raises OSError."""
        now = time.monotonic()
        if now - self._written_at < WRITE_S:
            return
        self._forget_old(runs)
        states = HostStates(
            at=paths.now_iso(),
            hosts=tuple(sorted((_state(host, settings, runs.get(host.spool, 0)) for host in self), key=_by_name)),
            faults=tuple(one_line(fault, 300) for fault in (*faults, *self.faults) if fault),
        )
        if now - self._written_at < FULL_WRITE_S and _lasting(states) == _lasting(self._written):
            return
        write_host_states(project, states)
        self._written, self._written_at = states, now


def _state(host: Host, settings: HostsSettings, runs: int) -> HostState:
    facts = host.facts
    return HostState(
        name=host.name,
        carrier=host.carrier.name if host.carrier else "",
        in_reach=time.monotonic() - host.last_seen < settings.unreachable_after,
        address=host.reached_by(settings),
        heard_at=host.last_seen_at,
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
    """Return states without the values that change all the time."""
    return replace(
        states, at="", hosts=tuple(replace(host, heard_at="", load=0.0, memory_mb=0) for host in states.hosts)
    )
