"""`subdeck worktrees`: list, repair and remove the worktrees of runs, even if run or project is gone."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

import click

from ..engine import Engine
from ..errors import SubdeckError, UnknownRun, UsageError, reason
from ..run.describe import discarded_words, size_text
from ..text.column import Column
from ..text.plain import one_line
from ..work import worktrees as kept
from ..work.acts import discarded_sizes
from ..work.worktrees import RunState, Worktree
from ._command import Document, command, is_json
from ._table import table
from .output import Output, Piece, is_terminal, note, show, terminal_width

COLUMNS = (Column(6), Column(40, least=12), Column(60, least=16), Column(8, right=True), Column(12))
RUNS = {RunState.THERE: "", RunState.DELETED: "run deleted", RunState.LOST: "run lost"}


class WorktreeRow(Document, frozen=True):
    """A worktree of a run."""

    run_id: str
    run: RunState
    """Whether the run exists."""
    branch: str
    state: str
    """State of its changes."""
    words: str
    """The same for people."""
    trouble: str
    """The problem with the worktree; empty without one."""
    advice: str
    """The fix."""
    bytes: int
    path: str | None
    """Null if only the branch is on this machine."""
    host: str | None
    """Host on which the run worked; null for this machine."""
    project: str
    made_at: str


class Worktrees(Document, frozen=True):
    worktrees: tuple[WorktreeRow, ...]


class RemovedWorktrees(Document, frozen=True):
    removed: tuple[WorktreeRow, ...]
    """With --remove."""


@command(
    "worktrees",
    "subdeck worktrees --all",
    "subdeck worktrees --repair 4ae0bd",
    "subdeck worktrees --remove 4ae0bd",
)
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--all", "everywhere", is_flag=True, help="Include all your projects.")
@click.option(
    "--repair", is_flag=True, help="Repair RUN's worktrees that git has forgotten, or that moved with a project."
)
@click.option("--remove", is_flag=True, help="Delete RUN's worktree and branch permanently, with all files in them.")
@click.option("--yes", is_flag=True, help="With --remove: do not ask for confirmation.")
def worktrees(
    refs: tuple[str, ...], everywhere: bool, repair: bool, remove: bool, yes: bool
) -> Output[Worktrees | RemovedWorktrees]:
    """List the worktrees of runs: branch, whether the changes are merged, size and problems.

    A worktree is listed as long as it exists, even if its run was deleted or its project is gone. The fix for each
    problem is printed below it.
    """
    if (repair or remove) and not refs:
        option = "--repair" if repair else "--remove"
        raise UsageError("RUN is missing", where="worktrees", hint=f"subdeck worktrees {option} RUN")
    if repair and remove:
        raise UsageError("--repair and --remove cannot be combined", where="worktrees", hint="use only one of them")
    engine = Engine.open()
    if repair:
        # A worktree whose project was moved is listed below its former directory.
        chosen = _chosen(list(kept.listed(None)), refs)
        chosen = [kept.repair(engine.project, worktree) for worktree in chosen]
    else:
        chosen = _chosen(list(kept.listed(None if everywhere or remove else engine.project)), refs)
    if remove:
        _check_agreed(chosen, yes=yes)
        removed = _remove(chosen)
        gone = (
            f"{worktree.run_id[-6:]} removed, with the branch {one_line(worktree.record.branch, 60)}"
            for worktree in removed
        )
        return Output(RemovedWorktrees(tuple(map(_row, removed))), gone)
    return Output(Worktrees(tuple(map(_row, chosen))), _text(engine, chosen))


def _text(engine: Engine, chosen: Sequence[Worktree]) -> Iterator[Piece]:
    yield from _listed(chosen)
    sizes = discarded_sizes(engine.project)
    if discarded := discarded_words(len(sizes), sum(sizes)):
        yield discarded
    if gone := kept.left_in_repository(engine.project):
        yield (
            f"git still lists {len(gone)} of subdeck that no longer exist; run git worktree prune to remove the entries"
        )


def _chosen(candidates: Sequence[Worktree], refs: Iterable[str]) -> list[Worktree]:
    """Return the worktrees of the named runs, or all if no run is named. Raises UnknownRun."""
    chosen: dict[str, Worktree] = {}
    for ref in refs:
        matching = [
            worktree
            for worktree in candidates
            if worktree.run_id.startswith(ref) or worktree.run_id[-6:].startswith(ref)
        ]
        if len(matching) != 1:
            what = f'{"several worktrees" if matching else "no worktree"} of a run that matches "{one_line(ref, 40)}"'
            raise UnknownRun(what, where="worktrees", hint="subdeck worktrees --all lists them")
        chosen[matching[0].run_id] = matching[0]
    return list(chosen.values()) if chosen else list(candidates)


def _check_agreed(chosen: Sequence[Worktree], *, yes: bool) -> None:
    """Ask for confirmation. Raises UsageError if the user cannot be asked, Abort after a no."""
    if yes:
        return
    if is_json() or not is_terminal(sys.stdin):
        what = "confirmation needed but stdin is not a terminal"
        hint = "check them (subdeck worktrees), then add --yes"
        raise UsageError(what, where="worktrees", hint=hint, code="usage.confirmation_required")
    show(_listed(chosen))
    click.confirm("Delete them permanently, with all files in them?", default=False, abort=True)


def _remove(chosen: Iterable[Worktree]) -> list[Worktree]:
    removed: list[Worktree] = []
    for worktree in chosen:
        try:
            kept.remove(worktree)
        except SubdeckError as error:
            note(f"! {reason(error)}")
        else:
            removed.append(worktree)
    return removed


def _listed(chosen: Sequence[Worktree]) -> Iterator[Piece]:
    rows = [
        (
            worktree.run_id[-6:],
            worktree.record.branch,
            f"{worktree.state.work}: {worktree.state.words}",
            size_text(worktree.size),
            RUNS.get(worktree.run, str(worktree.run)),
        )
        for worktree in chosen
    ]
    lines = table(COLUMNS, rows, terminal_width())
    for line, worktree in zip(lines, chosen, strict=True):
        yield line
        away = worktree.record.away
        yield f"        {f'only a branch: the run worked on {one_line(away, 64)}' if away else one_line(worktree.path)}"
        if worktree.state.trouble:
            yield f"        ! {worktree.state.trouble}"
        if worktree.state.advice:
            yield f"          {worktree.state.advice}"
    if not chosen:
        yield "No worktrees."
    elif len(chosen) > 1:
        yield f"{len(chosen)} worktrees, {size_text(sum(worktree.size for worktree in chosen))}"


def _row(worktree: Worktree) -> WorktreeRow:
    state, record = worktree.state, worktree.record
    return WorktreeRow(
        run_id=worktree.run_id,
        run=worktree.run,
        branch=record.branch,
        state=state.work,
        words=state.words,
        trouble=state.trouble,
        advice=state.advice,
        bytes=worktree.size,
        path=None if record.away else worktree.path,
        host=record.away or None,
        project=record.project,
        made_at=record.made_at,
    )
