"""The enumerations and numbers in the records of a run; other modules import them from `model`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from msgspec import Meta

from ..text.plain import one_line

LARGEST = 2**53
"""Largest whole number in a record: every reader of JSON keeps it exactly. A record with a larger one is broken."""
MOST_SECONDS = 365 * 24 * 3600.0
"""Longest limit or pause: a year."""

Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
Pid = Annotated[int, Meta(ge=1, le=2**31 - 1)]
"""Never 0 or below, which address groups of processes."""
ExitCode = Annotated[int, Meta(ge=-(2**31), le=2**31)]
Cost = Annotated[float, Meta(ge=0, le=LARGEST)]
Period = Annotated[float, Meta(ge=0, le=MOST_SECONDS)]
"""Seconds."""


WORD = 40
"""Characters kept of an unknown word."""


class OpenEnum(StrEnum):
    """A closed set for writers; readers accept a newer subdeck's word as a value that is not a member.

    Such a word is sanitized here, because it is displayed next to known words.
    """

    __hash__ = str.__hash__  # Enum's is written in Python, and a list looks up every run by its status

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        shown = one_line(value, WORD)
        word = str.__new__(cls, shown)
        word._name_, word._value_ = "", shown
        return word

    @property
    def is_known(self) -> bool:
        return bool(self._name_)


class AlertKind(StrEnum):
    """Conditions that subdeck notifies the user of outside the terminal."""

    NEEDS_INPUT = "needs_input"
    """A permission request, a question, or an answer that ends with a question."""
    FAILED = "failed"
    """A run or its check failed, or a limit other than a budget ended the run."""
    FINISHED = "finished"
    IDLE = "idle"
    """A running agent has been idle for longer than usual."""
    BUDGET = "budget"
    """A run's budget, or a daily one, is used up."""


class RunnerKind(OpenEnum):
    PROCESS = "process"
    TMUX = "tmux"
    """A pane that a user can attach to."""
    HOSTS = "hosts"
    """Another machine, as a plain process there."""


class WorktreeFrom(OpenEnum):
    """Content that the worktree of a run begins with."""

    FILES = "files"
    """The working tree as it is, with uncommitted and untracked files."""
    HEAD = "head"
    """The checked-out commit."""
    NONE = "none"
    """No worktree: the run works in the project's own files."""


class LauncherKind(OpenEnum):
    APP = "app"
    CLI = "cli"
    MCP = "mcp"
    PI = "pi"
    """The extension in a parent's pi."""


class StopReason(OpenEnum):
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    """The caller stopped waiting for it."""
    UNREAD = "unread"
    """The output pipe of the waiting command was closed."""


class PromptMode(OpenEnum):
    """How a preset's prompt relates to the agent's own system prompt."""

    APPEND = "append"
    REPLACE = "replace"


class ToolPolicy(OpenEnum):
    """Which tools a run has: the agent's own set, only the preset's list, or all except that list."""

    AGENT = "agent"
    ALLOW = "allow"
    DENY = "deny"


class NoticeLevel(OpenEnum):
    INFO = "info"
    WARNING = "warning"


class WaitsFor(OpenEnum):
    """What a queued run waits for."""

    SLOT = "slot"
    """A slot of the group or the project."""
    SESSION = "session"
    """The agent session, which another run is using."""
    WORKTREE = "worktree"
    """Only its worktree, which is being created."""
    HOST = "host"
    """A slot on another machine."""
    HOLD = "hold"
    """The user to resume the queue."""


class RunStatus(OpenEnum):
    QUEUED = "queued"
    """Its wrapper waits for a slot or for an agent session."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    """Ended by someone, or by a limit."""


class RunReason(OpenEnum):
    """Why a run ended; `STATUS_OF` maps each reason to its status."""

    DONE = "done"
    TRUNCATED = "truncated"
    """The answer stops at the model's length limit."""
    FINALIZED = "finalized"
    UNVERIFIED = "unverified"
    """The program cannot report errors, so the answer may be one; a warning names the gap."""
    DENIED = "denied"
    """A request that was denied or not answered ended the turn."""
    MODEL_ERROR = "model_error"
    EMPTY_ANSWER = "empty_answer"
    AGENT_EXIT = "agent_exit"
    """The agent exited without reporting that it had finished."""
    AGENT_MISSING = "agent_missing"
    START_FAILED = "start_failed"
    FINALIZE_ERROR = "finalize_error"
    FINALIZE_MISSING = "finalize_missing"
    LOST = "lost"
    """Its wrapper died without writing a result."""
    STOPPED = "stopped"
    KILLED = "killed"
    CANCELLED = "cancelled"
    """The caller stopped waiting for it."""
    SIGNAL = "signal"
    """Its wrapper got a signal that subdeck did not send."""
    TIMEOUT = "timeout"
    MAX_TURNS = "max_turns"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    """Its agent was interrupted, but not by subdeck."""
    BUDGET = "budget"
    """It reached its limit of dollars or tokens."""
    LEASE = "lease"
    """Its host was out of contact for so long that it stopped the run on its own."""


_REASONS = {
    RunStatus.COMPLETED: "done truncated finalized unverified",
    RunStatus.FAILED: "denied model_error empty_answer agent_exit agent_missing start_failed finalize_error "
    "finalize_missing lost",
    RunStatus.ABORTED: "stopped killed cancelled signal timeout max_turns stalled interrupted budget lease",
}
STATUS_OF = {RunReason(word): status for status, words in _REASONS.items() for word in words.split()}


class PresetSource(OpenEnum):
    """Where a preset comes from, nearest first."""

    PROJECT = "project"
    DIR = "dir"
    GLOBAL = "global"
    BUNDLED = "bundled"
    ADHOC = "adhoc"
    """No file: prompt and tools came with the request."""


class MessageState(OpenEnum):
    """Delivery state of a message to a run."""

    ACCEPTED = "accepted"
    """Its wrapper has it."""
    DELIVERED = "delivered"
    """The agent's own output shows it."""
    REFUSED = "refused"
    LATE = "late"
    """The run ended first."""


class CheckState(OpenEnum):
    """Progress of a check."""

    STARTED = "started"
    ENDED = "ended"


class RequestKind(OpenEnum):
    """Kind of an agent's request."""

    PERMISSION = "permission"
    """Permission for a tool call."""
    QUESTION = "question"
    """A text as the answer."""
    CHOICE = "choice"
    """One of several choices."""
    FORM = "form"
    """Values of several fields."""


class Verdict(OpenEnum):
    """The decision on a request."""

    ALLOW = "allow"
    ALLOW_RUN = "allow_run"
    """This request, and similar ones for the rest of the run."""
    DENY = "deny"
    REPLY = "reply"
    """A text, a choice or a filled-in form."""
    WITHDRAWN = "withdrawn"
    """The agent withdrew the request, or ended."""


class FinalizeStatus(OpenEnum):
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
