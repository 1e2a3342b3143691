"""The commands that take over what runs changed: each says before what it will do, and can be taken back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from ...core.text.plain import one_line
from ..dialogs.ask import AskScreen
from ..dialogs.plan import Plan, PlanScreen
from .base import Commands, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ...core.work.acts import Act
    from ...core.work.discarding import DiscardPlan

P = TypeVar("P", bound=Plan)


class TakingCommands(Commands):
    """What other screens call; the run is given, and so are the files and hunks that are chosen there."""

    async def apply_run(
        self,
        run: RunSnapshot,
        files: Iterable[str] | None = None,
        hunks: Mapping[str, Collection[int]] | None = None,
        *,
        reverse: bool = False,
        tree: str = "",
    ) -> bool:
        """Write what a run changed into the working tree, or take it out; return whether that was done."""
        work = self._bridge.engine.work
        title = f"Revert the changes of {name_of(run)}?" if reverse else f"Apply {name_of(run)}?"
        return await self._agreed(
            title,
            lambda: work.plan_apply(run, files, hunks, reverse=reverse, tree=tree),
            "Revert" if reverse else "Apply",
            lambda plan, _: work.apply(plan),
            f"Reverted {name_of(run)}" if reverse else f"Applied {name_of(run)}",
        )

    async def merge_run(self, run: RunSnapshot, *, pick: bool = False) -> bool:
        """Merge the work of a run, or make one commit of it; return whether that was done."""
        work = self._bridge.engine.work
        verb, done = ("Squash", "Squashed") if pick else ("Merge", "Merged")
        return await self._agreed(
            f"{verb} {name_of(run)}?",
            lambda: work.plan_merge(run, pick=pick),
            verb,
            work.merge,
            f"{done} {name_of(run)}",
        )

    async def commit_run(self, run: RunSnapshot) -> bool:
        """Commit what is uncommitted on the branch of a run; return whether that was done."""
        work = self._bridge.engine.work
        return await self._agreed(
            f"Commit {name_of(run)}?",
            lambda: work.plan_commit(run),
            "Commit",
            work.commit,
            f"Committed {name_of(run)}",
        )

    async def discard_run(self, run: RunSnapshot, others: Sequence[RunSnapshot] = ()) -> bool:
        """Remove worktree and branch of a run, and of others, by one question; return whether that was done."""
        work = self._bridge.engine.work
        runs = (run, *others)
        what = name_of(run) if not others else f"the work of {len(runs)} runs"

        def make() -> _Several:
            return _Several([work.plan_discard(one) for one in runs])

        def act(plan: _Several, _: str) -> Act:
            for one in plan.plans[:-1]:
                work.discard(one)
            return work.discard(plan.plans[-1])

        return await self._agreed(f"Discard {what}?", make, "Discard", act, f"Discarded {what}", harmless=False)

    async def choose_run(self, run: RunSnapshot, others: Sequence[RunSnapshot]) -> bool:
        """Apply what a run changed and discard what others did, by one question; return whether that was done."""
        work = self._bridge.engine.work
        return await self._agreed(
            f"Choose {name_of(run)} as the winner?",
            lambda: work.plan_choice(run, others),
            "Choose",
            lambda plan, _: work.choose(plan)[-1],
            f"Chose {name_of(run)} as the winner",
            harmless=False,
        )

    async def keep_run(self, run: RunSnapshot) -> None:
        """Keep what a run has committed by a branch whose name is asked for."""

        async def take(name: str) -> bool:
            act = await self._bridge.call(self._bridge.engine.work.keep, run, name.strip())
            await self._deck.undo.look()
            kept = one_line(str(act.data.get("name", "")), 80)
            self._say(f"Saved {name_of(run)} as branch {kept}. {self._key('undo')} undoes it.")
            return True

        hint = "This branch keeps the run's commits after the run is deleted. Empty: the run's own branch name."
        await self.app.push_screen(AskScreen(self._bridge, f"Save {name_of(run)} as branch", take, hint=hint))

    async def _agreed(
        self,
        title: str,
        make: Callable[[], P],
        yes: str,
        act: Callable[[P, str], Act],
        done: str,
        *,
        harmless: bool = True,
    ) -> bool:
        """Show a plan, and act on it where the operator agrees; return whether that was done."""

        async def load() -> P:
            return await self._bridge.call(make)

        said = await self.app.push_screen_wait(PlanScreen(title, load, yes, harmless=harmless))
        if said is None:
            return False
        plan, message = said
        try:
            await self._bridge.call(act, cast(P, plan), message)
        finally:
            await self._deck.undo.look()
        self._say(f"{done}. {self._key('undo')} undoes it.")
        return True


class _Several:
    """What discarding several would do."""

    def __init__(self, plans: Sequence[DiscardPlan]) -> None:
        self.plans = plans

    @property
    def words(self) -> str:
        return "\n\n".join(plan.words for plan in self.plans)
