"""The effects of keys on runs, and the toasts of endings and errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from subdeck.core.config.settings import Notifications, Settings
from subdeck.core.errors import RunBusy, SubdeckError
from subdeck.core.run.enumerations import WorktreeFrom
from subdeck.core.run.model import PresetSource, Tools
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.runners.tmux import AttachInfo
from subdeck.core.spec.request import RunRequest
from subdeck.core.work.operation import ActKind
from subdeck.tui.deck._toasts import SECONDS, Toasts
from subdeck.tui.dialogs.ask import ConfirmScreen
from subdeck.tui.terminal import handover
from subdeck.tui.terminal.handover import hand_over
from subdeck.tui.toasts import TOASTS_ON_SCREEN, ToastList
from textual.geometry import Size

from ..fake_engine import FakeEngine, a_run, run_id
from ..open_deck import opened


async def test_stop_is_soft() -> None:
    """`x` stops the highlighted run softly, after a question if it is expensive."""
    engine = FakeEngine(a_run(1), a_run(2))
    async with opened(engine) as deck:
        await deck.press("j", "x", "y")
        await deck.until(lambda: engine.stopped == [((run_id(1),), False)], "the engine to be asked")
        await deck.until(lambda: any("Stopping" in toast for toast in deck.toasts), "a word about it")


async def test_kill_asks_and_cancel_is_the_default() -> None:
    """`X` asks; Enter cancels, `y` kills."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        await deck.press("X")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmScreen), "the question")
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert engine.stopped == []
        await deck.press("X")
        await deck.until(lambda: isinstance(deck.app.screen, ConfirmScreen), "the question")
        await deck.press("y")
        await deck.until(lambda: engine.stopped == [((run_id(1),), True)], "the kill")


async def test_delete_and_undo() -> None:
    """`d` asks before it deletes a finished run, `u` restores and selects it."""
    engine = FakeEngine(a_run(1, "completed"), a_run(2, "completed"))
    async with opened(engine) as deck:
        await deck.press("d")
        await deck.until_text("Delete this run?")
        await deck.press("y")
        await deck.until(lambda: deck.main.runs.row_count == 1, "the run to go")
        assert engine.deleted == [run_id(2)]
        await deck.press("u")
        await deck.until(lambda: deck.main.runs.row_count == 2, "the run to come back")
        await deck.until(lambda: deck.main.run.run_id == run_id(2), "its selection")
        await deck.press("u")
        await deck.until(lambda: "Nothing to undo." in deck.toasts, "the refusal")


async def test_undo_twice_at_once() -> None:
    """Two keys in one packet undo one deletion once, and the second is refused."""
    engine = FakeEngine(a_run(1, "completed"), a_run(2, "completed"))
    async with opened(engine) as deck:
        await deck.press("d")
        await deck.until_text("Delete this run?")
        await deck.press("y")
        await deck.until(lambda: deck.main.runs.row_count == 1, "the run to go")
        deck.main.action_act("undo")
        deck.main.action_act("undo")
        await deck.until(lambda: deck.main.runs.row_count == 2, "the run to come back")
        await deck.until(lambda: "Nothing to undo." in deck.toasts, "the refusal")
        assert not [toast for toast in deck.toasts if "pop" in toast]


async def test_what_does_not_come_back_is_told() -> None:
    """If the trash has purged some of the runs, undo reports how many were restored."""
    engine = FakeEngine(a_run(1, "completed"), a_run(2, "completed"))
    async with opened(engine) as deck:
        await deck.act("mark_all")
        await deck.press("d")
        await deck.until_text("Delete 2 runs?")
        await deck.press("y")
        await deck.until(lambda: deck.main.runs.row_count == 0, "the runs to go")
        engine.lost = (run_id(1),)
        await deck.press("u")
        await deck.until(lambda: any("1 of 2 restored" in toast for toast in deck.toasts), "the word about it")
        assert deck.main.runs.row_count == 1


async def test_what_changed_files_is_taken_back_after_asking() -> None:
    """Acts of other windows are found when the app gets the focus; `u` names one, and undoes it only after a yes."""
    engine = FakeEngine(a_run(1, "completed"))
    async with opened(engine) as deck:
        engine.act(ActKind.APPLY, "repo-scout 000001")
        deck.app.app_focus = False
        deck.app.app_focus = True
        await deck.until(lambda: bool(deck.main.undo), "the look")
        await deck.press("u")
        await deck.until_text("Applying repo-scout 000001, just now.")
        await deck.press("enter")
        await deck.until(lambda: deck.app.screen is deck.main, "the deck")
        assert 1 == len(engine.acts)
        await deck.press("u", "y")
        await deck.until(lambda: "Undid applying repo-scout 000001" in deck.toasts, "the word about it")
        assert [] == engine.acts and not deck.main.undo


