"""Traffic between an interactive agent and people: messages, requests, and their outcomes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from msgspec.structs import replace

from .. import paths
from ..agents.child import Listener
from ..run.events import CONTENT_LIMIT, CUT, Decision, Event, Interrupted, Message, Request
from ..run.inbox import BEGINNING, EntryKind, Inbox, InboxEntry
from ..run.model import MessageState, RequestKind, RunMeta, Undelivered, Verdict
from ..run.requests import (
    BY_AGENT,
    BY_RULE,
    BY_TIMEOUT,
    answered_words,
    is_marked,
    kept_request,
    missing_words,
    request_hash,
    request_text,
    subject_of,
)
from ..system import files
from ..text.plain import one_line
from .records import Records

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from ..permissions.rules import Policy
    from ._alerts import Alerts
    from ._pane_input import Foot

MOST_OPEN = 100
"""Requests of an agent that wait at the same time; a further one is denied."""
MOST_REQUESTS = 10_000
"""Requests of a run in total."""
BY_WRAPPER = "subdeck"
_LEAVE = (Verdict.ALLOW, Verdict.ALLOW_RUN)
_MOVED = "its path now leads to another file than the one in the request"


class Mailbox:
    """Mailbox of one run, over all its attempts: each attaches the stream of its agent."""

    def __init__(self, meta: RunMeta, run_dir: str, records: Records) -> None:
        self._meta = meta
        self._run_dir = run_dir
        self._records = records
        self._inbox = Inbox(run_dir)
        self._stream: Listener | None = None
        self._pending: dict[str, InboxEntry] = {}
        """Accepted messages that are not settled, by id."""
        self._sent: set[str] = set()
        """Ids of messages sent to this attempt's agent."""
        self._in_prompt: list[InboxEntry] = []
        self._open: dict[str, tuple[Request, str, float]] = {}
        """Requests by their ids here, each with the agent's own id and its time in monotonic seconds."""
        self._ways: dict[str, object] = {}
        """Where the paths of open requests led when requested."""
        self._policy: Policy | None = None
        """Created for the first request: few runs have any."""
        self._requests = 0
        self._answered: dict[str, str] = {}
        """Who answered each request and how, in words, by the request's id."""
        self._interrupt: InboxEntry | None = None
        """The last interrupt sent to the agent."""
        self._wish: InboxEntry | None = None
        """A request to open it in the agent."""
        self._idle_since: float | None = None
        self.undelivered: list[Undelivered] = []
        self.foot: Foot | None = None
        """The input line of the run's pane."""
        self.alerts: Alerts | None = None
        """Notify the user of requests; None without a run, as in tests."""

    @property
    def asked(self) -> Request | None:
        """The oldest open request."""
        return next((request for request, *_ in self._open.values()), None)

    @property
    def waits_for_person(self) -> bool:
        """Whether the agent needs a person's input to continue: time limits are paused."""
        return bool(self._open) or (self._stream is not None and self._stream.is_waiting)

    # --- before the agent ---

    def put_into_prompt(self) -> None:
        """Add messages from the time in the queue to the agent's first prompt."""
        entries = [entry for entry in self._inbox.take() if not self._is_refused(entry, "the run had not started")]
        if not entries:
            return
        for entry in entries:
            self._accept(entry)
        path = os.path.join(self._run_dir, paths.PROMPT)
        try:
            parts = [files.read(path), *(entry.text.encode("utf-8", "replace") for entry in entries)]
            files.write_whole(path, b"\n\n".join(part.rstrip() for part in parts) + b"\n")
        except OSError as error:
            self._records.note_trouble(paths.PROMPT, error)
            return  # they are sent as soon as the agent listens, or are late
        self._in_prompt = entries

    def put_into_next_prompt(self, ids: Iterable[str]) -> None:
        """Note that these messages are in the next agent's prompt."""
        self._in_prompt = [entry for entry_id in ids if (entry := self._pending.get(entry_id))]

    # --- with an agent ---

    def attach(self, stream: Listener) -> None:
        """Send earlier messages to a started agent, and later ones from now on."""
        self._stream = stream
        for entry in self._in_prompt:
            self._settle(entry, MessageState.DELIVERED)
        self._in_prompt.clear()
        for entry in self._pending.values():
            self._tell(entry)

    def detach(self) -> None:
        """Withdraw the agent's requests: it has ended."""
        for number in tuple(self._open):
            self._decide(number, Verdict.WITHDRAWN, by=BY_AGENT)
        self._stream = None
        self._sent.clear()
        self._idle_since = None

    def look(self) -> None:
        """Read new entries of the inbox."""
        for entry in self._inbox.take():
            match entry.kind:
                case EntryKind.MESSAGE:
                    self._message(entry)
                case EntryKind.INTERRUPT:
                    self._interrupt_turn(entry)
                case EntryKind.REPLY:
                    self._reply(entry)
                case EntryKind.TAKE_OVER:
                    self._take_over(entry)
                case _:
                    self.refuse(entry, "this version of subdeck does not know the command")

    def take(self, event: Event) -> None:
        """Record an event of the agent's stream, and act on it."""
        match event:
            case Request():
                self._requested(event)
            case Decision(verdict=Verdict.WITHDRAWN):
                self._take_back(event.request, event.text)
            case Message():
                if entry := self._pending.get(event.id):
                    self._settle(entry, event.state, event.reason)
            case Interrupted():
                asked, self._interrupt = self._interrupt, None
                by, message = (asked.by, asked.id) if asked else (event.by, "")
                self._records.event(Interrupted(by=by, message=message))
                self._inbox.settle(message)
            case _:
                self._records.event(event)

    def due(self) -> float | None:
        """When the next time limit for people expires, in monotonic seconds; None without one."""
        times: list[float] = []
        if self._meta.answer_timeout is not None:
            times += [made + self._meta.answer_timeout for _, _, made in self._open.values()]
        if self._idle_since is not None and self._meta.idle_timeout is not None:
            times.append(self._idle_since + self._meta.idle_timeout)
        return min(times, default=None)

    def advance(self, now: float) -> None:
        """Deny requests without a reply in time, and end an interrupted agent without a message in time."""
        stream = self._stream
        if stream is None:
            return
        if (timeout := self._meta.answer_timeout) is not None:
            for number, (_, _, made) in tuple(self._open.items()):
                if now >= made + timeout:
                    self._decide(number, Verdict.DENY, by=BY_TIMEOUT, text=f"no reply within {timeout:g} s")
        self._idle_since = (self._idle_since or now) if stream.is_waiting else None
        idle_timeout = self._meta.idle_timeout
        if self._idle_since is not None and idle_timeout is not None and now >= self._idle_since + idle_timeout:
            self._idle_since = None
            stream.close()

    def close(self, why: str) -> None:
        """Accept no more entries, and report all remaining ones as too late."""
        for entry in self._inbox.close():
            self._pending.setdefault(entry.id, entry)
        for asked in filter(None, (self._interrupt, self._wish)):
            self._pending.setdefault(asked.id, asked)
        for entry in tuple(self._pending.values()):
            self._settle(entry, MessageState.LATE, why)
        self._inbox.discard()

    # --- the inbox ---

    def _message(self, entry: InboxEntry) -> None:
        self._accept(entry)
        self._tell(entry)

    def _tell(self, entry: InboxEntry) -> None:
        stream = self._stream
        if stream is None or entry.id in self._sent:
            return
        if not stream.talks:
            self._settle(entry, MessageState.REFUSED, "the agent accepts no messages while it runs")
        elif stream.is_stdin_done:
            self._settle(entry, MessageState.LATE, "the agent had already finished")
        else:
            self._sent.add(entry.id)
            self._idle_since = None
            stream.tell(entry.id, entry.text)

    def _interrupt_turn(self, entry: InboxEntry) -> None:
        stream = self._stream
        if stream is None or not stream.talks:
            self.refuse(entry, "the agent cannot be interrupted, only stopped")
        elif stream.is_stdin_done:
            self._settle(entry, MessageState.LATE, "the agent had already finished")
        elif stream.is_waiting or self._interrupt:
            self.refuse(entry, "the run is already interrupted")
        else:
            self._interrupt = entry
            stream.interrupt(stays=True)

    @property
    def is_wanted(self) -> bool:
        """Whether a person wants to open the run in the agent: then its agent process ends without consequences."""
        return self._wish is not None

    def take_wish(self) -> InboxEntry | None:
        """Return the request to open the run, once."""
        wish, self._wish = self._wish, None
        return wish

    def _take_over(self, entry: InboxEntry) -> None:
        if why := self._meta.why_not_by_hand:
            self.refuse(entry, why)
        elif self._wish:
            self.refuse(entry, "another user is opening it in the agent")
        else:
            self._wish = entry

    def _reply(self, entry: InboxEntry) -> None:
        number = entry.request or next(iter(self._open), "")
        if entry.verdict is None or not entry.verdict.is_known or entry.verdict is Verdict.WITHDRAWN:
            self.refuse(entry, "the answer has no allow, deny or reply")
        elif number not in self._open:
            gone = self._answered.get(number, f"{number} is no longer pending")
            self.refuse(entry, gone if number else "no request is pending")
        elif fault := self._fault(self._open[number][0], entry):
            self.refuse(entry, fault)
        elif entry.verdict in _LEAVE and self._rules().way(self._open[number][0]) != self._ways[number]:
            self._decide(number, Verdict.DENY, by=BY_WRAPPER, text=_MOVED, message=entry.id)
            self._inbox.settle(entry.id)
        else:
            run_rule = self._open[number][0].run_rule
            self._decide(number, entry.verdict, by=entry.by, text=entry.text, message=entry.id)
            self._inbox.settle(entry.id)
            if entry.verdict is Verdict.ALLOW_RUN:
                self._allow_in_run(run_rule)

    def _is_refused(self, entry: InboxEntry, why: str) -> bool:
        """Refuse anything but a message."""
        if entry.kind != EntryKind.MESSAGE:
            self.refuse(entry, why)
        return entry.kind != EntryKind.MESSAGE

    def _accept(self, entry: InboxEntry) -> None:
        self._pending[entry.id] = entry
        text = entry.text if len(entry.text) <= CONTENT_LIMIT else entry.text[:CONTENT_LIMIT] + CUT
        self._records.event(Message(id=entry.id, state=MessageState.ACCEPTED, text=text, by=entry.by))

    def refuse(self, entry: InboxEntry, why: str) -> None:
        self._settle(entry, MessageState.REFUSED, why)

    def settle(self, entry: InboxEntry) -> None:
        """Remove an entry from the inbox; its outcome is already recorded."""
        self._inbox.settle(entry.id)

    def _settle(self, entry: InboxEntry, state: MessageState, reason: str = "") -> None:
        """Record the outcome of an entry, then remove it from the inbox."""
        is_new = self._pending.pop(entry.id, None) is None or entry.kind != EntryKind.MESSAGE
        text = entry.text[:BEGINNING] if is_new else ""
        self._records.event(Message(id=entry.id, state=state, text=text, by=entry.by, reason=reason))
        if entry.kind == EntryKind.MESSAGE and state is not MessageState.DELIVERED:
            beginning = one_line(entry.text, BEGINNING)
            self.undelivered.append(Undelivered(id=entry.id, text=beginning, by=entry.by, reason=reason))
        self._inbox.settle(entry.id)

    # --- the agent's requests ---

    def _requested(self, request: Request) -> None:
        """Apply the rules, and hold undecided requests until a person decides.

        An id that is already open is answered once: its earlier request is withdrawn.
        """
        self._take_back(request.id)
        policy = self._rules()
        verdict, rule = policy.decide(request)
        if verdict is None and not rule and request.usual is not None and not is_marked(request):
            self._answer(request.id, request.usual)
            return
        if verdict is not None:
            self._answer(request.id, verdict, _denied_by(rule) if verdict is Verdict.DENY else "")
            self._record(request, "", verdict, by=BY_RULE, rule=rule)
            return
        self._requests += 1
        number = f"q{self._requests}"
        held = kept_request(replace(request, id=number, usual=None, rule=rule, run_rule=policy.run_rule(request)))
        if held.missing:
            held = replace(held, run_rule="")
        if is_marked(held):
            held = replace(held, display=request_text(held))
        self._open[number] = (held, request.id, time.monotonic())
        self._ways[number] = policy.way(held)
        self._records.event(held)
        if len(self._open) > MOST_OPEN or self._requests > MOST_REQUESTS:
            self._decide(number, Verdict.DENY, by=BY_WRAPPER, text="the request is too large")
        elif self.alerts:
            self.alerts.asked(held)

    def _take_back(self, own_id: str, text: str = "") -> None:
        """Withdraw the agent's request with its own id."""
        for number, (_, asked_by, _) in tuple(self._open.items()):
            if asked_by == own_id:
                self._decide(number, Verdict.WITHDRAWN, by=BY_AGENT, text=text)

    def _fault(self, request: Request, entry: InboxEntry) -> str:
        """Return why a reply does not fit the request; empty if it does."""
        is_allowed = entry.verdict in _LEAVE
        if entry.hash != request_hash(self._meta.run_id, request) and (entry.hash or is_allowed):
            return f"{request.id} is not the request that was answered: the hashes differ"
        return _misfit(request, entry.verdict)

    def _rules(self) -> Policy:
        if self._policy is None:
            from ..agents.loader import path_rules_of
            from ..permissions.rules import Policy

            self._policy = Policy(self._meta.permissions, self._meta.cwd, path_rules_of(self._meta.kind))
        return self._policy

    def _allow_in_run(self, rule: str) -> None:
        """Allow similar requests from now on, including open ones."""
        policy = self._rules()
        policy.allow_in_run(rule)
        for number, (request, _, _) in tuple(self._open.items()):
            if policy.decide(request) == (Verdict.ALLOW, rule):
                self._decide(number, Verdict.ALLOW, by=BY_RULE, rule=rule)

    def _answer(self, own_id: str, verdict: Verdict, text: str = "") -> None:
        if self._stream is not None:
            self._stream.reply(own_id, verdict, text)

    def _decide(
        self, number: str, verdict: Verdict, *, by: str, text: str = "", rule: str = "", message: str = ""
    ) -> None:
        request, own_id, _ = self._open.pop(number)
        self._ways.pop(number, None)
        if self.alerts:
            self.alerts.decided(number)
        if verdict is not Verdict.WITHDRAWN:
            self._answer(own_id, verdict, text)
        rule = rule or (request.run_rule if verdict is Verdict.ALLOW_RUN else "")
        self._record(request, number, verdict, by=by, text=text, rule=rule, message=message)

    def _record(
        self, request: Request, number: str, verdict: Verdict, *, by: str, rule: str, text: str = "", message: str = ""
    ) -> None:
        subject = subject_of(request, cwd=self._meta.cwd)
        if verdict is Verdict.DENY and self._stream is not None:
            why = text if by == BY_TIMEOUT else ""
            self._stream.denied(": ".join(filter(None, (why, f"{request.tool_name} {subject}".strip()))))
        decision = Decision(
            request=number,
            verdict=verdict,
            text=text,
            by=by,
            rule=rule,
            tool_name=request.tool_name,
            subject=subject,
            message=message,
        )
        self._records.event(decision)
        if number:
            self._answered[number] = answered_words(decision)


def _denied_by(rule: str) -> str:
    return f"denied by the rule {rule} of this run's permissions"


def _misfit(request: Request, verdict: Verdict | None) -> str:
    if request.missing and verdict in _LEAVE:
        return missing_words(request)
    if request.kind is RequestKind.PERMISSION:
        if verdict is Verdict.ALLOW_RUN and not request.run_rule:
            return "the request cannot be allowed for the whole run: use allow or deny"
        return "it is a permission request: use allow or deny" if verdict is Verdict.REPLY else ""
    if verdict in _LEAVE:
        return "it is a question: answer it, or deny"
    return ""
