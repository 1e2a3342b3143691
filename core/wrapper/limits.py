"""When a child has to end: the limits of its run, and the steps that end it. Pure; times are monotonic seconds."""

from __future__ import annotations

from enum import Enum

from ..run.model import Limits, RunReason
from ..system.ending import PERSISTENCE_S


class Watchdog:
    """Given every byte and every turn, it returns the limit that was exceeded."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._started = now
        self.last_heard = now
        self._tools = 0

    def heard(self, now: float, running_tools: int) -> None:
        self.last_heard = now
        self._tools = running_tools

    def due(self) -> float | None:
        """When to look again at the latest; None without a limit of time."""
        times: list[float] = []
        if self._limits.timeout is not None:
            times.append(self._started + self._limits.timeout)
        if self._limits.stall is not None and not self._tools:
            times.append(self.last_heard + self._limits.stall)
        return min(times, default=None)

    def exceeded(self, now: float, turns: int, wants_turn: bool) -> RunReason | None:
        """Return the limit that ends the run; `wants_turn` says that the last turn asks for another."""
        limits = self._limits
        if limits.timeout is not None and now >= self._started + limits.timeout:
            return RunReason.TIMEOUT
        if limits.max_turns is not None and turns >= limits.max_turns and wants_turn:
            return RunReason.MAX_TURNS
        if limits.stall is not None and not self._tools and now >= self.last_heard + limits.stall:
            return RunReason.STALLED
        return None


class Step(Enum):
    TERM = "term"
    """To the child alone: it may clean up after itself."""
    KILL = "kill"
    """To the child and all below it."""


class StopEscalation:
    """It is given what happens and when, and returns the step that is due.

    A stop sends TERM at once and KILL after the grace; force sends KILL at once; a child that has finished gets the
    grace to exit by itself first. Repeating a request never brings a step forward.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._next: Step | None = None
        self._due = 0.0
        self._taken: set[Step] = set()
        self._in_grace = False
        self._gives_up: float | None = None

    @property
    def has_begun(self) -> bool:
        """True once anything has been asked for."""
        return self._next is not None or bool(self._taken)

    def begin_grace(self, now: float) -> None:
        """Let a child that has finished, or can say nothing more, exit by itself; TERM follows after the grace."""
        if not self.has_begun:
            self._plan(Step.TERM, now + self._grace)
            self._in_grace = True

    def withdraw_grace(self) -> None:
        """Take back a grace that is not used up: the child is still at work after all."""
        if self._in_grace and not self._taken:
            self._next = None
            self._in_grace = False

    def stop(self, now: float) -> None:
        if not self._taken:
            self._plan(Step.TERM, now)
            self._in_grace = False

    def force(self, now: float) -> None:
        if Step.KILL not in self._taken:
            self._plan(Step.KILL, now)

    def due(self) -> float | None:
        return self._due if self._next else None

    def gives_up(self, now: float) -> bool:
        """Return whether KILL was tried for so long that nothing will end the child."""
        return self._gives_up is not None and now >= self._gives_up

    def take(self, now: float) -> Step | None:
        """Return the step that is due and plan the one after it."""
        step = self._next
        if step is None or now < self._due:
            return None
        self._taken.add(step)
        if step is Step.KILL and self._gives_up is None:
            self._gives_up = now + PERSISTENCE_S
        # A process in an uninterruptible call may need more than one KILL in sequence to be seen gone.
        self._plan(Step.KILL, now + self._grace)
        return step

    def _plan(self, step: Step, due: float) -> None:
        self._next = step
        self._due = due
