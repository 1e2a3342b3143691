"""Cleaning up old runs: the dialog's text and questions, the deleted runs, and undo."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.config.settings import Retention
from subdeck.core.engine import Engine
from subdeck.core.errors import UsageError
from subdeck.core.project.session import SessionFile
from subdeck.core.project.trash import DAY, MB, Stock, Stored, choose
from subdeck.core.run.model import RunMeta
from subdeck.tui.app import SubdeckApp
from subdeck.tui.cleanup import _screen as clean_up
from subdeck.tui.cleanup._screen import CleanUpScreen, loss_text, now_line, read_rule, room_line, spared_line, written
from subdeck.tui.deck import screen as deck_screen
from subdeck.tui.dialogs.ask import ConfirmScreen
from textual.widgets import Input

from tests.factories import make_finished, make_meta, make_run, open_engine
from tests.repositories import commit, make_repository, make_worktree

from ..deck.test_hostile_text import raw_controls
from ..fake_engine import FakeEngine
from ..open_deck import Deck, opened


def finished(project_dir: Path, days: float = 0.0, *, task: str = "look", kilobytes: int = 0) -> RunMeta:
    project = paths.Project(str(project_dir))
    meta = make_finished(project, make_meta(task=task, preset="scout"))
    run_dir = Path(project.run_dir(meta.run_id))
    (run_dir / "stdout.log").write_bytes(b"x" * 1024 * kilobytes)
    then = time.time() - days * DAY
    os.utime(run_dir / paths.RESULT, (then, then))
    return meta


def there(project_dir: Path) -> set[str]:
    runs = project_dir / ".pi" / "subagents" / "runs"
    return {path.name for path in runs.iterdir() if paths.is_run_id(path.name)}


def in_trash(project_dir: Path) -> set[str]:
    trash = project_dir / ".pi" / "subagents" / "trash"
    return {path.name for path in trash.iterdir()} if trash.is_dir() else set()


@asynccontextmanager
async def deck_on(engine: Engine, *, readonly: bool = False, size: tuple[int, int] = (80, 24)) -> AsyncIterator[Deck]:
    """Run the app on a real engine until its first update has been shown."""
    app = SubdeckApp(engine, readonly=readonly)
    async with app.run_test(size=size, notifications=True) as pilot:
        deck = Deck(app, pilot)
        await deck.until(lambda: deck.main._begun, "the first update")
        yield deck


async def dialog_of(deck: Deck) -> CleanUpScreen:
    await deck.act("clean_up")
    await deck.until(lambda: isinstance(deck.app.screen, CleanUpScreen), "the dialog")
    screen = deck.app.screen
    assert isinstance(screen, CleanUpScreen)
    await deck.until(lambda: screen._stock is not None, "the look at the runs")
    return screen


async def test_leaving_before_the_runs_were_looked_at(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that arrives after the dialog is closed is dropped without an error."""
    looked, over = threading.Event(), threading.Event()

    def look_slowly(project: paths.Project) -> Stock:
        looked.wait(20)
        over.set()
        return Stock(())

    monkeypatch.setattr(clean_up, "read_stock", look_slowly)
    async with deck_on(open_engine(project_dir)) as deck:
        await deck.act("clean_up")
        await deck.until(lambda: isinstance(deck.app.screen, CleanUpScreen), "the dialog")
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        looked.set()
        await deck.until(over.is_set, "the look")
        await deck.until(lambda: not [w for w in deck.main.bridge.workers if w.name == "begun"], "the work to end")
        assert deck.toasts == []


async def write(deck: Deck, field: str, text: str) -> None:
    deck.app.screen.query_one(f"#{field}", Input).value = text
    await deck.pilot.pause()


async def test_it_shows_what_would_go(project_dir: Path) -> None:
    """As rules are typed, the dialog shows the number, size, oldest and newest of matching runs, and the total."""
    old = finished(project_dir, 40, task="find [bold]doors[/", kilobytes=3000)
    middle = finished(project_dir, 20, task="second")
    finished(project_dir)
    async with deck_on(open_engine(project_dir)) as deck:
        await dialog_of(deck)
        await deck.until_text("Now: 3 runs, ")
        assert "Trash: 0 runs, 0 B" in deck.screen_text
        assert "No runs match." in deck.screen_text
        await deck.type("30")
        await deck.until_text(f"{old.short_id} scout: find [bold]doors[/")
        assert "Would delete 1 run, " in deck.screen_text
        await write(deck, "days", "10")
        await deck.until_text(f"{middle.short_id} scout: second")
        assert "Would delete 2 runs, " in deck.screen_text
        assert "oldest: " in deck.screen_text and "newest: " in deck.screen_text
        assert "when the trash is emptied" in deck.screen_text
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert len(there(project_dir)) == 3


