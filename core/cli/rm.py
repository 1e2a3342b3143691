"""`subdeck rm`: delete runs by name, or by age, number or size, and restore them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, UnsetType, structs

from ..config.settings import Retention
from ..config.values import MOST_COUNT, MOST_DAYS, MOST_MEGABYTES
from ..engine import Engine
from ..errors import UnknownRun, UsageError
from ..paths import user_settings_file
from ..project import trash
from ..project.trash import SURELY_S, remove_unborn
from ..run.describe import discarded_words, runs_word, size_text, whereabouts
from ..text.plain import one_line
from ..work import deletion
from ._command import Document, check_can_ask, command, is_json, preface
from ._options import Days, Number, Whole
from .output import Note, Output, Piece, is_terminal, note, say

if TYPE_CHECKING:
    from ..work.deletion import Unmerged

RESTORABLE = 10
"""Deleted runs that a hint lists."""
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


_RULES = (
    click.option(
        "--older-than",
        "days",
        metavar="DAYS",
        type=Days(MOST_DAYS),
        help="Delete the runs that finished more than DAYS ago (12h and 2w also work).",
    ),
    click.option("--keep", metavar="N", type=Whole(0, MOST_COUNT), help="Delete all but the newest N runs."),
    click.option(
        "--max-mb",
        metavar="N",
        type=Number(MOST_MEGABYTES),
        help="Delete the oldest runs until all runs use at most N MB.",
    ),
    click.option("--retention", is_flag=True, help="Delete by the rule in your settings, unless a rule is given."),
    click.option("--dry-run", is_flag=True, help="With a rule: only show what would be deleted."),
    click.option(
        "--unmerged",
        is_flag=True,
        help="With a rule: also delete runs with worktree changes that are not merged or applied.",
    ),
)


def _rule_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_RULES):
        function = option(function)
    return function


@command(
    "rm",
    "subdeck rm 4ae0bd 81c2f7",
    "subdeck rm --undo 4ae0bd",
    "subdeck rm --older-than 30 --dry-run # what this rule would delete",
)
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@_rule_options
@click.option("--purge", is_flag=True, help="Delete permanently. Alone: everything deleted more than a day ago.")
@click.option("--undo", is_flag=True, help="Restore deleted runs.")
@click.option(
    "--yes", is_flag=True, help="Do not ask before deleting by a rule, abandoning runs or purging unmerged changes."
)
def rm(
    refs: tuple[str, ...],
    days: float | None,
    keep: int | None,
    max_mb: float | None,
    retention: bool,
    dry_run: bool,
    unmerged: bool,
    purge: bool,
    undo: bool,
    yes: bool,
) -> Output[Removed | Cleaned] | int:
    """Delete finished runs, by name or by a rule. --undo restores them until they are purged.

    Deleted runs stay in the trash for a day. Their disk space is free after that. Unfinished runs are never deleted.
    A run on an unreachable host is abandoned, after confirmation. Unmerged changes in a run's own worktree are kept,
    with the branch, until the run is purged.

    With several rules, a run is deleted if any of them matches. The runs are shown for confirmation; without a
    terminal, --yes is required. Runs with unmerged changes are kept unless --unmerged is given.
    """
    rule = Retention(days, keep, max_mb)
    by_rule = rule.is_set or retention
    _check_options(
        refs, by_rule=by_rule, needs_rule={"--dry-run": dry_run, "--unmerged": unmerged}, undo=undo, purge=purge
    )
    engine = Engine.open()
    if by_rule:
        return _clean(engine, rule, dry_run=dry_run, purge=purge, with_unmerged=unmerged, yes=yes)
    return _remove(engine, refs, purge=purge, undo=undo, yes=yes)


def _check_options(
    refs: Sequence[str], *, by_rule: bool, needs_rule: Mapping[str, bool], undo: bool, purge: bool
) -> None:
    """Raise UsageError for options that contradict each other, or if nothing is named."""
    if purge and undo:
        raise UsageError("--purge and --undo cannot be combined", where="rm", hint="use only one of them")
    if by_rule and (refs or undo):
        what = f"{'RUN' if refs else '--undo'} and a rule cannot be combined"
        raise UsageError(what, where="rm", hint="use only one of them")
    for option, is_given in needs_rule.items():
        if is_given and not by_rule:
            hint = "add --older-than, --keep, --max-mb or --retention"
            raise UsageError(f"{option} requires a rule", where=option, hint=hint)
    if not (refs or purge or by_rule):
        hint = _restorable(Engine.open()) if undo else "subdeck status --all lists the runs"
        raise UsageError("RUN is missing", where="rm", hint=hint)


# --- named runs -------------------------------------------------------------------------------------------------------


def _remove(engine: Engine, refs: Sequence[str], *, purge: bool, undo: bool, yes: bool) -> Output[Removed]:
    """Delete, purge or restore named runs."""
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
    unmerged = tuple(work for work in unmerged if work.run_id in done)
    works = tuple(
        UnmergedWork(work.run_id, work.worktree.record.branch, work.worktree.path, work.words) for work in unmerged
    )
    text: list[Piece] = []
    for run_id in done:
        back = f"; subdeck rm --undo {run_id[-6:]} restores it" if verb == "deleted" else ""
        text.append(f"{run_id[-6:]} {verb}{back}")
        if agent := kept.get(run_id):
            text.append(Note(f"{one_line(agent, 64)} keeps its conversation"))
    text += [
        Note(f"! {work.run_id[-6:]} has unmerged changes, kept until the run is purged: {work.words}")
        for work in unmerged
    ]
    if purge and not refs:
        text.append("runs deleted more than a day ago are purged")
    document: dict[str, Any] = {verb: done, "unmerged": works}
    return Output(Removed(**document), text)


def _purge(engine: Engine, refs: Sequence[str], *, yes: bool) -> tuple[str, ...]:
    """Purge runs, deleted or not, after a confirmation if work would be lost."""
    if not refs:
        engine.purge()
        return ()
    run_ids = tuple(dict.fromkeys(_anywhere(engine, ref) for ref in refs))
    if not yes and (unmerged := engine.unmerged(run_ids)):
        _check_agreed(unmerged)
    existing = {run.run_id for run in engine.snapshots(run_ids)}
    _give_up(engine, existing, yes=yes)
    engine.delete((run_id for run_id in run_ids if run_id in existing), for_good=True)
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
    lines = [f"{work.run_id[-6:]} has unmerged changes: {work.words}" for work in unmerged]
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
    more = f" and {len(run_ids) - RESTORABLE} more" if len(run_ids) > RESTORABLE else ""
    return f"in the trash, newest first: {', '.join(run_id[-6:] for run_id in run_ids[:RESTORABLE])}{more}"


def _deleted(engine: Engine, refs: Sequence[str]) -> tuple[str, ...]:
    try:
        return engine.find(refs, deleted=True)
    except UnknownRun as error:
        hint = error.hint if "a longer id" in error.hint else "only deleted runs that are not purged can be restored"
        raise UnknownRun(error.what, where="deleted runs", hint=hint, code=error.code) from None


# --- runs that a rule selects ----------------------------------------------------------------------------------------


def _clean(
    engine: Engine, rule: Retention, *, dry_run: bool, purge: bool, with_unmerged: bool, yes: bool
) -> Output[Cleaned] | int:
    """Delete the runs that a rule selects, by default the one in the settings."""
    if not rule.is_set:
        rule = engine.settings.retention
    if not rule.is_set:
        hint = f"use --older-than, --keep or --max-mb, or set retention in {user_settings_file()}"
        raise UsageError("no rule selects old runs", where="rm", hint=hint)
    if is_json() and not (yes or dry_run):
        check_can_ask("rm", UNASKED_HINT)
    stock = deletion.read_stock(engine.project)
    at_risk = stock.unmerged if with_unmerged else frozenset[str]()
    stock = structs.replace(stock, unmerged=stock.unmerged - at_risk)
    selection = trash.choose(stock, rule, time.time())
    preface(_summary(stock, selection, purge, at_risk))
    unborn = 0 if dry_run or not purge else remove_unborn(engine.project, SURELY_S)
    moved: tuple[str, ...] = ()
    not_deleted: tuple[tuple[str, str], ...] = ()
    if selection.going and not dry_run:
        if not (yes or _agreed(purge)):
            note("nothing was deleted")
            return 0
        cleaned = deletion.clean(engine.project, selection.run_ids, for_good=purge)
        moved, not_deleted = cleaned.moved, cleaned.left
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
        left=tuple(NotDeleted(run_id, why) for run_id, why in not_deleted),
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
    check_can_ask("rm", UNASKED_HINT)
    return click.confirm("Delete them permanently?" if purge else "Move them to the trash?", default=False)
