"""The commands on runs that are there: on all that are marked, else on the highlighted one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core.errors import RunBusy, reason
from ...core.run.describe import ago, elapsed, known_cost, moment, runs_word, size_text, whereabouts
from ...core.run.model import RunnerKind
from ...core.text.plain import one_line
from ..actions import KeyContext, keys_line
from ..deck.screen import MainScreen
from ..terminal.handover import NO_TERMINAL, hand_over
from ..text.format import dollars
from .base import Commands, first_of, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ...core.runners.tmux import AttachInfo
    from ...core.work.deletion import Cleaned
    from ...core.work.operation import Act
    from ..engine_api import EngineApi

DEAR_COST, DEAR_SECONDS = 0.01, 60.0
"""Dollars and seconds; a run that has cost more is not stopped by one key."""
NAMED = 5
"""Runs that a question names; more are counted."""
END_SECONDS = 10.0
"""How long beyond the grace a run may take to end before it is deleted."""
BUSY_SECONDS = 2.0
"""After so long the operator is told that a deletion is still being done."""
SWITCH_SECONDS = 5.0
"""How long tmux may take to show another pane."""

Runs = Sequence["RunSnapshot"]


class RunCommands(Commands):
    def __init__(self, deck: MainScreen) -> None:
        super().__init__(deck)
        self._is_attaching_explained = False
        """Whether the operator has seen the keys that lead back."""

    def copy_ids(self) -> None:
        ids = [run.run_id for run in self._deck.runs.targets]
        self.app.copy_to_clipboard("\n".join(ids))
        self._say(f"Copied {ids[0] if len(ids) == 1 else f'{len(ids)} run ids'}")

    def with_targets(self, command: Callable[[Runs], Coroutine[None, None, None]]) -> None:
        if runs := self._deck.runs.targets:
            self.spawn(command, runs)

    async def undo(self) -> None:
        """Take back what was done last: a deletion at once, as that harms nothing; all else after asking."""
        try:
            back = await self._deck.undo.take_back(self._is_agreed)
        except IndexError:
            self._say("Nothing to undo.", error=True)
            return
        if back is None:
            return
        if back.run_ids:
            self._deck.runs.select(back.run_ids[0])
        if back.path:
            self._deck.presets.select(back.path)
        self._say(_sentence(back.said))

    async def _is_agreed(self, act: Act) -> bool:
        if act.is_deletion:
            return True
        detail = f"{_sentence(act.title)}, {ago(act.at, datetime.now(UTC))}."
        if act.begun:
            detail += "\n\nIt was interrupted; the completed part is undone."
        return await self._confirmed("Undo this?", detail, "Undo")

    # --- ending and deleting -----------------------------------------------------------------------------------------

    async def stop(self, runs: Runs) -> None:
        """Stop them, after asking where there are several, or where one has cost something."""
        active = self._active(runs)
        if not active:
            return
        question = "Stop this run?" if len(active) == 1 else f"Stop {runs_word(len(active))}?"
        detail = f"{name_list(active)}\n\n{spent(active, datetime.now(UTC))}"
        if (len(active) > 1 or is_dear(active[0])) and not await self._confirmed(question, detail, "Stop"):
            return
        self._mark_seen(active)
        self._deck.runs.stay_beside(run.run_id for run in active)
        stopped = await self._bridge.call(self._bridge.engine.stop, [run.run_id for run in active])
        self._say(f"Stopping {who(active)}{when_back(active)}" if stopped else f"{who(active)} already finished")

    async def kill(self, runs: Runs) -> None:
        active = self._active(runs)
        if not active:
            return
        question = "Kill this run?" if len(active) == 1 else f"Kill {runs_word(len(active))}?"
        detail = f"{name_list(active)}\n\nThis ends the agent and all its processes immediately."
        if await self._confirmed(question, detail, "Kill"):
            self._mark_seen(active)
            self._deck.runs.stay_beside(run.run_id for run in active)
            await self._bridge.call(self._bridge.engine.stop, [run.run_id for run in active], force=True)
            self._say(f"Killing {who(active)}{when_back(active)}")

    def _active(self, runs: Runs) -> list[RunSnapshot]:
        """Return the runs that can be stopped; say so where there is none."""
        active = [run for run in runs if can_be_stopped(run)]
        if not active:
            foreign = any(not run.has_ended for run in runs)
            self._say(f"{who(runs)} {'is untrusted: your subdeck did not make it' if foreign else 'already finished'}")
        return active

    async def give_up(self, runs: Runs) -> None:
        """Write down runs as lost whose hosts do not come back, after saying what that means."""
        given_up = [run for run in runs if run.is_out_of_reach and not run.foreign]
        if not given_up:
            self._say(f"{who(runs)}: not on an unreachable host")
            return
        question = "Abandon this run?" if len(given_up) == 1 else f"Abandon {runs_word(len(given_up))}?"
        if not await self._confirmed(question, what_giving_up_means(given_up), "Abandon"):
            return
        self._mark_seen(given_up)
        self._deck.runs.stay_beside(run.run_id for run in given_up)
        for run in given_up:
            await self._bridge.call(self._bridge.engine.give_up, run.run_id)
        self._say(f"Abandoned {who(given_up)}")

    async def delete(self, runs: Runs) -> None:
        run_ids = [run.run_id for run in runs]

        async def loss() -> str:
            engine = self._bridge.engine
            size = await self._bridge.call(_size, engine, run_ids)
            unmerged = await self._bridge.call(engine.unmerged, run_ids)
            return what_is_lost(runs, size, [one.words for one in unmerged])

        question = "Delete this run?" if len(runs) == 1 else f"Delete {runs_word(len(runs))}?"
        if not await self._confirmed(question, loss, "Delete"):
            return
        await self._bridge.call(_delete, self._bridge.engine, runs)
        await self._deck.undo.look()
        self._say(f"Deleted {who(runs)}. {self._key('undo')} restores {'it' if len(runs) == 1 else 'them'}.")

    async def clean_up(self) -> None:
        from ...core.work.deletion import clean
        from ..cleanup.screen import CleanUpScreen

        engine, deck = self._bridge.engine, self._deck
        screen = CleanUpScreen(
            self._bridge,
            engine.settings.retention,
            needed=deck.run_store.unseen | deck.run_store.marked,
            unread=deck.run_store.unread,
            keys=keys_line(KeyContext.CLEAN_UP, deck.actions),
            undo_key=self._key("undo"),
        )
        wanted = await self.app.push_screen_wait(screen)
        if wanted is None:
            return
        busy = self.app.set_timer(BUSY_SECONDS, lambda: self._say(f"Deleting {runs_word(len(wanted.run_ids))}…"))
        try:
            cleaned = await self._bridge.call(clean, engine.project, wanted.run_ids, for_good=wanted.purge)
        finally:
            busy.stop()
        await self._deck.undo.look()
        self._report(cleaned, purge=wanted.purge)

    def _report(self, cleaned: Cleaned, *, purge: bool) -> None:
        what = runs_word(len(cleaned.moved))
        if cleaned.moved and purge:
            self._say(f"Deleted {what} permanently.")
        elif cleaned.moved:
            self._say(f"Moved {what} to the trash. {self._key('undo')} restores them.")
        if cleaned.left:
            run_id, why = cleaned.left[0]
            others = f", and {len(cleaned.left) - 1} more" if len(cleaned.left) > 1 else ""
            self._say(f"Not deleted: {run_id[-6:]}{others}: {one_line(why, 200)}", error=True)

    # --- attaching ---------------------------------------------------------------------------------------------------

    def attach_or_zoom(self) -> None:
        """Attach to a run in a pane; show any other alone, from its end on."""
        if (run := self._deck.run) and run.meta.runner != RunnerKind.TMUX:
            if run.is_remote and not run.has_ended:
                where = f"runs on {one_line(run.host, 64)}" if run.host else "has no host yet"
                self._say(f"This run {where} and has no tmux pane. Showing its transcript.")
            self._deck.panes.visit(KeyContext.TRANSCRIPT)
            self._deck.transcript.follow(True)
        else:
            self.with_run(self._attach)

    async def _attach(self, run: RunSnapshot) -> None:
        """Lend the terminal to the run's pane; what would fail is found out before."""

        async def find() -> AttachInfo:
            return await self._bridge.call(self._bridge.engine.attach_command, run.run_id)

        if self._is_attaching_explained:
            attach = await find()
        else:
            attach = await self._confirmed_data(f"Attach to {name_of(run)}", find, attach_note, "Attach")
            if attach is None:
                return
            self._is_attaching_explained = True
        if attach.switches:
            problem = await self._bridge.call(_switch, attach)
        else:
            problem = hand_over(self.app, attach.argv)
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: subdeck attach {run.meta.short_id}"
        if problem:
            self._say(problem, error=True)


