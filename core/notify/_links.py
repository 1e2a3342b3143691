"""Links in notifications: to the reply page, or to another page that the user names.

The delivery on disk has links for paired devices. Tokens that reply without one are made for each attempt, so that they
are fresh, and never stored.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from .. import paths
from ..config.notification_settings import Notifications
from ..errors import SubdeckError
from ..notices.notice import Notice
from ..notices.spool import Document, NoticePart
from ..system import files
from ..system.log import log_fault

Link = Callable[[Notice], str]
"""Returns the link for a notice; empty for none."""


def links(settings: Notifications) -> Link:
    """Return what makes the links of new deliveries."""
    if settings.link:
        template = settings.link
        return lambda notice: _filled(template, notice)
    if not files.exists(paths.state_file("web", "devices")):
        return lambda _: ""
    from ..web.devices import Devices, request_page

    devices = Devices()

    def link(notice: Notice) -> str:
        origin = devices.origin_of(notice.project)
        if not (origin and notice.run_id):
            return origin
        return request_page(origin, notice.run_id, notice.asked.id if notice.asked else "")

    return link


def _filled(template: str, notice: Notice) -> str:
    return template.replace("{run_id}", notice.run_id).replace("{request}", notice.asked.id if notice.asked else "")


def with_tokens(document: Document) -> Document:
    """Return a document whose links to requests on the reply page need no paired device: each replies once."""
    try:
        parts = tuple(map(_with_token, document.notices))
    except (OSError, SubdeckError) as error:
        log_fault("making a link", error)
        return document
    new = {before.link: after.link for before, after in zip(document.notices, parts, strict=True)}
    return replace(document, notices=parts, link=new.get(document.link, document.link))


def _with_token(part: NoticePart) -> NoticePart:
    from ..web.devices import Devices, request_link, request_page

    request = part.id.removeprefix(f"{part.run}.")  # as made by request_notice_id
    origin = part.link.partition("/run/")[0]
    if not part.run or part.link != request_page(origin, part.run, request):
        return part  # it has no request, or does not lead to the reply page
    return replace(part, link=request_link(origin, Devices().new_link(part.run, request)))
