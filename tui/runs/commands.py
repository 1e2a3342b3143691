"""The commands on the list of runs, on the queue, and on runs: the selected ones, or the highlighted one."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core.errors import RunBusy
from ...core.run.columns import CYCLE
from ...core.run.describe import ago, runs_word
from ...core.run.model import RunnerKind
from ...core.run.need import Need
from ...core.text.plain import one_line
from ..commands import Commands, Runs, name_of
from ..keys.command import (
    DECK,
    NO_RUN,
    PANES,
    PRESETS,
    RUNS,
    TRANSCRIPT,
    ActionContext,
    at,
    command,
    needs_own,
    needs_run,
    needs_terminal_to_lend,
    unbound,
)
from ._questions import (
    attach_note,
    can_be_stopped,
    is_dear,
    name_list,
    spent,
    what_giving_up_means,
    what_is_lost,
    when_back,
    who,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.run.snapshot import RunSnapshot
    from ...core.runners.tmux import AttachInfo
    from ...core.work.operation import Act
    from ..engine_api import EngineApi

END_SECONDS = 10.0
"""Seconds beyond the grace that a run gets to stop before it is deleted."""


_OPENED = {PRESETS: "launch", TRANSCRIPT: "open_entry"}
"""What Enter does in the panes beside the runs."""


def needs_row(context: ActionContext) -> str:
    """Return why Enter cannot open a run; a launch has its own reasons."""
    return "" if context.key_context is PRESETS else needs_run(context)


def needs_unseen(context: ActionContext) -> str:
    return "" if context.unseen else "No run needs you."


def needs_queued(context: ActionContext) -> str:
    """Refuse a run that is not queued."""
    if obstacle := needs_own(context):
        return obstacle
    is_queued = context.run is not None and context.run.status == "queued"
    return "" if is_queued else "This run is not queued."


def needs_terminal(context: ActionContext) -> str:
    return needs_run(context) or ("" if context.can_suspend else "No terminal is available to attach from.")


def needs_active(context: ActionContext) -> str:
    if context.marked:
        return ""
    if not context.run:
        return NO_RUN
    if context.run.foreign:
        return needs_own(context)
    return f"This run is already finished ({context.run.status})." if context.run.has_ended else ""


def needs_out_of_reach(context: ActionContext) -> str:
    """Refuse a run that is finished or can be stopped."""
    if context.marked:
        return ""
    if obstacle := needs_active(context):
        return obstacle
    run = context.run
    if run is None or run.is_out_of_reach:
        return ""
    where = (
        f"is on {one_line(run.host, 64)}, which is online"
        if run.is_remote and run.host
        else "is not on an unreachable host"
    )
    return f"This run {where}. Stop it with {{stop}}."


def needs_hand(context: ActionContext) -> str:
    """Refuse a run that cannot be opened in the agent."""
    if (obstacle := needs_own(context) or needs_terminal_to_lend(context)) or context.run is None:
        return obstacle
    if context.run.newer_schema:
        return "This run was written by a newer subdeck. Open it with that version."
    why = context.run.why_not_by_hand
    return f"Cannot open this run in the agent: {why}." if why else ""


def needs_undoable(context: ActionContext) -> str:
    return "" if context.undoable else "Nothing to undo."


def _attach_name(context: ActionContext) -> str:
    if context.run and context.run.meta.runner == RunnerKind.TMUX:
        return "attach"
    return "" if context.zoomed and context.key_context is TRANSCRIPT else "zoom"


class RunListCommands(Commands):
    @command(
        "open",
        tuple((pane, "enter") for pane in PANES),
        "open",
        needs=needs_row,
        footer=6,
        name_here=lambda context: "" if context.key_context is PRESETS else "open",
    )
    def open(self) -> None:
        """Go to the highlighted run's transcript. On a preset, launch it. On a group, a tool call or thinking, unfold
        or fold it.
        """
        runs = self._deck.runs
        if action_id := _OPENED.get(self._deck.panes.key_context):
            self._deck.action_act(action_id)
        elif runs.cursor_row is not None and not runs.cursor_row.run_id:
            self.fold(runs.cursor_row.group_key not in runs.listing.folded)
        else:
            self._deck.panes.go_to(TRANSCRIPT)

    @command("filter", at(RUNS, "/"), "filter", footer=9)
    def open_filter(self) -> None:
        """Filter the runs: words, status:failed, preset:x, is:unread, age:<1d, cost:>1, text:x, /regex/, -not. {back}
        clears the filter.
        """
        from .filter_line import FilterLine

        self._deck.query_one(FilterLine).open()

    @command("sort", at(RUNS, "o"), "sort", f"Cycle the sort order: {', '.join(sort.name for sort in CYCLE)}.")
    def sort(self) -> None:
        runs = self._deck.runs
        runs.order_by(runs.listing.sort.next)
        runs.keep_layout()

    @command("reverse_sort", unbound(RUNS), "reverse sort")
    def reverse_sort(self) -> None:
        """Reverse the sort order. Clicking a column header also sorts."""
        runs = self._deck.runs
        runs.order_by(runs.listing.sort, backwards=not runs.listing.backwards)
        runs.keep_layout()

    @command("mark", at(RUNS, "space"), "select", needs=needs_run, footer=13)
    def mark(self) -> None:
        """Select or deselect the run and move down. Actions then apply to all selected runs."""
        runs = self._deck.runs
        if runs.cursor_row is not None:
            ids = runs.listing.runs_in(runs.cursor_row)
            runs.mark(ids, not self._deck.run_store.marked.issuperset(ids))
            runs.action_move("down")

    @command("mark_all", unbound(RUNS), "select all")
    def mark_all(self) -> None:
        """Select all listed runs, or deselect them."""
        runs, marked = self._deck.runs, self._deck.run_store.marked
        shown = runs.listing.shown_ids()
        all_marked = marked.issuperset(shown)  # then hidden ones are deselected too
        runs.mark(marked if all_marked else shown, not all_marked)

    @command("fold", unbound(RUNS), "fold", "Fold the group into one row.", needs_run, args=(True,))
    @command("unfold", unbound(RUNS), "unfold", "Unfold the group and list its runs.", needs_run, args=(False,))
    def fold(self, folded: bool) -> None:
        if self._deck.runs.fold(folded):
            self._deck.runs.keep_layout()

    @command(
        "next_unseen",
        at(DECK, "]"),
        "next for you",
        "Go to the next run that needs you: it needs input, failed, answered with a question, or is idle. If none does,"
        " go to the next unread result.",
        needs_unseen,
        footer=7,
        args=(1,),
    )
    @command(
        "previous_unseen",
        at(DECK, "["),
        "previous for you",
        "Go to the previous run that needs you.",
        needs_unseen,
        args=(-1,),
    )
    def go_to_needing(self, step: int, *, replies: bool = True) -> None:
        # The most urgent first, wrapping around; with `replies` the request of a waiting run gets the focus.
        runs, store = self._deck.runs, self._deck.run_store
        needs = store.needs_you or store.needs
        ordered = sorted(needs, key=lambda run_id: (needs[run_id], runs.listing.key_of(run_id)))
        if not ordered:
            return
        here = runs.selected
        start = ordered.index(here) if here in needs else (-1 if step > 0 else 0)
        target = ordered[(start + step) % len(ordered)]
        if replies and here in self._deck.run_store.waiting and not self._deck.request.has_focus:
            target = here  # it has a new request
        runs.select(target)
        if replies and needs[target] is Need.WAITING:
            self._deck.show_highlighted()
            self._deck.panes.go_to(TRANSCRIPT)

    @command("mark_seen", at(DECK, "m"), "mark as read", needs=needs_run)
    def mark_seen(self) -> None:
        """Mark the run, or all selected runs, as read. Opening a run or acting on it has the same effect."""
        runs = [run for run in self._deck.runs.targets if self._deck.run_store.needs_look(run.run_id)]
        self._mark_seen(runs)
        if not runs:
            self._say("Already read.")
        elif waiting := self._deck.run_store.waiting.intersection(run.run_id for run in runs):
            what = "This run still needs" if len(waiting) == 1 else f"{runs_word(len(waiting))} still need"
            self._say(f"{what} input. {self._key('open')} shows the request.")

    # --- the queue ---------------------------------------------------------------------------------------------------

    @command(
        "queue_up",
        unbound(RUNS),
        "earlier in queue",
        "Move the queued run up, so that it starts earlier.",
        needs_queued,
        changes=True,
        args=(-1,),
    )
    @command(
        "queue_down",
        unbound(RUNS),
        "later in queue",
        "Move the queued run down, so that it starts later.",
        needs_queued,
        changes=True,
        args=(1,),
    )
    async def move_in_queue(self, run: RunSnapshot, step: int) -> None:
        ahead = await self._bridge.call(self._bridge.engine.move_in_queue, run.run_id, step)
        self._say(f"{name_of(run)}: {f'{ahead} ahead' if ahead else 'next in the queue'}")

    @command("hold_queue", unbound(DECK), "pause queue", changes=True)
    async def hold_or_release(self) -> None:
        """Pause the queue so that no new run starts, or resume it."""
        engine = self._bridge.engine
        held = not await self._bridge.call(engine.is_queue_held)
        await self._bridge.call(engine.hold_queue, held)
        if held:
            self._say(f"The queue is paused: no new run starts. {self._key('hold_queue')} resumes it.")
        else:
            self._say("The queue was resumed.")


class RunCommands(Commands):
    opens = ("..terminal.handover", "..terminal.tmux")

    _is_attaching_explained = False
    """Whether you have seen the keys that lead back."""
    _is_agent_explained = False
    """Whether you have seen the explanation of opening a run in the agent."""

    @command("attach", at(DECK, "a"), "attach", needs=needs_terminal, footer=4, name_here=_attach_name)
    def attach_or_zoom(self) -> None:
        """Attach to the run's tmux pane. Without a pane, show the transcript full screen."""
        if (run := self._deck.run) and run.meta.runner != RunnerKind.TMUX:
            if run.is_remote and not run.has_ended:
                where = f"runs on {one_line(run.host, 64)}" if run.host else "has no host yet"
                self._say(f"This run {where} and has no tmux pane. Showing its transcript.")
            self._deck.panes.visit(TRANSCRIPT)
            self._deck.transcript.follow(True)
        else:
            self.do(self._attach, "run", ())

    async def _attach(self, run: RunSnapshot) -> None:
        """Lend the terminal to the run's pane; find out first what would fail."""
        from ..terminal.handover import NO_TERMINAL, hand_over
        from ..terminal.tmux import switch

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
            problem = await self._bridge.call(switch, attach.argv)
        else:
            problem = hand_over(self.app, attach.argv)
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: subdeck open {run.meta.short_id}"
        if problem:
            self._say(problem, error=True)

    @command("stop", at(DECK, "x"), "stop", needs=needs_active, footer=5, changes=True)
    async def stop(self, runs: Runs) -> None:
        """Stop the run, or all selected runs, gracefully. Their work is kept."""
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

    @command("take_over", at(DECK, "A"), "open in agent", needs=needs_hand, changes=True)
    async def take_over(self, run: RunSnapshot) -> None:
        """Continue the run interactively in the agent's own UI. Exit the agent to return the run."""
        from ..terminal.handover import NO_TERMINAL, hand_over
        from ..terminal.tmux import open_window, window_command

        if not self._is_agent_explained:
            if not await self._confirmed(f"Open {name_of(run)} in the agent?", _agent_note(run), "Open", harmless=True):
                return
            self._is_agent_explained = True
        argv = await self._bridge.call(self._bridge.engine.take_over, run.run_id)
        if os.environ.get("TMUX"):
            name = f"by-hand-{run.meta.short_id}"
            problem = await self._bridge.call(open_window, window_command(name, argv, os.environ))
        else:
            problem = hand_over(self.app, argv)
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: subdeck open --agent {run.meta.short_id}"
        if problem:
            self._say(problem, error=True)

    @command("kill", at(DECK, "X"), "kill", needs=needs_active, changes=True)
    async def kill(self, runs: Runs) -> None:
        """Kill the run, or all selected runs, with all their processes. Asks first."""
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
        """Return the runs that can be stopped; report it if there are none."""
        active = [run for run in runs if can_be_stopped(run)]
        if not active:
            foreign = any(not run.has_ended for run in runs)
            self._say(f"{who(runs)} {'is untrusted: your subdeck did not make it' if foreign else 'already finished'}")
        return active

    @command("give_up", unbound(DECK), "abandon", needs=needs_out_of_reach, changes=True)
    async def give_up(self, runs: Runs) -> None:
        """Abandon the run, or all selected runs, on an unreachable host. They become lost. Asks first."""
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

    @command("delete", (*at(RUNS, "d"), *at(TRANSCRIPT, "d")), "delete", needs=needs_run, changes=True, guarded=True)
    async def delete(self, runs: Runs) -> None:
        """Delete the run, or all selected runs, with all their files. Asks first; undo restores them."""
        run_ids = [run.run_id for run in runs]

        async def loss() -> str:
            engine = self._bridge.engine
            size = await self._bridge.call(_size, engine, run_ids)
            unmerged = await self._bridge.call(engine.unmerged, run_ids)
            return what_is_lost(runs, size, [work.words for work in unmerged])

        question = "Delete this run?" if len(runs) == 1 else f"Delete {runs_word(len(runs))}?"
        if not await self._confirmed(question, loss, "Delete"):
            return
        await self._bridge.call(_delete, self._bridge.engine, runs)
        await self._deck.undo.look()
        self._say(f"Deleted {who(runs)}. {self._key('undo')} restores {'it' if len(runs) == 1 else 'them'}.")

    @command("undo", at(DECK, "u"), "undo", needs=needs_undoable, changes=True, guarded=True)
    async def undo(self) -> None:
        """Undo the last delete, apply or merge. Asks before undoing an apply or a merge."""
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
        self._say(_sentence(back.outcome))

    async def _is_agreed(self, act: Act) -> bool:
        if act.is_deletion:
            return True
        detail = f"{_sentence(act.title)}, {ago(act.at, datetime.now(UTC))}."
        if act.begun:
            detail += "\n\nIt was interrupted; the completed part is undone."
        return await self._confirmed("Undo this?", detail, "Undo")

    @command("copy_id", at(RUNS, "y"), "copy id", needs=needs_run)
    def copy_ids(self) -> None:
        """Copy the run's id, or the ids of all selected runs, to the clipboard."""
        ids = [run.run_id for run in self._deck.runs.targets]
        self.app.copy_to_clipboard("\n".join(ids))
        self._say(f"Copied {ids[0] if len(ids) == 1 else f'{len(ids)} run ids'}")


def _agent_note(run: RunSnapshot) -> str:
    begins = "A new run continues its conversation" if run.has_ended else "Its current turn ends"
    return (
        f"{begins}. The agent's own UI opens with the same model, tools and directory.\n"
        "Exit the agent to return the run. Then choose whether it finishes or continues."
    )


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
                continue  # it has disappeared
    return total


def _delete(engine: EngineApi, runs: Runs) -> tuple[str, ...]:
    """Delete runs, after stopping the running ones; untrusted runs are only moved, and runs on an unreachable host are
    abandoned.
    """
    for run in runs:
        if run.is_out_of_reach and not run.foreign:
            engine.give_up(run.run_id)
    if stopped := engine.stop([run.run_id for run in runs if not (run.foreign or run.is_out_of_reach)]):
        waited = engine.wait(stopped, timeout=engine.settings.grace_seconds + END_SECONDS)
        if busy := [run for run in waited if not run.has_ended]:
            raise RunBusy(f"nothing was deleted: {who(busy)} did not stop in time", hint="kill it first")
    return engine.delete([run.run_id for run in runs])
