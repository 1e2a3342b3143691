"""`subdeck clean`: delete old runs by age, number or size."""

from __future__ import annotations

import sys
import time

import click
from msgspec import structs

from ..config.settings import Retention
from ..config.values import MOST_COUNT, MOST_DAYS, MOST_MEGABYTES
from ..engine import Engine
from ..errors import UsageError
from ..paths import user_settings_file
from ..project import trash
from ..project.unborn import SURELY_S, remove_unborn
from ..run.describe import discarded_words, runs_word, size_text
from ..text.plain import one_line
from ..work import keeping
from .options import Days, Number, Whole, json_option
from .output import document, is_terminal, note, say

NAMED = 20
"""Runs that were not deleted which are named one by one."""

UNASKED_HINT = "add --yes, or --dry-run to see what would be deleted"


@click.command("clean")
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=Days(MOST_DAYS),
    help="Delete runs that ended more than DAYS ago; 12h and 2w are understood, too.",
)
@click.option("--keep", metavar="N", type=Whole(0, MOST_COUNT), help="Delete all but the newest N runs.")
@click.option(
    "--max-mb", metavar="N", type=Number(MOST_MEGABYTES), help="Delete the oldest until all runs take at most N MB."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--purge", is_flag=True, help="Remove for good instead of moving to the trash.")
@click.option("--unmerged", is_flag=True, help="Also delete runs whose work in a worktree is not merged or applied.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def clean(
    days: float | None,
    keep: int | None,
    max_mb: float | None,
    dry_run: bool,
    purge: bool,
    unmerged: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete old finished runs. Without a rule, those in the settings (retention) apply.

    The runs go to the trash, from which subdeck rm --undo restores them for a day; after that their space is free.
    Unfinished runs are never deleted. With several rules, a run is deleted if any of them applies to it.
    """
    engine = Engine.open()
    rule = Retention(days, keep, max_mb)
    if not rule.is_set:
        rule = engine.settings.retention
    if not rule.is_set:
        hint = f"give --older-than, --keep or --max-mb, or set retention in {user_settings_file()}"
        raise UsageError("no rule says which runs are old", where="clean", hint=hint)
    if as_json and not (yes or dry_run):
        raise UsageError(
            "--json cannot ask for confirmation", where="clean", hint=UNASKED_HINT, code="usage.confirmation_required"
        )
    stock = keeping.read_stock(engine.project)
    at_risk = stock.unmerged if unmerged else frozenset[str]()
    stock = structs.replace(stock, unmerged=stock.unmerged - at_risk)
    selection = trash.choose(stock, rule, time.time())
    if not as_json:
        say("\n".join(_summary(stock, selection, purge, at_risk)))
    unborn = 0 if dry_run or not purge else remove_unborn(engine.project, SURELY_S)
    moved: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    if selection.going and not dry_run:
        if not (yes or _agreed(purge)):
            note("nothing was deleted")
            return
        cleaned = keeping.clean(engine.project, selection.run_ids, for_good=purge)
        moved, left = cleaned.moved, cleaned.left
    if as_json:
        document(
            {
                "rule": {"olderThanDays": rule.days, "keep": rule.keep, "maxMb": rule.max_mb},
                "dryRun": dry_run,
                "purge": purge,
                "all": {"runs": len(stock.runs), "bytes": stock.size},
                "worktrees": {"count": stock.worktrees, "bytes": stock.worktrees_size},
                "discarded": {"count": stock.discarded, "bytes": stock.discarded_size},
                "trash": {"runs": len(stock.trash), "bytes": stock.trash_size},
                "going": {"runs": selection.run_ids, "bytes": selection.size, "untold": selection.unreported},
                "unfinished": selection.unfinished,
                "foreign": selection.foreign,
                "unmerged": selection.unmerged,
                "moved": moved,
                "unborn": unborn,
                "left": [{"runId": run_id, "why": why} for run_id, why in left],
            }
        )
        return
    if moved:
        say(f"{runs_word(len(moved))} {'removed for good' if purge else 'moved to the trash'}")
    if unborn:
        say(f"removed {runs_word(unborn)} that a killed launcher had only begun to make")
    for run_id, why in left[:NAMED]:
        note(f"! {run_id[-6:]} was not deleted: {one_line(why)}")
    if len(left) > NAMED:
        note(f"! {runs_word(len(left) - NAMED)} more not deleted")


def _summary(stock: trash.Stock, selection: trash.Selection, purge: bool, at_risk: frozenset[str]) -> list[str]:
    lines = [
        f"there are {runs_word(len(stock.runs))}, {size_text(stock.size)}; "
        f"in the trash {runs_word(len(stock.trash))}, {size_text(stock.trash_size)}"
    ]
    if stock.worktrees:
        count = f"{stock.worktrees} worktree{'s' if stock.worktrees > 1 else ''}"
        lines.append(f"in that: {count}, {size_text(stock.worktrees_size)} (subdeck worktrees lists them)")
    if discarded := discarded_words(stock.discarded, stock.discarded_size):
        lines.append(discarded)
    if selection.foreign:
        lines.append(
            f"kept: {runs_word(selection.foreign)} that your subdeck did not make; subdeck rm RUN deletes them"
        )
    if selection.unmerged:
        lines.append(
            f"kept: {runs_word(selection.unmerged)} with work that is not merged; --unmerged deletes them, too"
        )
    going = selection.going
    if not going:
        return [*lines, "nothing to delete"]
    span = going[0].run_id[-6:] if len(going) == 1 else f"{going[0].run_id} to {going[-1].run_id}"
    lines.append(f"to delete: {runs_word(len(going))}, {size_text(selection.size)} ({span})")
    if selection.unreported:
        lines.append(f"! the end of {selection.unreported} of them has not been seen by anyone")
    if lost := len(at_risk.intersection(selection.run_ids)):
        until = "is lost for good" if purge else "is kept until they leave the trash"
        lines.append(f"! the work of {lost} of them is not merged: it {until}")
    if purge:
        lines.append(f"that frees {size_text(selection.size)} at once and cannot be undone")
    else:
        lines.append(f"that frees {size_text(selection.size)} in a day, when they leave the trash")
    return lines


def _agreed(purge: bool) -> bool:
    if not is_terminal(sys.stdin):
        raise UsageError(
            "without a terminal there is no way to ask for confirmation",
            where="clean",
            hint=UNASKED_HINT,
            code="usage.confirmation_required",
        )
    return click.confirm("Remove them for good?" if purge else "Move them to the trash?", default=False)