async def test_to_the_trash_and_back(project_dir: Path) -> None:
    """ctrl+s asks, y moves all to the trash, and one u restores all of them."""
    finished(project_dir, 40)
    finished(project_dir, 41)
    new = finished(project_dir)
    async with deck_on(open_engine(project_dir)) as deck:
        await dialog_of(deck)
        await write(deck, "days", "30")
        await deck.press("ctrl+s")
        await deck.until_text("Move these runs to the trash?")
        assert "2 runs with transcripts" in deck.screen_text
        await deck.press("y")
        await deck.until(lambda: there(project_dir) == {new.run_id}, "the runs to go")
        await deck.until(lambda: "Moved 2 runs to the trash. u restores them." in deck.toasts, "the word about it")
        assert len(in_trash(project_dir)) == 2
        await deck.press("u")
        await deck.until(lambda: len(there(project_dir)) == 3, "the runs to come back")


async def test_cancel_is_the_default_and_loses_nothing(project_dir: Path) -> None:
    """Enter at the question changes nothing and returns to the rules as typed."""
    finished(project_dir, 40)
    async with deck_on(open_engine(project_dir)) as deck:
        screen = await dialog_of(deck)
        await write(deck, "keep", "0")
        await deck.press("ctrl+s")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmScreen), "the question")
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is screen, "the dialog")
        assert screen.query_one("#keep", Input).value == "0"
        assert len(there(project_dir)) == 1
        await deck.press("ctrl+s")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmScreen), "the question again")


async def test_for_good(project_dir: Path) -> None:
    """Deleting permanently frees the space at once, with a warning, and leaves nothing to undo."""
    finished(project_dir, 40)
    async with deck_on(open_engine(project_dir)) as deck:
        screen = await dialog_of(deck)
        await write(deck, "days", "30")
        screen.query_one("#how").focus()
        await deck.press("space")
        await deck.until_text("immediately. These runs cannot be restored.")
        await deck.press("ctrl+s")
        await deck.until_text("Delete these runs permanently?")
        await deck.press("y")
        await deck.until(lambda: not there(project_dir), "the run to go")
        await deck.until(lambda: "Deleted 1 run permanently." in deck.toasts, "the word about it")
        assert in_trash(project_dir) == set()
        assert not deck.main.undo


async def test_what_is_spared_and_said(project_dir: Path) -> None:
    """Running, marked and waiting runs are kept; unread results are counted in the dialog."""
    engine = open_engine(project_dir)
    marked, failed, unread = (finished(project_dir, 40) for _ in range(3))
    going_on, lock = make_run(engine.project)
    async with deck_on(engine) as deck:
        deck.main.run_store.marked.add(marked.run_id)
        deck.main.run_store.unseen.add(failed.run_id)
        deck.main.run_store.unread.add(unread.run_id)
        await dialog_of(deck)
        await write(deck, "keep", "0")
        await deck.until_text("Would delete 1 run, ")
        words = " ".join(deck.screen_text.replace("│", " ").split())
        assert "Kept: 1 run not finished." in words
        assert "Kept: 2 runs selected or in need of you." in words
        assert "! You have not read the results of 1 run to be deleted." in words
        await deck.press("ctrl+s")
        await deck.until_text("You have not read the results of 1 run.")
        await deck.press("y")
        await deck.until(lambda: unread.run_id not in there(project_dir), "the one to go")
        assert there(project_dir) == {marked.run_id, failed.run_id, going_on.run_id}
    os.close(lock)


async def test_what_is_typed_wrong_is_said(project_dir: Path) -> None:
    """A field that is not a number is named and prevents the clean-up."""
    finished(project_dir, 40)
    async with deck_on(open_engine(project_dir)) as deck:
        screen = await dialog_of(deck)
        await write(deck, "keep", "a\x1b[2J lot")
        await deck.until_text('Keep: enter a whole number of runs or leave it empty (got "a lot")')
        await deck.press("ctrl+s")
        assert deck.app.screen is screen
        await write(deck, "keep", "")
        await deck.press("ctrl+s")
        await deck.until_text("Nothing to delete")
        assert raw_controls(deck) == []


