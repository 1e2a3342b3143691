"""A run as readers see it: queued, running or ended, at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from .changes import Changes, CheckResult
from .model import STATUS_OF, RunMeta, RunnerKind, RunReason, RunStatus, Usage, WaitsFor

if TYPE_CHECKING:
    from .events import Request
    from .placement import Place


class Counts(Struct, frozen=True, rename={"out_of_reach": "outOfReach"}):
    """Numbers of runs; `running` includes `queued` and `waiting`, so that it and the ended ones add up to `total`."""

    running: int = 0
    completed: int = 0
    failed: int = 0
    aborted: int = 0
    total: int = 0
    queued: int = 0
    waiting: int = 0
    """Runs that wait for the reply to a request."""
    out_of_reach: int = 0
    """Runs on unreachable hosts; included in `running`."""


class Queued(Struct, frozen=True):
    """State of a run that has not started: its wrapper is starting or waiting."""

    waits_for: WaitsFor | None = None
    """None until its wrapper reports that it has to wait."""
    ahead: int = 0
    """Number of runs before it."""
    held: bool = False
    """Whether the user has paused its queue."""


class Checking(Struct, frozen=True):
    """The running check of a run's changes."""

    name: str
    since: str


class Running(Struct, frozen=True, kw_only=True):
    """State of a run whose agent was started."""

    started_at: str
    """Of the first attempt."""
    attempt: int = 1
    activity: str = ""
    """Its current activity, in words for the user."""
    sentence: str = ""
    """The end of the sentence being written, at most 2 KB."""
    heard_at: float = 0.0
    """When it last wrote something, by `time.monotonic`, which pauses while the machine sleeps."""
    patience: float | None = None
    """Seconds after which it counts as idle; None if it never does, as while a tool is running."""
    requests: tuple[Request, ...] = ()
    """Unanswered requests of its agent, oldest first."""
    interrupted: bool = False
    """Whether its turn was ended, and it waits for a message."""
    undelivered: int = 0
    """Messages that its wrapper has and its agent has not shown yet."""
    taken_over: bool = False
    """Whether the user continues its conversation in the agent's own UI."""
    handed_back: bool = False
    """Whether that UI has exited, and the user has not chosen yet how to continue."""
    checking: Checking | None = None
    """The running check; its agent has ended by then."""


class Ended(Struct, frozen=True, kw_only=True):
    """State of a run that has a result; `RunResult` has all of its fields."""

    reason: RunReason
    message: str = ""
    """One line: the error, or the beginning of the answer."""
    partial: bool = False
    """Whether the last text is incomplete: it was being written when the run ended."""
    attempt: int = 1
    started_at: str | None = None
    """None for a run that never started."""
    ended_at: str = ""
    duration_ms: int | None = None
    """None if not measured: the run never started, or its wrapper died."""
    not_ended: tuple[str, ...] = ()
    """Processes that could not be ended."""
    asks: bool = False
    """Whether its answer ends with a question."""
    changes: Changes | None = None
    """Changes made while it was working; None if not examined."""
    check: CheckResult | None = None
    """Result of its check; None if there was none."""
    branch: str = ""
    """Branch with its changes from another machine; empty for none, and for a local run."""
    late: RunStatus | None = None
    """Status that its host reported after the run had been abandoned; None for none."""

    @property
    def status(self) -> RunStatus:
        return STATUS_OF[self.reason]