async def test_a_running_run_is_stopped_before_it_is_deleted() -> None:
    """The question says that the run is not finished; yes stops it, waits for its end and deletes it."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        await deck.press("d")
        await deck.until_text("It is not finished and is stopped first.")
        await deck.press("y")
        await deck.until(lambda: engine.deleted == [run_id(1)], "the deletion")
        assert engine.stopped == [((run_id(1),), False)]


async def test_a_run_that_does_not_end_is_not_deleted() -> None:
    """A run that cannot be stopped is not deleted, and the message says what to do."""
    engine = FakeEngine(a_run(1))
    engine.deaf = True
    async with opened(engine) as deck:
        await deck.press("d")
        await deck.until_text("Delete this run?")
        await deck.press("y")
        await deck.until(lambda: any("did not stop in time" in toast for toast in deck.toasts), "the message")
        assert engine.deleted == []


async def test_the_question_names_what_is_lost(tmp_path: Path) -> None:
    """The question names size and conversation before a run is deleted."""
    log = tmp_path / "transcript.log"
    log.write_bytes(b"x" * 2000)
    engine = FakeEngine(a_run(1, "completed", meta_session_path="/s.jsonl"))
    engine.files = {"transcript.log": str(log), "gone": str(tmp_path / "gone")}
    async with opened(engine, (80, 24)) as deck:
        await deck.press("d")
        await deck.until_text("(2.0 KB)")
        assert "so you cannot follow up" in " ".join(deck.screen_text.split())


async def test_rerun_asks_for_the_same() -> None:
    """`r` launches the same task, model, runner and directory again, with the original run's id."""
    run = a_run(1, "failed", meta_runner="tmux")
    engine = FakeEngine(run)
    async with opened(engine) as deck:
        await deck.press("r")
        await deck.until(lambda: engine.launched, "the launch")
        assert engine.launched == [
            RunRequest(
                task="task 1",
                preset="repo-scout",
                model="fake/test",
                cwd="/src/shop",
                agent="offline",
                runner="tmux",
                check="",
                worktree=WorktreeFrom.NONE,
                rerun=run.run_id,
            )
        ]


async def test_rerun_of_an_ad_hoc_run_has_its_prompt_and_tools() -> None:
    """Tools and prompt of a one-off run come from the run itself."""
    run = a_run(
        1,
        "failed",
        meta_preset="",
        meta_preset_source=PresetSource.ADHOC,
        meta_system_prompt="Be brief.",
        meta_tools=Tools("allow", ("read",)),
    )
    engine = FakeEngine(run)
    async with opened(engine) as deck:
        await deck.press("r")
        await deck.until(lambda: engine.launched, "the launch")
        request = engine.launched[0]
        assert (request.preset, request.prompt, request.tools) == (None, "Be brief.", ("read",))


async def test_copy_run_id() -> None:
    """`y` puts the whole run id on the clipboard."""
    async with opened(FakeEngine(a_run(1))) as deck:
        await deck.press("y")
        assert deck.app.clipboard == run_id(1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RunBusy("it is [bold]busy[/", hint="wait"), "it is [bold]busy[/"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (RuntimeError("13"), "an unexpected error (RuntimeError)"),
    ],
)
async def test_errors_become_toasts(error: Exception, reason: str) -> None:
    """Every error of an engine call is reported as a sentence, and the app continues."""
    engine = FakeEngine(a_run(1))
    engine.stop_error = error
    async with opened(engine) as deck:
        await deck.press("x", "y")
        await deck.until(lambda: deck.toasts, "the toast")
        assert reason in deck.toasts[0]
        assert deck.app.is_running


async def test_an_end_is_told_once() -> None:
    """Each ending is one toast with its outcome, and one claim in the session."""
    engine = FakeEngine(a_run(1), a_run(2))
    async with opened(engine) as deck:
        engine.tell(a_run(1, "failed", message="401 [bold]key"))
        await deck.until(lambda: deck.toasts, "the toast")
        assert deck.toasts == ["✗ failed  repo-scout ▸ task 1\nmodel_error: 401 [bold]key"]
        assert engine.claimed == [run_id(1)]
        engine.tell(a_run(1, "failed", message="401 [bold]key"))
        engine.tell(a_run(2, activity="goes on"))
        await deck.until_text("goes on")
        assert len(deck.toasts) == 1


