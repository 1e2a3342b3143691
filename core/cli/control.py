"""Commands that act on existing runs: stop, show, delete, restore and trust them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, UnsetType

from ..engine import Engine
from ..errors import RunnerUnavailable, UnknownRun, UsageError
from ..run.describe import runs_word, whereabouts
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from ._command import Document, check_can_ask, command, is_json
from ._options import run_argument, runs_argument, timeout_option
from .output import Note, Output, Piece, is_terminal, note, say

if TYPE_CHECKING:
    from ..work.deletion import Unmerged
    from ._messages import Messages

NAMED = 10
"""Deleted runs that a hint lists."""


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

    Each run gets TERM first. Processes that are still alive after the grace period (setting grace_seconds) get KILL.
    For a run on an unreachable host, the request is delivered when the host is back.

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


class AttachCommand(Document, frozen=True):
    """The command that shows a run's pane."""

    argv: tuple[str, ...]
    leave: tuple[str, ...]
    """Keys that detach, in order."""


@command(
    "attach",
    "subdeck attach 4ae0bd",
    "subdeck attach 4ae0bd --json # only the command",
)
@run_argument
def attach(ref: str) -> Output[AttachCommand]:
    """Show a run's tmux pane in this terminal. Leave it with tmux's detach key; the run continues.

    With --json, only print the command that attaches and the keys that detach.
    """
    engine = Engine.open()
    attach_command = engine.attach_command(engine.find((ref,))[0])
    argv = attach_command.argv
    if is_json():
        return Output(AttachCommand(argv, attach_command.leave))
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        hint = "subdeck logs -f works without one"
        raise UsageError("attach needs a terminal", where="attach", hint=hint, code="usage.terminal_required")
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - argv of tmux, without a shell
    except OSError as error:
        raise RunnerUnavailable(f"{argv[0]} could not be started: {error.strerror}", where="attach") from error


class UnmergedWork(Document, frozen=True):
    """A deleted run whose unmerged changes are kept."""

    run_id: str
    branch: str
    path: str
    """Its worktree."""
    why: str
    """The branch and the amount of changes, for people."""


class Removed(Document, frozen=True, omit_defaults=True):
    """Runs that were deleted, purged or restored; only the key for what was done is there."""

    restored: tuple[str, ...] | UnsetType = UNSET
    purged: tuple[str, ...] | UnsetType = UNSET
    deleted: tuple[str, ...] | UnsetType = UNSET
    unmerged: tuple[UnmergedWork, ...] = ()
    """Unmerged changes of deleted runs, kept until these are purged."""


@command(
    "rm",
    "subdeck rm 4ae0bd",
    "subdeck rm --undo 4ae0bd",
    "subdeck rm --purge # empty the trash",
)
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--purge", is_flag=True, help="Delete permanently. Without RUN: everything deleted more than a day ago.")
@click.option("--undo", is_flag=True, help="Restore deleted runs.")
@click.option("--yes", is_flag=True, help="Do not ask before abandoning runs or purging unmerged changes.")
def rm(refs: tuple[str, ...], purge: bool, undo: bool, yes: bool) -> Output[Removed]:
    """Delete finished runs. --undo restores them until they are purged.

    A run on an unreachable host is abandoned, after confirmation.
    Unmerged changes in a run's own worktree are kept, with the branch, until the run is purged.
    """
    if purge and undo:
        raise UsageError("--purge and --undo cannot be combined", where="rm", hint="use only one of them")
    if not refs and not purge:
        hint = _restorable(Engine.open()) if undo else "subdeck status --all lists the runs"
        raise UsageError("RUN is missing", where="rm", hint=hint)
    engine = Engine.open()
    kept: dict[str, str] = {}
    unmerged: tuple[Unmerged, ...] = ()
    if undo:
        done, verb = engine.restore(_deleted(engine, refs)), "restored"
    elif purge:
        done, verb = _purge(engine, refs, yes=yes), "purged"
    else:
        run_ids = engine.find(refs)
        kept = {run.run_id: run.meta.agent for run in engine.snapshots(run_ids) if run.meta.agent_session}
        unmerged = engine.unmerged(run_ids)
        _give_up(engine, run_ids, yes=yes)
        done, verb = engine.delete(run_ids), "deleted"
    unmerged = tuple(one for one in unmerged if one.run_id in done)
    works = tuple(
        UnmergedWork(one.run_id, one.worktree.record.branch, one.worktree.path, one.words) for one in unmerged
    )
    text: list[Piece] = []
    for run_id in done:
        back = f"; subdeck rm --undo {run_id[-6:]} restores it" if verb == "deleted" else ""
        text.append(f"{run_id[-6:]} {verb}{back}")
        if agent := kept.get(run_id):
            text.append(Note(f"{one_line(agent, 64)} keeps its conversation"))
    text += [
        Note(f"! {one.run_id[-6:]} has unmerged changes, kept until the run is purged: {one.words}") for one in unmerged
    ]
    if purge and not refs:
        text.append("runs deleted more than a day ago are purged")
    document: dict[str, Any] = {verb: done, "unmerged": works}
    return Output(Removed(**document), text)


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
    own = tuple(run_id for run_id in run_ids if run_id not in adopted)
    text = (f"{run_id[-6:]} {'is trusted now' if run_id in adopted else 'was trusted already'}" for run_id in run_ids)
    return Output(Adopted(adopted, own), text)


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


