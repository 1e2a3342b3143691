"""Where a run of another machine is: the permit by which it may start there, and what the relay knows of it.

Annotations are evaluated here, as in `model`.
"""

import os
from collections.abc import Container

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..system import files
from ..text.decoding import UNDECODABLE, decode
from .kinds import Cost, OpenEnum, Whole


class PlaceState(OpenEnum):
    WAITS = "waits"
    """For a host: it has no permit yet."""
    PLACED = "placed"
    """Its host was heard of lately."""
    OUT_OF_REACH = "out_of_reach"
    """Its host has not been heard of for longer than `hosts.unreachable_after`."""


class Permit(Struct, frozen=True):
    """`host.json`: the one spool in which the run may start; given once, for ever."""

    spool: str
    """The id of the spool; empty where the run was cancelled before it was placed."""
    host: str
    at: str
    via: str = ""
    """Carrier and address of the host, where the carrier knows who answers there: `ssh me@h1`. Nobody else is believed
    to have that spool.
    """


class Place(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`place.json`: what the relay knows of a run beside what its host writes; written anew when that changes."""

    state: PlaceState
    host: str = ""
    """Name of the host; empty as long as there is none."""
    since: str = ""
    """Since when it is so."""
    why: str = ""
    """Of a run that waits: what for, in words, such as `no host has gpu`. Of one that has a host: what is wrong there,
    such as that its disk has no room for it.
    """
    heard_at: str = ""
    """When its host was last heard of, as far as it is known when this was written."""
    passed_over: bool = False
    """Whether a run that waits stands in nobody's way: no host could take it."""
    address: str = ""
    """How ssh reaches the host, where the settings say so: for attaching to its tmux pane."""

    @property
    def is_waiting(self) -> bool:
        """Whether the run has no host yet."""
        return self.state is PlaceState.WAITS


def read_permit(run_dir: str) -> Permit | None:
    """Return the permit of a run; None where it has none. Raises OSError where that is not known."""
    try:
        return decode(files.read(f"{run_dir}/{paths.PERMIT}"), Permit)
    except FileNotFoundError:
        return None
    except UNDECODABLE:
        return Permit(spool="", host="", at="")  # it is there, so nobody may give another


def give_permit(run_dir: str, permit: Permit) -> Permit:
    """Give a run its permit, unless it has one; return the one that it has, as it is on the disk.

    Raises OSError; then it may have been given all the same.
    """
    try:
        files.write_new(os.path.join(run_dir, paths.PERMIT), msgspec.json.encode(permit), durable=True)
    except FileExistsError:
        permit = read_permit(run_dir) or permit
    files.settle_names(run_dir)
    return permit


def read_place(run_dir: str) -> Place | None:
    """Return what the relay wrote last; None where it wrote nothing, or nothing that can be read."""
    try:
        return decode(files.read(f"{run_dir}/{paths.PLACE}"), Place)
    except (OSError, *UNDECODABLE):
        return None


def has_permit(run_dir: str) -> bool:
    """Return whether a run may have started on a host: nobody takes a permit back."""
    return os.path.lexists(f"{run_dir}/{paths.PERMIT}")


class PlaceReader:
    """Reads where a run is again when the relay has written that anew; else a look is one `stat`."""

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir
        self._path = f"{run_dir}/{paths.PLACE}"
        self._seen: tuple[int, ...] = ()
        self.place: Place | None = None

    def has_changed(self) -> bool:
        """Tell whether there is something that was not read yet."""
        return self._stamp() != self._seen

    def read(self) -> bool:
        """Read what is new; return whether the place is another one."""
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
    """Write what is known of a run's place. Raises OSError."""
    files.write_whole(os.path.join(run_dir, paths.PLACE), msgspec.json.encode(place))


# --- what the relay knows of the hosts -------------------------------------------------------------------------------


class HostState(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A host as it was last heard of."""

    name: str
    carrier: str = ""
    """`dask` or `ssh`."""
    in_reach: bool = False
    heard_at: str = ""
    slots: Whole = 0
    used: Whole = 0
    """Slots that runs of all its operators hold."""
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
    """How ssh reaches it; empty where that is not known."""


class HostStates(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """`runs/.hosts.json`: written anew by the relay when something of it changed, once a second at most."""

    at: str
    hosts: tuple[HostState, ...] = ()
    """By name."""
    faults: tuple[str, ...] = ()
    """Why there are fewer hosts than there should be, in words: a scheduler that does not answer, an ssh that fails."""


def read_host_states(project: paths.Project, addresses: Container[str] = ()) -> HostStates | None:
    """Return what a relay wrote last; None where none ever did. Whether one lives is another question.

    The file may have come with a checkout: an address that is not among `addresses` is left out.
    """
    try:
        states = decode(files.read(project.hosts_file), HostStates)
    except (OSError, *UNDECODABLE):
        return None
    hosts = (host if host.address in addresses else replace(host, address="") for host in states.hosts)
    return replace(states, hosts=tuple(hosts))


def write_host_states(project: paths.Project, states: HostStates) -> None:
    """Write them for all readers. Raises OSError."""
    files.write_whole(project.hosts_file, msgspec.json.encode(states))
