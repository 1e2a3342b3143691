"""`subdeck worktrees`: where runs work apart from their project, whatever became of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import click

from ..engine import Engine
from ..errors import SubdeckError, UnknownRun, UsageError, reason
from ..run.describe import discarded_words, size_text
from ..text.column import Column
from ..text.plain import one_line
from ..work import worktrees as kept
from ..work.acts import discarded_sizes
from ..work.worktrees import RunState, Worktree
from ._options import json_option
from ._table import table
from .output import document, is_terminal, note, say, terminal_width

COLUMNS = (Column(6), Column(40, least=12), Column(60, least=16), Column(8, right=True), Column(12))
RUNS = {RunState.THERE: "", RunState.DELETED: "run deleted", RunState.LOST: "run lost"}


@click.command("worktrees")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--all", "everywhere", is_flag=True, help="Include all your projects.")
@click.option(
    "--repair", is_flag=True, help="Repair RUN's worktrees that git has forgotten, or that moved with a project."
)
@click.option("--remove", is_flag=True, help="Delete RUN's worktree and branch permanently, with all files in them.")
@click.option("--yes", is_flag=True, help="With --remove: do not ask for confirmation.")
@json_option
def worktrees(refs: tuple[str, ...], everywhere: bool, repair: bool, remove: bool, yes: bool, as_json: bool) -> None:
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
        # One whose project was moved is listed by its former place.
        found = _chosen(list(kept.listed(None)), refs)
        found = [kept.repair(engine.project, worktree) for worktree in found]
    else:
        found = _chosen(list(kept.listed(None if everywhere or remove else engine.project)), refs)
    if remove:
        _check_agreed(found, yes=yes, as_json=as_json)
        found = _remove(found)
    if as_json:
        document({"removed" if remove else "worktrees": [fields(worktree) for worktree in found]})
        return
    if remove:
        for worktree in found:
            say(f"{worktree.run_id[-6:]} removed, with the branch {one_line(worktree.record.branch, 60)}")
        return
    _show(found)
    sizes = discarded_sizes(engine.project)
    if discarded := discarded_words(len(sizes), sum(sizes)):
        say(discarded)
    if left := kept.left_in_repository(engine.project):
        say(
            f"git still lists {len(left)} of subdeck that no longer exist; run git worktree prune to remove the entries"
        )


def _chosen(found: Sequence[Worktree], refs: Iterable[str]) -> list[Worktree]:
    """Return those that are asked for; all where none are. Raises UnknownRun."""
    chosen: dict[str, Worktree] = {}
    for ref in refs:
        matching = [one for one in found if one.run_id.startswith(ref) or one.run_id[-6:].startswith(ref)]
        if len(matching) != 1:
            what = f'{"several worktrees" if matching else "no worktree"} of a run that matches "{one_line(ref, 40)}"'
            raise UnknownRun(what, where="worktrees", hint="subdeck worktrees --all lists them")
        chosen[matching[0].run_id] = matching[0]
    return list(chosen.values()) if chosen else list(found)


def _check_agreed(found: Sequence[Worktree], *, yes: bool, as_json: bool) -> None:
    """Ask whether they may go. Raises UsageError where nobody can be asked, Abort where they may not."""
    if yes:
        return
    if as_json or not is_terminal(sys.stdin):
        what = "confirmation needed but stdin is not a terminal"
        hint = "check them (subdeck worktrees), then add --yes"
        raise UsageError(what, where="worktrees", hint=hint, code="usage.confirmation_required")
    _show(found)
    click.confirm("Delete them permanently, with all files in them?", default=False, abort=True)


def _remove(found: Iterable[Worktree]) -> list[Worktree]:
    removed: list[Worktree] = []
    for worktree in found:
        try:
            kept.remove(worktree)
        except SubdeckError as error:
            note(f"! {reason(error)}")
        else:
            removed.append(worktree)
    return removed


def _show(found: Sequence[Worktree]) -> None:
    rows = [
        (
            worktree.run_id[-6:],
            worktree.record.branch,
            f"{worktree.state.work}: {worktree.state.words}",
            size_text(worktree.size),
            RUNS.get(worktree.run, str(worktree.run)),
        )
        for worktree in found
    ]
    lines = table(COLUMNS, rows, terminal_width())
    for line, worktree in zip(lines, found, strict=True):
        say(line)
        away = worktree.record.away
        say(f"        {f'only a branch: the run worked on {one_line(away, 64)}' if away else one_line(worktree.path)}")
        if worktree.state.trouble:
            say(f"        ! {worktree.state.trouble}")
        if worktree.state.advice:
            say(f"          {worktree.state.advice}")
    if not found:
        say("No worktrees.")
    elif len(found) > 1:
        say(f"{len(found)} worktrees, {size_text(sum(worktree.size for worktree in found))}")


def fields(worktree: Worktree) -> dict[str, object]:
    state = worktree.state
    return {
        "runId": worktree.run_id,
        "run": worktree.run,
        "branch": worktree.record.branch,
        "state": state.work,
        "words": state.words,
        "trouble": state.trouble,
        "advice": state.advice,
        "bytes": worktree.size,
        "path": None if worktree.record.away else worktree.path,
        "host": worktree.record.away or None,
        "project": worktree.record.project,
        "madeAt": worktree.record.made_at,
    }