async def test_many_ends_are_one_toast() -> None:
    """Runs that finish together share a toast."""
    engine = FakeEngine(*(a_run(number) for number in range(1, 41)))
    async with opened(engine) as deck:
        engine.tell(*(a_run(number, "completed", message=f"fine {number}") for number in range(1, 11)))
        await deck.until(lambda: deck.toasts, "the toast")
        assert len(deck.toasts) == 1
        assert "and 6 runs more" in deck.toasts[0]


class FakeScreen:
    """Records toasts and timers, for a test to check and to fire."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.app = SimpleNamespace(screen=self, size=Size(120, 30))

    def notify(self, text: str, **_: object) -> None:
        self.said.append(text)

    def set_timer(self, seconds: float, callback: Callable[[], None]) -> SimpleNamespace:
        self.timers.append((seconds, callback))
        return SimpleNamespace()


def test_never_more_than_three_toasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With three toasts on the screen further endings wait, and share one when a toast has closed."""
    screen, now = FakeScreen(), [100.0]
    monkeypatch.setattr("subdeck.tui.deck._toasts.monotonic", lambda: now[0])
    toasts = Toasts(screen, Notifications(), ToastList())  # type: ignore[arg-type]
    for number in range(1, 7):
        toasts.report([a_run(number, "completed")])
        if number <= TOASTS_ON_SCREEN + 1:
            screen.timers.pop()[1]()
    assert len(screen.said) == TOASTS_ON_SCREEN
    assert [seconds for seconds, _ in screen.timers] == [SECONDS]
    now[0] += SECONDS
    screen.timers.pop()[1]()
    assert screen.said[TOASTS_ON_SCREEN].count("✓ completed") == 3


async def test_the_run_looked_at_ends_silently() -> None:
    """The ending of a run with a focused transcript makes no toast, but is claimed."""
    engine = FakeEngine(a_run(1), a_run(2))
    async with opened(engine) as deck:
        await deck.press("enter")
        await deck.until(lambda: deck.main.transcript.has_focus, "the transcript to have the keys")
        engine.tell(a_run(2, "failed"))
        await deck.until_text("✗ repo-scout")
        engine.tell(a_run(1, "completed"))
        await deck.until(lambda: deck.toasts, "the toast of the other")
        assert deck.toasts == ["✓ completed  repo-scout ▸ task 1\n–"]
        assert engine.claimed == [run_id(2), run_id(1)]
        assert not deck.main.run_store.unseen


async def test_a_run_in_sight_is_told_in_few_words() -> None:
    """If a run's transcript is on the screen, the toast for its ending is one short line."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        assert deck.main.runs.has_focus
        engine.tell(a_run(1, "completed", message="a long answer " * 10))
        await deck.until(lambda: deck.toasts, "the toast")
        assert deck.toasts == ["✓ completed  repo-scout ▸ task 1"]


@pytest.mark.parametrize("size", [(80, 24), (120, 30)])
async def test_toasts_leave_the_newest_lines_free(size: tuple[int, int]) -> None:
    """Toasts appear above the transcript's last lines, which the user reads."""
    engine = FakeEngine(a_run(1), a_run(2))
    async with opened(engine, size) as deck:
        engine.tell(a_run(1, "failed", message="401 " * 30))
        await deck.until(lambda: deck.app.screen.query("Toast"), "the toast")
        await deck.pilot.pause()
        toast = deck.app.screen.query_one("Toast").region
        assert toast.height and not toast.overlaps(deck.main.transcript.region)
        assert deck.app.screen.region.contains_region(toast)


@pytest.mark.parametrize(("bell", "toasts"), [(True, True), (True, False), (False, True)])
async def test_the_bell_rings_on_request(monkeypatch: pytest.MonkeyPatch, bell: bool, toasts: bool) -> None:
    """`notifications.bell` rings once for runs that finish together; toasts can be off beside it."""
    engine = FakeEngine(a_run(1), a_run(2), a_run(3))
    engine.settings = Settings(notifications=Notifications(toasts=toasts, bell=bell))
    async with opened(engine) as deck:
        rung: list[int] = []
        monkeypatch.setattr(deck.app, "bell", lambda: rung.append(1))
        engine.tell(a_run(1, "completed"), a_run(2, "failed"))
        await deck.until_text("✗ repo-scout")
        await deck.until(lambda: bool(deck.toasts) == toasts, "the toast, if any")
        assert len(rung) == bell


