"""When a child is told to go, and when it is made to: grace, TERM, KILL."""

from __future__ import annotations

from enum import Enum


class Step(Enum):
    TERM = "term"
    """To the child alone: it may clean up after itself."""
    KILL = "kill"
    """To the child and all below it."""


class StopEscalation:
    """Pure: is told what happens and when, answers the step that is due. Times are monotonic seconds.

    A stop sends TERM at once and KILL after the grace; force sends KILL at once; a child that has finished gets the
    grace to go by itself first. Telling the same again never takes a step early.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._next: Step | None = None
        self._due = 0.0
        self._taken: set[Step] = set()
        self._leaving = False

    @property
    def climbing(self) -> bool:
        """True once anything has been asked for."""
        return self._next is not None or bool(self._taken)

    def begin_grace(self, now: float) -> None:
        """The child has finished, or can say nothing more: it goes by itself, or with TERM after the grace."""
        if not self.climbing:
            self._plan(Step.TERM, now + self._grace)
            self._leaving = True

    def stay(self) -> None:
        """The child goes on after all: a grace that was given, and not used up, is taken back."""
        if self._leaving and not self._taken:
            self._next = None
            self._leaving = False

    def stop(self, now: float) -> None:
        if not self._taken:
            self._plan(Step.TERM, now)
            self._leaving = False

    def force(self, now: float) -> None:
        if Step.KILL not in self._taken:
            self._plan(Step.KILL, now)

    def due(self) -> float | None:
        return self._due if self._next else None

    def take(self, now: float) -> Step | None:
        """Return the step that is due and plan the one after it."""
        step = self._next
        if step is None or now < self._due:
            return None
        self._taken.add(step)
        # A process in an uninterruptible call may need more than one KILL in sequence to be seen gone.
        self._plan(Step.KILL, now + self._grace)
        return step

    def _plan(self, step: Step, due: float) -> None:
        self._next = step
        self._due = due
