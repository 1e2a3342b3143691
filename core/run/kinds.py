"""The closed sets of words in the records of a run, and the numbers; everybody else takes them from `model`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Self

from msgspec import Meta

from ..text.plain import one_line

LARGEST = 2**53
"""Of whole numbers in records: those that every reader of JSON keeps exactly. A record with a larger one is broken."""
MOST_SECONDS = 365 * 24 * 3600.0
"""Of a limit or a pause: a year."""

Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
Pid = Annotated[int, Meta(ge=1, le=2**31 - 1)]
"""Never 0 or below, which stand for groups of processes."""
ExitCode = Annotated[int, Meta(ge=-(2**31), le=2**31)]
Cost = Annotated[float, Meta(ge=0, le=LARGEST)]
Period = Annotated[float, Meta(ge=0, le=MOST_SECONDS)]
"""Seconds."""


WORD = 40
"""Characters of a word that nobody here knows."""


class OpenEnum(StrEnum):
    """A closed set for who writes it; who reads takes the word of a newer subdeck as a value that is no member.

    Such a word is made fit to be shown here, because everywhere it stands beside words of ours.
    """

    __hash__ = str.__hash__  # that of Enum is written in Python, and a list looks every run up by its status

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


class RunnerKind(OpenEnum):
    PROCESS = "process"
    TMUX = "tmux"
    """A pane that a person can attach to."""
    HOSTS = "hosts"
    """Another machine, as a plain process there."""


class WorktreeFrom(OpenEnum):
    """What the worktree of a run begins with."""

    FILES = "files"
    """The working tree as it is, with what is not committed and what is untracked."""
    HEAD = "head"
    """The commit that is checked out."""
    NONE = "none"
    """There is no worktree: the run works in the project's own files."""


class LauncherKind(OpenEnum):
    APP = "app"
    CLI = "cli"
    MCP = "mcp"
    PI = "pi"
    """The extension in a parent's pi."""


class StopReason(OpenEnum):
    STOPPED = "stopped"
    CANCELLED = "cancelled"
    """Who waited for it gave up."""
    UNREAD = "unread"
    """The pipe that took the output of the command that waited for it was closed."""


class PromptMode(OpenEnum):
    """How a preset's prompt relates to the agent's own system prompt."""

    APPEND = "append"
    REPLACE = "replace"


class ToolPolicy(OpenEnum):
    """Which tools a run has: the agent's own set, only those that the preset lists, or all but those."""

    AGENT = "agent"
    ALLOW = "allow"
    DENY = "deny"


class NoticeLevel(OpenEnum):
    INFO = "info"
    WARNING = "warning"


class WaitsFor(OpenEnum):
    """What keeps a queued run from its start."""

    SLOT = "slot"
    """One of the group's or the project's places."""
    SESSION = "session"
    """The child session, with which another run is at work."""
    WORKTREE = "worktree"
    """Nothing any more: its worktree is being made."""
    HOST = "host"
    """A place on another machine."""
    HOLD = "hold"
    """The end of the operator's hold on the queue."""


class RunStatus(OpenEnum):
    QUEUED = "queued"
    """Its wrapper waits for a slot or for a child session."""
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    """Somebody or a limit ended it."""


class RunReason(OpenEnum):
    """Why a run ended; which status each belongs to is in `STATUS_OF`."""

    DONE = "done"
    TRUNCATED = "truncated"
    """The answer stops at the model's length limit."""
    FINALIZED = "finalized"
    UNVERIFIED = "unverified"
    """The program cannot report errors, so that its answer may be one; a warning says what is missing."""
    DENIED = "denied"
    """A request that was denied, or not answered, ended the turn."""
    MODEL_ERROR = "model_error"
    EMPTY_ANSWER = "empty_answer"
    AGENT_EXIT = "agent_exit"
    """The child went away without saying that it had finished."""
    AGENT_MISSING = "agent_missing"
    START_FAILED = "start_failed"
    FINALIZE_ERROR = "finalize_error"
    FINALIZE_MISSING = "finalize_missing"
    LOST = "lost"
    """Its wrapper died without a word."""
    STOPPED = "stopped"
    KILLED = "killed"
    CANCELLED = "cancelled"
    """Who waited for it gave up."""
    SIGNAL = "signal"
    """Its wrapper got a signal nobody of ours sent."""
    TIMEOUT = "timeout"
    MAX_TURNS = "max_turns"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    """Its agent was interrupted, by nobody of ours."""
    BUDGET = "budget"
    """It spent the dollars or used the tokens that it may."""
    LEASE = "lease"
    """Its host was not heard of for so long that nobody could have stopped it any more."""


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
    """How far a message to a run has come."""

    ACCEPTED = "accepted"
    """Its wrapper has it."""
    DELIVERED = "delivered"
    """The child's own output shows it."""
    REFUSED = "refused"
    LATE = "late"
    """The run ended first."""


class CheckState(OpenEnum):
    """How far a check has come."""

    STARTED = "started"
    ENDED = "ended"


class RequestKind(OpenEnum):
    """What a child asks a person for."""

    PERMISSION = "permission"
    """To carry out a call of a tool."""
    QUESTION = "question"
    """For a text."""
    CHOICE = "choice"
    """For one of several."""
    FORM = "form"
    """For values of several fields."""


class Verdict(OpenEnum):
    """What was decided on a request."""

    ALLOW = "allow"
    ALLOW_RUN = "allow_run"
    """This one, and what is like it for as long as the run lasts."""
    DENY = "deny"
    REPLY = "reply"
    """A text, a choice or a form was filled in."""
    WITHDRAWN = "withdrawn"
    """The child has taken the request back, or ended."""


class FinalizeStatus(OpenEnum):
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
