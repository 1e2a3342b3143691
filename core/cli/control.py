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
from .options import json_option, run_argument, runs_argument
from .output import document, is_terminal, note, say

if TYPE_CHECKING:
    from ..work.keeping import Unmerged

NAMED = 10
"""Deleted runs that are named to somebody who names none."""


@click.command("stop")
@runs_argument
@click.option("--kill", is_flag=True, help="Kill the whole process tree at once, with no time to clean up.")
@json_option
def stop(refs: tuple[str, ...], kill: bool, as_json: bool) -> None:
    """Ask runs to stop, without waiting for it. Runs that have already ended are left as they are.

    A run first gets TERM; what is left of it when the grace period (setting grace_seconds) is over gets KILL.
    A host that is out of reach is told as soon as it is back.
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
    return f"will be stopped: the request reaches {one_line(host, 64) or 'its host'} when that is back"


@click.command("attach")
@run_argument
@json_option
def attach(ref: str, as_json: bool) -> None:
    """Show the tmux pane of a run in this terminal. tmux's detach key leaves it again; the run is not affected.

    With --json, only print the command that does this and the keys that leave the pane.
    """
    engine = Engine.open()
    attach_command = engine.attach_command(engine.find((ref,))[0])
    argv = attach_command.argv
    if as_json:
        document({"argv": argv, "leave": attach_command.leave})
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        hint = "subdeck logs -f does not"
        raise UsageError("attach needs a terminal", where="attach", hint=hint, code="usage.terminal_required")
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - argv of tmux, without a shell
    except OSError as error:
        raise RunnerUnavailable(f"{argv[0]} could not be started: {error.strerror}", where="attach") from error


@click.command("rm")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--purge", is_flag=True, help="Remove for good. Without RUN: everything deleted more than a day ago.")
@click.option("--undo", is_flag=True, help="Restore deleted runs.")
@click.option("--yes", is_flag=True, help="Do not ask before runs are given up or unmerged work is purged.")
@json_option
def rm(refs: tuple[str, ...], purge: bool, undo: bool, yes: bool, as_json: bool) -> None:
    """Delete finished runs. --undo restores them until they are purged.

    A run whose host is out of reach is given up, after asking.
    What a run did in a worktree of its own and nobody merged or applied is kept, with its branch, until it is purged.
    """
    if purge and undo:
        raise UsageError("--purge and --undo are opposites", where="rm", hint="leave one of them out")
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
            note(f"its conversation stays where {one_line(agent, 64)} keeps it")
    for one in unmerged:
        if one.run_id in done:
            note(f"! {one.run_id[-6:]} has work that is not merged, kept until it is purged: {one.words}")
    if purge and not refs:
        say("what was deleted more than a day ago is purged")


@click.command("adopt")
@runs_argument
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def adopt(refs: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Take over foreign runs, so that they can be stopped, continued and cleaned up like your own.

    A run is foreign if your subdeck did not make it: it came with a checkout or a copy, an earlier version made it, or
    it is another user's. That of another user cannot be taken over. Shows what each run is, and asks.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    runs = [run for run in engine.snapshots(run_ids) if not engine.is_own(run.run_id)]
    if runs and not yes:
        if as_json or not is_terminal(sys.stdin):
            what = (
                "--json cannot ask for confirmation"
                if as_json
                else "without a terminal there is no way to ask for confirmation"
            )
            hint = "look at the runs (subdeck status RUN), then add --yes"
            raise UsageError(what, where="adopt", hint=hint, code="usage.confirmation_required")
        say("\n\n".join(_described(run) for run in runs))
        say("\nWhat their files say is believed from then on: which processes, panes and sessions are theirs.")
        if not click.confirm(f"Adopt {runs_word(len(runs))}?", default=False):
            note("nothing was adopted")
            return
    engine.adopt(run.run_id for run in runs)
    adopted = [run.run_id for run in runs]
    if as_json:
        document({"adopted": adopted, "own": [run_id for run_id in run_ids if run_id not in adopted]})
        return
    for run_id in run_ids:
        say(f"{run_id[-6:]} {'is yours now' if run_id in adopted else 'was yours already'}")


def _described(run: RunSnapshot) -> str:
    """Show what an operator has to know of a run before trusting it."""
    meta = run.meta
    facts = {
        "task": one_line(meta.task, 300),
        "preset": one_line(meta.title, 80),
        "directory": one_line(meta.cwd, 300),
        "agent": one_line(" ".join((meta.agent, *meta.agent_command)), 300),
        "created": one_line(meta.created_at, 40),
        "status": f"{run.status} by its own account",
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
        lines = [f"{run.meta.short_id}: {whereabouts(run)}, it may still be at work" for run in away]
        if as_json or not is_terminal(sys.stdin):
            raise UsageError(lines[0], where="rm", hint="add --yes to give it up")
        say("\n".join(lines))
        click.confirm(f"Give up {runs_word(len(away))}?", default=False, abort=True)
    for run in away:
        engine.give_up(run.run_id)


def _check_agreed(unmerged: Sequence[Unmerged], *, as_json: bool) -> None:
    """Ask whether unmerged work may be lost. Raises UsageError where nobody can be asked, Abort where it may not."""
    lines = [f"{one.run_id[-6:]} has work that is not merged: {one.words}" for one in unmerged]
    if as_json or not is_terminal(sys.stdin):
        raise UsageError(lines[0], where="rm", hint="merge or apply it first, or add --yes to lose it for good")
    say("\n".join(lines))
    click.confirm("Remove it for good?", default=False, abort=True)


def _anywhere(engine: Engine, ref: str) -> str:
    try:
        return engine.find((ref,), deleted=True)[0]
    except UnknownRun:
        return engine.find((ref,))[0]


def _restorable(engine: Engine) -> str:
    """Say which runs could be restored: no list shows them."""
    if not (run_ids := engine.deleted()):
        return "nothing is in the trash"
    more = f" and {len(run_ids) - NAMED} more" if len(run_ids) > NAMED else ""
    return f"in the trash, newest first: {', '.join(run_id[-6:] for run_id in run_ids[:NAMED])}{more}"


def _deleted(engine: Engine, refs: Sequence[str]) -> tuple[str, ...]:
    try:
        return engine.find(refs, deleted=True)
    except UnknownRun as error:
        hint = error.hint if "more exact" in error.hint else "only what was deleted and not purged can be taken back"
        raise UnknownRun(error.what, where="deleted runs", hint=hint, code=error.code) from None