def _purge(engine: Engine, refs: Sequence[str], *, yes: bool) -> tuple[str, ...]:
    """Purge runs, deleted or not, after a confirmation if work would be lost."""
    if not refs:
        engine.purge()
        return ()
    run_ids = tuple(dict.fromkeys(_anywhere(engine, ref) for ref in refs))
    if not yes and (unmerged := engine.unmerged(run_ids)):
        _check_agreed(unmerged)
    standing = {run.run_id for run in engine.snapshots(run_ids)}
    _give_up(engine, standing, yes=yes)
    engine.delete((run_id for run_id in run_ids if run_id in standing), for_good=True)
    engine.purge(run_ids)
    return run_ids


def _give_up(engine: Engine, run_ids: Iterable[str], *, yes: bool) -> None:
    """Abandon the runs on unreachable hosts, after confirmation. Raises UsageError if the user cannot be asked, Abort
    after a no.
    """
    away = [run for run in engine.snapshots(run_ids) if run.is_out_of_reach and not run.foreign]
    if away and not yes:
        lines = [f"{run.meta.short_id}: {whereabouts(run)}; it may still be running" for run in away]
        if is_json() or not is_terminal(sys.stdin):
            raise UsageError(lines[0], where="rm", hint="add --yes to abandon it")
        say("\n".join(lines))
        click.confirm(f"Abandon {runs_word(len(away))}?", default=False, abort=True)
    for run in away:
        engine.give_up(run.run_id)


def _check_agreed(unmerged: Sequence[Unmerged]) -> None:
    """Ask whether unmerged work may be lost. Raises UsageError if the user cannot be asked, Abort after a no."""
    lines = [f"{one.run_id[-6:]} has unmerged changes: {one.words}" for one in unmerged]
    if is_json() or not is_terminal(sys.stdin):
        raise UsageError(
            lines[0], where="rm", hint="merge or apply the changes first, or add --yes to delete them permanently"
        )
    say("\n".join(lines))
    click.confirm("Delete it permanently?", default=False, abort=True)


def _anywhere(engine: Engine, ref: str) -> str:
    try:
        return engine.find((ref,), deleted=True)[0]
    except UnknownRun:
        return engine.find((ref,))[0]


def _restorable(engine: Engine) -> str:
    """Return the runs that can be restored, for a hint: no list shows them."""
    if not (run_ids := engine.deleted()):
        return "the trash is empty"
    more = f" and {len(run_ids) - NAMED} more" if len(run_ids) > NAMED else ""
    return f"in the trash, newest first: {', '.join(run_id[-6:] for run_id in run_ids[:NAMED])}{more}"


def _deleted(engine: Engine, refs: Sequence[str]) -> tuple[str, ...]:
    try:
        return engine.find(refs, deleted=True)
    except UnknownRun as error:
        hint = error.hint if "a longer id" in error.hint else "only deleted runs that are not purged can be restored"
        raise UnknownRun(error.what, where="deleted runs", hint=hint, code=error.code) from None
