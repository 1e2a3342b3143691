"""The dialogs for applying a run's work: they show the plan before it is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs
from subdeck.core.errors import SubdeckError
from subdeck.core.git.merges import Conflict
from subdeck.core.run.changes import ChangedFile, FileStatus
from subdeck.core.work.apply import ApplyPlan
from subdeck.core.work.discard import DiscardPlan
from subdeck.core.work.merge import MergePlan
from subdeck.core.work.operation import APPLY, COMMIT, DISCARD, MERGE, SAVE, SQUASH
from subdeck.tui.changes.operations import OperationCommands
from subdeck.tui.dialogs import plan as plans

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened

FILE = ChangedFile("src/a.py", FileStatus.MODIFIED, 3, 1)
APPLIES = ApplyPlan(run_id=run_id(1), run="scout 1", root="/src/shop", files=(FILE,), now="a", wanted="b")
MERGES = MergePlan(run_id=run_id(1), run="scout 1", root="/src/shop", branch="main", files=(FILE,), message="Proposed")


async def test_the_directory_of_a_plan(home: Path) -> None:
    """A directory below your home is shown with `~`."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans[APPLY] = structs.replace(APPLIES, root=str(home / "src" / "shop"))
    async with opened(engine) as deck:
        operations = OperationCommands(deck.main)
        operations.spawn(operations.carry_out, APPLY, engine.runs[run_id(1)])
        await deck.until_text("Writes the changes of scout 1 into ~/src/shop: 1 file +3 −1")


async def test_applying() -> None:
    """The plan is shown, a yes executes it, and the toast names the way to undo it."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans[APPLY] = APPLIES
    async with opened(engine) as deck:
        operations = OperationCommands(deck.main)
        run, options = engine.runs[run_id(1)], {"files": ["src"], "hunks": {"src/a.py": [2]}, "tree": "t"}
        operations.spawn(operations.carry_out, APPLY, run, **options)
        await deck.until_text("Writes the changes of scout 1 into /src/shop: 1 file +3 −1")
        await deck.until_text("src/a.py")
        assert ([(APPLY, run_id(1), options)], []) == (engine.work.asked, engine.work.done)
        await deck.press("y")
        await deck.until(lambda: engine.work.done == [(APPLY, APPLIES, "")], "the act")
        await deck.until(lambda: any("u undoes it" in toast for toast in deck.toasts), "the word")


async def test_what_cannot_be_applied_is_only_read() -> None:
    """Conflicts are named, and no key applies them."""
    engine = FakeEngine(a_run(1, "completed"))
    conflict = Conflict("src/a.py", "Merge conflict in src/a.py")
    engine.work.plans[APPLY] = ApplyPlan(
        run_id=run_id(1), run="scout 1", root="/", conflicts=(conflict,), refusal="1 file does not: src/a.py"
    )
    async with opened(engine) as deck:
        operations = OperationCommands(deck.main)
        operations.spawn(operations.carry_out, APPLY, engine.runs[run_id(1)])
        await deck.until_text("1 file does not: src/a.py.")
        await deck.press("y", "enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert [] == engine.work.done


async def test_the_message_of_a_merge_is_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge uses the message from the editor, and refuses an empty one."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans[SQUASH] = structs.replace(MERGES, operation=SQUASH)
    edits = iter([(" \n", ""), ("Edited\n", "")])
    monkeypatch.setattr(plans, "edit_text", lambda app, text, name: next(edits))
    async with opened(engine) as deck:
        operations = OperationCommands(deck.main)
        operations.spawn(operations.carry_out, SQUASH, engine.runs[run_id(1)])
        await deck.until_text("Proposed")
        await deck.press("e")
        await deck.until_text("Enter a commit message.")
        await deck.press("e")
        await deck.until_text("Edited")
        await deck.press("enter")
        await deck.until(lambda: engine.work.done == [(SQUASH, engine.work.plans[SQUASH], "Edited")], "the act")


async def test_discarding_several_asks_once() -> None:
    """Discarding several runs asks once, and Enter keeps them."""
    engine = FakeEngine(a_run(1, "completed"), a_run(2, "completed"))
    plan = DiscardPlan(run_id=run_id(1), run="scout", branch="b", lines=("Removes the worktree.",), directory="/")
    engine.work.plans[DISCARD] = plan
    async with opened(engine) as deck:
        operations = OperationCommands(deck.main)
        for key, count in (("enter", 0), ("y", 2)):
            operations.spawn(operations.carry_out, DISCARD, engine.runs[run_id(1)], engine.runs[run_id(2)])
            await deck.until_text("Discard the work of 2 runs?")
            await deck.until_text("Removes the worktree.")
            await deck.press(key)
            await deck.until(lambda: deck.app.screen is deck.main, "the deck")
            await deck.until(lambda: len(engine.work.done) == count, "what was done")  # noqa: B023


async def test_keeping_asks_for_a_name_and_says_what_went_wrong() -> None:
    """The branch gets the typed name; if it cannot be planned, the dialog closes with the reason."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans[COMMIT] = SubdeckError("nothing is uncommitted")
    async with opened(engine) as deck:
        operations = OperationCommands(deck.main)
        operations.spawn(operations.save, engine.runs[run_id(1)])
        await deck.until_text("as branch")
        await deck.press(*"mine", "enter")
        await deck.until(
            lambda: [(SAVE, "mine")] == [(what, plan.branch) for what, plan, _ in engine.work.done], "the act"
        )
        operations.spawn(operations.carry_out, COMMIT, engine.runs[run_id(1)])
        await deck.until(lambda: any("nothing is uncommitted" in toast for toast in deck.toasts), "the reason")


async def test_a_long_plan_on_a_small_screen() -> None:
    """A long plan fits a small screen: the text scrolls, the buttons stay."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans[MERGE] = structs.replace(MERGES, message="\n".join(f"line {n}" for n in range(60)))
    async with opened(engine, (60, 16)) as deck:
        operations = OperationCommands(deck.main)
        operations.spawn(operations.carry_out, MERGE, engine.runs[run_id(1)])
        await deck.until_text("Merges scout 1")
        for name in ("#edit", "#no", "#yes"):
            assert deck.app.screen.region.contains_region(deck.app.screen.query_one(name).region)
