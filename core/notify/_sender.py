"""The work of the sender: alerts from the queue become deliveries, and these are attempted until they are over."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue

from msgspec.structs import replace

from ..alerts import spool
from ..alerts.alert import Alert
from ..alerts.presence import decks
from ..alerts.spool import Channel, Delivery, Member, Progress
from ..config.notification_settings import Notifications
from ..paths import iso_time
from ..project.read_marks import SEEN, marks_file
from ..run.enumerations import AlertKind
from ..run.proven import has_result
from ..system import files
from ._channels import channels_of
from ._current import CurrentSettings
from ._documents import document_of
from ._links import links, with_tokens
from ._plan import GIVE_UP_S, INTERVAL_S, Rules, again_after, decide

MOST_IN_ONE = 20
"""Alerts in one delivery."""

Attempt = Callable[[str, Notifications, Delivery, Callable[[str], None]], None]
"""Begins to send a delivery by a channel; calls the function, from any thread, with the fault or an empty text."""


class Work:
    """Everything that a sender has to do; `step` does what is due."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._settings = CurrentSettings()
        self._alerts: dict[str, Alert] = {}
        """The last ones seen in the queue, by id."""
        self._last_sent = dict[tuple[str, AlertKind], float]()
        self._deliveries: dict[str, Delivery] = {}
        self._busy: set[str] = set()
        """Channels with an attempt under way."""
        self._outcomes: SimpleQueue[tuple[str, str, str]] = SimpleQueue()
        """Delivery, channel and fault of attempts that are over."""

    def begin(self, now: float) -> None:
        """Read the records of an earlier sender. Raises OSError."""
        self._last_sent = spool.recently_sent(now - INTERVAL_S)
        for delivery in spool.read_all(spool.SENDING, Delivery, {}).values():
            self._note(delivery)
            for member in delivery.members:
                spool.withdraw(member.id)  # a sender that was killed in between may have left it in the queue

    @property
    def is_busy(self) -> bool:
        """Whether an attempt is under way."""
        return bool(self._busy)

    def step(self, now: float) -> float | None:
        """Do what is due; return when there is more to do, in seconds since 1970. None: nothing is left.

        Raises OSError.
        """
        settings = self._settings.read()
        self._take_outcomes(now)
        next_at = self._take_alerts(settings, now)
        times = [next_at] if next_at is not None else []
        for delivery in tuple(self._deliveries.values()):
            times += self._go_on(delivery, settings, now)
        return min(times, default=None)

    # --- alerts -----------------------------------------------------------------------------------------------------

    def _take_alerts(self, settings: Notifications, now: float) -> float | None:
        """Make deliveries of the alerts that are due; return when the next one is."""
        queued = spool.read_all(spool.QUEUE, Alert, self._alerts)
        quiet = spool.read_all(spool.QUIET, Alert, self._alerts)
        self._alerts = queued | quiet
        for alert_id in [alert_id for alert_id in self._alerts if spool.is_done(alert_id)]:
            spool.withdraw(alert_id)  # its condition was found again
            del self._alerts[alert_id]
        if not self._alerts:
            return None
        open_decks, read = decks(), _ReadResults()
        rules = Rules(
            when=settings.when if settings.is_sent else (),
            dwell=settings.dwell,
            last_sent=self._last_sent,
            is_watched=lambda alert: any(deck.has_focus and deck.shows(alert) for deck in open_decks),
            is_read=read.has,
            is_over=lambda alert: _is_over(alert, now),
        )
        decision = decide(self._alerts.values(), rules, now)
        for alert, why in decision.dropped:
            spool.drop(alert, why, now)
        for alert in decision.quiet:
            if alert.id in queued:
                spool.quieten(alert)
        for start in range(0, len(decision.due), MOST_IN_ONE):
            self._deliver(decision.due[start : start + MOST_IN_ONE], settings, now)
        return decision.next_at

    def _deliver(self, alerts: list[Alert], settings: Notifications, now: float) -> None:
        delivery = Delivery(
            at=now,
            document=document_of(alerts, settings.content, links(settings)),
            members=tuple(Member(alert.id, alert.subject, alert.kind, alert.run_dir) for alert in alerts),
            channels={name: Channel() for name in channels_of(settings)},
        )
        spool.begin(delivery)
        self._note(delivery)

    def _note(self, delivery: Delivery) -> None:
        self._deliveries[delivery.id] = delivery
        for member in delivery.members:
            key = (member.subject, member.kind)
            self._last_sent[key] = max(delivery.at, self._last_sent.get(key, 0.0))

    # --- deliveries --------------------------------------------------------------------------------------------------

    def _go_on(self, delivery: Delivery, settings: Notifications, now: float) -> list[float]:
        """Begin the attempts of a delivery that are due; return when the others are."""
        usable = channels_of(settings)
        kept = {name: channel for name, channel in delivery.channels.items() if name in usable}
        if len(kept) < len(delivery.channels):
            delivery = replace(delivery, channels=kept)  # the user has removed one from the settings
            self._deliveries[delivery.id] = delivery
        is_settled = all(spool.is_done(member.id) for member in delivery.members)  # its requests were decided
        if delivery.is_over or is_settled:
            if delivery.is_over:
                spool.finish(delivery)
            spool.forget(delivery)
            del self._deliveries[delivery.id]
            return []
        times: list[float] = []
        for name, channel in delivery.channels.items():
            if channel.progress is not Progress.WAITING or name in self._busy:
                continue
            if channel.due > now and channel.due - now <= GIVE_UP_S:  # otherwise the clock was set back
                times.append(channel.due)
            else:
                self._try(self._deliveries[delivery.id], name, settings, now)
        return times

    def _try(self, delivery: Delivery, name: str, settings: Notifications, now: float) -> None:
        before = delivery.channels[name]
        self._set(delivery, name, replace(before, is_open=True, tries=before.tries + 1, since=before.since or now))
        self._busy.add(name)
        if self._settings.has_reply_links and not settings.link:
            delivery = replace(delivery, document=with_tokens(delivery.document))
        self._attempt(name, settings, delivery, lambda fault: self._outcomes.put((delivery.id, name, fault)))

    def _take_outcomes(self, now: float) -> None:
        while not self._outcomes.empty():
            delivery_id, name, fault = self._outcomes.get()
            self._busy.discard(name)
            delivery = self._deliveries.get(delivery_id)
            if delivery is None or name not in delivery.channels:
                continue  # the user has removed the channel in the meantime
            channel = replace(delivery.channels[name], is_open=False, fault=fault)
            if not fault:
                channel = replace(channel, progress=Progress.SENT)
            elif now >= channel.since + GIVE_UP_S:
                channel = replace(channel, progress=Progress.FAILED)
            else:
                channel = replace(channel, due=min(now + again_after(channel.tries), channel.since + GIVE_UP_S))
            self._set(delivery, name, channel)

    def _set(self, delivery: Delivery, name: str, channel: Channel) -> None:
        delivery = replace(delivery, channels={**delivery.channels, name: channel})
        self._deliveries[delivery.id] = delivery
        spool.save(delivery)


class _ReadResults:
    """The results that the user has looked at, read once for each project."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def has(self, alert: Alert) -> bool:
        if alert.is_urgent or not alert.id.endswith(".end"):
            return False
        if alert.project not in self._seen:
            self._seen[alert.project] = _read_runs(alert.project)
        return alert.run_id in self._seen[alert.project]


def _read_runs(project: str) -> set[str]:
    """Return the ids of the runs whose last mark says that they were read."""
    marks = dict[str, str]()
    for line in files.content(marks_file(project)).decode("ascii", "replace").splitlines():
        word, _, run_id = line.partition(" ")
        marks[run_id] = word
    return {run_id for run_id, word in marks.items() if word == SEEN}


def _is_over(alert: Alert, now: float) -> bool:
    """Return whether a request is no longer open: its time is up, or its run has ended."""
    if alert.asked is None:
        return False
    is_late = bool(alert.asked.deadline) and iso_time(now) >= alert.asked.deadline
    return is_late or has_result(alert.run_dir)