async def test_one_that_is_held_stays(project_dir: Path) -> None:
    """A run that cannot be deleted is reported, and the others are deleted."""
    import fcntl

    held, other = finished(project_dir, 40), finished(project_dir, 41)
    engine = open_engine(project_dir)
    descriptor = os.open(os.path.join(engine.project.run_dir(held.run_id), paths.LOCK), os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    async with deck_on(engine) as deck:
        await dialog_of(deck)
        await write(deck, "days", "30")
        await deck.press("ctrl+s")
        await deck.until_text("Move these runs")
        await deck.press("y")
        await deck.until(lambda: any("still held" in toast for toast in deck.toasts), "the refusal")
        assert there(project_dir) == {held.run_id}
        assert in_trash(project_dir) == {other.run_id}
    os.close(descriptor)


async def test_the_settings_are_where_it_begins(project_dir: Path) -> None:
    """The fields start with the rules of the settings."""
    async with deck_on(open_engine(project_dir, retention={"days": 30, "keep": 500, "max_mb": 1.5})) as deck:
        screen = await dialog_of(deck)
        assert [field.value for field in screen.query(Input)] == ["30", "500", "1.5"]


@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
async def test_it_fits(project_dir: Path, size: tuple[int, int]) -> None:
    """The dialog fits the screen with all its possible texts."""
    for number in range(3):
        finished(project_dir, 40 + number, task="a task " * 50)
    trashed = finished(project_dir)
    engine = open_engine(project_dir)
    engine.delete([trashed.run_id])
    SessionFile(engine.project, "operator").add_run(finished(project_dir, 39))
    async with deck_on(engine, size=size) as deck:
        await dialog_of(deck)
        await write(deck, "days", "30")
        await deck.until_text("newest: ")
        words = " ".join(deck.screen_text.replace("│", " ").split())
        for text in (
            "Clean up old runs",
            "oldest: ",
            "Trash: 1 run",
            "Cancel",
            "^s clean up",
            "are removed in 24 h.",
        ):
            assert text in words


# --- automatic clean-up --------------------------------------------------------------------------------------------


async def test_the_settings_are_kept_at_the_start(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With retention set the app moves old runs to the trash once, reports it in one line, and u restores them."""
    monkeypatch.setattr(deck_screen, "STARTUP_CLEANUP_DELAY_S", 0.01)
    old, new = finished(project_dir, 40), finished(project_dir)
    async with deck_on(open_engine(project_dir, retention={"days": 30})) as deck:
        await deck.until(lambda: there(project_dir) == {new.run_id}, "the old run to go")
        await deck.until(
            lambda: any("1 old run (" in toast and "u restores" in toast for toast in deck.toasts), "a word"
        )
        await deck.press("u")
        await deck.until(lambda: there(project_dir) == {old.run_id, new.run_id}, "the run to come back")


async def test_the_trash_gives_up_what_is_old(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs deleted over a day ago are purged at the start; without retention no run is deleted."""
    monkeypatch.setattr(deck_screen, "STARTUP_CLEANUP_DELAY_S", 0.01)
    engine = open_engine(project_dir)
    old, trashed = finished(project_dir, 400), finished(project_dir)
    engine.delete([trashed.run_id])
    os.utime(os.path.join(engine.project.trash, trashed.run_id), (0, 0))
    async with deck_on(engine) as deck:
        await deck.until(lambda: not in_trash(project_dir), "the trash to be emptied")
        assert there(project_dir) == {old.run_id}
        assert deck.toasts == []


async def test_read_only_nothing_is_changed(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --readonly neither the start nor the key deletes anything."""
    monkeypatch.setattr(deck_screen, "STARTUP_CLEANUP_DELAY_S", 0.01)
    begun: list[object] = []
    monkeypatch.setattr(deck_screen.MainScreen, "_clean_up", lambda self: begun.append(self))
    finished(project_dir, 40)
    async with deck_on(open_engine(project_dir, retention={"days": 30}), readonly=True) as deck:
        await deck.act("clean_up")
        await deck.until_text("--readonly")
        assert (begun, len(there(project_dir))) == ([], 1)


async def test_a_disk_that_refuses_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A background error is shown and does not end the app."""
    monkeypatch.setattr(deck_screen, "STARTUP_CLEANUP_DELAY_S", 0.01)
    engine = FakeEngine()

    def refuse(names: object = None) -> None:
        raise OSError(30, "Read-only file system")

    engine.purge = refuse  # type: ignore[method-assign]
    async with opened(engine) as deck:
        await deck.until(lambda: any("Read-only file system" in toast for toast in deck.toasts), "a word about it")
        assert deck.app.is_running


# --- the words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "rule", "problem"),
    [
        (("", "", ""), Retention(), ""),
        ((" 30 ", "1,000", "1.5"), Retention(30, 1000, 1.5), ""),
        (("0", "0", "0"), Retention(0, 0, 0), ""),
        (("-1", "2", ""), Retention(keep=2), "Older than: enter a number of days"),
        (("nan", "", ""), Retention(), "Older than"),
        (("inf", "", ""), Retention(), "Older than"),
        (("", "1.5", ""), Retention(), "Keep: enter a whole number"),
        (("", "", "many"), Retention(), "At most: enter a number of megabytes"),
        (("1e99", "9" * 12, ""), Retention(), "Older than"),
    ],
)
def test_rules_are_read(fields: tuple[str, str, str], rule: Retention, problem: str) -> None:
    """An empty field sets no rule; a field that is not a number is refused with the expected form."""
    typed = dict(zip(("days", "keep", "max_mb"), fields, strict=True))
    if problem:
        with pytest.raises(UsageError, match=problem):
            read_rule(typed)
    else:
        assert read_rule(typed) == rule


def test_rules_are_written_as_they_are_read() -> None:
    """The fields show the settings in the form in which a user types them."""
    rule = Retention(0.5, 20, 2000)
    assert written(rule) == {"days": "0.5", "keep": "20", "max_mb": "2000"}
    assert read_rule(written(rule)) == rule
    assert read_rule(written(Retention())) == Retention()


def test_room_is_told_honestly() -> None:
    """The trash frees no space now, and its present content is shown with its purge time."""
    now = 1_800_000_000.0
    run = Stored("20260101-000000-00000a", 5 * MB, now - 40 * DAY)
    trashed = Stored("20260101-000000-00000b", MB, now - 20 * 3600)
    stock = Stock((run,), (trashed,))
    selection = choose(stock, Retention(days=30), now)
    assert now_line(stock) == "Now: 1 run, 5.0 MB. Trash: 1 run, 1.0 MB."
    said = now_line(replace(stock, worktrees=2, worktrees_size=2048, discarded=1, discarded_size=1024))
    assert "Including 2 worktrees, 2.0 KB. Also 1 discarded worktree, 1.0 KB, is kept for undo" in said
    assert room_line(stock, selection, now, purge=True) == "Frees 5.0 MB immediately. These runs cannot be restored."
    said = room_line(stock, selection, now, purge=False)
    assert said.startswith("Frees 5.0 MB in 24 h")
    assert said.endswith("The trash holds 1.0 MB; the oldest runs in it are removed in 4 h.")
    assert "u restores all of them" in loss_text(selection, purge=False, undo_key="u")
    assert "permanently" in loss_text(selection, purge=True, undo_key="u")
    assert spared_line(selection) == ""


async def test_work_that_is_nowhere_else_is_said_and_kept(project_dir: Path) -> None:
    """A clean-up keeps unmerged work with a note; deleting its run names branch and size, and undo restores it."""
    engine = open_engine(make_repository(project_dir))
    meta, tree = make_worktree(engine.project)
    commit(tree)
    async with deck_on(engine) as deck:
        await dialog_of(deck)
        await write(deck, "keep", "0")
        await deck.until_text("Kept: 1 run with unmerged work.")
        assert "Including 1 worktree, " in " ".join(deck.screen_text.replace("│", " ").split())
        await deck.press("escape")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        await deck.press("d")
        await deck.until_text("this unmerged work in worktrees is lost")
        assert f"subdeck/scout-{meta.short_id}: 1 file changed, 1 insertion(+)" in deck.screen_text
        await deck.press("y")
        await deck.until(lambda: not there(project_dir), "the run to go")
        await deck.until(lambda: bool(deck.main.undo), "the way back")
        await deck.press("u")
        await deck.until(lambda: there(project_dir) == {meta.run_id}, "the run to come back")
        assert (tree / "b.txt").exists()
