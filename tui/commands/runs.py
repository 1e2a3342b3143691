"""The actions on runs that are there: on all that are marked, else on the highlighted one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from ...core.errors import RunBusy
from ...core.project.retention import Cleaned, clean
from ...core.run.describe import runs_word, size_text
from ...core.run.model import RunnerKind
from ...core.text.plain import one_line
from ..actions import KeyContext, keys_line
from ..deck.protocol import DeckView
from ..deck.undo import Deletion, deletion_of
from ..runs.filter_line import FilterLine
from ..runs.listing import next_of
from ..terminal.handover import NO_TERMINAL, hand_over
from .base import Commands, first_of, name_of

if TYPE_CHECKING:
    from ...core.engine import Engine
    from ...core.run.model import RunSnapshot
    from ...core.runners.base import AttachInfo

NAMED = 5
"""Runs that a question names; more are counted."""
PATIENCE = 10.0
"""Seconds beyond the grace that a run may take to end before it is deleted."""

Runs = Sequence["RunSnapshot"]


class RunCommands(Commands):
    """Stop, kill and delete runs, and bring them back."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {
            "stop": self._stop_targets,
            "kill": lambda: self._with_targets(self._kill),
            "delete": lambda: self._with_targets(self._delete),
            "undo": lambda: self._spawn(self._undo, deck.undo.pop()),
            "copy_id": self.copy_ids,
        }

    def copy_ids(self) -> None:
        ids = [run.run_id for run in self._deck.runs.targets]
        self._app.copy_to_clipboard("\n".join(ids))
        self._say(f"Copied {ids[0] if len(ids) == 1 else f'{len(ids)} run ids'}")

    def _with_targets(self, command: Callable[[Runs], Coroutine[None, None, None]]) -> None:
        if runs := self._deck.runs.targets:
            self._acts_on(runs)
            self._spawn(command, runs)

    def _stop_targets(self) -> None:
        """Ask where it is about several only."""
        if len(runs := self._deck.runs.targets) == 1:
            self._acts_on(runs)
            self._spawn(self._stop, runs)
        else:
            self._with_targets(self._stop)

    async def _undo(self, deletion: Deletion) -> None:
        await deletion.restore()
        self._say(f"Brought back {deletion.what}")

    async def _stop(self, runs: Runs) -> None:
        active = [run for run in runs if not run.has_ended]
        several = f"{name_list(active)}\n\nEach keeps what it has done."
        if len(active) > 1 and not await self._confirmed(f"Stop {runs_word(len(active))}?", several, "Stop"):
            return
        told = await self._bridge.call(self._bridge.engine.stop, [run.run_id for run in active])
        self._say(f"Stopping {who(active)}" if told else f"{who(runs)} had already ended")

    async def _kill(self, runs: Runs) -> None:
        active = [run for run in runs if not run.has_ended]
        if not active:
            self._say(f"{who(runs)} had already ended")
            return
        question = "Kill this run?" if len(active) == 1 else f"Kill {runs_word(len(active))}?"
        detail = f"{name_list(active)}\n\nThe agent and all its processes end at once."
        if await self._confirmed(question, detail, "Kill"):
            await self._bridge.call(self._bridge.engine.stop, [run.run_id for run in active], force=True)
            self._say(f"Killing {who(active)}")

    async def _delete(self, runs: Runs) -> None:
        async def loss() -> str:
            return what_is_lost(runs, await self._bridge.call(_size, self._bridge.engine, [run.run_id for run in runs]))

        question = "Delete this run?" if len(runs) == 1 else f"Delete {runs_word(len(runs))}?"
        if not await self._confirmed(question, loss, "Delete"):
            return
        deleted = await self._bridge.call(_delete, self._bridge.engine, [run.run_id for run in runs])
        self._deck.undo.push(deletion_of(self._bridge, self._deck.runs.select, who(runs), deleted))
        self._say(f"Deleted {who(runs)}; {self._key('undo')} brings {'it' if len(runs) == 1 else 'them'} back")


def who(runs: Runs) -> str:
    """Say which runs are meant."""
    return name_of(runs[0]) if len(runs) == 1 else runs_word(len(runs))


