"""Where the page is served: the address that it listens at, and the names under which browsers may reach it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from ..errors import UsageError
from ..text.plain import one_line

PORT = 8642
"""The usual port."""
_HOST = r"\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253}"
_LOOPBACK = re.compile(r"localhost|::1|127(\.[0-9]{1,3}){3}")
_USUAL_PORTS = {"http": 80, "https": 443}


class Address(Struct, frozen=True):
    """The address of a listening socket."""

    host: str
    """A name or an IP address, IPv6 without brackets."""
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return _LOOPBACK.fullmatch(self.host) is not None

    @property
    def is_any(self) -> bool:
        """Whether it stands for all addresses of this machine; a browser needs a name instead."""
        return self.host in ("0.0.0.0", "::")  # noqa: S104 - it is compared, not bound


def listen_address(text: str) -> Address:
    """Read `127.0.0.1:8642`, `[::1]:8642`, `box`, `:9000` or `9000`. Raises UsageError."""
    host, port = "", text.strip()
    if not port.isdecimal():
        match = re.fullmatch(rf"({_HOST})?(?::([0-9]{{1,5}}))?", port)
        host, port = (match[1] or "", match[2] or str(PORT)) if match and port else ("", "")
    if not port or int(port) > 65535:
        hint = f"use an address such as 127.0.0.1:{PORT}, [::1]:{PORT} or {PORT}"
        raise UsageError(f'"{one_line(text, 60)}" is not an address to listen at', where="--listen", hint=hint)
    return Address(host.strip("[]") or "127.0.0.1", int(port))


class Origin(Struct, frozen=True):
    """A scheme, a name and a port under which browsers reach the page."""

    scheme: str
    host: str
    """As in the header Host: lower case, with the port if it is not the scheme's usual one."""
    is_proxied: bool = False
    """Whether a proxy on this machine passes the requests on."""

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def is_secure(self) -> bool:
        return self.scheme == "https"


def proxied_origin(text: str) -> Origin:
    """Read the origin of a proxy, such as `https://box.example.ts.net`. Raises UsageError."""
    match = re.fullmatch(rf"(https?)://({_HOST})(?::([0-9]{{1,5}}))?/?", text.strip())
    if match is None:
        hint = "use scheme and name, such as https://box.example.ts.net"
        raise UsageError(f'"{one_line(text, 60)}" is not an origin', where="--origin", hint=hint)
    return origin(match[1], match[2], int(match[3] or _USUAL_PORTS[match[1]]), is_proxied=True)


def origin(scheme: str, host: str, port: int, *, is_proxied: bool = False) -> Origin:
    name = f"[{host}]" if ":" in host and not host.startswith("[") else host
    shown = name if port == _USUAL_PORTS[scheme] else f"{name}:{port}"
    return Origin(scheme, shown.lower(), is_proxied)


class Served:
    """The origins that are served; a request for any other host, or from any other origin, is refused."""

    def __init__(self, origins: Iterable[Origin]) -> None:
        self.origins = tuple(origins)

    @property
    def first(self) -> Origin:
        """The origin of links: a proxy's if there is one, because other machines reach it."""
        return next((candidate for candidate in self.origins if candidate.is_proxied), self.origins[0])

    def of_host(self, host: str) -> Origin | None:
        """Return the origin that a request with this header Host is for."""
        named = host.strip().lower()
        for candidate in self.origins:
            if named in (candidate.host, f"{candidate.host}:{_USUAL_PORTS[candidate.scheme]}"):
                return candidate
        return None


def served(address: Address, *, is_tls: bool, proxied: Iterable[Origin] = ()) -> Served:
    """Return the origins of an address. Raises UsageError if it has no name."""
    scheme = "https" if is_tls else "http"
    names = ["127.0.0.1", "localhost"] if address.host in ("127.0.0.1", "localhost") else [address.host]
    own_origins = [] if address.is_any else [origin(scheme, name, address.port) for name in names]
    origins = (*own_origins, *proxied)
    if not origins:
        hint = "add --origin with the name that browsers use, such as --origin https://box:8642"
        raise UsageError(
            f"{address.host} stands for all addresses, and browsers need a name", where="--listen", hint=hint
        )
    return Served(origins)
