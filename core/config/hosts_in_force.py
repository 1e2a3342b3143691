"""Which hosts there are to run on: those of the settings, else those of the cluster that `subdeck hosts try` keeps.

Annotations are evaluated here, as in `settings`.
"""

import os

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from .. import paths
from ..run.kinds import Whole
from ..system import files, processes
from ..text.decoding import UNDECODABLE, decode
from .host_settings import HostsSettings, TlsFiles


class TryCluster(Struct, frozen=True, rename="camel"):
    """A cluster of this machine alone, as the process that keeps it tells the other commands."""

    scheduler: str
    """Its address."""
    ca: str
    cert: str
    key: str
    """Absolute paths."""
    pid: Whole
    """Of the process that keeps it; it goes with that."""
    started: Whole
    boot_id: str

    @property
    def is_kept(self) -> bool:
        return self.boot_id == processes.boot_id() and processes.is_alive(self.pid, self.started)


def try_file() -> str:
    """Return the path of what is told of the cluster to try; it may not be there."""
    return paths.state_file("hosts", "try.json")


def hosts_in_force(settings: HostsSettings) -> HostsSettings:
    """Return the settings of hosts with the cluster to try in them, where they name no hosts and one is kept."""
    if settings.is_set:
        return settings
    cluster = kept_cluster()
    if cluster is None:
        return settings
    tls = TlsFiles(ca=cluster.ca, cert=cluster.cert, key=cluster.key)
    return replace(settings, scheduler=cluster.scheduler, tls=tls)


def ssh_addresses(settings: HostsSettings) -> frozenset[str]:
    """Return all addresses that ssh may be given: those that the user has written."""
    return frozenset((*settings.ssh, *settings.attach.values()))


def kept_cluster() -> TryCluster | None:
    """Return the cluster to try; None where none is kept."""
    try:
        cluster = decode(files.read(try_file()), TryCluster)
    except (OSError, *UNDECODABLE):
        return None
    return cluster if cluster.is_kept else None


def publish(cluster: TryCluster) -> None:
    """Tell the other commands of a cluster. Raises OSError."""
    files.write_state(try_file(), msgspec.json.encode(cluster))


def keys_dir() -> str:
    """Return where `subdeck hosts keys` writes, if nothing else is named."""
    return os.path.join(os.path.dirname(paths.user_settings_file()), "hosts")


def keys_in(directory: str) -> TlsFiles:
    """Return the paths of the certificates in a directory that `subdeck hosts keys` made."""
    return TlsFiles(*(os.path.join(directory, name) for name in ("ca.pem", "me.pem", "me.key")))


def tls_paths(tls: TlsFiles) -> TlsFiles:
    """Return the absolute paths of the certificates; where one is not named, the one that `subdeck hosts keys` made."""
    base, usual = os.path.dirname(paths.user_settings_file()), keys_in(keys_dir())
    return TlsFiles(
        *(
            os.path.join(base, os.path.expanduser(named)) if named else made
            for named, made in zip(astuple(tls), astuple(usual), strict=True)
        )
    )