def can_be_stopped(run: RunSnapshot) -> bool:
    """Return whether a run has not ended, and is this user's to stop."""
    return not run.has_ended and not run.foreign


def is_dear(run: RunSnapshot) -> bool:
    """Return whether a run has cost more than a minute or a cent, so that one asks before it is stopped."""
    if run.usage.cost > DEAR_COST:
        return True
    begin = moment(run.started_at or "")
    return begin is not None and (datetime.now(UTC) - begin).total_seconds() > DEAR_SECONDS


def when_back(runs: Runs) -> str:
    """Say that a request waits for hosts that are out of reach; empty where none is."""
    hosts = {one_line(run.host, 64) or "its host" for run in runs if run.is_out_of_reach}
    if not hosts:
        return ""
    return f" when {hosts.pop()} is back online" if len(hosts) == 1 else " when their hosts are back online"


def what_giving_up_means(runs: Runs) -> str:
    """Say what becomes of runs that are given up, and what does not."""
    lines = first_of([f"{name_of(run)}: {whereabouts(run)}" for run in runs], NAMED)
    it = "It" if len(runs) == 1 else "Each"
    return "\n".join(
        (
            *lines,
            "",
            f"{it} is recorded as failed (lost) but may still be running. If its host comes back, subdeck stops the"
            " run and keeps its late results separately. It is not relaunched.",
        )
    )


