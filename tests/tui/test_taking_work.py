"""The dialogs by which the work of a run is taken over: they say what will be done before it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs
from subdeck.core.errors import SubdeckError
from subdeck.core.git.merges import Conflict
from subdeck.core.run.changes import ChangedFile, FileStatus
from subdeck.core.work.discarding import DiscardPlan
from subdeck.core.work.merging import MergePlan
from subdeck.core.work.taking import ApplyPlan
from subdeck.tui.commands.apply import TakingCommands
from subdeck.tui.dialogs import plan as plans

from .deck import opened
from .fake_engine import FakeEngine, a_run, run_id

FILE = ChangedFile("src/a.py", FileStatus.MODIFIED, 3, 1)
APPLY = ApplyPlan(run_id=run_id(1), run="scout 1", root="/src/shop", files=(FILE,), now="a", wanted="b")
MERGE = MergePlan(run_id=run_id(1), run="scout 1", root="/src/shop", branch="main", files=(FILE,), message="Proposed")


async def test_the_directory_of_a_plan(home: Path) -> None:
    """A directory below your home is shown with `~`."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans["apply"] = structs.replace(APPLY, root=str(home / "src" / "shop"))
    async with opened(engine) as deck:
        taking = TakingCommands(deck.main)
        taking.spawn(taking.apply_run, engine.runs[run_id(1)])
        await deck.until_text("Writes the changes of scout 1 into ~/src/shop: 1 file +3 −1")


async def test_applying() -> None:
    """The plan is shown; yes does just that, and what takes it back is named."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans["apply"] = APPLY
    async with opened(engine) as deck:
        taking = TakingCommands(deck.main)
        taking.spawn(taking.apply_run, engine.runs[run_id(1)], ["src"], {"src/a.py": [2]}, tree="t")
        await deck.until_text("Writes the changes of scout 1 into /src/shop: 1 file +3 −1")
        await deck.until_text("src/a.py")
        assert ([("apply", run_id(1), ["src"], {"src/a.py": [2]}, False, "t")], []) == (
            engine.work.asked,
            engine.work.done,
        )
        await deck.press("y")
        await deck.until(lambda: engine.work.done == [("apply", APPLY, "")], "the act")
        await deck.until(lambda: any("u undoes it" in toast for toast in deck.toasts), "the word")


async def test_what_cannot_be_applied_is_only_read() -> None:
    """Conflicts are named, and no key does it all the same."""
    engine = FakeEngine(a_run(1, "completed"))
    conflict = Conflict("src/a.py", "Merge conflict in src/a.py")
    engine.work.plans["apply"] = ApplyPlan(
        run_id=run_id(1), run="scout 1", root="/", conflicts=(conflict,), refusal="1 file does not: src/a.py"
    )
    async with opened(engine) as deck:
        taking = TakingCommands(deck.main)
        taking.spawn(taking.apply_run, engine.runs[run_id(1)])
        await deck.until_text("1 file does not: src/a.py.")
        await deck.press("y", "enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert [] == engine.work.done


async def test_the_message_of_a_merge_is_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is shown, and is what the editor leaves; an empty one is refused."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans["merge"] = MERGE
    edits = iter([(" \n", ""), ("Edited\n", "")])
    monkeypatch.setattr(plans, "edit_text", lambda app, text, name: next(edits))
    async with opened(engine) as deck:
        taking = TakingCommands(deck.main)
        taking.spawn(taking.merge_run, engine.runs[run_id(1)], pick=True)
        await deck.until_text("Proposed")
        await deck.press("e")
        await deck.until_text("Enter a commit message.")
        await deck.press("e")
        await deck.until_text("Edited")
        await deck.press("enter")
        await deck.until(lambda: engine.work.done == [("merge", MERGE, "Edited")], "the act")


async def test_discarding_several_asks_once() -> None:
    """One question for all; Enter keeps them."""
    engine = FakeEngine(a_run(1, "completed"), a_run(2, "completed"))
    plan = DiscardPlan(run_id=run_id(1), run="scout", branch="b", words="Removes the worktree.", directory="/")
    engine.work.plans["discard"] = plan
    async with opened(engine) as deck:
        taking = TakingCommands(deck.main)
        for key, count in (("enter", 0), ("y", 2)):
            taking.spawn(taking.discard_run, engine.runs[run_id(1)], [engine.runs[run_id(2)]])
            await deck.until_text("Discard the work of 2 runs?")
            await deck.until_text("Removes the worktree.")
            await deck.press(key)
            await deck.until(lambda: deck.app.screen is deck.main, "the deck")
            await deck.until(lambda: len(engine.work.done) == count, "what was done")  # noqa: B023


async def test_keeping_asks_for_a_name_and_says_what_went_wrong() -> None:
    """The branch gets the name that was typed; what cannot be planned closes the dialog with the reason."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans["commit"] = SubdeckError("nothing is uncommitted")
    async with opened(engine) as deck:
        taking = TakingCommands(deck.main)
        taking.spawn(taking.keep_run, engine.runs[run_id(1)])
        await deck.until_text("as branch")
        await deck.press(*"mine", "enter")
        await deck.until(lambda: engine.work.done == [("keep", run_id(1), "mine")], "the act")
        taking.spawn(taking.commit_run, engine.runs[run_id(1)])
        await deck.until(lambda: any("nothing is uncommitted" in toast for toast in deck.toasts), "the reason")


async def test_a_long_plan_on_a_small_screen() -> None:
    """All is within reach: the text scrolls, the buttons stay."""
    engine = FakeEngine(a_run(1, "completed"))
    engine.work.plans["merge"] = structs.replace(MERGE, message="\n".join(f"line {n}" for n in range(60)))
    async with opened(engine, (60, 16)) as deck:
        taking = TakingCommands(deck.main)
        taking.spawn(taking.merge_run, engine.runs[run_id(1)])
        await deck.until_text("Merges scout 1")
        for name in ("#edit", "#no", "#yes"):
            assert deck.app.screen.region.contains_region(deck.app.screen.query_one(name).region)
