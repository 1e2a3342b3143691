"""`subdeck clean`: delete old runs by age, number or size."""

from __future__ import annotations

import time

import click
from msgspec import structs

from ..config.settings import Retention
from ..config.values import MOST_COUNT, MOST_DAYS, MOST_MEGABYTES
from ..engine import Engine
from ..errors import UsageError
from ..paths import user_settings_file
from ..project import trash
from ..project.trash import SURELY_S, remove_unborn
from ..run.describe import discarded_words, runs_word, size_text
from ..text.plain import one_line
from ..work import deletion
from ._options import Days, Number, Whole, json_option
from .output import check_can_ask, document, note, say

NAMED = 20
"""Runs that were not deleted which are named one by one."""

UNASKED_HINT = "add --yes, or --dry-run to see what would be deleted"


@click.command("clean")
@click.option(
    "--older-than",
    "days",
    metavar="DAYS",
    type=Days(MOST_DAYS),
    help="Delete runs that finished more than DAYS ago (12h and 2w also work).",
)
@click.option("--keep", metavar="N", type=Whole(0, MOST_COUNT), help="Delete all but the newest N runs.")
@click.option(
    "--max-mb", metavar="N", type=Number(MOST_MEGABYTES), help="Delete the oldest runs until all runs use at most N MB."
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--purge", is_flag=True, help="Delete permanently instead of moving to the trash.")
@click.option("--unmerged", is_flag=True, help="Also delete runs with worktree changes that are not merged or applied.")
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
    """Delete old finished runs. Without a rule, use those in your settings (retention).

    Deleted runs stay in the trash for a day, and subdeck rm --undo restores them. Their disk space is free after that.
    Unfinished runs are never deleted. With several rules, a run is deleted if any of them matches.
    """
    engine = Engine.open()
    rule = Retention(days, keep, max_mb)
    if not rule.is_set:
        rule = engine.settings.retention
    if not rule.is_set:
        hint = f"use --older-than, --keep or --max-mb, or set retention in {user_settings_file()}"
        raise UsageError("no rule selects old runs", where="clean", hint=hint)
    if as_json and not (yes or dry_run):
        check_can_ask("clean", UNASKED_HINT, as_json=True)
    stock = deletion.read_stock(engine.project)
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
        cleaned = deletion.clean(engine.project, selection.run_ids, for_good=purge)
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
        say(f"{runs_word(len(moved))} {'deleted permanently' if purge else 'moved to the trash'}")
    if unborn:
        say(f"removed {runs_word(unborn)} left incomplete by a killed launcher")
    for run_id, why in left[:NAMED]:
        note(f"! {run_id[-6:]} was not deleted: {one_line(why)}")
    if len(left) > NAMED:
        note(f"! {runs_word(len(left) - NAMED)} more not deleted")


def _summary(stock: trash.Stock, selection: trash.Selection, purge: bool, at_risk: frozenset[str]) -> list[str]:
    lines = [
        f"{runs_word(len(stock.runs))}, {size_text(stock.size)}; in the trash: "
        f"{runs_word(len(stock.trash))}, {size_text(stock.trash_size)}"
    ]
    if stock.worktrees:
        count = f"{stock.worktrees} worktree{'s' if stock.worktrees > 1 else ''}"
        lines.append(f"including {count}, {size_text(stock.worktrees_size)} (subdeck worktrees lists them)")
    if discarded := discarded_words(stock.discarded, stock.discarded_size):
        lines.append(discarded)
    if selection.foreign:
        lines.append(f"kept: {runs_word(selection.foreign)} not created by your subdeck; subdeck rm RUN deletes them")
    if selection.unmerged:
        lines.append(f"kept: {runs_word(selection.unmerged)} with unmerged changes; add --unmerged to delete them")
    going = selection.going
    if not going:
        return [*lines, "nothing to delete"]
    span = going[0].run_id[-6:] if len(going) == 1 else f"{going[0].run_id} to {going[-1].run_id}"
    lines.append(f"to delete: {runs_word(len(going))}, {size_text(selection.size)} ({span})")
    if selection.unreported:
        lines.append(f"! {selection.unreported} of them finished unread")
    if lost := len(at_risk.intersection(selection.run_ids)):
        until = "will be lost permanently" if purge else "are kept until the runs leave the trash"
        lines.append(f"! the unmerged changes of {lost} of them {until}")
    if purge:
        lines.append(f"this frees {size_text(selection.size)} at once and cannot be undone")
    else:
        lines.append(f"this frees {size_text(selection.size)} in a day, when the runs leave the trash")
    return lines


def _agreed(purge: bool) -> bool:
    check_can_ask("clean", UNASKED_HINT)
    return click.confirm("Delete them permanently?" if purge else "Move them to the trash?", default=False)
