"""The document of a delivery: the notices, as much as the user's setting `content` allows; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from ..notices.notice import Notice, project_name
from ..notices.spool import Document, NoticePart, RequestPart
from ..paths import hex_digest, iso_time
from ..run.enumerations import NoticeKind
from ..text.plain import one_line
from ._links import Link

TITLE, SUMMARY, FULL = "title", "summary", "full"
"""The values of the setting `content`."""
LONGEST_MESSAGE = 3500
"""Bytes of a message on an ntfy server, which turns a longer one into an attachment."""
_LINE = 300
"""Characters of a notice's details beside others."""

_UNNAMED = {
    NoticeKind.NEEDS_INPUT: "An agent needs input",
    NoticeKind.FAILED: "A run failed",
    NoticeKind.FINISHED: "A run finished",
    NoticeKind.IDLE: "An agent is idle",
    NoticeKind.BUDGET: "A budget is used up",
}
_NAMED = {
    NoticeKind.NEEDS_INPUT: "needs input",
    NoticeKind.FAILED: "failed",
    NoticeKind.FINISHED: "finished",
    NoticeKind.IDLE: "is idle",
    NoticeKind.BUDGET: "used up its budget",
}
_COUNTED = {
    NoticeKind.NEEDS_INPUT: ("needs input", "need input"),
    NoticeKind.FAILED: ("failed", "failed"),
    NoticeKind.FINISHED: ("finished", "finished"),
    NoticeKind.IDLE: ("idle", "idle"),
    NoticeKind.BUDGET: ("over budget", "over budget"),
}
_TAGS = {
    NoticeKind.NEEDS_INPUT: "raised_hand",
    NoticeKind.FAILED: "x",
    NoticeKind.FINISHED: "white_check_mark",
    NoticeKind.IDLE: "hourglass",
    NoticeKind.BUDGET: "moneybag",
}
"""Names of emoji, as ntfy shows them before a title."""


def document_of(notices: Sequence[Notice], content: str, link: Link) -> Document:
    """Return the document of one notice, or of several."""
    parts = tuple(_part(notice, content, link) for notice in notices)
    urgent = next((part for notice, part in zip(notices, parts, strict=True) if notice.is_urgent), None)
    if len(notices) == 1:
        title, text = title_of(notices[0], content), _text(notices[0], content)
        identity = notices[0].id
    else:
        title = _counted(notices)
        text = "\n".join(_line(notice, content) for notice in notices)
        identity = "batch." + hex_digest("\n".join(notice.id for notice in notices).encode(), 32)
    return Document(
        id=identity,
        title=title,
        text=text or title,
        link=(urgent or parts[0]).link,
        is_urgent=urgent is not None,
        notices=parts,
    )


def title_of(notice: Notice, content: str) -> str:
    """Return one line on a notice: `explore-code needs input (shop)`."""
    if content == TITLE:
        return _UNNAMED[notice.kind]
    where = f" ({project_name(notice.project)})" if notice.project else ""
    if not notice.run_id:
        return f"{notice.what[:1].upper()}{notice.what[1:]}{where}"
    has_question = notice.kind is NoticeKind.NEEDS_INPUT and not notice.is_urgent
    return f"{notice.preset} {'has a question' if has_question else _NAMED[notice.kind]}{where}"


def as_json(document: Document) -> bytes:
    return msgspec.json.encode(document)


def as_ntfy(document: Document, topic: str) -> bytes:
    """Return the document as a message for a topic on an ntfy server."""
    message = {
        "topic": topic,
        "title": document.title,
        "message": _cut(document.text, LONGEST_MESSAGE),
        "priority": 4 if document.is_urgent else 3,
        "tags": list(dict.fromkeys(_TAGS[part.kind] for part in document.notices)),
        **({"click": document.link} if document.link else {}),
    }
    return msgspec.json.encode(message)


def _part(notice: Notice, content: str, link: Link) -> NoticePart:
    asked, is_full = notice.asked, content == FULL
    part = NoticePart(
        id=notice.id,
        kind=notice.kind,
        at=iso_time(notice.at),
        run=notice.run_id,
        link=link(notice),
    )
    if content == TITLE:
        return part
    request = None
    if asked:
        request = RequestPart(
            id=asked.id,
            hash=asked.hash,
            kind=asked.kind,
            deadline="" if notice.deadline is None else iso_time(notice.deadline),
            text=asked.text if is_full else "",
            command=asked.command if is_full else "",
            diff=asked.diff if is_full else "",
            question=asked.question if is_full else "",
            choices=asked.choices if is_full else (),
        )
    return msgspec.structs.replace(
        part,
        what=notice.what,
        project=project_name(notice.project) if notice.project else "",
        preset=notice.preset,
        root=notice.project if is_full else "",
        task=notice.task if is_full else "",
        text=notice.text if is_full else "",
        request=request,
    )


def _text(notice: Notice, content: str) -> str:
    """Return what follows the title of a single notice."""
    if content == TITLE:
        return ""
    if content == SUMMARY:
        return notice.what
    details = notice.asked.text if notice.asked else notice.text
    return "\n".join(filter(None, (notice.what, notice.task and f"Task: {notice.task}", details)))


def _line(notice: Notice, content: str) -> str:
    """Return a line on a notice beside others."""
    details = notice.asked.text if notice.asked else notice.text
    if content != FULL or not details:
        return title_of(notice, content)
    return f"{title_of(notice, content)}: {one_line(details, _LINE)}"


def _counted(notices: Sequence[Notice]) -> str:
    """Return `2 need input, 1 failed`."""
    counts = Counter(notice.kind for notice in notices)
    return ", ".join(f"{counts[kind]} {_COUNTED[kind][counts[kind] > 1]}" for kind in NoticeKind if counts[kind])


def _cut(text: str, most: int) -> str:
    content = text.encode("utf-8", "replace")
    return text if len(content) <= most else content[:most].decode("utf-8", "ignore") + "…"
