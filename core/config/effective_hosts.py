"""The effective hosts: those in the settings, or the test cluster that `subdeck hosts try` runs.

Annotations are evaluated here, as in `settings`.
"""

import os

import msgspec
from msgspec import Struct
from msgspec.structs import astuple, replace

from .. import paths
from ..run.enumerations import Whole
from ..system import files, processes
from ..system.record import read_record
from .host_settings import HostsSettings, TlsFiles


class TryCluster(Struct, frozen=True, rename="camel"):
    """A test cluster on this machine, as its process reports it to other commands."""

    scheduler: str
    """Its address."""
    ca: str
    cert: str
    key: str
    """Absolute paths."""
    pid: Whole
    """Process that runs it; the cluster ends with the process."""
    started: Whole
    boot_id: str

    @property
    def is_kept(self) -> bool:
        return self.boot_id == processes.boot_id() and processes.is_alive(self.pid, self.started)


def try_file() -> str:
    """Return the path of the test cluster's report, which may not exist."""
    return paths.state_file("hosts", "try.json")


def effective_hosts(settings: HostsSettings) -> HostsSettings:
    """Return the settings of hosts, with a running test cluster added if they name no hosts."""
    if settings.is_set:
        return settings
    cluster = kept_cluster()
    if cluster is None:
        return settings
    tls = TlsFiles(ca=cluster.ca, cert=cluster.cert, key=cluster.key)
    return replace(settings, scheduler=cluster.scheduler, tls=tls)


def ssh_addresses(settings: HostsSettings) -> frozenset[str]:
    """Return all addresses that ssh may connect to, which the user has written."""
    return frozenset((*settings.ssh, *settings.attach.values()))


def kept_cluster() -> TryCluster | None:
    """Return the running test cluster; None if there is none."""
    cluster = read_record(try_file(), TryCluster)
    return cluster if cluster and cluster.is_kept else None


def publish(cluster: TryCluster) -> None:
    """Report a cluster to other commands. Raises OSError."""
    files.write_state(try_file(), msgspec.json.encode(cluster))


def keys_dir() -> str:
    """Return the directory that `subdeck hosts keys` writes to by default."""
    return os.path.join(os.path.dirname(paths.user_settings_file()), "hosts")


def keys_in(directory: str) -> TlsFiles:
    """Return the paths of certificates in a directory written by `subdeck hosts keys`."""
    return TlsFiles(*(os.path.join(directory, name) for name in ("ca.pem", "me.pem", "me.key")))


def tls_paths(tls: TlsFiles) -> TlsFiles:
    """Return the certificates' absolute paths; by default, the files that `subdeck hosts keys` made."""
    base, usual = os.path.dirname(paths.user_settings_file()), keys_in(keys_dir())
    return TlsFiles(
        *(
            os.path.join(base, os.path.expanduser(named)) if named else made
            for named, made in zip(astuple(tls), astuple(usual), strict=True)
        )
    )
