"""`subdeck clean`: delete old runs by age, number or size."""

from __future__ import annotations

import sys
import time

import click

from ..config.settings import Retention
from ..engine import Engine
from ..errors import UsageError
from ..paths import user_settings_file
from ..project.retention import Selection, Stock, choose, clean, read_stock
from ..run.describe import runs_word, size_text
from ..text.plain import one_line
from .options import json_option
from .output import document, is_terminal, note, say

NAMED = 20
"""Runs that did not go which are named one by one."""


@click.command("clean")
@click.option("--older-than", "days", metavar="DAYS", type=click.FloatRange(min=0), help="What ended longer ago.")
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="All but the newest N.")
@click.option("--max-mb", metavar="N", type=click.FloatRange(min=0), help="The oldest, until all take at most N MB.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@click.option("--purge", is_flag=True, help="For good and at once, not to the trash.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def command(
    days: float | None, keep: int | None, max_mb: float | None, dry_run: bool, purge: bool, yes: bool, as_json: bool
) -> int:
    """Delete old finished runs. Without a rule those of the settings (retention) count.

    What a rule names goes to the trash, from where subdeck rm --undo takes it back for a day; only then the space is
    free. Runs that go on are never taken. With several rules a run goes when one of them takes it.
    """
    engine = Engine.open()
    rule = Retention(days, keep, max_mb)
    if not rule.is_set:
        rule = engine.settings.retention
    if not rule.is_set:
        hint = f"give --older-than, --keep or --max-mb, or set retention in {user_settings_file()}"
        raise UsageError("there is no rule which runs are old", where="clean", hint=hint)
    if as_json and not (yes or dry_run):
        raise UsageError("--json cannot ask", where="clean", hint="add --yes, or --dry-run to see what would go")
    stock = read_stock(engine.project)
    selection = choose(stock, rule, time.time())
    if not as_json:
        say("\n".join(_said(stock, selection, purge)))
    moved: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    if selection.going and not dry_run:
        if not (yes or _agreed(purge)):
            note("nothing was deleted")
            return 0
        cleaned = clean(engine.project, selection.run_ids, purge=purge)
        moved, left = cleaned.moved, cleaned.left
    if as_json:
        document(
            {
                "rule": {"olderThanDays": rule.days, "keep": rule.keep, "maxMb": rule.max_mb},
                "dryRun": dry_run,
                "purge": purge,
                "all": {"runs": len(stock.runs), "bytes": stock.size},
                "trash": {"runs": len(stock.trash), "bytes": stock.trash_size},
                "going": {"runs": selection.run_ids, "bytes": selection.size, "untold": selection.untold},
                "unfinished": selection.unfinished,
                "moved": moved,
                "left": [{"runId": run_id, "why": why} for run_id, why in left],
            }
        )
        return 0
    if moved:
        say(f"{runs_word(len(moved))} {'removed for good' if purge else 'moved to the trash'}")
    for run_id, why in left[:NAMED]:
        note(f"! {run_id[-6:]} stays: {one_line(why)}")
    if len(left) > NAMED:
        note(f"! {runs_word(len(left) - NAMED)} more stay")
    return 0


def _said(stock: Stock, selection: Selection, purge: bool) -> list[str]:
    """Say what is there, what goes, and what room that makes when."""
    lines = [
        f"there are {runs_word(len(stock.runs))}, {size_text(stock.size)}; "
        f"in the trash {runs_word(len(stock.trash))}, {size_text(stock.trash_size)}"
    ]
    going = selection.going
    if not going:
        return [*lines, "nothing to delete"]
    span = going[0].run_id[-6:] if len(going) == 1 else f"{going[0].run_id} to {going[-1].run_id}"
    lines.append(f"to delete: {runs_word(len(going))}, {size_text(selection.size)} ({span})")
    if selection.untold:
        lines.append(f"! of {selection.untold} of them nobody has seen the end yet")
    if purge:
        lines.append(f"that frees {size_text(selection.size)} at once and cannot be taken back")
    else:
        lines.append(f"that frees nothing now and {size_text(selection.size)} when the trash gives them up, in a day")
    return lines


def _agreed(purge: bool) -> bool:
    if not is_terminal(sys.stdin):
        raise UsageError("nobody can be asked here", where="clean", hint="add --yes, or --dry-run to see what would go")
    return click.confirm("Remove them for good?" if purge else "Move them to the trash?", default=False)
