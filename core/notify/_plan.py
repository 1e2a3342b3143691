"""Which alerts of the queue are due, which wait, and which are dropped; pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from msgspec import Struct

from ..alerts.alert import Alert
from ..run.enumerations import AlertKind

INTERVAL_S = 60.0
"""Seconds between two deliveries for one run and kind."""
FIRST_AGAIN_S, LAST_AGAIN_S = 1.0, 60.0
"""Seconds until the second attempt of a delivery; each further wait is twice as long, up to the last one."""
GIVE_UP_S = 600.0
"""Seconds after the first attempt from which a failed one is the last."""


class Rules(Struct, frozen=True):
    """The user's settings, and what is known of the user at this moment."""

    when: Container[AlertKind]
    dwell: float
    """Seconds that an alert waits, unless an agent waits for the user."""
    last_sent: Mapping[tuple[str, AlertKind], float]
    """When something was last sent, by subject and kind."""
    is_watched: Callable[[Alert], bool]
    """Whether a deck that shows the alert has the user's attention."""
    is_read: Callable[[Alert], bool]
    """Whether the user has looked at the run's result."""
    is_over: Callable[[Alert], bool]
    """Whether the request is no longer open."""


class Decision(Struct):
    """What to do with the alerts of the queue."""

    due: list[Alert]
    quiet: list[Alert]
    """They wait until the user leaves the deck."""
    dropped: list[tuple[Alert, str]]
    """Each with the reason."""
    next_at: float | None = None
    """When the next of the others is due; None if there are no others."""


def decide(alerts: Iterable[Alert], rules: Rules, now: float) -> Decision:
    """Decide on each alert of the queue at this time, in seconds since 1970."""
    decision = Decision([], [], [])
    for alert in sorted(alerts, key=lambda alert: (alert.at, alert.id)):
        if why := _why_dropped(alert, rules):
            decision.dropped.append((alert, why))
            continue
        at = _due_at(alert, rules, now)
        if at > now:
            decision.next_at = at if decision.next_at is None else min(at, decision.next_at)
        elif not rules.is_watched(alert):
            decision.due.append(alert)
        elif alert.is_urgent:
            decision.quiet.append(alert)
        else:
            decision.dropped.append((alert, "a deck that shows it had the focus"))
    return decision


def _why_dropped(alert: Alert, rules: Rules) -> str:
    if alert.kind not in rules.when:
        return "the settings do not ask for it"
    if rules.is_over(alert):
        return "the request is no longer open"
    return "the result was read" if rules.is_read(alert) else ""


def _due_at(alert: Alert, rules: Rules, now: float) -> float:
    """Return when an alert is due; a clock that was set back does not make it wait longer than usual."""
    waits_from = min(alert.at, now)
    at = waits_from if alert.is_urgent else waits_from + rules.dwell
    last = rules.last_sent.get((alert.subject, alert.kind))
    return at if last is None else max(at, min(last, now) + INTERVAL_S)


def again_after(tries: int) -> float:
    """Return the seconds until the next attempt after so many failed ones."""
    return min(LAST_AGAIN_S, FIRST_AGAIN_S * 2 ** (tries - 1))