def spent(runs: Runs, now: datetime) -> str:
    """Return the time and cost so far: `0:42 and $0.31 so far. Its work is kept.`"""
    cost = dollars(sum(run.usage.cost for run in runs))
    cost = cost and known_cost(cost, sum(run.usage.unpriced for run in runs))
    keeps = "Its work is kept." if len(runs) == 1 else "Their work is kept."
    so_far = " and ".join(filter(None, (elapsed(runs[0], now) if len(runs) == 1 else "", cost)))
    return f"{so_far} so far. {keeps}" if so_far else keeps


def who(runs: Runs) -> str:
    """Say which runs are meant."""
    return name_of(runs[0]) if len(runs) == 1 else runs_word(len(runs))


def name_list(runs: Runs) -> str:
    """Name runs with their tasks, a line each for the first few."""
    if len(runs) == 1:
        return f"{name_of(runs[0])}: {one_line(runs[0].meta.task, 200)}"
    lines = [f"{name_of(run)}  {run.status}  {one_line(run.meta.task, 40)}" for run in runs]
    return "\n".join(first_of(lines, NAMED))


def what_is_lost(runs: Runs, size: int, unmerged: Sequence[str] = ()) -> str:
    """Say what deleting takes away, and what can no more be done then; `unmerged` says which work is nowhere else."""
    away = sum(run.is_out_of_reach and not run.foreign for run in runs)
    active = sum(map(can_be_stopped, runs)) - away
    parts = [name_list(runs), ""]
    if away:
        what = "Its host is" if len(runs) == 1 else f"The hosts of {away} are"
        parts.append(f"{what} unreachable. {'It is' if away == 1 else 'They are'} abandoned and may still be running.")
    if active:
        parts.append("It is not finished and is stopped first." if len(runs) == 1 else f"{active} are stopped first.")
    whose = "Its" if len(runs) == 1 else "Their"
    parts.append(
        f"{whose} transcript, answer and logs go to the trash ({size_text(size)}). You can restore them for 24 hours."
    )
    if unmerged:
        parts.append("After that, this unmerged work in worktrees is lost:")
        parts += first_of(list(unmerged), NAMED)
    if any(run.meta.session_path for run in runs):
        parts.append(f"{whose} conversation is deleted, so you cannot follow up.")
    if keepers := sorted({run.meta.agent for run in runs if run.meta.agent_session}):
        parts.append(f"{' and '.join(keepers)} keeps {whose.lower()} conversation.")
    if any(run.foreign for run in runs):
        parts.append("Untrusted runs are only moved. Their processes, panes and other files are not touched.")
    return "\n".join(parts)


def attach_note(attach: AttachInfo) -> str:
    """Say what attaching does and how one comes back."""
    if attach.switches:
        what = "tmux switches from the app to the run's pane. Both keep running."
    else:
        what = "The terminal shows the run's tmux pane. The run is not affected."
    return f"{what}\nTo return here, press {', then '.join(attach.leave)}."


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _size(engine: EngineApi, run_ids: Sequence[str]) -> int:
    """Return the bytes of these runs' files."""
    total = 0
    for run_id in run_ids:
        for path in engine.artifacts(run_id).values():
            try:
                total += os.path.getsize(path)
            except OSError:
                continue  # it went away meanwhile
    return total


def _delete(engine: EngineApi, runs: Runs) -> tuple[str, ...]:
    """Delete runs, after stopping those that are still running; a foreign one is only moved, and one on a host that is
    out of reach is given up.
    """
    for run in runs:
        if run.is_out_of_reach and not run.foreign:
            engine.give_up(run.run_id)
    if stopped := engine.stop([run.run_id for run in runs if not (run.foreign or run.is_out_of_reach)]):
        waited = engine.wait(stopped, timeout=engine.settings.grace_seconds + END_SECONDS)
        if busy := [run for run in waited if not run.has_ended]:
            raise RunBusy(f"nothing was deleted: {who(busy)} did not stop in time", hint="kill it first")
    return engine.delete([run.run_id for run in runs])


def _switch(attach: AttachInfo) -> str:
    """Show the pane in the tmux that this app runs in; return what went wrong, or an empty string."""
    try:
        done = subprocess.run(
            attach.argv, check=False, capture_output=True, text=True, timeout=SWITCH_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"tmux failed: {reason(error)}"
    return f"tmux could not switch: {done.stderr.strip()}" if done.returncode else ""
