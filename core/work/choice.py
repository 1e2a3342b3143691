"""Choosing one of several runs: what it changed is applied, what the others did is discarded, and all of that is taken
back together.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from .. import paths
from ..errors import SubdeckError
from ..run.snapshot import RunSnapshot
from . import acts
from .acts import Act
from .discarding import DiscardPlan, discard, plan_discard
from .source import host_of, words_of
from .taking import ALL_THERE, ApplyPlan, apply, plan_apply


class ChoicePlan(Struct, frozen=True, kw_only=True):
    """What choosing a run would do."""

    run: str
    """Names it for people."""
    applied: ApplyPlan | None = None
    """None where there is nothing to apply."""
    discarded: tuple[DiscardPlan, ...] = ()
    notes: tuple[str, ...] = ()
    """What will not be done, and why; clauses."""
    refusal: str = ""
    """Why nothing can be done, a clause; empty where it can."""
    advice: str = ""

    @property
    def words(self) -> str:
        """Say all that it will do, or what keeps it from that; some lines."""
        if self.refusal:
            return "\n".join(filter(None, (_sentence(self.refusal), _sentence(self.advice))))
        lines = self.applied.words.split("\n")[:-1] if self.applied else []
        if self.discarded:
            lines.append("Discards the changes of:")
            lines += [f"  {plan.run}: {plan.standing}" for plan in self.discarded]
        lines += map(_sentence, self.notes)
        staged = "The changes stay unstaged; index and branch are untouched. " if self.applied else ""
        return "\n".join((*lines, f"{staged}Undo can revert all of it for a day."))


def _sentence(clause: str) -> str:
    return f"{clause[:1].upper()}{clause[1:]}{'' if clause.endswith(('.', '?')) else '.'}" if clause else ""


def plan_choice(project: paths.Project, run: RunSnapshot, others: Iterable[RunSnapshot]) -> ChoicePlan:
    """Say what choosing one run of several would do. Changes nothing; takes as long as git. Raises SubdeckError where
    this process may not act on one of them, and OSError.
    """
    words = words_of(run)
    if not run.has_ended:
        return ChoicePlan(run=words, refusal=f"{words} is still running", advice="wait until it finishes, or stop it")
    notes: list[str] = []
    applied = None
    try:
        applied = plan_apply(project, run)
    except SubdeckError as error:
        notes.append(f"nothing is applied: {error.what}")
    if applied and applied.refusal:
        if applied.refusal != ALL_THERE and applied.files:
            return ChoicePlan(run=words, refusal=applied.refusal, advice=applied.advice)
        if applied.conflicts:
            return ChoicePlan(run=words, refusal=applied.refusal, advice=applied.advice)
        notes.append(f"nothing is applied: {applied.refusal}")
        applied = None
    directory = host_of(project, run.run_id)[0]
    discarded: dict[str, DiscardPlan] = {}
    for other in others:
        try:
            plan = plan_discard(project, other)
        except SubdeckError as error:
            notes.append(
                f"nothing of {words_of(other)} is discarded: {error.what.removeprefix(words_of(other)).strip()}"
            )
            continue
        if plan.directory == directory:
            notes.append(f"nothing of {words_of(other)} is discarded: {words} used the same worktree")
        else:
            discarded.setdefault(plan.directory, plan)
    if not applied and not discarded:
        return ChoicePlan(run=words, refusal="; ".join(notes))
    return ChoicePlan(run=words, applied=applied, discarded=tuple(discarded.values()), notes=tuple(notes))


def choose(project: paths.Project, plan: ChoicePlan) -> tuple[Act, ...]:
    """Do what a plan says; return the acts, which are taken back together.

    Raises SubdeckError and OSError: where nothing could be applied nothing is done, and what was done stands on the
    stack.
    """
    if plan.refusal:
        raise SubdeckError(plan.refusal, hint=plan.advice)
    done: list[Act] = []
    try:
        if plan.applied:
            done.append(apply(project, plan.applied))
        for one in plan.discarded:
            done.append(discard(project, one))
    finally:
        if len(done) > 1:
            acts.join(project, [act.id for act in done], f"choosing {plan.run}")
    return tuple(done)
