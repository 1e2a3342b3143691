"""Words and glyphs for runs and figures; pure, and the same on every surface."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import asdict

from ..paths import EVENTS
from ..text.plain import one_line, shortened
from ..text.visible import recounted
from .changes import CheckResult
from .limits import LIMITS, Limits, Unit
from .model import Permissions, PromptMode, RunReason, RunStatus, Usage, WaitsFor, newer_schema
from .placement import PlaceState
from .prices import dollars
from .requests import request_line
from .snapshot import Checking, Counts, Ended, Queued, Running, RunSnapshot

NO_MODEL = "No model was used: this is the built-in offline agent (offline/reader)."
"""Start of each answer of the offline agent; where only one line fits, the next line is shown instead."""
GLYPHS: dict[RunStatus, str] = {
    RunStatus.RUNNING: "●",
    RunStatus.QUEUED: "◌",
    RunStatus.COMPLETED: "✓",
    RunStatus.FAILED: "✗",
    RunStatus.ABORTED: "⊘",
}
_STATES = {status: f"{glyph} {status}" for status, glyph in GLYPHS.items()}
ELSEWHERE_GLYPH = "◇"
"""For a run that another machine holds: its status is only the last one written."""
OUT_OF_REACH = "unknown"
"""The word for a run on an unreachable host."""

SILENT = "idle"
SILENT_GLYPH = "◐"
"""For a run that has written nothing for unusually long."""

WAITS, WAITS_GLYPH = "needs input", "?"
"""For a run whose agent waits for the user's reply."""
INTERRUPTED, INTERRUPTED_GLYPH = "interrupted", "◔"
"""For a run whose turn was interrupted, and that waits for a message."""

TAKEN_OVER, TAKEN_OVER_GLYPH = "in agent UI", "◑"
"""For a run that the user continues in the agent's own UI."""

QUEUE_HELD = "The queue is paused: subdeck queue --release resumes it"
"""For a run that does not start because the user paused the queue."""

WAITING = {
    WaitsFor.SLOT: "Waiting for a free slot",
    WaitsFor.SESSION: "Waiting for the agent session",
    WaitsFor.WORKTREE: "Preparing the worktree",
    WaitsFor.HOST: "Waiting for a host",
    WaitsFor.HOLD: QUEUE_HELD,
}
"""Activity of a queued run, by what it waits for."""

BROKEN_OFF = "[incomplete: the text was cut off here]"
"""Follows the text that was being written when its run ended."""

HOST_NAME, HOST_WHY = 64, 200
"""Characters of a host's name, and of the reason why a run waits for one."""
CHECK_NAME = 40
"""Characters of a check's name."""
NOTHING = "–"
UNKNOWN, AND_MORE = "?", "+"
"""An unknown cost, and the suffix of an incomplete one."""
NEWER = "newer"
"""The word for a run that a newer subdeck wrote: its status is unknown here."""
FOREIGN = "untrusted"
"""The word for a run that this user's subdeck did not make: its status comes only from its files."""


def state(run: RunSnapshot, *, silent: bool = False) -> str:
    """Return glyph and word, never one without the other."""
    if run.elsewhere or run.is_left_alone:
        return f"{ELSEWHERE_GLYPH} {_word(run)}"
    if run.has_ended:  # most runs in a long list
        return _STATES[run.status]
    if run.is_waiting:
        return f"{WAITS_GLYPH} {WAITS}"
    if run.is_interrupted:
        return f"{INTERRUPTED_GLYPH} {INTERRUPTED}"
    if run.is_taken_over:
        return f"{TAKEN_OVER_GLYPH} {TAKEN_OVER}"
    return f"{SILENT_GLYPH} {SILENT}" if silent else _STATES[run.status]


def _word(run: RunSnapshot) -> str:
    if run.foreign:
        return FOREIGN
    if run.newer_schema:
        return NEWER
    return OUT_OF_REACH if run.is_out_of_reach else run.status