def name_list(runs: Runs) -> str:
    """Name runs with their tasks, a line each for the first few."""
    if len(runs) == 1:
        return f"{name_of(runs[0])}: {one_line(runs[0].meta.task, 200)}"
    lines = [f"{name_of(run)}  {run.status}  {one_line(run.meta.task, 40)}" for run in runs]
    return "\n".join(first_of(lines, NAMED))


def what_is_lost(runs: Runs, size: int) -> str:
    """Say what deleting takes away, and what can no more be done then."""
    active = sum(not run.has_ended for run in runs)
    parts = [name_list(runs), ""]
    if active:
        parts.append("It is not finished: it is stopped first." if len(runs) == 1 else f"{active} are stopped first.")
    whose = "Its" if len(runs) == 1 else "Their"
    parts.append(
        f"{whose} transcript, answer and logs go to the trash ({size_text(size)}) and can be brought back for 24 hours."
    )
    if any(run.meta.session_path for run in runs):
        parts.append(f"{whose} conversation goes too: it cannot be followed up then.")
    return "\n".join(parts)


def _size(engine: Engine, run_ids: Sequence[str]) -> int:
    """Return the bytes of these runs' files."""
    total = 0
    for run_id in run_ids:
        for path in engine.artifacts(run_id).values():
            try:
                total += os.path.getsize(path)
            except OSError:
                continue  # it went away meanwhile
    return total


def _delete(engine: Engine, run_ids: Sequence[str]) -> tuple[str, ...]:
    """Delete runs, after stopping those that go on."""
    if stopped := engine.stop(run_ids):
        waited = engine.wait(stopped, timeout=engine.settings.grace_seconds + PATIENCE)
        if busy := [run for run in waited if not run.has_ended]:
            raise RunBusy(f"{who(busy)} did not end in time: nothing was deleted", hint="kill it, then delete it")
    return engine.delete(run_ids)


class RunListCommands(Commands):
    """Open a run, filter, sort, mark and fold, go to those that need the operator."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {
            "open": self._open,
            "filter": lambda: deck.screen.query_one(FilterLine).open(),
            "sort": self._sort,
            "mark": self._mark,
            "mark_all": self._mark_all,
            "fold": lambda: self._fold(True),
            "unfold": lambda: self._fold(False),
            "next_unseen": lambda: self._go_to_unseen(1),
            "previous_unseen": lambda: self._go_to_unseen(-1),
        }

    def _open(self) -> None:
        runs = self._deck.runs
        if runs.cursor_row is not None and not runs.cursor_row.run_id:
            self._fold(runs.cursor_row.group_key not in runs.listing.folded)
        else:
            self._deck.panes.go_to(KeyContext.TRANSCRIPT)

    def _sort(self) -> None:
        runs = self._deck.runs
        runs.order_by(runs.listing.sort.next)
        remember(self._deck)

    def _fold(self, folded: bool) -> None:
        if self._deck.runs.fold(folded):
            remember(self._deck)

    def _mark(self) -> None:
        runs = self._deck.runs
        if runs.cursor_row is not None:
            ids = runs.listing.runs_in(runs.cursor_row)
            runs.mark(ids, not runs.marked.issuperset(ids))
            runs.action_move("down")

    def _mark_all(self) -> None:
        runs = self._deck.runs
        shown = runs.listing.shown_ids()
        if runs.marked.issuperset(shown):
            runs.mark(runs.marked, False)
        else:
            runs.mark(shown, True)

    def _go_to_unseen(self, step: int) -> None:
        runs = self._deck.runs
        if run_id := next_of(self._deck.run_store.unseen, runs.listing, runs.cursor_row, step):
            runs.select(run_id)


def clear_filter(deck: DeckView) -> bool:
    """Show all runs again, where the runs have the keys; return whether there was a filter."""
    if deck.panes.place is not KeyContext.RUNS or not deck.runs.listing.filter:
        return False
    deck.runs.filter_by("")
    remember(deck)
    return True


def remember(deck: DeckView) -> None:
    """Keep how the list is arranged for the next start."""
    if memory := deck.runs.memory:
        deck.bridge.spawn(memory.keep, deck.runs.list_layout)


SWITCH_SECONDS = 5.0
"""How long tmux may take to show another pane."""


class AttachCommands(Commands):
    """Lends the terminal to the run's pane; what would fail is found out before, and the way back is told."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self._is_explained = False
        """Whether the operator has been told the keys that lead back."""
        self.table = {"attach": self._attach_or_zoom}

    def _attach_or_zoom(self) -> None:
        """What is no pane is shown alone, from its end on."""
        if (run := self._deck.run) and run.meta.runner != RunnerKind.TMUX:
            self._deck.panes.zoom(KeyContext.TRANSCRIPT)
            self._deck.transcript.follow(True)
        else:
            self._with_run(self._attach)

    async def _attach(self, run: RunSnapshot) -> None:
        async def find() -> AttachInfo:
            return await self._bridge.call(self._bridge.engine.attach_command, run.run_id)

        if self._is_explained:
            attach = await find()
        else:
            question = f"Attach to {name_of(run)}"
            attach = await self._confirmed_data(question, find, attach_note, "Attach", harmless=True)
            if attach is None:
                return
            self._is_explained = True
        if attach.switches:
            problem = await self._bridge.call(_switch, attach)
        else:
            problem = hand_over(self._app, attach.argv)
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: subdeck attach {run.meta.short_id}"
        if problem:
            self._say(problem, error=True)


