"""The git operations on the runs' work: each shows its plan first, and can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.text.plain import one_line
from ...core.work.operation import SAVE, Operation, Plan
from ..commands import Commands, name_of
from ..dialogs.ask import AskScreen
from ..dialogs.plan import PlanScreen

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot


class OperationCommands(Commands):
    """Called by other screens with the run and the options of an operation."""

    async def carry_out(self, operation: Operation, run: RunSnapshot, /, *more: RunSnapshot, **options: Any) -> bool:
        """Show the plan of an operation on one or several runs in one question, and do it if you agree; return whether
        it was done.
        """
        work = self._bridge.engine.work
        runs = (run, *more)
        what = name_of(run) if not more else f"the work of {len(runs)} runs"

        async def load() -> list[Plan]:
            return await self._bridge.call(lambda: [work.plan(operation, each, **options) for each in runs])

        agreed = await self.app.push_screen_wait(PlanScreen(operation, what, load))
        if agreed is None:
            return False
        plans, message = agreed

        def act() -> None:
            for plan in plans:
                work.act(plan, message)

        try:
            await self._bridge.call(act)
        finally:
            await self._deck.undo.look()
        self._say(f"{operation.done.format(what)}. {self._key('undo')} undoes it.")
        return True

    async def save(self, run: RunSnapshot) -> None:
        """Ask for a branch name, and save the run's commits as that branch."""
        work = self._bridge.engine.work

        async def take(name: str) -> bool:
            plan = await self._bridge.call(lambda: work.plan(SAVE, run, name=name.strip()))
            await self._bridge.call(work.act, plan)
            await self._deck.undo.look()
            branch = one_line(plan.branch, 80)
            self._say(f"Saved {name_of(run)} as branch {branch}. {self._key('undo')} undoes it.")
            return True

        hint = "This branch keeps the run's commits after the run is deleted. Empty: the run's own branch name."
        await self.app.push_screen(AskScreen(self._bridge, f"Save {name_of(run)} as branch", take, hint=hint))