def status_line(run: RunSnapshot) -> str:
    """Return `running · h07`, `queued · waiting for a host (12 ahead)` or `unknown · h07 not seen since 14:02`; for a
    run of this machine only the word.
    """
    return " · ".join(filter(None, (_word(run), whereabouts(run))))


def whereabouts(run: RunSnapshot) -> str:
    """Return where a remote run is, or what it waits for to get there; empty for a run of this machine."""
    if not run.is_remote or run.is_left_alone:
        return ""
    if run.is_out_of_reach:
        host, place = _host(run), run.place
        why = one_line(place.why, HOST_WHY) if place and place.state is PlaceState.OUT_OF_REACH else ""
        return f"stops when {host} is back" if run.stop_waits else why or f"{host} not seen {_since(run)}"
    if isinstance(run.state, Queued) and run.state.waits_for is WaitsFor.HOST:
        ahead = f" ({run.state.ahead} ahead)" if run.state.ahead else ""
        if run.state.held:
            return f"queue paused{ahead}"
        host = one_line(run.meta.host, HOST_NAME) or "a host"
        return (one_line(run.place.why, HOST_WHY) if run.place else "") or f"waiting for {host}{ahead}"
    if run.end and run.end.late:
        return f"finished later on {_host(run)}: {run.end.late}"
    if isinstance(run.state, Queued) and run.place and run.place.why:
        return one_line(run.place.why, HOST_WHY)
    return one_line(run.place.host, HOST_NAME) if run.place else ""


def _host(run: RunSnapshot) -> str:
    return one_line(run.host, HOST_NAME) or "its host"


def _since(run: RunSnapshot) -> str:
    """Return since when its host is silent: `since 14:02`, of another day with the date."""
    place = run.place
    times = (place.heard_at or place.since if place else "", run.last_event_at or "")
    heard = [at for at in map(moment, times) if at]
    if not heard:
        return "recently"
    here = max(heard).astimezone()
    return (
        f"since {here:%H:%M}" if here.date() == datetime.now().astimezone().date() else f"since {here:%Y-%m-%d %H:%M}"
    )


def doing(run: RunSnapshot, limit: int = 400) -> str:
    """Return a run's current activity, what it waits for, or its result, as one line.

    For an untrusted run, whose state is another word, the status comes first.
    """
    if not run.foreign:
        return _doing(run, limit)
    return run.status if isinstance(run.state, Queued) else f"{run.status}: {_doing(run, limit)}"


def doing_silently(run: RunSnapshot, seconds: float, limit: int = 400) -> str:
    """Return for how long a run has been idle, and its last activity: `idle 6:07 after Search finished`."""
    return f"{SILENT} {clock(seconds)} after {doing(run, limit)}"


def _doing(run: RunSnapshot, limit: int) -> str:
    if run.newer_schema:
        return newer_schema(run.newer_schema)
    if run.unwritable:
        return f"{run.unwritable}: only its written files are known"
    if run.elsewhere:
        return whereabouts(run) or "held by another machine: only its files are visible here"
    match run.state:
        case Ended(late=RunStatus()) as end:
            return one_line(f"{whereabouts(run)} · {_how_it_ended(end, limit)}", limit)
        case Ended() as end:
            return _how_it_ended(end, limit)
        case Running() as running if special := _special(run, running, limit):
            now = special
        case Running() as running:
            now = _prose(running.sentence, limit) or one_line(running.activity, limit) or "starting"
        case Queued() as queued:
            now = _queued(run, queued)
    return f"{run.fault} · {now}" if run.fault else now


def _queued(run: RunSnapshot, queued: Queued) -> str:
    """Describe what a queued run waits for."""
    match queued:
        case Queued(waits_for=WaitsFor.HOST):
            return whereabouts(run) or WAITING[WaitsFor.HOST].lower()
        case Queued() if run.place and run.place.why:
            return whereabouts(run)
        case Queued(waits_for=WaitsFor.WORKTREE):
            return "preparing the worktree"
        case Queued(held=True, ahead=ahead):
            return f"queue paused, {f'{ahead} ahead' if ahead else 'next'}"
        case Queued(ahead=0):
            return "queued, next"
        case Queued(ahead=ahead):
            return f"queued, {ahead} ahead"


