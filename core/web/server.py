"""The server of the reply page, until it is stopped.

tornado serves it: one package without dependencies, with an HTTP parser that has limits, TLS, and templates that escape
by default. It is idle between requests, and runs on hosts have it already, as a part of distributed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from socket import socket
from typing import TYPE_CHECKING

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from ..engine import Engine
from ..errors import UsageError
from ..system import files
from ._handlers import Missing, routes
from ._runs import Runs
from ._site import Site
from .address import Address, Served
from .devices import Devices

if TYPE_CHECKING:
    from ssl import SSLContext

LARGEST_BODY, LARGEST_HEADERS = 256 * 1024, 16 * 1024
"""Bytes of a request."""
BODY_TIMEOUT_S, IDLE_TIMEOUT_S = 10, 60
ASSETS = ("style.css", "page.js")


def listening(address: Address) -> tuple[list[socket], Address]:
    """Listen at an address; return the sockets, and the address with its real port. Raises UsageError."""
    try:
        sockets = bind_sockets(address.port, address.host)
    except OSError as error:
        hint = "choose another address with --listen"
        where = f"{address.host}:{address.port}"
        raise UsageError(f"cannot listen: {error.strerror}", where=where, hint=hint) from error
    return sockets, Address(address.host, int(sockets[0].getsockname()[1]))


def serve(
    engine: Engine,
    sockets: list[socket],
    served: Served,
    tls: SSLContext | None = None,
    *,
    readonly: bool = False,
    on_ready: Callable[[Callable[[], None]], None],
) -> None:
    """Serve the page until this process gets SIGINT. When it is reachable, `on_ready` is called with a function that
    stops it from another thread; an error of it ends the server.
    """
    _silence()
    here = os.path.dirname(__file__)
    assets = {name: files.read(os.path.join(here, name)) for name in ASSETS}
    loop = IOLoop()
    site = Site(Runs(engine), Devices(), served, readonly=readonly, assets=assets)
    application = Application(
        routes(site),
        default_handler_class=Missing,
        default_handler_args={"site": site},
        # The usual log has the address of each page, which may contain a token.
        log_function=_log_nothing,
    )
    server = HTTPServer(
        application,
        ssl_options=tls,
        max_body_size=LARGEST_BODY,
        max_buffer_size=2 * LARGEST_BODY,
        max_header_size=LARGEST_HEADERS,
        body_timeout=BODY_TIMEOUT_S,
        idle_connection_timeout=IDLE_TIMEOUT_S,
    )
    server.add_sockets(sockets)
    faults: list[Exception] = []

    def begin() -> None:
        try:
            on_ready(lambda: loop.add_callback(loop.stop))
        except Exception as fault:
            faults.append(fault)
            loop.stop()

    loop.add_callback(begin)
    try:
        loop.start()
    finally:
        server.stop()
        site.close()
        loop.run_sync(server.close_all_connections)
        loop.close(all_fds=True)
    if faults:
        raise faults[0]


def _log_nothing(_: RequestHandler) -> None:
    pass


def _silence() -> None:
    """Keep tornado from writing about requests: its messages contain addresses of pages."""
    logger = logging.getLogger("tornado")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
