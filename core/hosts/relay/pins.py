"""Which address first had a spool, and what its host called itself: who says the same at another one is not believed.

A host says itself which spool it has, and what it is called. Where its carrier knows who answers, as ssh does by the
keys of its hosts, that is noted when it is first heard of, for the relays of all projects.
"""

from __future__ import annotations

from collections.abc import Callable, Set

import msgspec
from msgspec import Struct

from ... import paths
from ...system import files
from ...text.decoding import UNDECODABLE, decode
from ..protocol import HostName, SpoolId

NO_NAME = ""
"""Of a host that calls itself as another one does."""


class Pin(Struct, frozen=True):
    """What the host at an address has said of itself."""

    spool: SpoolId
    name: HostName | None = None
    """None where another one had that name first."""


class Claimed(Exception):
    """A host says that it has the spool of another one."""


def pins_file() -> str:
    return paths.state_file("hosts", "known.json")


class Pins:
    """Those of this user."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """`note` takes what is wrong with their file, in words."""
        self._note = note
        self._pins: dict[str, Pin] = {}
        self._settled: dict[str, tuple[str, str, Set[str], str]] = {}
        """What was ruled on the last words of each address."""

    def believe(self, address: str, spool: str, name: str, present: Set[str]) -> str:
        """Return the name by which the host at an address goes: its own, or `NO_NAME` where another one has that.

        `present` are the addresses of all hosts of the settings: what is noted of any other one keeps nobody out.
        Raises Claimed where another one has that spool.
        """
        known = self._settled.get(address)
        if known and known[:3] == (spool, name, present):
            return known[3]
        self._read()
        others = {other: pin for other, pin in self._pins.items() if other != address and other in present}
        for other, pin in others.items():
            if pin.spool == spool:
                whose = pin.name or plain_address(other)
                raise Claimed(
                    f"it says that it has the spool of {whose}, which {plain_address(other)} was first to have"
                )
        is_free = all(pin.name != name for pin in others.values())
        self._keep(address, Pin(spool, name if is_free else None))
        goes_by = name if is_free else NO_NAME
        self._settled[address] = (spool, name, present, goes_by)
        return goes_by

    def _keep(self, address: str, pin: Pin) -> None:
        if self._pins.get(address) == pin:
            return
        left = {other: known for other, known in self._pins.items() if known.spool != pin.spool}
        self._pins = {**left, address: pin}
        try:
            files.write_state(pins_file(), msgspec.json.encode(self._pins))
        except OSError as error:
            self._note(f"which spool a host has cannot be noted: {error}")

    def _read(self) -> None:
        """Take in what the relays of other projects have noted; what cannot be read is noted anew."""
        try:
            self._pins = decode(files.read(pins_file()), dict[str, Pin])
        except FileNotFoundError:
            return
        except (OSError, *UNDECODABLE) as error:
            self._note(f"which spools hosts have had cannot be read: {error}")


def plain_address(address: str) -> str:
    """Return an address without its carrier."""
    return address.partition(" ")[2]
