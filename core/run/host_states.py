"""What the relay knows of the hosts, in a file beside the runs: for the list of hosts and the header of the app.

Annotations are evaluated here, as in `model`.
"""

from collections.abc import Container

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..system import files
from ..text.decoding import UNDECODABLE, decode
from .kinds import Cost, Whole


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
