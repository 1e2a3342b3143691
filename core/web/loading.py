"""Load the server without OpenSSL if it serves no TLS, and without what only logs and several processes need: 8 of
33 MB.

Only parts of tornado that a plain server does not reach use it. The stand-ins are those of `core/system/imports.py`, so
the version of tornado is exact in pyproject.toml.
"""

from __future__ import annotations

from ..system.imports import StandIn, import_light

_PARTS = ("tornado.httpserver", "tornado.ioloop", "tornado.locks", "tornado.netutil", "tornado.template")


def load_without_tls() -> None:
    """Load the libraries of the server; if they are loaded already, this changes nothing."""
    import_light("asyncio", missing=("ssl",))  # as on a Python without OpenSSL
    later = map(StandIn, ("hashlib", "hmac", "multiprocessing"))
    import_light("tornado.web", _plain_ssl(), *later, parts=_PARTS, missing=("curses",))


def _plain_ssl() -> StandIn:
    """Return a module in which the types that are compared with exist, and nothing is an instance of them."""
    types = {name: type(name, (), {}) for name in ("SSLContext", "SSLSocket")}
    return StandIn("ssl", SSLError=type("SSLError", (OSError,), {}), **types)
