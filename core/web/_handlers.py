"""The addresses of the reply page, and the pages that only show something. A GET changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime

from tornado.concurrent import Future
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError, RequestHandler

from ..errors import SubdeckError, in_one_line
from ..paths import at_home
from ..run.describe import activity, elapsed
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line, plain
from ..text.visible import visible, visible_name
from . import _templates as templates
from ._page import COOKIE_DAYS, Page
from ._replies import Asked, LinkedRequest, Message, Replied, Sent
from ._request import Line, form_token
from ._runs import PATCH_BYTES
from ._site import Site

FILES_SHOWN = 50
"""Names of changed files on a run's page."""


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
        overview = await self.site.call(self.site.runs.overview)
        waiting = [row for run in overview.waiting for row in templates.request_rows(run)]
        self.show(
            "overview",
            heading=templates.waiting_words(len(overview.waiting)),
            project=at_home(visible_name(self.site.runs.root)),
            titles={"input": "Needs input", "running": "Running", "failed": "Failed today", "done": "Finished today"},
            lists=(
                ("input", waiting, "No request is open."),
                ("running", [*map(templates.run_row, overview.running)], "Nothing is running."),
                ("failed", [*map(templates.run_row, overview.failed)], "No run has failed today."),
                ("done", [*map(templates.run_row, overview.finished)], "No run has finished today."),
            ),
        )


class Pair(Page):
    """Pairing: the link shows the code in a form, and only sending the form uses it."""

    for_all = True

    def get(self) -> None:
        self.show_form(self.get_query_argument("code", ""))

    def show_form(self, code: str, warning: str = "", status: int = 200) -> None:
        self.show(
            "pair", status, heading="Pair this device", warning=warning, code=one_line(code, 40), name=self.usual_name
        )

    def post(self) -> None:
        if wait := self.site.attempts.wait_s(self.address):
            self.set_header("Retry-After", str(wait))
            self.show_form("", f"Too many attempts. Try again in {wait} seconds.", 429)
            return
        paired = self.site.devices.pair(self.field("code"), self.field("name"), self.address)
        if paired is None:
            warning = "The code is wrong, used or expired. In a terminal, subdeck web pair shows a new one."
            self.show_form("", warning, 403)
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
            self.not_found("This run does not exist.")
            return
        run, result = details.run, details.result
        changes = details.changes
        named = changes.named if changes else ()
        self.show(
            "run",
            heading=templates.heading(run),
            task=plain(run.meta.task),
            facts=_facts(run),
            rows=templates.request_rows(run) if run.is_waiting else [],
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
            run_and_patch = await self.site.call(self.site.runs.patch, run_id)
        except (SubdeckError, OSError) as error:
            self.result("No changes to show", in_one_line(error), (f"/run/{run_id}", "Back to the run"), kind="warning")
            return
        if run_and_patch is None:
            self.not_found("This run does not exist.")
            return
        run, patch = run_and_patch
        lines = visible(patch[:PATCH_BYTES].decode("utf-8", "replace")).split("\n")
        unshown = len(patch) - PATCH_BYTES
        missing = (
            f"{unshown:,} bytes are not shown: subdeck diff {run.meta.short_id} prints all." if unshown > 0 else ""
        )
        self.show(
            "changes",
            heading=f"Changes of {templates.title(run)}",
            run_id=run_id,
            missing=missing,
            lines=[Line(line, _kind(line)) for line in lines],
        )


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
                self._change = self.site.changes.wait()
                has_changed = await self._change
        except StreamClosedError:
            return
        finally:
            self.site.changes.leave()

    _is_closed = False
    _change: Future[bool] | None = None
    """What it waits for."""

    def on_connection_close(self) -> None:
        self._is_closed = True
        if self._change is not None and not self._change.done():
            self._change.set_result(False)


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
