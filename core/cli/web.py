"""`subdeck web`: serve pages on which a phone or another desktop answers requests."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import click

from ..config.effective_hosts import keys_in
from ..engine import Engine
from ..errors import UsageError, not_for_agents
from ..paths import is_child
from ..text.plain import one_line
from ._command import command
from ._web_pairing import certificates_dir, check_installed, pairing
from .main import CommandGroup
from .output import note, say, say_lines

if TYPE_CHECKING:
    from socket import socket
    from ssl import SSLContext

    from ..web.address import Served

COMMANDS = {
    "pair": ("_web_devices", "Show a one-time link and QR code that pair a device."),
    "devices": ("_web_devices", "List the paired devices."),
    "revoke": ("_web_devices", "Revoke devices: they have to be paired again."),
    "link": ("_web_devices", "Print a link that replies to one request, once."),
    "keys": ("_web_devices", "Create a certificate for the page."),
}
"""By command: the module of this package that defines it, and one line of help."""


class WebGroup(CommandGroup):
    groups: ClassVar = {"Commands": COMMANDS}
    table = COMMANDS
    unlisted = frozenset[str]()
    whole = "subdeck web"


@command(
    "web",
    "subdeck web # on this machine only",
    "subdeck web --origin https://box.example.ts.net # behind tailscale serve",
    "subdeck web --listen 192.168.1.5 --cert box.pem --key box.key",
    cls=WebGroup,
    invoke_without_command=True,
    json_help="Print startup errors as JSON.",
)
@click.option(
    "--listen",
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="Address, with or without a port (8642).",
)
@click.option("--cert", metavar="FILE", help="Certificate for TLS, as PEM (default: from subdeck web keys).")
@click.option("--key", metavar="FILE", help="Its private key, as PEM.")
@click.option(
    "--origin",
    "origins",
    metavar="URL",
    multiple=True,
    help="A further name that browsers use, such as that of a proxy on this machine; may be repeated.",
)
@click.option("--readonly", is_flag=True, help="Show runs and requests, but send no replies or messages.")
@click.pass_context
def web(
    ctx: click.Context, listen: str, cert: str | None, key: str | None, origins: tuple[str, ...], readonly: bool
) -> None:
    """Serve small pages that show this project's requests and runs, and send your replies, until ctrl-C.

    It prints a link and a QR code, which pair one device. Only paired devices see anything. An address other than
    loopback requires TLS.
    """
    if ctx.invoked_subcommand is not None:
        return
    if is_child():
        raise not_for_agents("serve the reply page", where="subdeck web")
    check_installed()
    engine = Engine.open(readonly=readonly)
    sockets, served, tls = _listening(listen, cert, key, origins)
    from ..web.devices import Devices
    from ..web.server import serve

    def on_ready(_: Callable[[], None]) -> None:
        devices = Devices()
        devices.set_origin(engine.project.root, str(served.first))
        say(f"Serving {one_line(engine.project.root, 200)} at {served.first}. Press ctrl-C to stop.")
        say_lines([*pairing(str(served.first), devices.new_code())])

    try:
        serve(engine, sockets, served, tls, readonly=readonly, on_ready=on_ready)
    except KeyboardInterrupt:
        note("\nstopped; the runs continue")


def _listening(
    listen: str, cert: str | None, key: str | None, origins: tuple[str, ...]
) -> tuple[list[socket], Served, SSLContext | None]:
    from ..web.address import listen_address, proxied_origin, served

    address, proxied = listen_address(listen), [*map(proxied_origin, origins)]
    if (cert is None) != (key is None):
        raise UsageError("--cert and --key belong together", where="--cert" if cert else "--key", hint="give both")
    made = keys_in(certificates_dir())
    if cert is None and not address.is_loopback and os.path.exists(made.cert):
        cert, key = made.cert, made.key
    tls = _tls(cert, key)
    if tls is None and not address.is_loopback:
        hint = "create a certificate with subdeck web keys, or listen on loopback and use ssh -L or tailscale serve"
        raise UsageError("an address that other machines reach needs TLS", where="--listen", hint=hint)
    from ..web.server import listening

    sockets, address = listening(address)
    return sockets, served(address, is_tls=tls is not None, proxied=proxied), tls


def _tls(cert: str | None, key: str | None) -> SSLContext | None:
    """Return the settings of TLS; None without a certificate, and then load the server without OpenSSL."""
    if cert is None or key is None:
        from ..web.loading import load_without_tls

        load_without_tls()
        return None
    from ..web.tls import tls_context

    return tls_context(cert, key)
