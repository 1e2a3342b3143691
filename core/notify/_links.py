"""Links in notifications: to the reply page, or to another page that the user names.

The delivery on disk has links for paired devices. Tokens that reply without one are made for each attempt, so that they
are fresh, and never stored.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from .. import paths
from ..alerts.alert import Alert
from ..alerts.spool import AlertPart, Document
from ..config.notification_settings import Notifications
from ..errors import SubdeckError
from ..system import files
from ..system.log import log_fault

Link = Callable[[Alert], str]
"""Returns the link for an alert; empty for none."""


def links(settings: Notifications) -> Link:
    """Return what makes the links of new deliveries."""
    if settings.link:
        template = settings.link
        return lambda alert: _filled(template, alert)
    if not files.exists(paths.state_file("web", "devices")):
        return lambda _: ""
    from ..web.devices import Devices, request_page

    devices = Devices()

    def link(alert: Alert) -> str:
        origin = devices.origin_of(alert.project)
        if not (origin and alert.run_id):
            return origin
        return request_page(origin, alert.run_id, alert.asked.id if alert.asked else "")

    return link


def _filled(template: str, alert: Alert) -> str:
    return template.replace("{run_id}", alert.run_id).replace("{request}", alert.asked.id if alert.asked else "")


def with_tokens(document: Document) -> Document:
    """Return a document whose links to requests on the reply page need no paired device: each replies once."""
    try:
        parts = tuple(map(_with_token, document.alerts))
    except (OSError, SubdeckError) as error:
        log_fault("making a link", error)
        return document
    new = {before.link: after.link for before, after in zip(document.alerts, parts, strict=True)}
    return replace(document, alerts=parts, link=new.get(document.link, document.link))


def _with_token(part: AlertPart) -> AlertPart:
    from ..web.devices import Devices, request_link, request_page

    request = part.id.removeprefix(f"{part.run}.")  # as made by request_alert_id
    origin = part.link.partition("/run/")[0]
    if not part.run or part.link != request_page(origin, part.run, request):
        return part  # it has no request, or does not lead to the reply page
    return replace(part, link=request_link(origin, Devices().new_link(part.run, request)))