def _special(run: RunSnapshot, running: Running, limit: int) -> str:
    """Return what keeps a run from continuing on its own; empty while its agent is working."""
    if run.is_waiting:
        return asked(run, limit)
    if running.taken_over:
        return "open in the agent; exit the agent to return it"
    if running.checking:
        return checking_words(running.checking)
    return "waiting for your message" if running.interrupted else ""


def asked(run: RunSnapshot, limit: int = 400) -> str:
    """Describe the request of a run's agent in a line; empty if there is none."""
    first, *others = run.requests or (None,)
    if first is None:
        return ""
    more = f" (and {len(others)} more)" if others else ""
    return request_line(first, limit - len(more), run.meta.cwd) + more


def still_running(not_ended: Sequence[str], limit: int = 400) -> str:
    """Name the processes that could not be ended; empty without any."""
    return one_line(f"could not be ended: {', '.join(not_ended)}", limit) if not_ended else ""


def checking_words(checking: Checking, now: datetime | None = None) -> str:
    """Return `checking: tests 0:14`."""
    since = _between(moment(checking.since), now or datetime.now(UTC))
    return f"checking: {one_line(checking.name, CHECK_NAME)} {since}"


def check_word(check: CheckResult | None) -> str:
    """`check ✓`, `check ✗`; empty if there was none, or none could run."""
    if check is None or not (check.passed or check.failed):
        return ""
    return f"check {GLYPHS[RunStatus.COMPLETED if check.passed else RunStatus.FAILED]}"


def check_words(check: CheckResult) -> str:
    """Return `tests ✓ passed after 0:14`, `tests ✗ exit code 2 after 0:14`, `tests: not run: the run was stopped`."""
    name = one_line(check.name, CHECK_NAME)
    if not (check.passed or check.failed):
        return f"{name}: {check.note}"
    glyph = GLYPHS[RunStatus.COMPLETED if check.passed else RunStatus.FAILED]
    verdict = "passed" if check.passed else check.note or f"exit code {check.exit_code}"
    return f"{name} {glyph} {verdict} after {clock(check.seconds)}"


def _how_it_ended(end: Ended, limit: int) -> str:
    """Return a run's result, after the word of its check: the first thing to know of a completed run."""
    if not (word := check_word(end.check)):  # most runs in a long list
        return _ending(end, limit)
    return f"{word} · {_ending(end, limit - len(word) - 3)}"


def _ending(end: Ended, limit: int) -> str:
    if end.not_ended:
        return one_line(f"{end.reason}, but {still_running(end.not_ended, limit)}", limit)
    cut = _prose if end.status is RunStatus.COMPLETED or end.partial else _cut
    message = cut(end.message.removeprefix(NO_MODEL).strip(), limit) or _cut(end.message, limit)
    if end.partial and message:
        message += " (partial answer)"
    if end.reason is RunReason.DONE or end.reason is RunReason.FINALIZED:
        return message or NOTHING
    if message.startswith(end.reason):
        return message
    return f"{end.reason}: {message}" if message else str(end.reason)


def _prose(text: str, limit: int) -> str:
    """Return an agent's text as one plain line, without its markdown syntax."""
    if not any(mark in text for mark in "`*#["):
        return _cut(text, limit)
    from ..text.markdown import prose  # loaded late: half of all runs do without, and so does the wrapper

    return prose(text, limit)


def _cut(message: str, limit: int) -> str:
    """Cut a text that an engine has already made one plain line; make it one first if it is not."""
    return shortened(message, limit) if message.isprintable() else one_line(message, limit)


def is_held(run: RunSnapshot) -> bool:
    """Return whether a run does not start because the user paused the queue."""
    return isinstance(run.state, Queued) and run.state.held


