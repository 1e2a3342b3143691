"""The answers to requests of browsers. A GET changes nothing."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec
from tornado.gen import sleep
from tornado.iostream import StreamClosedError
from tornado.web import Finish, HTTPError, RequestHandler

from ..errors import SubdeckError, UsageError, in_one_line
from ..paths import at_home
from ..project.talk import Sent as Entry
from ..run.describe import activity, ago, elapsed
from ..run.events import Decision, Request
from ..run.model import MessageState, RequestKind, Verdict
from ..run.requests import answered_words, decision_line
from ..run.snapshot import RunSnapshot
from ..system.log import log_fault
from ..text.plain import one_line, plain
from ..text.visible import visible, visible_line, visible_name
from . import _pages as pages
from ._request import Line, form_token, is_form_token, request_lines, shown_hash
from ._runs import PATCH_BYTES
from ._site import Site
from .devices import Device, Link

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
PATIENCE_S, POLL_S = 5.0, 0.01
"""Seconds to wait for the effect of a reply, and between two looks; a wrapper takes some milliseconds."""
FILES_SHOWN = 50
"""Names of changed files on a run's page."""
CHANGED = "The request has changed since you read it. Nothing was sent: this is the new one."
TOO_OLD = "This form is too old, or from another browser. Nothing was sent: read the request again."
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
            self.show("pair", 401, heading="Pair this device", alert="", code="", name=self.usual_name)
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
        self.finish(pages.page(template, readonly=self.site.readonly, **values))

    def result(self, heading: str, text: str, *links: tuple[str, str], status: int = 200, **values: Any) -> None:
        """Answer with the page of an outcome."""
        shown = {"kind": "done", "is_open": False} | values
        self.show("result", status, heading=heading, text=text, links=(*links, ("/", "All runs")), **shown)

    def field(self, name: str) -> str:
        """Return a field of the posted form; empty if it is missing."""
        return self.get_body_argument(name, "", strip=False).replace("\r\n", "\n")

    def check_writable(self) -> None:
        if self.site.readonly:
            self.result("Read-only", READONLY, status=403, kind="alert")
            raise Finish

    def not_found(self, what: str) -> None:
        self.result("Not found", what, status=404, kind="alert")

    def compute_etag(self) -> None:
        """No page is kept by the browser."""

    def write_error(self, status_code: int, **_: Any) -> None:
        self.set_status(status_code)
        text = {
            403: "This request came from another site, or from a proxy that is not known: see --origin.",
            404: "There is no such page.",
            421: "This name is not served: start subdeck web with --origin.",
        }.get(status_code, "The page could not be shown.")
        self.finish(
            pages.page("result", readonly=False, heading="Error", text=text, links=(), kind="alert", is_open=False)
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


class Missing(Page):
    """Any other address."""

    for_all = True

    def prepare(self) -> None:
        raise HTTPError(404 if self.site.served.of_host(self.request.host) else 421)


class Asset(Page):
    """The style sheet and the script."""

    for_all = True

    def get(self, name: str) -> None:
        kinds = {"css": "text/css", "js": "text/javascript"}
        self.set_header("Content-Type", f"{kinds[name.rpartition('.')[2]]}; charset=UTF-8")
        self.set_header("Cache-Control", "no-cache")
        self.finish(self.site.assets[name])


class Overview(Page):
    async def get(self) -> None:
        found = await self.site.call(self.site.runs.overview)
        waiting = [row for run in found.waiting for row in pages.request_rows(run)]
        self.show(
            "overview",
            heading=pages.waiting_words(len(found.waiting)),
            project=at_home(visible_name(self.site.runs.root)),
            titles={"input": "Needs input", "running": "Running", "failed": "Failed today", "done": "Finished today"},
            lists=(
                ("input", waiting, "No request is open."),
                ("running", [*map(pages.run_row, found.running)], "Nothing is running."),
                ("failed", [*map(pages.run_row, found.failed)], "No run has failed today."),
                ("done", [*map(pages.run_row, found.finished)], "No run has finished today."),
            ),
        )


class Pair(Page):
    """Pairing: the link shows the code in a form, and only sending the form uses it."""

    for_all = True

    def get(self) -> None:
        self.show_form(self.get_query_argument("code", ""))

    def show_form(self, code: str, alert: str = "", status: int = 200) -> None:
        self.show(
            "pair", status, heading="Pair this device", alert=alert, code=one_line(code, 40), name=self.usual_name
        )

    def post(self) -> None:
        if wait := self.site.attempts.wait_s(self.address):
            self.set_header("Retry-After", str(wait))
            self.show_form("", f"Too many attempts. Try again in {wait} seconds.", 429)
            return
        paired = self.site.devices.pair(self.field("code"), self.field("name"), self.address)
        if paired is None:
            alert = "The code is wrong, used or expired. In a terminal, subdeck web pair shows a new one."
            self.show_form("", alert, 403)
            return
        _, cookie = paired
        self.set_cookie(
            self.cookie_name,
            cookie,
            expires_days=COOKIE_DAYS,
            httponly=True,
            secure=self.origin.is_secure,
            samesite="Strict",
        )
        self.redirect("/", status=303)


class Run(Page):
    async def get(self, run_id: str) -> None:
        details = await self.site.call(self.site.runs.details, run_id)
        if details is None:
            self.not_found("There is no such run.")
            return
        run, result = details.run, details.result
        changes = details.changes
        named = changes.named if changes else ()
        self.show(
            "run",
            heading=pages.heading(run),
            task=plain(run.meta.task),
            facts=_facts(run),
            rows=pages.request_rows(run) if run.is_waiting else [],
            activity=one_line(activity(run), 200),
            can_talk=run.can_talk,
            run_id=run.run_id,
            digest="",
            token=form_token(self.cookie, "message", run.run_id, "", ""),
            error=plain((result and result.error_message) or ""),
            answer=plain((result and result.final_text) or ""),
            is_partial=bool(result and result.partial),
            changes=one_line(changes.words) if changes else "",
            files=[(visible_name(file.path), _figure(file.added, file.removed)) for file in named[:FILES_SHOWN]],
            more_files=max(0, (changes.files if changes else 0) - min(len(named), FILES_SHOWN)),
        )


class Patch(Page):
    """The changes of a run, as a patch."""

    async def get(self, run_id: str) -> None:
        try:
            found = await self.site.call(self.site.runs.patch, run_id)
        except (SubdeckError, OSError) as error:
            self.result("No changes to show", in_one_line(error), (f"/run/{run_id}", "Back to the run"), kind="alert")
            return
        if found is None:
            self.not_found("There is no such run.")
            return
        run, patch = found
        lines = visible(patch[:PATCH_BYTES].decode("utf-8", "replace")).split("\n")
        left = len(patch) - PATCH_BYTES
        missing = f"{left:,} bytes are not shown: subdeck diff {run.meta.short_id} prints all." if left > 0 else ""
        self.show(
            "changes",
            heading=f"Changes of {pages.title(run)}",
            run_id=run_id,
            missing=missing,
            lines=[Line(line, _kind(line)) for line in lines],
        )


class Asked(Page):
    """A request: its page, and the replies to it."""

    async def get(self, run_id: str, request_id: str) -> None:
        await self.show_request(run_id, request_id, self.cookie, self.request.path)

    async def post(self, run_id: str, request_id: str) -> None:
        self.check_writable()
        sent_id = await self.reply(run_id, request_id, self.cookie, self.request.path)
        if sent_id:
            self.redirect(f"{self.request.path}/{sent_id}", status=303)

    async def found(self, run_id: str, request_id: str) -> tuple[RunSnapshot, Request] | None:
        """Return an open request and its run. Otherwise answer with who replied to it, and return None."""
        run = await self.site.call(self.site.runs.run, run_id)
        for request in run.requests if run is not None and run.is_waiting else ():
            if run is not None and request.id == request_id:
                return run, request
        decision = await self.site.call(self.site.runs.decision, run_id, request_id) if run else None
        links = ((f"/run/{run_id}", "Show the run"),) if run and self.device else ()
        if decision is not None:
            self.result("No longer pending", f"{answered_words(decision)}. Nothing was sent.", *links, status=410)
        else:
            self.result(
                "Not pending", f"{request_id} is not pending. Nothing was sent.", *links, status=404, kind="alert"
            )
        return None

    async def show_request(
        self, run_id: str, request_id: str, secret: str, action: str, *, alert: str = "", status: int = 200
    ) -> None:
        found = await self.found(run_id, request_id)
        if found is None:
            return
        run, request = found
        digest = shown_hash(run, request)
        self.show(
            "request",
            status,
            heading=visible_line(request.title) or "has a question",
            title=pages.title(run),
            task=pages.task(run),
            when=ago(request.ts, datetime.now(UTC)),
            run_id=run.run_id,
            request_id=request.id,
            lines=request_lines(request, run.meta.cwd),
            answers=pages.answers_of(request),
            others=[row for row in pages.request_rows(run) if row.path != pages.request_path(run, request)]
            if self.device
            else [],
            action=action,
            digest=digest,
            token=form_token(secret, "reply", run.run_id, request.id, digest),
            alert=alert,
        )

    async def reply(self, run_id: str, request_id: str, secret: str, action: str, token: str = "") -> str:
        """Send the posted reply, and return its id. Answer with the reason, and return nothing, if it is refused.

        `token` belongs to a link, which is used up right before the reply is sent.
        """
        found = await self.found(run_id, request_id)
        if found is None:
            return ""
        run, request = found
        read, current = self.field("shown"), shown_hash(run, request)
        alert = "" if read == current else CHANGED
        if not is_form_token(self.field("token"), secret, "reply", run_id, request_id, read):
            alert = TOO_OLD
        if not alert:
            try:
                verdict, text = self._verdict(request)
                if token and self.site.devices.use_link(token) is None:
                    self.result("Link used", "The link was used or has expired. Nothing was sent.", status=410)
                    return ""
                sent = await self.site.call(self.site.runs.reply, run, request, verdict, text, self.by)
                await self._effect(run, sent)
                return sent.id
            except UsageError as error:
                alert = f"Nothing was sent: {in_one_line(error)}"
            except SubdeckError as error:
                self.result("Not sent", in_one_line(error), status=409, kind="alert")
                return ""
        await self.show_request(run_id, request_id, secret, action, alert=alert, status=409)
        return ""

    async def _effect(self, run: RunSnapshot, sent: Entry) -> None:
        """Wait until a reply counts or is refused, or for a few seconds."""
        reception, deadline = self.site.runs.reception(sent), time.monotonic() + PATIENCE_S
        while not reception.is_settled and time.monotonic() < deadline:
            await sleep(POLL_S)
            reception.read(run)

    def _verdict(self, request: Request) -> tuple[Verdict, str]:
        """Return the posted verdict and its text. Raises UsageError."""
        match self.field("verdict"):
            case "allow":
                return Verdict.ALLOW, ""
            case "allow_run":
                return Verdict.ALLOW_RUN, ""
            case "deny":
                return Verdict.DENY, self.field("reason").strip()
            case "reply":
                return Verdict.REPLY, self._answer(request)
            case _:
                raise UsageError("the form has no allow, deny or reply")

    def _answer(self, request: Request) -> str:
        if request.kind is RequestKind.FORM and request.fields:
            values = {
                field.name: _chosen(self.field(f"field-{number}"), field.choices)
                for number, field in enumerate(request.fields)
            }
            return msgspec.json.encode({name: value for name, value in values.items() if value}).decode(
                "utf-8", "replace"
            )
        text = self.field("text").strip()
        return text or _chosen(self.field("choice"), request.choices)


def _chosen(posted: str, choices: tuple[str, ...]) -> str:
    """Return the choice with a posted number; the posted text if there are no choices."""
    if not choices:
        return posted.strip()
    return choices[int(posted)] if posted.isdecimal() and len(posted) < 6 and int(posted) < len(choices) else ""


class Replied(Page):
    """The outcome of a reply."""

    async def get(self, run_id: str, request_id: str, sent_id: str) -> None:
        heading, text, values = await self.outcome(run_id, request_id, sent_id)
        self.result(heading, text, (f"/run/{run_id}", "Show the run"), **values)

    async def outcome(self, run_id: str, request_id: str, sent_id: str) -> tuple[str, str, dict[str, Any]]:
        event = await self.site.call(self.site.runs.settled, run_id, sent_id)
        match event:
            case Decision():
                return "Reply sent", decision_line(event) or "", {}
            case None:
                return "Reply sent", "The run has not taken it yet.", {"is_open": True}
            case _:
                decision = await self.site.call(self.site.runs.decision, run_id, request_id)
                text = one_line(event.reason, 300) or (answered_words(decision) if decision else "")
                return "Your reply did not count", text, {"kind": "alert"}


class Message(Page):
    """A message to a run."""

    async def post(self, run_id: str) -> None:
        self.check_writable()
        back = (f"/run/{run_id}", "Back to the run")
        if not is_form_token(self.field("token"), self.cookie, "message", run_id, "", ""):
            self.result("Not sent", TOO_OLD, back, status=409, kind="alert")
            return
        try:
            sent = await self.site.call(self.site.runs.send, run_id, self.field("text"), self.by)
        except SubdeckError as error:
            self.result("Not sent", in_one_line(error), back, status=409, kind="alert")
            return
        self.redirect(f"/run/{run_id}/message/{sent.id}", status=303)


class Sent(Page):
    """The outcome of a message."""

    async def get(self, run_id: str, sent_id: str) -> None:
        event = await self.site.call(self.site.runs.settled, run_id, sent_id)
        words = {
            MessageState.ACCEPTED: "The run has it; the agent has not read it yet.",
            MessageState.DELIVERED: "The agent has read it.",
            MessageState.REFUSED: "The agent refused it.",
            MessageState.LATE: "It came too late.",
        }
        links = (f"/run/{run_id}", "Back to the run")
        if event is None or isinstance(event, Decision):
            self.result("Message sent", "The run has not taken it yet.", links)
            return
        is_read = event.state in (MessageState.ACCEPTED, MessageState.DELIVERED)
        reason = f" {one_line(event.reason, 300)}" if event.reason else ""
        text = words.get(event.state, "") + reason
        self.result("Message sent" if is_read else "Not delivered", text, links, kind="done" if is_read else "alert")


class LinkedRequest(Asked, Replied):
    """The page of a link that replies to one request without a paired device."""

    for_all = True

    @property
    def by(self) -> str:
        return f"the user with a link at {self.address}"

    async def get(self, token: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        if link := self._link(token):
            await self.show_request(link.run_id, link.request, token, self.request.path)

    async def post(self, token: str) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.check_writable()
        link = self._link(token)
        sent_id = link and await self.reply(link.run_id, link.request, token, self.request.path, token)
        if link and sent_id:
            heading, text, values = await self.outcome(link.run_id, link.request, sent_id)
            self.show(
                "result", heading=heading, text=text, links=(), **({"kind": "done"} | values | {"is_open": False})
            )

    def _link(self, token: str) -> Link | None:
        """Return the link; answer with a page if it is used or expired."""
        link = self.site.devices.link(token)
        if link is None:
            text = "The link was used or has expired. A paired device shows the request."
            self.show("result", 410, heading="Link expired", text=text, links=(), kind="alert", is_open=False)
        return link


class Stream(Page):
    """Server-sent events: one for each change of the runs."""

    async def get(self) -> None:
        if not self.site.changes.join():
            raise HTTPError(503)
        try:
            self.set_header("Content-Type", "text/event-stream")
            self.write("retry: 5000\n\n")
            await self.site.changes.begin()
            has_changed = True  # perhaps, since the page was made
            while self.site.devices.of_cookie(self.cookie) and not self._is_closed:
                self.write("event: change\ndata: 1\n\n" if has_changed else ":\n\n")
                await self.flush()
                has_changed = await self.site.changes.wait()
        except StreamClosedError:
            return
        finally:
            self.site.changes.leave()

    _is_closed = False

    def on_connection_close(self) -> None:
        self._is_closed = True


def _facts(run: RunSnapshot) -> str:
    took = elapsed(run, datetime.now(UTC))
    reason = one_line(run.reason or "")
    return " · ".join(filter(None, (one_line(run.meta.agent, 40), reason, took, visible_name(at_home(run.meta.cwd)))))


def _figure(added: int | None, removed: int | None) -> str:
    return "" if added is None or removed is None else f"+{added} −{removed}"


def _kind(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "muted"
    return {"+": "added", "-": "removed", "@": "muted"}.get(line[:1], "")


RUN, REQUEST, SENT = r"([0-9]{8}-[0-9]{6}-[0-9a-f]{6})", "(q[0-9]{1,6})", "([0-9a-f]{12})"


def routes(site: Site) -> list[tuple[str, type[RequestHandler], dict[str, Site]]]:
    """Return all addresses and their handlers."""
    table: dict[str, type[RequestHandler]] = {
        "/": Overview,
        "/pair": Pair,
        "/changes": Stream,
        r"/(style\.css|page\.js)": Asset,
        f"/run/{RUN}": Run,
        f"/run/{RUN}/changes": Patch,
        f"/run/{RUN}/message": Message,
        f"/run/{RUN}/message/{SENT}": Sent,
        f"/run/{RUN}/{REQUEST}": Asked,
        f"/run/{RUN}/{REQUEST}/{SENT}": Replied,
        "/link/([0-9a-f]{64})": LinkedRequest,
    }
    return [(address, handler, {"site": site}) for address, handler in table.items()]
