"""A run as readers see it: queued, running or ended, at one moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from .changes import Changes, CheckResult
from .model import STATUS_OF, RunMeta, RunnerKind, RunReason, RunStatus, Usage, WaitsFor

if TYPE_CHECKING:
    from .events import Request
    from .hosts import Place


class Counts(Struct, frozen=True, rename={"out_of_reach": "outOfReach"}):
    """How many runs; `queued` and `waiting` are contained in `running`, so that the other four add up to `total`."""

    running: int = 0
    completed: int = 0
    failed: int = 0
    aborted: int = 0
    total: int = 0
    queued: int = 0
    waiting: int = 0
    """For a reply to what their children ask."""
    out_of_reach: int = 0
    """On hosts that nothing was heard of lately; contained in `running`, too."""


class Queued(Struct, frozen=True):
    """The state of a run that has not started: its wrapper comes up, or waits."""

    waits_for: WaitsFor | None = None
    """None until its wrapper says that it has to wait."""
    ahead: int = 0
    """How many runs go first."""
    held: bool = False
    """Whether the operator holds the queue that it waits in."""


class Checking(Struct, frozen=True):
    """The check that is at work on what a run left."""

    name: str
    since: str


class Running(Struct, frozen=True, kw_only=True):
    """The state of a run whose child was started."""

    started_at: str
    """Of the first attempt."""
    attempt: int = 1
    activity: str = ""
    """What it does now, in words for a person."""
    sentence: str = ""
    """The end of the sentence being written, at most 2 KB."""
    heard_at: float = 0.0
    """When it last wrote something, by `time.monotonic`, which stands still while the machine sleeps."""
    patience: float | None = None
    """Seconds after which it counts as silent; None where it never does: a tool is at work."""
    requests: tuple[Request, ...] = ()
    """What its child asks and nobody has replied to yet, oldest first."""
    interrupted: bool = False
    """Whether its turn was ended, and it waits for what is said next."""
    undelivered: int = 0
    """Messages that its wrapper has and that its child has not shown yet."""
    taken_over: bool = False
    """Whether a person goes on with its conversation in the agent's own program."""
    handed_back: bool = False
    """Whether that program has ended, and nobody has said yet how the run goes on."""
    checking: Checking | None = None
    """The check that is at work; its child has ended then."""


class Ended(Struct, frozen=True, kw_only=True):
    """The state of a run that has a result; the whole of it is in `RunResult`."""

    reason: RunReason
    message: str = ""
    """One line: the error, or the beginning of the answer."""
    partial: bool = False
    """Whether the last text breaks off: it was being written when the run ended."""
    attempt: int = 1
    started_at: str | None = None
    """None for a run that never started."""
    ended_at: str = ""
    duration_ms: int | None = None
    """None where nobody measured it: the run never started, or its wrapper died."""
    not_ended: tuple[str, ...] = ()
    """Processes that could not be ended."""
    asks: bool = False
    """Whether its answer ends with a question."""
    changes: Changes | None = None
    """What was changed while it was at work; None where nobody looked."""
    check: CheckResult | None = None
    """What its check said; None where none was wanted."""
    branch: str = ""
    """Where what it changed on another machine is; empty for none, also where it worked here."""
    late: RunStatus | None = None
    """How it ended by the word of its host, which came after it had been given up; None for none."""

    @property
    def status(self) -> RunStatus:
        return STATUS_OF[self.reason]