def activity(run: RunSnapshot) -> str:
    """Return a run's current activity or what it waits for, in words; empty for one that has ended."""
    if run.is_out_of_reach:
        return whereabouts(run)
    match run.state:
        case Queued(held=True):
            return QUEUE_HELD
        case Queued(waits_for=WaitsFor.HOST):
            return whereabouts(run) or WAITING[WaitsFor.HOST]
        case Queued(waits_for=waits_for):
            return WAITING.get(waits_for, "Waiting") if waits_for else ""
        case Running() as running:
            return asked(run) or running.activity
        case Ended():
            return ""


def latest_line(run: RunSnapshot, limit: int) -> str:
    """Return `latest` as a line; a shortened request says how many characters are missing."""
    return recounted(latest(run), limit) if run.is_waiting else one_line(latest(run), limit)


def latest(run: RunSnapshot) -> str:
    """Return a run's current activity, or the message of its result."""
    return run.end.message if run.end else activity(run)


def elapsed(run: RunSnapshot, now: datetime) -> str:
    """Return how long a run took or has taken, up to its check; for a queued run, how long it has waited."""
    end = run.end
    if end and end.duration_ms is not None:  # most runs in a long list
        return clock(end.duration_ms / 1000)
    match run.state:
        case Ended() as end:
            return _between(moment(end.started_at or ""), moment(end.ended_at))
        case Running(started_at=started_at, checking=Checking(since=since)):
            return _between(moment(started_at), moment(since) or now)
        case Running(started_at=started_at):
            return _between(moment(started_at), now)
        case Queued():
            return _between(moment(run.meta.created_at), now)


def age(run: RunSnapshot, now: datetime) -> str:
    """Return how long ago a run was launched: `<1m`, `3m`, `2h`, `5d`, `12w`; never negative."""
    launched = moment(run.meta.created_at)
    return span((now - launched).total_seconds()) if launched else NOTHING


