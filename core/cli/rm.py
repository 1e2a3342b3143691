"""`subdeck rm`: delete finished runs, take it back, make it final."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from ..engine import Engine
from ..errors import UnknownRun, UsageError
from .options import json_option
from .output import document, say


@click.command("rm")
@click.argument("words", metavar="[RUN...]", nargs=-1)
@click.option("--purge", is_flag=True, help="For good. Without RUN: all that were deleted more than a day ago.")
@click.option("--undo", is_flag=True, help="Take deleted runs back.")
@json_option
def command(words: tuple[str, ...], purge: bool, undo: bool, as_json: bool) -> int:
    """Delete finished runs. --undo takes them back until they are purged."""
    if purge and undo:
        raise UsageError("--purge and --undo are opposites", where="rm", hint="leave one of them out")
    if not words and not purge:
        raise UsageError("RUN is missing", where="rm", hint="subdeck status --all lists the runs")
    engine = Engine.open()
    if undo:
        done, verb = engine.restore(_unique(_deleted(engine, words))), "restored"
    elif purge:
        done, verb = _purge(engine, words), "purged"
    else:
        done, verb = engine.delete(_unique(engine.find(words))), "deleted"
    if as_json:
        document({verb: done})
        return 0
    for run_id in done:
        back = f"; subdeck rm --undo {run_id[-6:]} takes it back" if verb == "deleted" else ""
        say(f"{run_id[-6:]} {verb}{back}")
    if purge and not words:
        say("what was deleted more than a day ago is purged")
    return 0


def _purge(engine: Engine, words: Sequence[str]) -> tuple[str, ...]:
    """Delete what is not deleted yet, then remove all of it for good."""
    if not words:
        engine.purge()
        return ()
    run_ids = _unique(_anywhere(engine, word) for word in words)
    standing = {run.run_id for run in engine.snapshots(run_ids)}
    engine.delete(run_id for run_id in run_ids if run_id in standing)
    engine.purge(run_ids)
    return run_ids


def _anywhere(engine: Engine, word: str) -> str:
    try:
        return engine.find((word,), deleted=True)[0]
    except UnknownRun:
        return engine.find((word,))[0]


def _deleted(engine: Engine, words: Sequence[str]) -> tuple[str, ...]:
    try:
        return engine.find(words, deleted=True)
    except UnknownRun as error:
        hint = error.hint if "more exact" in error.hint else "only what was deleted and not purged can be taken back"
        raise UnknownRun(error.what, where="deleted runs", hint=hint) from None


def _unique(run_ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(run_ids))
