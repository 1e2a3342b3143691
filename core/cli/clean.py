"""`subdeck clean`: delete old runs by age, number or size."""

from __future__ import annotations

import time
from collections.abc import Iterator

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
from ._command import Document, check_can_ask, command, is_json, preface
from ._options import Days, Number, Whole
from .output import Note, Output, Piece, note

NAMED = 20
"""Runs that are listed if they could not be deleted."""

UNASKED_HINT = "add --yes, or --dry-run to see what would be deleted"


class Rule(Document, frozen=True):
    """The rule that selects old runs; null for a part without a limit."""

    older_than_days: float | None
    keep: int | None
    """Number of newest runs to keep."""
    max_mb: float | None
    """Megabytes that all runs may use."""


class Runs(Document, frozen=True):
    runs: int
    bytes: int


class Worktrees(Document, frozen=True):
    count: int
    bytes: int


class Selected(Document, frozen=True):
    runs: tuple[str, ...]
    bytes: int
    untold: int
    """How many of them finished unread."""


class NotDeleted(Document, frozen=True):
    run_id: str
    why: str


class Cleaned(Document, frozen=True):
    """The runs that were deleted, or would be."""

    rule: Rule
    dry_run: bool
    purge: bool
    """Whether runs are deleted permanently."""
    all: Runs
    """All runs before."""
    worktrees: Worktrees
    """Worktrees of runs; their size is part of `all`."""
    discarded: Worktrees
    """Discarded worktrees that can still be restored."""
    trash: Runs
    """Deleted runs that can still be restored."""
    going: Selected
    """The selected runs."""
    unfinished: int
    """Unfinished runs, which are never deleted."""
    foreign: int
    """Untrusted runs, which are kept."""
    unmerged: int
    """Runs kept for their unmerged changes."""
    moved: tuple[str, ...]
    """Ids of the deleted runs."""
    unborn: int
    """Incomplete runs of a killed launcher that were removed."""
    left: tuple[NotDeleted, ...]
    """Selected runs that could not be deleted."""


@command(
    "clean",
    "subdeck clean --older-than 30",
    "subdeck clean --keep 500 --dry-run",
    "subdeck clean --max-mb 2000 --yes",
)
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
def clean(
    days: float | None,
    keep: int | None,
    max_mb: float | None,
    dry_run: bool,
    purge: bool,
    unmerged: bool,
    yes: bool,
) -> Output[Cleaned] | int:
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
    if is_json() and not (yes or dry_run):
        check_can_ask("clean", UNASKED_HINT)
    stock = deletion.read_stock(engine.project)
    at_risk = stock.unmerged if unmerged else frozenset[str]()
    stock = structs.replace(stock, unmerged=stock.unmerged - at_risk)
    selection = trash.choose(stock, rule, time.time())
    preface(_summary(stock, selection, purge, at_risk))
    unborn = 0 if dry_run or not purge else remove_unborn(engine.project, SURELY_S)
    moved: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()
    if selection.going and not dry_run:
        if not (yes or _agreed(purge)):
            note("nothing was deleted")
            return 0
        cleaned = deletion.clean(engine.project, selection.run_ids, for_good=purge)
        moved, left = cleaned.moved, cleaned.left
    document = Cleaned(
        rule=Rule(rule.days, rule.keep, rule.max_mb),
        dry_run=dry_run,
        purge=purge,
        all=Runs(len(stock.runs), stock.size),
        worktrees=Worktrees(stock.worktrees, stock.worktrees_size),
        discarded=Worktrees(stock.discarded, stock.discarded_size),
        trash=Runs(len(stock.trash), stock.trash_size),
        going=Selected(selection.run_ids, selection.size, selection.unreported),
        unfinished=selection.unfinished,
        foreign=selection.foreign,
        unmerged=selection.unmerged,
        moved=moved,
        unborn=unborn,
        left=tuple(NotDeleted(run_id, why) for run_id, why in left),
    )
    return Output(document, _text(document))


def _text(cleaned: Cleaned) -> Iterator[Piece]:
    if cleaned.moved:
        yield f"{runs_word(len(cleaned.moved))} {'deleted permanently' if cleaned.purge else 'moved to the trash'}"
    if cleaned.unborn:
        yield f"removed {runs_word(cleaned.unborn)} left incomplete by a killed launcher"
    for run in cleaned.left[:NAMED]:
        yield Note(f"! {run.run_id[-6:]} was not deleted: {one_line(run.why)}")
    if len(cleaned.left) > NAMED:
        yield Note(f"! {runs_word(len(cleaned.left) - NAMED)} more not deleted")


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