class RunSnapshot(Struct, frozen=True, kw_only=True):
    """A run at one moment; frozen, replaced by a newer one, compared by `==`."""

    meta: RunMeta
    state: Queued | Running | Ended
    elsewhere: bool = False
    """True where another machine or pid namespace holds the run: its state is the last one written."""
    unwritable: str = ""
    """Why its end could not be written here, in words; then its state is the last one written, too."""
    foreign: bool = False
    """True where this user's subdeck did not make the run: its files are shown, and nobody acts on what they say."""
    newer_schema: int | None = None
    """The schema of a record that a newer subdeck wrote: the run is shown and can be deleted, and that is all."""
    fault: str = ""
    """Which records of an unfinished run cannot be read, in words; it is among the warnings, too."""
    place: Place | None = None
    """Where a run of another machine is; None for a run of this one, and as long as no relay has taken it up."""
    stop_waits: bool = False
    """Whether it was asked to stop, and its host is out of reach and may not know."""
    told_session: str | None = None
    """The id of its conversation as the agent told it; None where that is the one of the meta."""
    usage: Usage = Usage()
    last_event_at: str | None = None
    last_seq: int = 0
    """Of the last event that was read; 0 for an ended run, whose events are not read."""
    warnings: tuple[str, ...] = ()

    @property
    def run_id(self) -> str:
        return self.meta.run_id

    @property
    def child_session_id(self) -> str | None:
        """The id of its conversation, as far as it is known yet."""
        return self.told_session or self.meta.child_session_id

    @property
    def is_remote(self) -> bool:
        """Whether it runs on another machine of this operator's."""
        return self.meta.runner == RunnerKind.HOSTS

    @property
    def host(self) -> str:
        """The host that it is on or, before that, has to be on; empty where that is open, and for any other run."""
        if not self.is_remote:
            return ""
        return (self.place.host if self.place else "") or self.meta.host

    @property
    def is_out_of_reach(self) -> bool:
        """Whether it is on a host that nothing was heard of lately."""
        if not (self.elsewhere and self.is_remote) or self.has_ended:
            return False
        return self.place is None or not self.place.is_waiting

    @property
    def is_left_alone(self) -> bool:
        """Whether nobody acts on it here: it is foreign, or for a newer subdeck."""
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
        """What its child asks, oldest first; nothing of a run that is foreign, or for a newer subdeck."""
        return self.state.requests if isinstance(self.state, Running) and not self.is_left_alone else ()

    @property
    def is_waiting(self) -> bool:
        """Whether its child waits for a person."""
        state = self.state  # asked of every run at each update: nearly all ask nothing
        return isinstance(state, Running) and bool(state.requests) and not (self.is_left_alone or self.elsewhere)

    @property
    def is_interrupted(self) -> bool:
        return isinstance(self.state, Running) and self.state.interrupted

    @property
    def is_taken_over(self) -> bool:
        return isinstance(self.state, Running) and self.state.taken_over

    @property
    def why_not_by_hand(self) -> str:
        """Why nobody can take it over, to go on with its conversation in the agent's own program; empty where somebody
        can, also where it has ended.
        """
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
        """Whether something can be said to it: its child listens, or it has none now and begins with what was said."""
        if self.has_ended or self.is_left_alone or self.meta.talk is None or self.checking:
            return False
        if self.elsewhere and not self.is_remote:  # for one on a host it is kept until that is back
            return False
        has_no_child = isinstance(self.state, Queued) or (
            isinstance(self.state, Running) and (self.state.taken_over or self.state.handed_back)
        )
        return self.meta.talk or has_no_child

    @property
    def end(self) -> Ended | None:
        """The state of a run that has ended; None for any other."""
        return self.state if isinstance(self.state, Ended) else None

    @property
    def has_ended(self) -> bool:
        return isinstance(self.state, Ended)

    @property
    def reason(self) -> RunReason | None:
        return self.state.reason if isinstance(self.state, Ended) else None

    @property
    def changes(self) -> Changes | None:
        """What was changed while it was at work; None as long as it has not ended, and where nobody looked."""
        return self.state.changes if isinstance(self.state, Ended) else None

    @property
    def branch(self) -> str:
        """The branch with what it changed on another machine; empty for none."""
        return self.state.branch if isinstance(self.state, Ended) else ""

    @property
    def check(self) -> CheckResult | None:
        """What its check said; None as long as it has not ended, and where none was wanted."""
        return self.state.check if isinstance(self.state, Ended) else None

    @property
    def checking(self) -> Checking | None:
        """The check that is at work; None where none is."""
        return self.state.checking if isinstance(self.state, Running) else None

    @property
    def started_at(self) -> str | None:
        return None if isinstance(self.state, Queued) else self.state.started_at

    @property
    def silent_from(self) -> float | None:
        """When it counts as silent, by `time.monotonic`, if it writes nothing more; None for one that never does."""
        state = self.state
        if not isinstance(state, Running) or state.patience is None or self.elsewhere or self.is_left_alone:
            return None
        return state.heard_at + state.patience

    def silence(self, clock: float) -> float | None:
        """Return for how many seconds a run is silent at this time of `time.monotonic`; None for one that is not."""
        state = self.state
        if not isinstance(state, Running):  # as most in a long list
            return None
        begin = self.silent_from
        return None if begin is None or clock < begin else clock - state.heard_at

    @property
    def sentence(self) -> str:
        """The end of the sentence being written; empty for a run that is not running."""
        return self.state.sentence if isinstance(self.state, Running) else ""
