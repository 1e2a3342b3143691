"""`subdeck notify`: send waiting notifications, or a test."""

from __future__ import annotations

from collections.abc import Iterator

import click

from .. import paths
from ..engine import Engine
from ..errors import UsageError, not_for_agents
from ..text.decoder import indented
from ..text.plain import one_line
from ._command import Document, command
from .output import Note, Output, Piece

_HINT = "set notifications.command or notifications.url in {file}; docs/notifications.md has recipes"


class FailedNotification(Document, frozen=True):
    """A notification that could not be delivered within ten minutes."""

    id: str
    title: str
    faults: dict[str, str]
    """By way, command or url: why the last attempt failed."""


class NotificationState(Document, frozen=True):
    """The waiting and the failed notifications."""

    waiting: int
    failed: tuple[FailedNotification, ...]


class TriedChannel(Document, frozen=True):
    """A test notification, sent by one way."""

    channel: str
    """command or url."""
    target: str
    """The command, or the request line with its headers; secret values are left out."""
    body: str
    sent: bool
    fault: str
    """Why it failed; empty if it was sent."""


class NotificationTest(Document, frozen=True):
    """With --test."""

    ok: bool
    """Whether it was sent by every way."""
    attempts: tuple[TriedChannel, ...]


@command(
    "notify",
    "subdeck notify --test",
    "subdeck notify --json",
)
@click.option("--test", "is_test", is_flag=True, help="Show a test notification, and send it.")
def notify(is_test: bool) -> Output[NotificationState | NotificationTest]:
    """Send waiting notifications now, and show the failed ones.

    subdeck sends notifications without this command: it is for tests and failures. With --test, a made-up permission
    request is shown as your command or address gets it, and sent. The exit code is 1 if a notification failed.
    """
    if paths.is_child():
        raise not_for_agents("send notifications", where="notify")
    return _test() if is_test else _state()


def _test() -> Output[NotificationState | NotificationTest]:
    from ..alerts.spool import forget_failures
    from ..notify.trial import example, send

    settings = Engine.open().settings.notifications
    if not (settings.command or settings.url):
        hint = _HINT.format(file=paths.user_settings_file())
        raise UsageError("notifications are not set up", where="notify", hint=hint)
    attempts: list[TriedChannel] = []

    def sending() -> Iterator[TriedChannel]:
        for sent in send(settings, example(settings)):
            body = sent.body.decode("utf-8", "replace")
            attempts.append(TriedChannel(sent.channel, sent.target, body, not sent.fault, sent.fault))
            yield attempts[-1]
        if _is_ok(attempts):
            forget_failures()

    def document() -> NotificationTest:
        tried = tuple(sending())
        return NotificationTest(_is_ok(tried), tried)

    def text() -> Iterator[Piece]:
        for attempt in sending():
            yield f"{attempt.channel}: {attempt.target}"
            yield indented(attempt.body.encode()) if attempt.body else ""
            yield f"  ✗ {one_line(attempt.fault, 1000)}" if attempt.fault else "  ✓ sent"

    return Output(document, text(), lambda: int(not _is_ok(attempts)))


def _is_ok(attempts: list[TriedChannel] | tuple[TriedChannel, ...]) -> bool:
    return bool(attempts) and all(attempt.sent for attempt in attempts)


def _state() -> Output[NotificationState | NotificationTest]:
    from ..alerts import spool
    from ..alerts.dispatch import resume_sending
    from ..alerts.pending import pending

    waiting = len(pending())
    resume_sending()
    failed = tuple(
        FailedNotification(
            delivery.id,
            delivery.document.title,
            {name: channel.fault for name, channel in delivery.channels.items() if channel.fault},
        )
        for delivery in spool.failures()
    )
    state = NotificationState(waiting, failed)

    def text() -> Iterator[Piece]:
        yield f"{state.waiting or 'No'} notification{'' if state.waiting == 1 else 's'} waiting."
        for failure in failed:
            why = "; ".join(f"{name}: {fault}" for name, fault in failure.faults.items())
            yield f"✗ {one_line(failure.title, 200)}: {one_line(why, 1000)}"
        if failed:
            yield Note("subdeck notify --test tries your settings, and clears these failures once it succeeds.")

    return Output(state, text(), int(bool(failed)))