def span(seconds: float) -> str:
    """Return a duration in one unit: minutes below 2 hours, hours below 2 days, days below 100, then weeks."""
    minutes = max(0, int(seconds // 60))
    if minutes < 120:
        return f"{minutes}m" if minutes else "<1m"
    hours = minutes // 60
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    return f"{days}d" if days < 100 else f"{min(days // 7, 999)}w"


def ago(iso: str, now: datetime) -> str:
    """Return how long ago a time was: `3m ago`; `just now` below a minute, or if the time cannot be read."""
    at = moment(iso)
    seconds = (now - at).total_seconds() if at else 0.0
    return f"{span(seconds)} ago" if seconds >= 60 else "just now"


def _between(begin: datetime | None, end: datetime | None) -> str:
    return clock((end - begin).total_seconds()) if begin and end else NOTHING


def clock(seconds: float) -> str:
    """`0:42`, `1:02:03`, `2d 3h`, `120d`; never negative, even if the wall clock was set back."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 24:
        days, hour = divmod(hours, 24)
        return f"{days}d {hour}h" if days < 100 else f"{days}d"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def moment(iso: str) -> datetime | None:
    """Read a subdeck timestamp; None if an untrusted file holds something else.

    Years that another time zone would put beyond the calendar are refused.
    """
    try:
        read = datetime.fromisoformat(iso)
    except ValueError:
        return None
    if not 1970 <= read.year <= 9000:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def tokens_used(usage: Usage) -> str:
    """`3.2k`, a dash for none; `?` and `3.2k+` if the agent did not report all tokens."""
    if not usage.uncounted:
        return tokens(usage.tokens)
    return tokens(usage.tokens) + AND_MORE if usage.tokens else UNKNOWN


def tokens(count: int) -> str:
    """`812`, `3.2k`, `120k`, `1.2M`; a dash for none."""
    if not count:
        return NOTHING
    if count < 1000:
        return str(count)
    if count < 9950:
        return f"{count / 1000:.1f}k"
    if count < 999_500:
        return f"{count / 1000:.0f}k"
    return f"{count / 1_000_000:.1f}M"


def known_cost(amount: str, unpriced: int) -> str:
    """Return an amount of money (empty for none) with its gaps marked: `–` for none, `$0.31+` and `?` if some tokens
    have no reported price.
    """
    if not amount:
        return UNKNOWN if unpriced else NOTHING
    return amount + AND_MORE if unpriced else amount


def short_cost(cost: float) -> str:
    """Return `$0.31`; empty if nothing was charged."""
    if cost <= 0:
        return ""
    return f"${cost:.2f}" if cost >= 0.005 else "<$0.01"


def cost_words(usage: Usage) -> str:
    """`$0.0312`, `at least $0.0312`, `unknown: the agent reported no price`; empty if nothing was charged."""
    if usage.cost <= 0:
        return "unknown: the agent reported no price" if usage.unpriced else ""
    return f"at least ${usage.cost:.4f}" if usage.unpriced else f"${usage.cost:.4f}"


def size_text(size: float) -> str:
    """`0 B`, `812 B`, `3.2 KB`, `120 MB`, `1.4 GB`."""
    if size < 1024:
        return f"{int(size)} B"
    for unit in ("KB", "MB", "GB"):
        size /= 1024
        if size < 1023.5 or unit == "GB":
            return f"{size:.1f} {unit}" if size < 9.95 else f"{size:.0f} {unit}"
    raise AssertionError("unreachable")


def unreadable_lines(count: int) -> str:
    """`2 lines of events.jsonl cannot be read`; empty for none."""
    if not count:
        return ""
    return f"{count} line{'' if count == 1 else 's'} of {EVENTS} cannot be read"


def limits_words(limits: Limits) -> str:
    """`timeout 30:00, 100 turns, stall 10:00, budget $0.50`; empty without limits."""
    values = ((LIMITS[name], value) for name, value in asdict(limits).items() if value is not None)
    return ", ".join(
        limit.words.format(_amount(limit.unit, value), s="" if value == 1 else "s") for limit, value in values
    )


def _amount(unit: Unit, value: float) -> float | str:
    match unit:
        case Unit.SECONDS:
            return clock(value)
        case Unit.DOLLARS:
            return dollars(value)
        case Unit.COUNT:
            return value


def undelivered_words(count: int) -> str:
    """`2 messages were not delivered`; empty for none."""
    return f"{count} message{' was' if count == 1 else 's were'} not delivered" if count else ""


def permissions_words(permissions: Permissions | None) -> str:
    """`allow read, bash(git *); ask bash(git push *); deny edit(.git/**)`; empty without rules."""
    lists = asdict(permissions) if permissions else {}
    return "; ".join(f"{name} {', '.join(rules)}" for name, rules in lists.items() if rules)


def prompt_mode_words(mode: PromptMode) -> str:
    return "replaces the agent's own" if mode == PromptMode.REPLACE else "appended to the agent's own"


def runs_word(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def discarded_words(count: int, size: int) -> str:
    """`2 discarded worktrees, 12 MB, are kept for undo for a day`; empty for none."""
    if not count:
        return ""
    what = "1 discarded worktree" if count == 1 else f"{count} discarded worktrees"
    return f"{what}, {size_text(size)}, {'is' if count == 1 else 'are'} kept for undo for a day"


def background_counts(counts: Counts) -> str:
    """`bg: 2 running / 5 total`, the footer of parent agents and of the app, in one form that programs may parse."""
    return f"bg: {counts.running} running / {counts.total} total"


def _out_of_reach(counts: Counts) -> str:
    """` · 3 unreachable`; empty for none."""
    return f" · {counts.out_of_reach} unreachable" if counts.out_of_reach else ""


def counted(counts: Counts, silent: int = 0) -> str:
    """`12 runs: 2 running (1 queued), 9 completed, 1 failed`; zero counts are omitted."""
    contained = ((counts.queued, "queued"), (counts.waiting, WAITS), (silent, SILENT))
    parts = ", ".join(f"{count} {word}" for count, word in contained if count)
    running = f"{counts.running} running" + (f" ({parts})" if parts else "")
    named = [running] if counts.running else []
    named += [f"{count} {word}" for word in ("completed", "failed", "aborted") if (count := getattr(counts, word))]
    return (f"{runs_word(counts.total)}: {', '.join(named)}" if named else runs_word(counts.total)) + _out_of_reach(
        counts
    )
