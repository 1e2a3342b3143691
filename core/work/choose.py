"""Choose the winner of several runs: apply its changes, discard the others', and undo all of that together."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from .. import paths
from ..errors import SubdeckError
from ..run.snapshot import RunSnapshot
from . import acts
from .operation import APPLY, CHOOSE, DISCARD, Act, Operation, Plan, sentence
from .source import host_of, words_of


class ChoicePlan(Plan, frozen=True, kw_only=True):
    """The effect of choosing a run."""

    operation: Operation = CHOOSE
    applied: Plan | None = None
    """None if there is nothing to apply."""
    discarded: tuple[Plan, ...] = ()

    @property
    def words(self) -> str:
        if self.refusal:
            return "\n".join(filter(None, map(sentence, (self.refusal, self.advice))))
        return "\n".join(self.describe())

    def describe(self) -> list[str]:
        lines = [*self.applied.describe()][:-1] if self.applied else []
        if self.discarded:
            lines.append("Discards the changes of:")
            lines += [f"  {plan.run}: {plan.summary}" for plan in self.discarded]
        lines += map(sentence, self.notes)
        staged = "The changes stay unstaged; index and branch are untouched. " if self.applied else ""
        return [*lines, f"{staged}Undo can revert all of it for a day."]


def plan(project: paths.Project, run: RunSnapshot, *, others: Iterable[RunSnapshot]) -> ChoicePlan:
    """Plan to choose one run of several. Changes nothing; takes as long as git. Raises OSError, and SubdeckError if
    this process may not act on one of them.
    """
    plan = ChoicePlan(run_id=run.run_id, run=words_of(run))
    if not run.has_ended:
        return plan.refused(f"{plan.run} is still running", "wait until it finishes, or stop it")
    notes: list[str] = []
    applied = None
    try:
        applied = APPLY.plan(project, run)
    except SubdeckError as error:
        notes.append(f"nothing is applied: {error.what}")
    if applied and applied.refusal:
        if applied.files or applied.conflicts:
            return plan.refused(applied.refusal, applied.advice)
        notes.append(f"nothing is applied: {applied.refusal}")
        applied = None
    directory = host_of(project, run.run_id)[0]
    discarded: dict[str, Plan] = {}
    for other in others:
        try:
            loss = DISCARD.plan(project, other)
        except SubdeckError as error:
            why = error.what.removeprefix(words_of(other)).strip()
            notes.append(f"nothing of {words_of(other)} is discarded: {why}")
            continue
        if loss.directory == directory:
            notes.append(f"nothing of {words_of(other)} is discarded: {plan.run} used the same worktree")
        else:
            discarded.setdefault(loss.directory, loss)
    if not applied and not discarded:
        return plan.refused("; ".join(notes))
    return replace(plan, applied=applied, discarded=tuple(discarded.values()), notes=tuple(notes))


def act(project: paths.Project, plan: ChoicePlan, _message: str = "") -> Act:
    """Do all steps; return the last act. They are undone together.

    Raises SubdeckError and OSError: if nothing could be applied nothing is done; otherwise the completed steps are on
    the stack.
    """
    if plan.refusal:
        raise SubdeckError(plan.refusal, hint=plan.advice)
    done: list[Act] = []
    try:
        if plan.applied:
            done.append(APPLY.act(project, plan.applied))
        for loss in plan.discarded:
            done.append(DISCARD.act(project, loss))
    finally:
        if len(done) > 1:
            acts.join(project, [act.id for act in done], f"choosing {plan.run}")
    return done[-1]
