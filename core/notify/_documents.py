"""The document of a delivery: the alerts, as much as the user's setting `content` allows; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ..alerts.alert import Alert, OpenRequest, project_name
from ..alerts.spool import AlertPart, Document
from ..paths import hex_digest, iso_time
from ..run.enumerations import AlertKind
from ..text.plain import one_line
from ._links import Link

TITLE, SUMMARY, FULL = "title", "summary", "full"
"""The values of the setting `content`."""
LONGEST_MESSAGE = 3500
"""Bytes of a message on an ntfy server, which turns a longer one into an attachment."""
_LINE = 300
"""Characters of an alert's details beside others."""

_UNNAMED = {
    AlertKind.NEEDS_INPUT: "An agent needs input",
    AlertKind.FAILED: "A run failed",
    AlertKind.FINISHED: "A run finished",
    AlertKind.IDLE: "An agent is idle",
    AlertKind.BUDGET: "A budget is used up",
}
_NAMED = {
    AlertKind.NEEDS_INPUT: "needs input",
    AlertKind.FAILED: "failed",
    AlertKind.FINISHED: "finished",
    AlertKind.IDLE: "is idle",
    AlertKind.BUDGET: "used up its budget",
}
_COUNTED = {
    AlertKind.NEEDS_INPUT: ("needs input", "need input"),
    AlertKind.FAILED: ("failed", "failed"),
    AlertKind.FINISHED: ("finished", "finished"),
    AlertKind.IDLE: ("idle", "idle"),
    AlertKind.BUDGET: ("over budget", "over budget"),
}
_TAGS = {
    AlertKind.NEEDS_INPUT: "raised_hand",
    AlertKind.FAILED: "x",
    AlertKind.FINISHED: "white_check_mark",
    AlertKind.IDLE: "hourglass",
    AlertKind.BUDGET: "moneybag",
}
"""Names of emoji, as ntfy shows them before a title."""


def document_of(alerts: Sequence[Alert], content: str, link: Link) -> Document:
    """Return the document of one alert, or of several."""
    parts = tuple(_part(alert, content, link) for alert in alerts)
    urgent = next((part for alert, part in zip(alerts, parts, strict=True) if alert.is_urgent), None)
    if len(alerts) == 1:
        title, text = title_of(alerts[0], content), _text(alerts[0], content)
        identity = alerts[0].id
    else:
        title = _counted(alerts)
        text = "\n".join(_line(alert, content) for alert in alerts)
        identity = "batch." + hex_digest("\n".join(alert.id for alert in alerts).encode(), 32)
    return Document(
        id=identity,
        title=title,
        text=text or title,
        link=(urgent or parts[0]).link,
        is_urgent=urgent is not None,
        alerts=parts,
    )


def title_of(alert: Alert, content: str) -> str:
    """Return one line on an alert: `explore-code needs input (shop)`."""
    if content == TITLE:
        return _UNNAMED[alert.kind]
    where = f" ({project_name(alert.project)})" if alert.project else ""
    if not alert.run_id:
        return f"{alert.what[:1].upper()}{alert.what[1:]}{where}"
    has_question = alert.kind is AlertKind.NEEDS_INPUT and not alert.is_urgent
    return f"{alert.preset} {'has a question' if has_question else _NAMED[alert.kind]}{where}"


def as_json(document: Document) -> bytes:
    return msgspec.json.encode(document)


def as_ntfy(document: Document, topic: str) -> bytes:
    """Return the document as a message for a topic on an ntfy server."""
    message = {
        "topic": topic,
        "title": document.title,
        "message": _cut(document.text, LONGEST_MESSAGE),
        "priority": 4 if document.is_urgent else 3,
        "tags": list(dict.fromkeys(_TAGS[part.kind] for part in document.alerts)),
        **({"click": document.link} if document.link else {}),
    }
    return msgspec.json.encode(message)


def _part(alert: Alert, content: str, link: Link) -> AlertPart:
    asked, is_full = alert.asked, content == FULL
    part = AlertPart(
        id=alert.id,
        kind=alert.kind,
        at=iso_time(alert.at),
        run=alert.run_id,
        link=link(alert),
    )
    if content == TITLE:
        return part
    if asked and not is_full:
        asked = OpenRequest(id=asked.id, hash=asked.hash, kind=asked.kind, deadline=asked.deadline)
    return msgspec.structs.replace(
        part,
        what=alert.what,
        project=project_name(alert.project) if alert.project else "",
        preset=alert.preset,
        root=alert.project if is_full else "",
        task=alert.task if is_full else "",
        text=alert.text if is_full else "",
        request=asked,
    )


def _text(alert: Alert, content: str) -> str:
    """Return what follows the title of a single alert."""
    if content == TITLE:
        return ""
    if content == SUMMARY:
        return alert.what
    details = alert.asked.text if alert.asked else alert.text
    return "\n".join(filter(None, (alert.what, alert.task and f"Task: {alert.task}", details)))


def _line(alert: Alert, content: str) -> str:
    """Return a line on an alert beside others."""
    details = alert.asked.text if alert.asked else alert.text
    if content != FULL or not details:
        return title_of(alert, content)
    return f"{title_of(alert, content)}: {one_line(details, _LINE)}"


def _counted(alerts: Sequence[Alert]) -> str:
    """Return `2 need input, 1 failed`."""
    counts = Counter(alert.kind for alert in alerts)
    return ", ".join(f"{counts[kind]} {_COUNTED[kind][counts[kind] > 1]}" for kind in AlertKind if counts[kind])


def _cut(text: str, most: int) -> str:
    content = text.encode("utf-8", "replace")
    return text if len(content) <= most else content[:most].decode("utf-8", "ignore") + "…"
