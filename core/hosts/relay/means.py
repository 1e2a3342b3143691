"""By which settings hosts are found, and the carriers that reach them."""

from __future__ import annotations

from msgspec import Struct

from ... import paths
from ...config.host_settings import HostsSettings
from ...config.hosts_in_force import hosts_in_force
from ...config.workspace import load_settings
from ...errors import SubdeckError
from .._carrier import Carrier
from .journal import Journal

EXTRA = 'the packages for a cluster are missing: pip install "subdeck[hosts]"'


class Means(Struct, frozen=True):
    """What holds now."""

    settings: HostsSettings
    carriers: tuple[Carrier, ...]
    faults: tuple[str, ...] = ()
    """Why a carrier that the settings want is not among them."""

    @property
    def all_faults(self) -> list[str]:
        """Why there are fewer hosts than there should be, in words, each with its carrier before it."""
        said = ((carrier.name, carrier.fault) for carrier in self.carriers)
        return [*self.faults, *(f"{name}: {fault}" for name, fault in said if fault)]


class MeansFinder:
    """Finds the settings in force, and makes other carriers only where those that name hosts have changed."""

    def __init__(self, project: paths.Project, relay: str, journal: Journal) -> None:
        self._project = project
        self._relay = relay
        self._journal = journal
        self._means = Means(HostsSettings(), ())

    def __call__(self) -> Means:
        try:
            settings = hosts_in_force(load_settings(self._project).hosts)
        except SubdeckError as error:
            self._journal.note(f"cannot read the settings: {error}")  # those from before hold
            return self._means
        if settings == self._means.settings:
            return self._means
        if _connections(settings) == _connections(self._means.settings):
            self._means = Means(settings, self._means.carriers, self._means.faults)
        else:
            self._means = self._made(settings)
        return self._means

    def _made(self, settings: HostsSettings) -> Means:
        carriers: list[Carrier] = []
        faults: list[str] = []
        try:
            if settings.scheduler:
                from ..dask.carrier import DaskCarrier  # with distributed: 47 MB that ssh does without

                carriers.append(DaskCarrier(settings, self._relay))
        except ImportError as error:
            faults.append(f"dask: {EXTRA}")
            self._journal.note(f"{EXTRA}: {error}")
        except SubdeckError as error:
            faults.append(f"dask: {error}")
            self._journal.note(f"dask: {error}")
        if settings.ssh:
            from ..ssh.carrier import SshCarrier

            carriers.append(SshCarrier(settings, self._relay))
        return Means(settings, tuple(carriers), tuple(faults))


def _connections(settings: HostsSettings) -> tuple[object, ...]:
    """Return what a carrier is made of."""
    return (settings.scheduler, settings.tls, settings.ssh, settings.ssh_slots, settings.relay_secrets)
