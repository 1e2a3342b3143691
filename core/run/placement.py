"""Where a remote run is: the permit by which it may start there, and the relay's knowledge of it.

Annotations are evaluated here, as in `model`.
"""

import os
from collections.abc import Container

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..system import files
from ..system.record import read_record
from .enumerations import Cost, OpenEnum, Whole


class PlaceState(OpenEnum):
    WAITS = "waits"
    """Waits for a host: it has no permit yet."""
    PLACED = "placed"
    """Its host was heard from recently."""
    OUT_OF_REACH = "out_of_reach"
    """Its host was not heard from for longer than `hosts.unreachable_after`."""


class Permit(Struct, frozen=True):
    """`host.json`: the only spool in which the run may start; issued once, never changed."""

    spool: str
    """Id of the spool; empty if the run was cancelled before it was placed."""
    host: str
    at: str
    via: str = ""
    """Carrier and address of the host, such as `ssh me@h1`, if the carrier authenticates it. Only that host is believed
    to have the spool.
    """


class Place(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`place.json`: the relay's knowledge of a run beyond its host's own files; rewritten when it changes."""

    state: PlaceState
    host: str = ""
    """Name of the host; empty until there is one."""
    since: str = ""
    """Since when the state applies."""
    why: str = ""
    """For a waiting run, the reason in words, such as `no host has gpu`. For a run with a host, the problem there, such
    as a disk too full for it.
    """
    heard_at: str = ""
    """When its host was last heard from, as known when this was written."""
    passed_over: bool = False
    """Whether runs behind a waiting run may go first, because no host can take it."""
    address: str = ""
    """How ssh reaches the host, if the settings say it: for attaching to its tmux pane."""

    @property
    def is_waiting(self) -> bool:
        """Whether the run has no host yet."""
        return self.state is PlaceState.WAITS


def read_permit(run_dir: str) -> Permit | None:
    """Return the permit of a run; None if it has none. Raises OSError if that is unknown."""
    nobody = Permit(spool="", host="", at="")  # a damaged one is there, so nobody may give another
    return read_record(f"{run_dir}/{paths.PERMIT}", Permit, damaged=nobody, certain=True)


def give_permit(run_dir: str, permit: Permit) -> Permit:
    """Give a run its permit unless it has one; return the permit on the disk.

    Raises OSError; the permit may exist even then.
    """
    try:
        files.write_new(os.path.join(run_dir, paths.PERMIT), msgspec.json.encode(permit), durable=True)
    except FileExistsError:
        permit = read_permit(run_dir) or permit
    files.settle_names(run_dir)
    return permit


def read_place(run_dir: str) -> Place | None:
    """Return the relay's last record; None if there is none, or it cannot be read."""
    return read_record(f"{run_dir}/{paths.PLACE}", Place)


def has_permit(run_dir: str) -> bool:
    """Return whether a run may have started on a host: a permit is never revoked."""
    return os.path.lexists(f"{run_dir}/{paths.PERMIT}")


class PlaceReader:
    """Rereads a run's place if the relay has rewritten it; otherwise a check is one `stat`."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._path = f"{run_dir}/{paths.PLACE}"
        self._seen: tuple[int, ...] = ()
        self.place: Place | None = None

    def has_changed(self) -> bool:
        """Return whether the file has unread changes."""
        return self._stamp() != self._seen

    def read(self) -> bool:
        """Read the file if it has changed; return whether the place is different."""
        stamp = self._stamp()
        if stamp == self._seen:
            return False
        former, self.place, self._seen = self.place, read_place(self._run_dir), stamp
        return self.place != former

    def _stamp(self) -> tuple[int, ...]:
        try:
            status = os.lstat(self._path)
        except OSError:
            return ()
        return (status.st_mtime_ns, status.st_ino, status.st_size)


def write_place(run_dir: str, place: Place) -> None:
    """Write a run's place. Raises OSError."""
    files.write_whole(os.path.join(run_dir, paths.PLACE), msgspec.json.encode(place))


# --- the hosts as the relay knows them -------------------------------------------------------------------------------


class HostState(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A host as of its last contact."""

    name: str
    carrier: str = ""
    """`dask` or `ssh`."""
    in_reach: bool = False
    heard_at: str = ""
    slots: Whole = 0
    used: Whole = 0
    """Slots held by the runs of all its users."""
    runs: Whole = 0
    """Open runs of this project there."""
    load: Cost = 0.0
    cores: Whole = 0
    memory_mb: Whole = 0
    labels: dict[str, Cost] = {}
    subdeck: str = ""
    python: str = ""
    carrier_version: str = ""
    address: str = ""
    """How ssh reaches it; empty if unknown."""


class HostStates(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`runs/.hosts.json`: rewritten by the relay on a change, at most once a second."""

    at: str
    hosts: tuple[HostState, ...] = ()
    """By name."""
    faults: tuple[str, ...] = ()
    """Why hosts are missing, in words: a scheduler that does not answer, an ssh that fails."""


def read_host_states(project: paths.Project, addresses: Container[str] = ()) -> HostStates | None:
    """Return the states that a relay wrote last; None if there are none. The relay itself may be dead.

    The file may have come with a checkout: an address that is not among `addresses` is dropped.
    """
    states = read_record(project.hosts_file, HostStates)
    if states is None:
        return None
    hosts = (host if host.address in addresses else replace(host, address="") for host in states.hosts)
    return replace(states, hosts=tuple(hosts))


def write_host_states(project: paths.Project, states: HostStates) -> None:
    """Write the states for all readers. Raises OSError."""
    files.write_whole(project.hosts_file, msgspec.json.encode(states))
