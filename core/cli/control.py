"""Commands that act on existing runs: stop and trust them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ..engine import Engine
from ..errors import UsageError
from ..run.describe import runs_word
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from ._command import Document, check_can_ask, command
from ._options import runs_argument, timeout_option
from .output import Output, Piece, note, say

if TYPE_CHECKING:
    from ._messages import Messages


class Stopped(Document, frozen=True):
    """Runs that were asked to stop."""

    stopping: tuple[str, ...]
    """Ids of the runs that got the request."""
    ended: tuple[str, ...]
    """Ids of the named runs that had already finished."""


@command(
    "stop",
    "subdeck stop 4ae0bd",
    "subdeck stop 4ae0bd --turn # only its turn; it waits for you",
    "subdeck stop 4ae0bd 81c2f7 --kill # at once",
)
@runs_argument
@click.option("--kill", is_flag=True, help="Kill the whole process tree at once, without a grace period.")
@click.option("--turn", is_flag=True, help="End only the current turn. The agents stay and wait for your next message.")
@click.option("--wait", is_flag=True, help="With --turn: wait until the turn ends, or the request is refused or late.")
@timeout_option
def stop(
    refs: tuple[str, ...], kill: bool, turn: bool, wait: bool, timeout: float | None
) -> Output[Stopped | Messages]:
    """Ask runs to stop, without waiting for them. Finished runs are left alone.

    Each run gets TERM first. Processes that are still alive after the grace period (setting advanced.grace_seconds)
    get KILL. For a run on an unreachable host, the request is delivered when the host is back.

    With --turn, the runs continue: subdeck send gives them their next message. After idle_timeout (setting or preset)
    without one, a run ends as aborted: interrupted, and keeps its text. Exit codes are those of subdeck send.
    """
    if turn and kill:
        raise UsageError("--kill and --turn cannot be combined", where="stop", hint="use only one of them")
    if not turn and (wait or timeout is not None):
        option = "--wait" if wait else "--timeout"
        raise UsageError(f"{option} requires --turn", where=option, hint="subdeck wait RUN waits until a run finishes")
    engine = Engine.open()
    if turn:
        from ._messages import send_each

        return send_each(engine, engine.find(refs), engine.interrupt, wait, timeout)
    run_ids = engine.find(refs)
    stopping = engine.stop(run_ids, force=kill)
    ended = tuple(run_id for run_id in run_ids if run_id not in stopping)
    return Output(Stopped(stopping, ended), _stopped(engine, run_ids, stopping))


def _stopped(engine: Engine, run_ids: Sequence[str], stopping: Sequence[str]) -> Iterator[Piece]:
    away = {run.run_id: run.host for run in engine.snapshots(stopping) if run.is_out_of_reach}
    for run_id in run_ids:
        yield f"{run_id[-6:]} {_stopping(away.get(run_id)) if run_id in stopping else 'had already ended'}"


def _stopping(host: str | None) -> str:
    """Return the effect of a stop request; `host` is the unreachable host of the run, if it has one."""
    if host is None:
        return "is being stopped"
    return f"will be stopped when {one_line(host, 64) or 'its host'} is back"


class Adopted(Document, frozen=True):
    """Runs that are trusted now."""

    adopted: tuple[str, ...]
    """Ids of the runs that were untrusted before."""
    own: tuple[str, ...]
    """Ids of the named runs that were trusted already."""


@command(
    "adopt",
    "subdeck adopt 4ae0bd",
    "subdeck adopt 4ae0bd 81c2f7 --yes",
)
@runs_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def adopt(refs: tuple[str, ...], yes: bool) -> Output[Adopted] | int:
    """Trust runs, so that you can stop, continue and clean them up like your own.

    A run is untrusted if your subdeck did not create it: it came with a checkout or a copy, an earlier version created
    it, or it belongs to another user. Another user's run cannot be trusted. Shows each run and asks for confirmation.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    runs = [run for run in engine.snapshots(run_ids) if not engine.is_own(run.run_id)]
    if runs and not yes:
        check_can_ask("adopt", "check the runs (subdeck status RUN), then add --yes")
        say("\n\n".join(_described(run) for run in runs))
        say("\nsubdeck will believe what their files say about their processes, panes and sessions.")
        if not click.confirm(f"Trust {runs_word(len(runs))}?", default=False):
            note("nothing was trusted")
            return 0
    engine.adopt(run.run_id for run in runs)
    adopted = tuple(run.run_id for run in runs)
    trusted_before = tuple(run_id for run_id in run_ids if run_id not in adopted)
    text = (f"{run_id[-6:]} {'is trusted now' if run_id in adopted else 'was trusted already'}" for run_id in run_ids)
    return Output(Adopted(adopted, trusted_before), text)


def _described(run: RunSnapshot) -> str:
    """Return the facts that decide whether to trust a run."""
    meta = run.meta
    facts = {
        "task": one_line(meta.task, 300),
        "preset": one_line(meta.title, 80),
        "directory": one_line(meta.cwd, 300),
        "agent": one_line(" ".join((meta.agent, *meta.agent_command)), 300),
        "created": one_line(meta.created_at, 40),
        "status": f"{run.status} according to its files",
    }
    return "\n".join([run.run_id, *(f"  {name:<10} {value}" for name, value in facts.items())])
