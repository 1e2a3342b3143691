"""The base of all pages: who may see them, and the headers that browsers get with each."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from tornado.iostream import StreamClosedError
from tornado.web import Finish, HTTPError, RequestHandler

from ..system.log import log_fault
from ..text.plain import one_line
from . import _templates as templates
from ._site import Site
from .devices import Device

COOKIE, SECURE_COOKIE = "subdeck", "__Host-subdeck"
"""With TLS the browser refuses the cookie of another name or path under the second name."""
COOKIE_DAYS = 400
"""Browsers keep no cookie longer."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Content-Type": "text/html; charset=UTF-8",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Browsers then send the origin with a form, but no address of a page to another site.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
READONLY = "This page is read-only: start subdeck web without --readonly to reply."


class Page(RequestHandler):
    """A page for paired devices."""

    for_all = False
    """Whether it is also for devices that are not paired."""

    def initialize(self, site: Site) -> None:
        self.site = site
        self.device: Device | None = None

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        origin = self.site.served.of_host(self.request.host)
        if origin is None:
            raise HTTPError(421)
        self.origin = origin
        if self.request.method not in ("GET", "HEAD") and self.request.headers.get("Origin") != str(origin):
            raise HTTPError(403)
        self.device = self.site.devices.of_cookie(self.cookie)
        if self.device is not None:
            self.site.devices.note_visit(self.device, self.address)
        elif not self.for_all:
            self.show("pair", 401, heading="Pair this device", warning="", code="", name=self.usual_name)
            raise Finish

    @property
    def cookie(self) -> str:
        """The device's secret; empty without one."""
        return self.get_cookie(self.cookie_name) or ""

    @property
    def cookie_name(self) -> str:
        return SECURE_COOKIE if self.origin.is_secure else COOKIE

    @property
    def address(self) -> str:
        """The browser's address. A header is believed only from a proxy on this machine, for the proxy's own name."""
        peer = self.request.remote_ip or ""
        if self.origin.is_proxied and peer in ("127.0.0.1", "::1"):
            forwarded = self.request.headers.get("X-Forwarded-For", "").split(",")[-1]  # the proxy's own entry
            return one_line(forwarded, 45) or peer
        return peer

    @property
    def usual_name(self) -> str:
        return "Phone" if "Mobi" in self.request.headers.get("User-Agent", "") else "Computer"

    @property
    def by(self) -> str:
        """Who replies, for the run's records."""
        return f"the user on {self.device.name} at {self.address}" if self.device else f"the user at {self.address}"

    def show(self, template: str, status: int = 200, /, **values: Any) -> None:
        """Answer with a page."""
        self.set_status(status)
        self.finish(templates.page(template, readonly=self.site.readonly, **values))

    def result(self, heading: str, text: str, *links: tuple[str, str], status: int = 200, **values: Any) -> None:
        """Answer with the page of an outcome."""
        shown = {"kind": "done", "is_open": False} | values
        self.show("result", status, heading=heading, text=text, links=(*links, ("/", "All runs")), **shown)

    def field(self, name: str) -> str:
        """Return a field of the posted form; empty if it is missing."""
        return self.get_body_argument(name, "", strip=False).replace("\r\n", "\n")

    def check_writable(self) -> None:
        if self.site.readonly:
            self.result("Read-only", READONLY, status=403, kind="warning")
            raise Finish

    def not_found(self, what: str) -> None:
        self.result("Not found", what, status=404, kind="warning")

    def compute_etag(self) -> None:
        """No page is kept by the browser."""

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_status(status_code)
        text = {
            403: "This request came from another site, or from a proxy that is not known: see --origin.",
            404: "This page does not exist.",
            421: "This name is not served: start subdeck web with --origin.",
        }.get(status_code, "The page could not be shown.")
        self.finish(
            templates.page(
                "result", readonly=False, heading="Error", text=text, links=(), kind="warning", is_open=False
            )
        )

    def log_exception(
        self,
        typ: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        """Log a fault without the address of its page, which may contain a token."""
        if value is not None and not isinstance(value, HTTPError | StreamClosedError):
            log_fault("in a page", value)
