"""What goes between a child that is talked to and people: messages to it, its requests, and what becomes of both."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from msgspec.structs import replace

from .. import paths
from ..agents.child import Listener
from ..run.events import CONTENT_LIMIT, CUT, Decision, Event, Interrupted, Message, Request
from ..run.inbox import BEGINNING, Entry, EntryKind, Inbox
from ..run.model import MessageState, RequestKind, RunMeta, Undelivered, Verdict
from ..run.requests import (
    BY_AGENT,
    BY_RULE,
    BY_TIMEOUT,
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
    from ._foot import Foot

MOST_OPEN = 100
"""Requests of a child that wait at the same time; a further one is denied."""
MOST_REQUESTS = 10_000
"""That a run may make in all."""
BY_WRAPPER = "subdeck"
_LEAVE = (Verdict.ALLOW, Verdict.ALLOW_RUN)
_MOVED = "its path now leads to another file than the one in the request"


class Mailbox:
    """Of one run, over all its attempts: each of them attaches the stream of its child."""

    def __init__(self, meta: RunMeta, run_dir: str, records: Records) -> None:
        self._meta = meta
        self._run_dir = run_dir
        self._records = records
        self._inbox = Inbox(run_dir)
        self._stream: Listener | None = None
        self._pending: dict[str, Entry] = {}
        """Messages that were accepted and are not settled, by their ids."""
        self._told: set[str] = set()
        """Those that the child of this attempt was told."""
        self._in_prompt: list[Entry] = []
        self._open: dict[str, tuple[Request, str, float]] = {}
        """Requests by their ids here, each with the agent's own id and when it was made, in monotonic seconds."""
        self._ways: dict[str, object] = {}
        """Where the paths of what is open led when it was asked."""
        self._policy: Policy | None = None
        """Made for the first request: few runs have any."""
        self._requests = 0
        self._interrupt: Entry | None = None
        """The one that the child was asked for last."""
        self._wish: Entry | None = None
        """Of a person to take the run over."""
        self._idle_since: float | None = None
        self.undelivered: list[Undelivered] = []
        self.foot: Foot | None = None
        """Where whoever is attached to the run's pane can type."""

    @property
    def asked(self) -> Request | None:
        """What is asked first of all that is open."""
        return next((request for request, *_ in self._open.values()), None)

    @property
    def waits_for_person(self) -> bool:
        """Whether the child can go on only with what somebody says: limits of time stand still meanwhile."""
        return bool(self._open) or (self._stream is not None and self._stream.is_waiting)

    # --- before the child ---

    def put_into_prompt(self) -> None:
        """Add what was said while the run waited in its queue to what the child is told first."""
        entries = [entry for entry in self._inbox.take() if not self._is_refused(entry, "the run had not started")]
        if not entries:
            return
        for entry in entries:
            self._accept(entry)
        path = os.path.join(self._run_dir, paths.PROMPT)
        try:
            said = [files.read(path), *(entry.text.encode("utf-8", "replace") for entry in entries)]
            files.write_whole(path, b"\n\n".join(part.rstrip() for part in said) + b"\n")
        except OSError as error:
            self._records.note_trouble(paths.PROMPT, error)
            return  # they are told as soon as the child listens, or late
        self._in_prompt = entries

    def put_into_next_prompt(self, ids: Iterable[str]) -> None:
        """Take it that these messages stand in what the next child is told first."""
        self._in_prompt = [entry for entry_id in ids if (entry := self._pending.get(entry_id))]

    # --- with a child ---

    def attach(self, stream: Listener) -> None:
        """Tell the child that was started what was said, and from now on what will be."""
        self._stream = stream
        for entry in self._in_prompt:
            self._settle(entry, MessageState.DELIVERED)
        self._in_prompt.clear()
        for entry in self._pending.values():
            self._tell(entry)

    def detach(self) -> None:
        """Withdraw what the child asked: it has ended."""
        for number in tuple(self._open):
            self._decide(number, Verdict.WITHDRAWN, by=BY_AGENT)
        self._stream = None
        self._told.clear()
        self._idle_since = None

    def look(self) -> None:
        """Take what was sent since the last look."""
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
        """Take an event of the child's stream into the records, with what it means here."""
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
        """When a time set for people is over, in monotonic seconds; None where none is."""
        times: list[float] = []
        if self._meta.answer_timeout is not None:
            times += [made + self._meta.answer_timeout for _, _, made in self._open.values()]
        if self._idle_since is not None and self._meta.idle_timeout is not None:
            times.append(self._idle_since + self._meta.idle_timeout)
        return min(times, default=None)

    def advance(self, now: float) -> None:
        """Deny what nobody replied to in time, and end an interrupted child to which nothing was said."""
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
        """Take nothing more, and say of everything that is left that it came too late."""
        for entry in self._inbox.close():
            self._pending.setdefault(entry.id, entry)
        for asked in filter(None, (self._interrupt, self._wish)):
            self._pending.setdefault(asked.id, asked)
        for entry in tuple(self._pending.values()):
            self._settle(entry, MessageState.LATE, why)
        self._inbox.discard()

    # --- what was sent ---

    def _message(self, entry: Entry) -> None:
        self._accept(entry)
        self._tell(entry)

    def _tell(self, entry: Entry) -> None:
        stream = self._stream
        if stream is None or entry.id in self._told:
            return
        if not stream.talks:
            self._settle(entry, MessageState.REFUSED, "the agent accepts no messages while it runs")
        elif stream.is_stdin_done:
            self._settle(entry, MessageState.LATE, "the agent had already finished")
        else:
            self._told.add(entry.id)
            self._idle_since = None
            stream.tell(entry.id, entry.text)

    def _interrupt_turn(self, entry: Entry) -> None:
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
        """Whether a person wants to take the run over: then its child is to end, and nothing is made of that."""
        return self._wish is not None

    def take_wish(self) -> Entry | None:
        """Return, once, who wants to take the run over."""
        wish, self._wish = self._wish, None
        return wish

    def _take_over(self, entry: Entry) -> None:
        if why := self._meta.why_not_by_hand:
            self.refuse(entry, why)
        elif self._wish:
            self.refuse(entry, "another user is opening it in the agent")
        else:
            self._wish = entry

    def _reply(self, entry: Entry) -> None:
        number = entry.request or next(iter(self._open), "")
        if entry.verdict is None or not entry.verdict.is_known or entry.verdict is Verdict.WITHDRAWN:
            self.refuse(entry, "the answer has no allow, deny or reply")
        elif number not in self._open:
            self.refuse(entry, f"{number} is no longer pending" if number else "no request is pending")
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

    def _is_refused(self, entry: Entry, why: str) -> bool:
        """Refuse what is no message."""
        if entry.kind != EntryKind.MESSAGE:
            self.refuse(entry, why)
        return entry.kind != EntryKind.MESSAGE

    def _accept(self, entry: Entry) -> None:
        self._pending[entry.id] = entry
        text = entry.text if len(entry.text) <= CONTENT_LIMIT else entry.text[:CONTENT_LIMIT] + CUT
        self._records.event(Message(id=entry.id, state=MessageState.ACCEPTED, text=text, by=entry.by))

    def refuse(self, entry: Entry, why: str) -> None:
        self._settle(entry, MessageState.REFUSED, why)

    def settle(self, entry: Entry) -> None:
        """Take away what was sent; the records say already what became of it."""
        self._inbox.settle(entry.id)

    def _settle(self, entry: Entry, state: MessageState, reason: str = "") -> None:
        """Write down what became of something that was sent, then take it out of the inbox."""
        is_new = self._pending.pop(entry.id, None) is None or entry.kind != EntryKind.MESSAGE
        text = entry.text[:BEGINNING] if is_new else ""
        self._records.event(Message(id=entry.id, state=state, text=text, by=entry.by, reason=reason))
        if entry.kind == EntryKind.MESSAGE and state is not MessageState.DELIVERED:
            beginning = one_line(entry.text, BEGINNING)
            self.undelivered.append(Undelivered(id=entry.id, text=beginning, by=entry.by, reason=reason))
        self._inbox.settle(entry.id)

    # --- what the child asks ---

    def _requested(self, request: Request) -> None:
        """Let the rules decide, and hold what they do not decide until somebody does.

        An id that is open already is answered once: what was asked by it before is not asked any more.
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

    def _take_back(self, own_id: str, text: str = "") -> None:
        """Withdraw what the agent asked by this id of its own."""
        for number, (_, asked_by, _) in tuple(self._open.items()):
            if asked_by == own_id:
                self._decide(number, Verdict.WITHDRAWN, by=BY_AGENT, text=text)

    def _fault(self, request: Request, entry: Entry) -> str:
        """Say why a reply does not fit what is asked; empty where it does."""
        is_allowed = entry.verdict in _LEAVE
        if entry.hash != request_hash(self._meta.run_id, request) and (entry.hash or is_allowed):
            return f"{request.id} is not the request that was answered: the hashes differ"
        return _misfit(request, entry.verdict)

    def _rules(self) -> Policy:
        if self._policy is None:
            from ..agents.kinds import path_rules_of
            from ..permissions.rules import Policy

            self._policy = Policy(self._meta.permissions, self._meta.cwd, path_rules_of(self._meta.kind))
        return self._policy

    def _allow_in_run(self, rule: str) -> None:
        """Allow what is like a request from now on, and what of it is asked already."""
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
        self._records.event(
            Decision(
                request=number,
                verdict=verdict,
                text=text,
                by=by,
                rule=rule,
                tool_name=request.tool_name,
                subject=subject,
                message=message,
            )
        )


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
