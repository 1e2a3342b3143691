"""The texts of questions about runs: their names, and the effect of stopping, deleting or attaching; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ...core.run.describe import elapsed, known_cost, moment, runs_word, short_cost, size_text, whereabouts
from ...core.text.plain import one_line
from ..commands import Runs, first_of, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ...core.runners.tmux import AttachInfo

DEAR_COST, DEAR_SECONDS = 0.01, 60.0
"""Dollars and seconds; a run that has cost more is not stopped by one key."""
NAMED = 5
"""Runs that a question names; more are counted."""


def can_be_stopped(run: RunSnapshot) -> bool:
    """Return whether a run is unfinished and you may stop it."""
    return not run.has_ended and not run.foreign


def is_dear(run: RunSnapshot) -> bool:
    """Return whether a run has taken more than a minute or a cent, so that stopping it asks first."""
    if run.usage.cost > DEAR_COST:
        return True
    begin = moment(run.started_at or "")
    return begin is not None and (datetime.now(UTC) - begin).total_seconds() > DEAR_SECONDS


def when_back(runs: Runs) -> str:
    """Return that a request waits for unreachable hosts; empty if all are online."""
    hosts = {one_line(run.host, 64) or "its host" for run in runs if run.is_out_of_reach}
    if not hosts:
        return ""
    return f" when {hosts.pop()} is back online" if len(hosts) == 1 else " when their hosts are back online"


def what_giving_up_means(runs: Runs) -> str:
    """Explain the effect of abandoning runs."""
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
    cost = short_cost(sum(run.usage.cost for run in runs))
    cost = cost and known_cost(cost, sum(run.usage.unpriced for run in runs))
    keeps = "Its work is kept." if len(runs) == 1 else "Their work is kept."
    so_far = " and ".join(filter(None, (elapsed(runs[0], now) if len(runs) == 1 else "", cost)))
    return f"{so_far} so far. {keeps}" if so_far else keeps


def who(runs: Runs) -> str:
    """Name the runs."""
    return name_of(runs[0]) if len(runs) == 1 else runs_word(len(runs))


def name_list(runs: Runs) -> str:
    """Name runs with their tasks, a line each for the first few."""
    if len(runs) == 1:
        return f"{name_of(runs[0])}: {one_line(runs[0].meta.task, 200)}"
    lines = [f"{name_of(run)}  {run.status}  {one_line(run.meta.task, 40)}" for run in runs]
    return "\n".join(first_of(lines, NAMED))


def what_is_lost(runs: Runs, size: int, unmerged: Sequence[str] = ()) -> str:
    """Explain the loss by deleting runs; `unmerged` lists work that exists nowhere else."""
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
    """Explain attaching and how to return."""
    if attach.switches:
        what = "tmux switches from the app to the run's pane. Both keep running."
    else:
        what = "The terminal shows the run's tmux pane. The run is not affected."
    return f"{what}\nTo return here, press {', then '.join(attach.leave)}."
