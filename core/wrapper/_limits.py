"""When an agent must end: its run's limits, and the steps that end it. Pure; times are monotonic seconds."""

from __future__ import annotations

from enum import Enum

from ..run.model import Limits, RunReason, Usage
from ..system.termination import PERSISTENCE_S
from ._lease import Lease

LAST_WORDS_S = 1.0
"""Seconds for an agent over budget to finish on its own, if its message may be the last."""


class Watchdog:
    """Gets every byte and every turn, and returns the limit that was exceeded."""

    def __init__(self, limits: Limits, now: float, lease: Lease | None = None) -> None:
        """`lease` is checked elsewhere, each second."""
        self._limits = limits
        self._lease = lease
        self._started = now
        self.last_heard = now
        self._tools = 0
        self._overspent_at: float | None = None
        """Since when the budget is used up."""
        self._paused_at: float | None = None
        self.paused = 0.0
        """Seconds that its time limits were paused."""

    def pause(self, now: float) -> None:
        """Pause the time limits: the agent waits for a person."""
        if self._paused_at is None:
            self._paused_at = now

    def resume(self, now: float) -> None:
        if self._paused_at is not None:
            stood = now - self._paused_at
            self.paused += stood
            self._started += stood
            self.last_heard = now
            self._paused_at = None

    def heard(self, now: float, running_tools: int) -> None:
        self.last_heard = now
        self._tools = running_tools

    def due(self) -> float | None:
        """When to check again at the latest; None without a time limit."""
        times: list[float] = []
        if self._paused_at is not None:
            return None
        if self._limits.timeout is not None:
            times.append(self._started + self._limits.timeout)
        if self._limits.stall is not None and not self._tools:
            times.append(self.last_heard + self._limits.stall)
        if self._overspent_at is not None:
            times.append(self._overspent_at + LAST_WORDS_S)
        return min(times, default=None)

    def exceeded(self, now: float, used: Usage, wants_turn: bool) -> RunReason | None:
        """Return the limit that ends the run, given its total usage `used`; `wants_turn`: the last turn requests
        another one.
        """
        limits = self._limits
        if self._lease and self._lease.is_over:  # even while it waits for a person: none is in contact
            return RunReason.LEASE
        if limits.max_turns is not None and used.turns >= limits.max_turns and wants_turn:
            return RunReason.MAX_TURNS
        if limits.is_overspent(used):
            if self._overspent_at is None:
                self._overspent_at = now
            if wants_turn or now >= self._overspent_at + LAST_WORDS_S:
                return RunReason.BUDGET
        if self._paused_at is not None:
            return None
        if limits.timeout is not None and now >= self._started + limits.timeout:
            return RunReason.TIMEOUT
        if limits.stall is not None and not self._tools and now >= self.last_heard + limits.stall:
            return RunReason.STALLED
        return None


class Step(Enum):
    TERM = "term"
    """To the agent only: it may clean up."""
    KILL = "kill"
    """To the agent and all its descendants."""


class StopEscalation:
    """Gets events with their times, and returns the step that is due.

    A stop sends TERM at once and KILL after the grace; force sends KILL at once. An agent that has finished, or was
    asked to end its turn, first gets the grace to exit on its own. Repeating a request never brings a step forward.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._next: Step | None = None
        self._due = 0.0
        self._taken: set[Step] = set()
        self._in_grace = False
        self._is_asked = False
        self._gives_up: float | None = None

    @property
    def has_begun(self) -> bool:
        """True after the first request."""
        return self._next is not None or bool(self._taken)

    def begin_grace(self, now: float) -> None:
        """Let an agent that has finished or closed its output exit on its own; TERM follows after the grace."""
        if not self.has_begun:
            self._plan(Step.TERM, now + self._grace)
            self._in_grace = True

    def withdraw_grace(self) -> None:
        """Withdraw an unused grace: the agent is still working."""
        if self._in_grace and not self._taken:
            self._next = None
            self._in_grace = False

    def ask(self, now: float) -> bool:
        """Plan TERM for after the grace; return whether to tell the agent now, by its own protocol, to end."""
        if self._taken or self._is_asked:
            return False
        self._plan(Step.TERM, now + self._grace)
        self._in_grace = False
        self._is_asked = True
        return True

    def stop(self, now: float) -> None:
        if not self._taken and not self._is_asked:
            self._plan(Step.TERM, now)
            self._in_grace = False

    def force(self, now: float) -> None:
        if Step.KILL not in self._taken:
            self._plan(Step.KILL, now)

    def due(self) -> float | None:
        return self._due if self._next else None

    def gives_up(self, now: float) -> bool:
        """Whether KILL was tried for so long that nothing will end the agent."""
        return self._gives_up is not None and now >= self._gives_up

    def take(self, now: float) -> Step | None:
        """Return the step that is due and plan the next one."""
        step = self._next
        if step is None or now < self._due:
            return None
        self._taken.add(step)
        if step is Step.KILL and self._gives_up is None:
            self._gives_up = now + PERSISTENCE_S
        # A process in an uninterruptible call may need several KILLs before it is gone.
        self._plan(Step.KILL, now + self._grace)
        return step

    def _plan(self, step: Step, due: float) -> None:
        self._next = step
        self._due = due