async def test_what_ended_unseen_is_summed_up() -> None:
    """At the start one line sums up runs that finished without the app, and claims them."""
    runs = (a_run(1, "completed"), a_run(2, "failed"), a_run(3, "completed"))
    engine = FakeEngine(*runs)
    engine.untold = runs
    async with opened(engine) as deck:
        await deck.until(lambda: deck.toasts, "the line")
        assert deck.toasts == ["While you were away, 3 runs finished: 2 completed, 1 failed."]
        assert engine.claimed == [run_id(1), run_id(2), run_id(3)]
        await deck.until(lambda: deck.main.action_context.unseen == 3, "them to be news")


async def test_an_end_during_the_first_look_is_told_once() -> None:
    """Endings found both at the start and in the first update are reported once."""
    asked_after_look: list[bool] = []

    class Ending(FakeEngine):
        def unseen(self) -> tuple[RunSnapshot, ...]:
            asked_after_look.append(self._queue.empty())
            self.tell(a_run(1, "failed"))
            return (a_run(1, "failed"),)

    async with opened(Ending(a_run(1))) as deck:
        await deck.until_text("✗ repo-scout")
        await deck.until(lambda: deck.toasts, "the line")
        told = "While you were away, 1 run finished: 1 failed.\n✗ failed  repo-scout ▸ task 1"
        assert ([True], [told]) == (asked_after_look, deck.toasts)


async def test_attach_to_a_process_run_opens_its_transcript() -> None:
    """A run without a pane is shown zoomed instead of an error."""
    engine = FakeEngine(a_run(1))
    async with opened(engine) as deck:
        await deck.press("a")
        await deck.until(lambda: deck.main.action_context.zoomed, "the zoom")
        assert deck.main.transcript.has_focus
        await deck.press("escape")
        await deck.until(lambda: deck.main.runs.has_focus, "the list from which it was opened")
        assert not deck.main.action_context.zoomed


async def test_attach_hands_the_terminal_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """The detach key is shown before the first time; then the engine's command gets the terminal."""
    engine = FakeEngine(a_run(1, meta_runner="tmux"))
    engine.attach = AttachInfo(("tmux", "-L", "x", "attach"), ("alt+a", "d"))
    handed: list[tuple[str, ...]] = []
    monkeypatch.setattr(handover, "hand_over", lambda app, argv: handed.append(tuple(argv)) or "")
    async with opened(engine, (80, 24)) as deck:
        await deck.press("a")
        await deck.until_text("alt+a, then d")
        assert handed == []
        await deck.press("enter")
        await deck.until(lambda: len(handed) == 1, "the terminal to be handed over")
        await deck.press("a")
        await deck.until(lambda: len(handed) == 2, "the second time without a word")
        assert handed[0] == ("tmux", "-L", "x", "attach")


async def test_attach_to_a_gone_pane_is_told() -> None:
    """If the pane no longer exists, a toast reports it."""
    engine = FakeEngine(a_run(1, meta_runner="tmux"))
    engine.attach = SubdeckError("the pane is gone", hint="read the transcript")
    async with opened(engine) as deck:
        await deck.press("a")
        await deck.until(lambda: deck.toasts, "the toast")
        assert "the pane is gone" in deck.toasts[0]


async def test_libraries_find_an_encoding() -> None:
    """While the app runs its stdout has the `encoding` that libtmux reads on import."""
    async with opened(FakeEngine()) as deck:
        assert getattr(deck.app._capture_stdout, "encoding", "") == "utf-8"


async def test_handing_over_never_raises() -> None:
    """If the terminal cannot be lent or the program is missing, an error message is returned."""
    async with opened(FakeEngine(a_run(1))) as deck:
        assert "Cannot start another program" in hand_over(deck.app, [sys.executable, "-c", ""])


async def test_a_fault_of_a_worker_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A background error is in a toast, and with its traceback in the file named by SUBDECK_LOG."""
    log = tmp_path / "faults.log"
    monkeypatch.setenv("SUBDECK_LOG", str(log))
    engine = FakeEngine(a_run(1))

    def breaks(_names: object, **_more: object) -> tuple[str, ...]:
        raise ZeroDivisionError("a fault of ours")

    engine.stop = breaks  # type: ignore[method-assign]
    async with opened(engine) as deck:
        await deck.press("2", "x", "y")
        await deck.until(
            lambda: any("an unexpected error (ZeroDivisionError)" in toast for toast in deck.toasts), "the toast"
        )
    written = log.read_text()
    assert "ZeroDivisionError: a fault of ours" in written and "in breaks" in written
