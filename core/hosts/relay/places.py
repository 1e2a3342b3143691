"""Says of each run where it is, and vouches for those that are certainly alive."""

from __future__ import annotations

import time

from ... import paths
from ...config.host_settings import HostsSettings
from ...run.hosts import Place, PlaceState
from ...text.plain import one_line
from .admission import Ruling
from .remote import Remote
from .roster import Roster


class Places:
    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._began = time.monotonic()

    def tell(self, remote: Remote, ruling: Ruling, settings: HostsSettings) -> None:
        """Hold the lock of a run as long as its life is certain, and write down where it is. Raises OSError."""
        if remote.permit is None:
            remote.vouch(True)
            place = Place(PlaceState.WAITS, why=ruling.why, passed_over=ruling.passed_over, since=paths.now_iso())
        else:
            place = self._place_of(remote, settings)
            remote.vouch(place is not None and place.state is PlaceState.PLACED)
        if place is not None and remote.show(place):
            remote.ring()

    def _place_of(self, remote: Remote, settings: HostsSettings) -> Place | None:
        """Return where a run with a permit is; None as long as it was not to be heard of yet."""
        now = time.monotonic()
        host = self._roster.host_of(remote)
        name = host.name if host else remote.permit.host if remote.permit else ""
        address = host.reached_by(settings) if host else settings.attach.get(name, "")
        if remote.heard is not None and now - remote.heard < settings.unreachable_after:
            return Place(PlaceState.PLACED, name, paths.now_iso(), remote.trouble, paths.now_iso(), address=address)
        if remote.heard is None and now - self._began < settings.unreachable_after:
            return None
        heard_at = remote.heard_at or (remote.place.heard_at if remote.place else "")
        why = remote.trouble if remote.trouble != remote.not_now else ""  # it may have room by now
        if host is None and remote.permit and self._roster.get(remote.spool):
            why = f"its host was {one_line(remote.permit.via, 80)}, where another one is now"
        return Place(PlaceState.OUT_OF_REACH, name, paths.now_iso(), why, heard_at, address=address)
