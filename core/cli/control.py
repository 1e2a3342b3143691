"""`subdeck stop`, `attach`, `rm` and `adopt`: act on runs that are there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from ..engine import Engine
from ..errors import RunnerUnavailable, UnknownRun, UsageError
from ..run.describe import runs_word, whereabouts
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from ._options import json_option, run_argument, runs_argument
from .output import check_can_ask, document, is_terminal, note, say

if TYPE_CHECKING:
    from ..work.deletion import Unmerged

NAMED = 10
"""Deleted runs that are named to somebody who names none."""


@click.command("stop")
@runs_argument
@click.option("--kill", is_flag=True, help="Kill the whole process tree at once, without a grace period.")
@json_option
def stop(refs: tuple[str, ...], kill: bool, as_json: bool) -> None:
    """Ask runs to stop, without waiting for them. Finished runs are left alone.

    Each run gets TERM first. Processes that are still alive after the grace period (setting grace_seconds) get KILL.
    For a run on an unreachable host, the request is delivered when the host is back.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    stopping = engine.stop(run_ids, force=kill)
    if as_json:
        document({"stopping": stopping, "ended": [run_id for run_id in run_ids if run_id not in stopping]})
        return
    away = {run.run_id: run.host for run in engine.snapshots(stopping) if run.is_out_of_reach}
    for run_id in run_ids:
        say(f"{run_id[-6:]} {_stopping(away.get(run_id)) if run_id in stopping else 'had already ended'}")


def _stopping(host: str | None) -> str:
    """Say what becomes of a request to stop; `host` is the one that is out of reach, None where none is."""
    if host is None:
        return "is being stopped"
    return f"will be stopped when {one_line(host, 64) or 'its host'} is back"


@click.command("attach")
@run_argument
@json_option
def attach(ref: str, as_json: bool) -> None:
    """Show a run's tmux pane in this terminal. Leave it with tmux's detach key; the run continues.

    With --json, only print the command that attaches and the keys that detach.
    """
    engine = Engine.open()
    attach_command = engine.attach_command(engine.find((ref,))[0])
    argv = attach_command.argv
    if as_json:
        document({"argv": argv, "leave": attach_command.leave})
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        hint = "subdeck logs -f works without one"
        raise UsageError("attach needs a terminal", where="attach", hint=hint, code="usage.terminal_required")
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - argv of tmux, without a shell
    except OSError as error:
        raise RunnerUnavailable(f"{argv[0]} could not be started: {error.strerror}", where="attach") from error


@click.command("rm")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--purge", is_flag=True, help="Delete permanently. Without RUN: everything deleted more than a day ago.")
@click.option("--undo", is_flag=True, help="Restore deleted runs.")
@click.option("--yes", is_flag=True, help="Do not ask before abandoning runs or purging unmerged changes.")
@json_option
def rm(refs: tuple[str, ...], purge: bool, undo: bool, yes: bool, as_json: bool) -> None:
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
        done, verb = _purge(engine, refs, yes=yes, as_json=as_json), "purged"
    else:
        run_ids = engine.find(refs)
        kept = {run.run_id: run.meta.agent for run in engine.snapshots(run_ids) if run.meta.agent_session}
        unmerged = engine.unmerged(run_ids)
        _give_up(engine, run_ids, yes=yes, as_json=as_json)
        done, verb = engine.delete(run_ids), "deleted"
    if as_json:
        kept_work = [{"runId": one.run_id, **one.fields} for one in unmerged if one.run_id in done]
        document({verb: done} | ({"unmerged": kept_work} if kept_work else {}))
        return
    for run_id in done:
        back = f"; subdeck rm --undo {run_id[-6:]} restores it" if verb == "deleted" else ""
        say(f"{run_id[-6:]} {verb}{back}")
        if agent := kept.get(run_id):
            note(f"{one_line(agent, 64)} keeps its conversation")
    for one in unmerged:
        if one.run_id in done:
            note(f"! {one.run_id[-6:]} has unmerged changes, kept until the run is purged: {one.words}")
    if purge and not refs:
        say("runs deleted more than a day ago are purged")


@click.command("adopt")
@runs_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def adopt(refs: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Trust runs, so that you can stop, continue and clean them up like your own.

    A run is untrusted if your subdeck did not create it: it came with a checkout or a copy, an earlier version created
    it, or it belongs to another user. Another user's run cannot be trusted. Shows each run and asks for confirmation.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    runs = [run for run in engine.snapshots(run_ids) if not engine.is_own(run.run_id)]
    if runs and not yes:
        check_can_ask("adopt", "check the runs (subdeck status RUN), then add --yes", as_json=as_json)
        say("\n\n".join(_described(run) for run in runs))
        say("\nsubdeck will believe what their files say about their processes, panes and sessions.")
        if not click.confirm(f"Trust {runs_word(len(runs))}?", default=False):
            note("nothing was trusted")
            return
    engine.adopt(run.run_id for run in runs)
    adopted = [run.run_id for run in runs]
    if as_json:
        document({"adopted": adopted, "own": [run_id for run_id in run_ids if run_id not in adopted]})
        return
    for run_id in run_ids:
        say(f"{run_id[-6:]} {'is trusted now' if run_id in adopted else 'was trusted already'}")


def _described(run: RunSnapshot) -> str:
    """Show what an operator has to know of a run before trusting it."""
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


def _purge(engine: Engine, refs: Sequence[str], *, yes: bool, as_json: bool) -> tuple[str, ...]:
    """Delete what is not deleted yet, then remove all of it for good, after asking where work would be lost."""
    if not refs:
        engine.purge()
        return ()
    run_ids = tuple(dict.fromkeys(_anywhere(engine, ref) for ref in refs))
    if not yes and (unmerged := engine.unmerged(run_ids)):
        _check_agreed(unmerged, as_json=as_json)
    standing = {run.run_id for run in engine.snapshots(run_ids)}
    _give_up(engine, standing, yes=yes, as_json=as_json)
    engine.delete((run_id for run_id in run_ids if run_id in standing), for_good=True)
    engine.purge(run_ids)
    return run_ids


def _give_up(engine: Engine, run_ids: Iterable[str], *, yes: bool, as_json: bool) -> None:
    """Give up those whose host is out of reach, after asking. Raises UsageError where nobody can be asked, Abort where
    it is not wanted.
    """
    away = [run for run in engine.snapshots(run_ids) if run.is_out_of_reach and not run.foreign]
    if away and not yes:
        lines = [f"{run.meta.short_id}: {whereabouts(run)}; it may still be running" for run in away]
        if as_json or not is_terminal(sys.stdin):
            raise UsageError(lines[0], where="rm", hint="add --yes to abandon it")
        say("\n".join(lines))
        click.confirm(f"Abandon {runs_word(len(away))}?", default=False, abort=True)
    for run in away:
        engine.give_up(run.run_id)


def _check_agreed(unmerged: Sequence[Unmerged], *, as_json: bool) -> None:
    """Ask whether unmerged work may be lost. Raises UsageError where nobody can be asked, Abort where it may not."""
    lines = [f"{one.run_id[-6:]} has unmerged changes: {one.words}" for one in unmerged]
    if as_json or not is_terminal(sys.stdin):
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
    """Say which runs could be restored: no list shows them."""
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