class RunSnapshot(Struct, frozen=True, kw_only=True):
    """A run at one moment; frozen, replaced by a newer one, compared by `==`."""

    meta: RunMeta
    state: Queued | Running | Ended
    elsewhere: bool = False
    """Whether another machine or pid namespace holds the run: its state is the last one written."""
    unwritable: str = ""
    """Why its end could not be written here, in words; its state is then the last one written."""
    foreign: bool = False
    """Whether this user's subdeck did not make the run: its files are shown, but never acted on."""
    newer_schema: int | None = None
    """Schema of a record that a newer subdeck wrote: the run can only be shown and deleted."""
    fault: str = ""
    """Unreadable records of an unfinished run, in words; also among the warnings."""
    place: Place | None = None
    """Where a remote run is; None for a local run, and until a relay has handled it."""
    stop_waits: bool = False
    """Whether it was asked to stop, but its host is unreachable and may not know."""
    told_session: str | None = None
    """Id of its conversation as the agent reported it; None if the meta has it."""
    usage: Usage = Usage()
    last_event_at: str | None = None
    last_seq: int = 0
    """Number of the last event that was read; 0 for an ended run, whose events are not read."""
    warnings: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        return self.meta.run_id

    @property
    def child_session_id(self) -> str | None:
        """Id of its conversation, if known yet."""
        return self.told_session or self.meta.child_session_id

    @property
    def is_remote(self) -> bool:
        """Whether it runs on another machine of this user."""
        return self.meta.runner == RunnerKind.HOSTS

    @property
    def host(self) -> str:
        """The host that it is on or must run on; empty if that is open, and for a local run."""
        if not self.is_remote:
            return ""
        return (self.place.host if self.place else "") or self.meta.host

    @property
    def is_out_of_reach(self) -> bool:
        """Whether it is on an unreachable host."""
        if not (self.elsewhere and self.is_remote) or self.has_ended:
            return False
        return self.place is None or not self.place.is_waiting

    @property
    def is_left_alone(self) -> bool:
        """Whether subdeck does not act on it here: it is untrusted, or from a newer subdeck."""
        return self.foreign or self.newer_schema is not None

    @property
    def status(self) -> RunStatus:
        match self.state:
            case Ended(reason=reason):
                return STATUS_OF[reason]
            case Running():
                return RunStatus.RUNNING
            case Queued():
                return RunStatus.QUEUED

    @property
    def requests(self) -> tuple[Request, ...]:
        """Requests of its agent, oldest first; empty for a run that is untrusted or from a newer subdeck."""
        return self.state.requests if isinstance(self.state, Running) and not self.is_left_alone else ()

    @property
    def is_waiting(self) -> bool:
        """Whether its agent waits for the user."""
        state = self.state  # checked for every run at each update: nearly all have no request
        return isinstance(state, Running) and bool(state.requests) and not (self.is_left_alone or self.elsewhere)

    @property
    def is_interrupted(self) -> bool:
        return isinstance(self.state, Running) and self.state.interrupted

    @property
    def is_taken_over(self) -> bool:
        return isinstance(self.state, Running) and self.state.taken_over

    @property
    def why_not_by_hand(self) -> str:
        """Why its conversation cannot be continued in the agent's own UI, now or after its end; empty if it can."""
        if why := self.meta.why_not_by_hand:
            return why
        if self.has_ended:
            return "" if self.child_session_id else "it has no saved conversation"
        if self.is_remote:
            return "it is on another machine; it can be opened in the agent after it has finished"
        if self.elsewhere:
            return "another machine holds it"
        if self.meta.talk is None:
            return "an earlier subdeck started it; it can be opened in the agent after it has finished"
        if isinstance(self.state, Queued):
            return "it has not started yet"
        if self.checking:
            return "its check is running; it can be opened in the agent after that"
        return "it is already open in the agent" if self.is_taken_over else ""

    @property
    def can_talk(self) -> bool:
        """Whether it takes messages: its agent listens, or its next agent process begins with them."""
        if self.has_ended or self.is_left_alone or self.meta.talk is None or self.checking:
            return False
        if self.elsewhere and not self.is_remote:  # a remote run gets it when its host is back
            return False
        has_no_child = isinstance(self.state, Queued) or (
            isinstance(self.state, Running) and (self.state.taken_over or self.state.handed_back)
        )
        return self.meta.talk or has_no_child

    @property
    def end(self) -> Ended | None:
        """State of a run that has ended; None for any other."""
        return self.state if isinstance(self.state, Ended) else None

    @property
    def has_ended(self) -> bool:
        return isinstance(self.state, Ended)

    @property
    def reason(self) -> RunReason | None:
        return self.state.reason if isinstance(self.state, Ended) else None

    @property
    def changes(self) -> Changes | None:
        """Changes made while it was working; None before its end, and if not examined."""
        return self.state.changes if isinstance(self.state, Ended) else None

    @property
    def branch(self) -> str:
        """Branch with its changes from another machine; empty for none."""
        return self.state.branch if isinstance(self.state, Ended) else ""

    @property
    def check(self) -> CheckResult | None:
        """Result of its check; None before its end, and if there was none."""
        return self.state.check if isinstance(self.state, Ended) else None

    @property
    def checking(self) -> Checking | None:
        """The running check; None if none is running."""
        return self.state.checking if isinstance(self.state, Running) else None

    @property
    def started_at(self) -> str | None:
        return None if isinstance(self.state, Queued) else self.state.started_at

    @property
    def silent_from(self) -> float | None:
        """When it counts as idle, by `time.monotonic`, if it writes nothing more; None if it never does."""
        state = self.state
        if not isinstance(state, Running) or state.patience is None or self.elsewhere or self.is_left_alone:
            return None
        return state.heard_at + state.patience

    def silence(self, clock: float) -> float | None:
        """Return how many seconds a run has been idle at this `time.monotonic`; None if it is not idle."""
        state = self.state
        if not isinstance(state, Running):  # most runs in a long list
            return None
        begin = self.silent_from
        return None if begin is None or clock < begin else clock - state.heard_at

    @property
    def sentence(self) -> str:
        """The end of the sentence being written; empty for a run that is not running."""
        return self.state.sentence if isinstance(self.state, Running) else ""


def ends_with_question(answer: str) -> bool:
    """Return whether an answer ends with a question, ignoring emphasis marks and quotes after it."""
    return answer[-200:].rstrip(" \t\r\n*_`\"'”’)").endswith(("?", "？"))
