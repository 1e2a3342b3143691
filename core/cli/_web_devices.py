"""`subdeck web pair`, `devices`, `revoke`, `link` and `keys`: who may use the reply page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click

from ..engine import Engine
from ..errors import RunnerUnavailable, UsageError, nearest, not_for_agents
from ..paths import is_child
from ..run.describe import ago
from ..text.column import Column
from ..text.plain import one_line
from ._command import Document, command
from ._options import run_argument, snapshot_of
from ._table import table
from ._web_pairing import certificates_dir, check_installed, pairing, pairing_url
from .output import Note, Output, Piece, terminal_width

if TYPE_CHECKING:
    from ..web.devices import Device

COLUMNS = (Column(6), Column(24, least=8), Column(45, least=9), Column(12, least=8), Column(12, least=8))


class PairingLink(Document, frozen=True):
    """A link that pairs one device."""

    url: str
    """Usable once, for five minutes."""


@command(
    "pair",
    "subdeck web pair",
    "subdeck web pair --json",
)
def pair() -> Output[PairingLink]:
    """Show a link and a QR code that pair one device with the running page, once and for five minutes."""
    _check_person("pair devices")
    check_installed()
    from ..web.devices import Devices

    devices = Devices()
    origin = devices.last_origin
    if not origin:
        raise UsageError("the page was never started", where="subdeck web", hint="start it with subdeck web")
    code = devices.new_code()
    return Output(PairingLink(pairing_url(origin, code)), pairing(origin, code))


class RequestLink(Document, frozen=True):
    """A link that replies to one request."""

    url: str
    """Replies once, within five minutes."""


@command(
    "link",
    "subdeck web link 4ae0bd",
    "subdeck web link 4ae0bd q2 --json",
)
@run_argument
@click.argument("request", metavar="[REQUEST]", required=False, default="")
def link(ref: str, request: str) -> Output[RequestLink]:
    """Print a link that shows one request and replies to it once, within five minutes, without a paired device.

    Anyone with the link can reply, so the setting web.links must allow it. Opening the link changes nothing: only
    the buttons on its page reply.
    """
    _check_person("make links")
    engine = Engine.open()
    if not engine.settings.web.links:
        hint = "to allow them, add this to your settings: web: {links: true}"
        raise UsageError("links that reply without a paired device are off", where="web.links", hint=hint)
    from ..project.talk import open_request
    from ..web.devices import Devices, request_link

    (run_id,) = engine.find((ref,))
    asked = open_request(snapshot_of(engine, run_id), request)
    devices = Devices()
    origin = devices.origin_of(engine.project.root)
    if not origin:
        what = "the page of this project was never started"
        raise UsageError(what, where="subdeck web", hint="start it with subdeck web")
    url = request_link(origin, devices.new_link(run_id, asked.id))
    return Output(RequestLink(url), url)


class CertificateFiles(Document, frozen=True):
    """The created files."""

    ca: str
    """Certificate of the authority, for your phone."""
    cert: str
    """The page's certificate."""
    key: str
    """Its private key."""


@command(
    "keys",
    "subdeck web keys box.lan 192.168.1.5",
    "subdeck web keys box.lan --json",
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def keys(names: tuple[str, ...]) -> Output[CertificateFiles]:
    """Create a certificate for the page, with the names and IP addresses of this machine that browsers use.

    subdeck web then uses it for every address but loopback. Browsers trust it once you install ca.pem on the device.
    Existing files are never overwritten.
    """
    if find_spec("cryptography") is None:
        what = "certificates need the package cryptography, which is not installed"
        raise RunnerUnavailable(what, hint='pip install "subdeck[hosts]"')
    from ..hosts.dask.certificates import make_keys

    made = make_keys(certificates_dir(), names)
    where = one_line(certificates_dir(), 500)
    text = (f"Created ca.pem, me.pem and me.key in {where}", Note("Install ca.pem on your phone, and nothing else."))
    return Output(CertificateFiles(made.ca, made.cert, made.key), text)


class PairedDevice(Document, frozen=True):
    """A paired device."""

    id: str
    name: str
    address: str
    """Where it was last seen."""
    paired_at: str
    seen_at: str


class DeviceList(Document, frozen=True):
    """The paired devices, the oldest first."""

    devices: tuple[PairedDevice, ...]


def _document(devices: tuple[Device, ...]) -> tuple[PairedDevice, ...]:
    return tuple(
        PairedDevice(device.id, device.name, device.address, device.paired_at, device.seen_at) for device in devices
    )


@command(
    "devices",
    "subdeck web devices",
    "subdeck web devices --json",
)
def devices() -> Output[DeviceList]:
    """List the paired devices: when each was paired, and when and where it was last seen."""
    from ..web.devices import Devices

    paired = Devices().devices()
    return Output(DeviceList(_document(paired)), _list(paired))


def _list(paired: tuple[Device, ...]) -> Iterator[Piece]:
    if not paired:
        yield "No paired devices."
        return
    now = datetime.now(UTC)
    rows = [
        (
            device.id,
            one_line(device.name, 24),
            one_line(device.address, 45),
            ago(device.paired_at, now),
            ago(device.seen_at, now),
        )
        for device in paired
    ]
    yield table(COLUMNS, [("id", "device", "address", "paired", "seen"), *rows], terminal_width())


class Revoked(Document, frozen=True):
    """The revoked devices."""

    revoked: tuple[PairedDevice, ...]


@command(
    "revoke",
    "subdeck web revoke Phone",
    "subdeck web revoke --all",
)
@click.argument("words", metavar="[DEVICE...]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Revoke all devices.")
def revoke(words: tuple[str, ...], everything: bool) -> Output[Revoked]:
    """Revoke devices, by id or name. Open pages stop working at once."""
    from ..web.devices import Devices

    if bool(words) == everything:
        hint = "subdeck web devices lists them"
        raise UsageError("name the devices, or use --all", where="revoke", hint=hint)
    store = Devices()
    paired = store.devices()
    ids = [device.id for device in paired] if everything else [_device_named(word, paired).id for word in words]
    gone = store.revoke(ids)
    lines = [f"{one_line(device.name, 24)} ({device.id}) is revoked" for device in gone] or ["No paired devices."]
    return Output(Revoked(_document(gone)), lines)


def _device_named(word: str, paired: tuple[Device, ...]) -> Device:
    for device in paired:
        if word in (device.id, device.name):
            return device
    hint = nearest(word, [device.name for device in paired]) or "subdeck web devices lists them"
    raise UsageError(f'no device "{one_line(word, 40)}"', where="revoke", hint=hint)


def _check_person(action: str) -> None:
    if is_child():
        raise not_for_agents(action, where="subdeck web")
