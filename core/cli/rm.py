"""`subdeck rm`: delete finished runs, restore deleted ones, or remove them for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from ..engine import Engine
from ..errors import UnknownRun, UsageError
from .options import json_option
from .output import document, say


@click.command("rm")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--purge", is_flag=True, help="Remove for good. Without RUN: everything deleted more than a day ago.")
@click.option("--undo", is_flag=True, help="Restore deleted runs.")
@json_option
def command(refs: tuple[str, ...], purge: bool, undo: bool, as_json: bool) -> int:
    """Delete finished runs. --undo restores them until they are purged."""
    if purge and undo:
        raise UsageError("--purge and --undo are opposites", where="rm", hint="leave one of them out")
    if not refs and not purge:
        raise UsageError("RUN is missing", where="rm", hint="subdeck status --all lists the runs")
    engine = Engine.open()
    if undo:
        done, verb = engine.restore(_unique(_deleted(engine, refs))), "restored"
    elif purge:
        done, verb = _purge(engine, refs), "purged"
    else:
        done, verb = engine.delete(_unique(engine.find(refs))), "deleted"
    if as_json:
        document({verb: done})
        return 0
    for run_id in done:
        back = f"; subdeck rm --undo {run_id[-6:]} restores it" if verb == "deleted" else ""
        say(f"{run_id[-6:]} {verb}{back}")
    if purge and not refs:
        say("what was deleted more than a day ago is purged")
    return 0


def _purge(engine: Engine, refs: Sequence[str]) -> tuple[str, ...]:
    """Delete what is not deleted yet, then remove all of it for good."""
    if not refs:
        engine.purge()
        return ()
    run_ids = _unique(_anywhere(engine, ref) for ref in refs)
    standing = {run.run_id for run in engine.snapshots(run_ids)}
    engine.delete(run_id for run_id in run_ids if run_id in standing)
    engine.purge(run_ids)
    return run_ids


def _anywhere(engine: Engine, ref: str) -> str:
    try:
        return engine.find((ref,), deleted=True)[0]
    except UnknownRun:
        return engine.find((ref,))[0]


def _deleted(engine: Engine, refs: Sequence[str]) -> tuple[str, ...]:
    try:
        return engine.find(refs, deleted=True)
    except UnknownRun as error:
        hint = error.hint if "more exact" in error.hint else "only what was deleted and not purged can be taken back"
        raise UnknownRun(error.what, where="deleted runs", hint=hint) from None


def _unique(run_ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run_ids))
