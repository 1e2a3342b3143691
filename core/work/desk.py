"""What can be done with the work of the runs of a project: the part of the engine that is about changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from .. import paths
from ..run.changes import Changes
from ..run.snapshot import RunSnapshot

if TYPE_CHECKING:
    from ..run.comparison import Side
    from ._changes import EndedChanges, LiveChanges
    from .acts import Act
    from .branches import CommitPlan
    from .choice import ChoicePlan
    from .comparing import Difference
    from .discarding import DiscardPlan
    from .merging import MergePlan
    from .taking import ApplyPlan


class Work:
    """Of one project; what only some of it needs is loaded by that."""

    def __init__(self, project: paths.Project) -> None:
        self._project = project

    def changes(self, run: RunSnapshot) -> Changes | None:
        """Return what a run changed, or has changed up to now; None where nobody looked, or nobody can.

        Of a run that goes on, or has ended in a worktree, the files are looked at, which takes as long as git does, at
        most every five seconds and a tenth of the time.
        """
        if run.is_left_alone or run.elsewhere or not run.started_at:
            return run.changes
        if not run.has_ended:
            return self._live.look(run)
        return self._ended.look(run)

    def patch(self, run: RunSnapshot) -> bytes:
        """Return what a run changed as git writes it; nothing where no git knows. Raises SubdeckError and OSError."""
        if run.has_ended and not run.is_left_alone:
            return self._ended.patch(run)
        from ._changes import patch_of

        return patch_of(self._project, run)

    def root(self, run: RunSnapshot) -> str:
        """Return the top of the working tree in which a run works, or worked; outside git its directory."""
        from ._recorded import read_recorded

        recorded = None if run.is_left_alone else read_recorded(paths.work_dir(self._project, run.run_id))
        return recorded.root if recorded else run.meta.cwd

    def plan_apply(
        self,
        run: RunSnapshot,
        files: Iterable[str] | None = None,
        hunks: Mapping[str, Collection[int]] | None = None,
        *,
        reverse: bool = False,
        to: str = "",
        tree: str = "",
    ) -> ApplyPlan:
        """Say what writing the changes of a run into a working tree would do: all of them, some files, or of some files
        some hunks, counted from 1 in the patch whose tree is `tree`.

        With `reverse` they are taken out of it. Changes nothing; takes as long as git. Raises SubdeckError and OSError.
        """
        from .taking import plan_apply

        return plan_apply(self._project, run, files, hunks, reverse=reverse, to=to, tree=tree)

    def apply(self, plan: ApplyPlan) -> Act:
        """Do what a plan says, or refuse as something changed meanwhile; the act can be taken back.

        Raises SubdeckError and OSError.
        """
        from .taking import apply

        return apply(self._project, plan)

    def side(self, run: RunSnapshot) -> Side:
        """Return what is said of a run beside others; takes as long as `changes`."""
        from .comparing import side_of

        return side_of(self._project, run, self.changes(run))

    def difference(self, run: RunSnapshot, other: RunSnapshot) -> Difference:
        """Compare what two runs have left, or have up to now. Takes as long as git. Raises SubdeckError and OSError."""
        from .comparing import difference

        return difference(self._project, run, other)

    def plan_merge(self, run: RunSnapshot, *, pick: bool = False) -> MergePlan:
        """Say what merging the work of a run into the branch that is checked out would do: a new commit with two
        parents, or, to pick it, with one. Changes nothing. Raises SubdeckError and OSError.
        """
        from .merging import plan_merge

        return plan_merge(self._project, run, pick=pick)

    def merge(self, plan: MergePlan, message: str = "") -> Act:
        """Do what a plan says, with another message than its own where one is given. Raises SubdeckError, OSError."""
        from .merging import merge

        return merge(self._project, plan, message)

    def plan_commit(self, run: RunSnapshot) -> CommitPlan:
        """Say what committing on the branch of a run would do; raises SubdeckError where it cannot be, and OSError."""
        from .branches import plan_commit

        return plan_commit(self._project, run)

    def commit(self, plan: CommitPlan, message: str = "") -> Act:
        """Do what a plan says, with another message than its own where one is given. Raises SubdeckError, OSError."""
        from .branches import commit_work

        return commit_work(self._project, plan, message)

    def keep(self, run: RunSnapshot, name: str = "") -> Act:
        """Keep what a run has committed by a branch of this name, by default that of its own without the directory.

        Raises SubdeckError and OSError.
        """
        from .branches import keep

        return keep(self._project, run, name)

    def plan_discard(self, run: RunSnapshot) -> DiscardPlan:
        """Say what removing worktree and branch of a run would do. Raises SubdeckError where it cannot, and OSError."""
        from .discarding import plan_discard

        return plan_discard(self._project, run)

    def discard(self, plan: DiscardPlan) -> Act:
        """Do what a plan says. Raises SubdeckError and OSError."""
        from .discarding import discard

        return discard(self._project, plan)

    def plan_choice(self, run: RunSnapshot, others: Iterable[RunSnapshot]) -> ChoicePlan:
        """Say what applying the changes of one run and discarding what others did would do. Changes nothing.

        Raises SubdeckError and OSError.
        """
        from .choice import plan_choice

        return plan_choice(self._project, run, others)

    def choose(self, plan: ChoicePlan) -> tuple[Act, ...]:
        """Do what a plan says; return the acts, which are taken back together. Raises SubdeckError and OSError."""
        from .choice import choose

        return choose(self._project, plan)

    def forget(self, act: Act) -> None:
        """Let an act stay done for good, with what was kept for taking it back. Raises OSError."""
        from .acts import drop

        drop(self._project, act.id)

    @cached_property
    def _ended(self) -> EndedChanges:
        from ._changes import EndedChanges

        return EndedChanges(self._project)

    @cached_property
    def _live(self) -> LiveChanges:
        from ._changes import LiveChanges

        return LiveChanges(self._project)