def attach_note(attach: AttachInfo) -> str:
    """Say what attaching does and how one comes back."""
    keys = ", then ".join(attach.leave)
    if attach.switches:
        what = "This tmux shows the run's pane instead of the app; both keep running."
        return f"{what}\nTo come back here, press {keys}."
    return f"The terminal shows the run's tmux pane; the run is not disturbed.\nTo come back here, press {keys}."


def _switch(attach: AttachInfo) -> str:
    """Show the pane in the tmux that this app runs in; return what went wrong, or an empty string."""
    try:
        done = subprocess.run(
            attach.argv,
            check=False,
            capture_output=True,
            text=True,
            timeout=SWITCH_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"tmux could not be asked: {error}"
    return f"tmux did not switch: {done.stderr.strip()}" if done.returncode else ""


BUSY = 2.0
"""Seconds from which on the operator is told that it goes on."""


class CleaningCommands(Commands):
    """Delete old runs, all in one deletion."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {"clean_up": lambda: self._spawn(self._clean_up)}

    async def _clean_up(self) -> None:
        from ..cleanup.screen import CleanUpScreen

        engine, deck = self._bridge.engine, self._deck
        screen = CleanUpScreen(
            self._bridge,
            engine.settings.retention,
            self._confirmed,
            needed=deck.run_store.unseen | deck.run_store.marked,
            unread=deck.run_store.unread,
            keys=keys_line(KeyContext.CLEAN_UP, deck.actions),
            undo_key=self._key("undo"),
        )
        wanted = await self._app.push_screen_wait(screen)
        if wanted is None:
            return
        busy = self._app.set_timer(BUSY, lambda: self._say(f"Deleting {runs_word(len(wanted.run_ids))}…"))
        try:
            cleaned = await self._bridge.call(clean, engine.project, wanted.run_ids, purge=wanted.purge)
        finally:
            busy.stop()
        self._tell(cleaned, purge=wanted.purge)

    def _tell(self, cleaned: Cleaned, *, purge: bool) -> None:
        what = runs_word(len(cleaned.moved))
        if cleaned.moved and purge:
            self._say(f"Removed {what} for good.")
        elif cleaned.moved:
            self._deck.undo.push(
                deletion_of(self._bridge, self._deck.runs.select, what, cleaned.moved[::-1])
            )  # the newest one first
            self._say(f"Moved {what} to the trash; {self._key('undo')} brings them back.")
        if cleaned.left:
            run_id, why = cleaned.left[0]
            others = f", and {len(cleaned.left) - 1} more" if len(cleaned.left) > 1 else ""
            self._say(f"{run_id[-6:]} stays{others}: {one_line(why, 200)}", error=True)
