"""Replies to requests, messages to runs, and their outcomes."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import msgspec
from tornado.gen import sleep

from ..errors import SubdeckError, UsageError, in_one_line
from ..project.talk import Sent as SentReply
from ..run.describe import ago
from ..run.events import Decision, Request
from ..run.model import MessageState, RequestKind, Verdict
from ..run.requests import answered_words, decision_line
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from ..text.visible import visible_line
from . import _templates as templates
from ._page import Page
from ._request import form_token, is_form_token, request_lines, shown_hash
from .devices import Link

PATIENCE_S, POLL_S = 5.0, 0.01
"""Seconds to wait for the effect of a reply, and between two looks; a wrapper takes some milliseconds."""
CHANGED = "The request has changed since you read it. Nothing was sent: this is the new one."
TOO_OLD = "This form is too old, or from another browser. Nothing was sent: read the request again."


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
                "Not pending", f"{request_id} is not pending. Nothing was sent.", *links, status=404, kind="warning"
            )
        return None

    async def show_request(
        self, run_id: str, request_id: str, secret: str, action: str, *, warning: str = "", status: int = 200
    ) -> None:
        run_and_request = await self.found(run_id, request_id)
        if run_and_request is None:
            return
        run, request = run_and_request
        digest = shown_hash(run, request)
        self.show(
            "request",
            status,
            heading=visible_line(request.title) or "has a question",
            title=templates.title(run),
            task=templates.task(run),
            when=ago(request.ts, datetime.now(UTC)),
            run_id=run.run_id,
            request_id=request.id,
            lines=request_lines(request, run.meta.cwd),
            answers=templates.answers_of(request),
            others=[row for row in templates.request_rows(run) if row.path != templates.request_path(run, request)]
            if self.device
            else [],
            action=action,
            digest=digest,
            token=form_token(secret, "reply", run.run_id, request.id, digest),
            warning=warning,
        )

    async def reply(self, run_id: str, request_id: str, secret: str, action: str, token: str = "") -> str:
        """Send the posted reply, and return its id. Answer with the reason, and return nothing, if it is refused.

        `token` belongs to a link, which is used up right before the reply is sent.
        """
        run_and_request = await self.found(run_id, request_id)
        if run_and_request is None:
            return ""
        run, request = run_and_request
        read, current = self.field("shown"), shown_hash(run, request)
        warning = "" if read == current else CHANGED
        if not is_form_token(self.field("token"), secret, "reply", run_id, request_id, read):
            warning = TOO_OLD
        if not warning:
            try:
                verdict, text = self._verdict(request)
                if token and self.site.devices.use_link(token) is None:
                    self.result("Link used", "The link was used or has expired. Nothing was sent.", status=410)
                    return ""
                sent = await self.site.call(self.site.runs.reply, run, request, verdict, text, self.by)
                await self._effect(run, sent)
                return sent.id
            except UsageError as error:
                warning = f"Nothing was sent: {in_one_line(error)}"
            except SubdeckError as error:
                self.result("Not sent", in_one_line(error), status=409, kind="warning")
                return ""
        await self.show_request(run_id, request_id, secret, action, warning=warning, status=409)
        return ""

    async def _effect(self, run: RunSnapshot, sent: SentReply) -> None:
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
    """Return the choice with a posted number; without choices, the posted text."""
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
                return "Your reply did not count", text, {"kind": "warning"}


class Message(Page):
    """A message to a run."""

    async def post(self, run_id: str) -> None:
        self.check_writable()
        back = (f"/run/{run_id}", "Back to the run")
        if not is_form_token(self.field("token"), self.cookie, "message", run_id, "", ""):
            self.result("Not sent", TOO_OLD, back, status=409, kind="warning")
            return
        try:
            sent = await self.site.call(self.site.runs.send, run_id, self.field("text"), self.by)
        except SubdeckError as error:
            self.result("Not sent", in_one_line(error), back, status=409, kind="warning")
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
        self.result("Message sent" if is_read else "Not delivered", text, links, kind="done" if is_read else "warning")


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
            self.show("result", 410, heading="Link expired", text=text, links=(), kind="warning", is_open=False)
        return link
