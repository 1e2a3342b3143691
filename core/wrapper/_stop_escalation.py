"""The steps that end an agent, and when each is due. Pure; times are monotonic seconds."""

from __future__ import annotations

from enum import Enum

from ..system.termination import PERSISTENCE_S


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
