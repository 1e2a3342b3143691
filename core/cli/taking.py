"""`subdeck apply`, `merge`, `keep`, `discard` and `undo`: take over what a run changed, or not, and take that back."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from .. import paths
from ..engine import Engine
from ..errors import SubdeckError, UnknownRun, UsageError
from ..run.describe import ago
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from .options import json_option, run_argument
from .output import document, is_terminal, note, say

if TYPE_CHECKING:
    from ..work.taking import ApplyPlan

REFUSED = 1
"""The exit code where git, or we, would not do it; nothing was changed then."""

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what it would do.")


@click.command("apply")
@run_argument
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--hunk", "hunks", metavar="FILE:N,N…", multiple=True, help="Take only these hunks of a file.")
@click.option("--reverse", is_flag=True, help="Take the changes out of the files again.")
@click.option("--to", metavar="DIR", default="", help="Write into another working tree of the repository.")
@click.option("--running", is_flag=True, help="Take what a run has changed up to now, though it goes on.")
@dry_run_option
@yes_option
@json_option
def apply(
    ref: str,
    files: tuple[str, ...],
    hunks: tuple[str, ...],
    reverse: bool,
    to: str,
    running: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Write what a run changed into the working tree, three-way; all of it, or the files and hunks that are named.

    The files are left unstaged; index, branch and stash stay as they are. Where a file was changed here, too, in ways
    that do not go together, nothing is written and the exit code is 1. FILE is a path from the root of the repository,
    or a directory. Hunks are counted as subdeck diff prints them. subdeck undo takes it back. With --json, one
    document: {"runId", "root", "files", "conflicts", "refusal", "notes", "applied"}.
    """
    engine = Engine.open()
    run = known(engine, ref)
    chosen = _hunks(hunks)
    plan = engine.work.plan_apply(
        run, files or (() if chosen else None), chosen, reverse=reverse, to=os.path.abspath(to) if to else ""
    )
    refusal = plan.refusal
    if plan.is_running and not (running or dry_run or refusal):
        raise UsageError(
            f"{plan.run} is still running",
            where="apply",
            hint="--running takes what it has changed up to now",
            code="run.busy",
        )
    check_asking(as_json=as_json, asks=not (yes or dry_run or refusal), where="apply")
    applied = False
    if not as_json:
        say(plan.words)
    if not (refusal or dry_run):
        if not (yes or click.confirm("Apply?", default=False)):
            note("nothing was applied")
            return 0
        engine.work.apply(plan)
        applied = True
    if as_json:
        document(_document(plan, applied=applied))
    elif applied:
        say("applied; subdeck undo takes it back")
    return REFUSED if refusal else 0


def _document(plan: ApplyPlan, *, applied: bool) -> dict[str, object]:
    return {
        "runId": plan.run_id,
        "root": plan.root,
        "files": plan.files,
        "conflicts": [{"path": one.path, "kind": one.kind, "why": one.why} for one in plan.conflicts],
        "refusal": plan.refusal,
        "notes": plan.notes,
        "applied": applied,
    }


def _hunks(words: tuple[str, ...]) -> dict[str, list[int]]:
    """Parse `FILE:1,3`."""
    chosen: dict[str, list[int]] = {}
    for word in words:
        name, _, numbers = word.rpartition(":")
        try:
            chosen.setdefault(name, []).extend(int(number) for number in numbers.split(","))
        except ValueError:
            name = ""
        if not name:
            raise UsageError("hunks are named as FILE:1,3", where="--hunk", hint="subdeck diff shows them")
    return chosen


@click.command("undo")
@click.option("--forget", is_flag=True, help="Change nothing, and let what was done before it be the next.")
@dry_run_option
@yes_option
@json_option
def undo(forget: bool, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Take back what was done last in this project: deleting, applying, committing, merging, keeping, discarding.

    Says what it is, and asks. Where it cannot be taken back any more it says why and changes nothing, and the exit code
    is 2; --forget takes it off the stack, so that what was done before can be taken back. With --json, one document:
    {"act", "at", "begun", "undone", "said"}.
    """
    if paths.is_child():
        raise SubdeckError("a child agent takes nothing back", where="undo", hint="leave that to the operator")
    engine = Engine.open()
    act = engine.last_act()
    if act is None:
        raise SubdeckError("there is nothing to undo", where=engine.project.root, code="undo.nothing")
    check_asking(as_json=as_json, asks=not (yes or dry_run), where="undo")
    begun = " (it was not done to its end)" if act.begun else ""
    if not as_json:
        say(f"{act.title}, {ago(act.at, datetime.now(UTC))}{begun}")
    question = "Forget this, so that it cannot be taken back?" if forget else "Take this back?"
    if not (yes or dry_run) and not click.confirm(question, default=False):
        note("nothing was taken back")
        return 0
    said = ""
    if forget and not dry_run:
        engine.work.forget(act)
        said = f"forgot {act.title}"
    elif not dry_run:
        said = engine.take_back(act).said
    undone = not (dry_run or forget)
    if as_json:
        document({"act": act.title, "at": act.at, "begun": act.begun, "undone": undone, "said": said})
    elif said:
        say(said)
    return 0


@click.command("merge")
@run_argument
@click.option("--pick", is_flag=True, help="Make one new commit of it, without the commits of the branch.")
@click.option("--commit", "only", is_flag=True, help="Only commit what is uncommitted, on the branch of the run.")
@click.option("-m", "--message", default="", help="The message of the commit.")
@dry_run_option
@yes_option
@json_option
def merge(ref: str, pick: bool, only: bool, message: str, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Merge what a run did in its worktree into the branch that is checked out, uncommitted work included.

    Without -m the message is made of the first lines of the answer, and is edited in $EDITOR first; with --yes it is
    taken as it is. What you have not committed yet stays so, and stays out of the history. Where git would refuse, the
    exit code is 1, and nothing was done. Hooks are not run. subdeck undo takes it back. With --json, one document:
    {"runId", "branch", "files", "conflicts", "refusal", "notes", "message", "done"}.
    """
    engine = Engine.open()
    if only and pick:
        raise UsageError("--commit and --pick are two things", where="merge", hint="leave one of them out")
    run = known(engine, ref)
    if only:
        return _commit(engine, run, message, dry_run=dry_run, yes=yes, as_json=as_json)
    plan = engine.work.plan_merge(run, pick=pick)
    check_asking(as_json=as_json, asks=not (yes or dry_run or plan.refusal), where="merge")
    if not as_json:
        say(plan.words)
    done = False
    if not (plan.refusal or dry_run):
        if not (yes or click.confirm("Pick?" if pick else "Merge?", default=False)):
            note("nothing was done")
            return 0
        message = message or (plan.message if yes else edited(plan.message))
        engine.work.merge(plan, message)
        done = True
    if as_json:
        document(
            {
                "runId": plan.run_id,
                "branch": plan.branch,
                "files": plan.files,
                "conflicts": [{"path": one.path, "kind": one.kind, "why": one.why} for one in plan.conflicts],
                "refusal": plan.refusal,
                "notes": plan.notes,
                "message": message or plan.message,
                "done": done,
            }
        )
    elif done:
        say(f"{'picked' if pick else 'merged'}; subdeck undo takes it back")
    return REFUSED if plan.refusal else 0


def _commit(engine: Engine, run: RunSnapshot, message: str, *, dry_run: bool, yes: bool, as_json: bool) -> int:
    plan = engine.work.plan_commit(run)
    check_asking(as_json=as_json, asks=not (yes or dry_run), where="merge")
    if not as_json:
        say(plan.words)
    done = False
    if not dry_run:
        if not (yes or click.confirm("Commit?", default=False)):
            note("nothing was done")
            return 0
        message = message or (plan.message if yes else edited(plan.message))
        engine.work.commit(plan, message)
        done = True
    if as_json:
        document({"runId": plan.run_id, "branch": plan.branch, "message": message or plan.message, "done": done})
    elif done:
        say("committed; subdeck undo takes it back")
    return 0


def edited(message: str) -> str:
    """Let a message be edited in the user's editor. Raises SubdeckError where nothing is left of it."""
    try:
        text = click.edit(f"{message}\n", require_save=False)
    except click.ClickException as error:
        raise SubdeckError(error.format_message(), where="$EDITOR", hint="give the message by -m") from error
    if not (text or "").strip():
        raise SubdeckError("the message is empty: nothing was done", where="merge", hint="give it by -m")
    return (text or "").strip()


@click.command("keep")
@run_argument
@click.argument("name", required=False, default="")
@json_option
def keep(ref: str, name: str, as_json: bool) -> None:
    """Keep what a run has committed by a branch, NAME, that stays when the run is deleted.

    Without NAME it is that of the run's own branch without subdeck/. subdeck merge --commit commits what is not yet.
    """
    engine = Engine.open()
    run = known(engine, ref)
    act = engine.work.keep(run, name)
    kept = str(act.data.get("name", ""))
    if as_json:
        document({"runId": run.run_id, "branch": kept})
    else:
        say(f"kept as the branch {one_line(kept)}; subdeck undo takes it back")


@click.command("discard")
@run_argument
@dry_run_option
@yes_option
@json_option
def discard(ref: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove the worktree and the branch of a run, with all that was done there. The run itself stays.

    subdeck undo brings both back for a day. With --json, one document: {"runId", "branch", "words", "discarded"}.
    """
    engine = Engine.open()
    plan = engine.work.plan_discard(known(engine, ref))
    check_asking(as_json=as_json, asks=not (yes or dry_run), where="discard")
    if not as_json:
        say(plan.words)
    done = False
    if not dry_run:
        if not (yes or click.confirm("Discard?", default=False)):
            note("nothing was discarded")
            return
        engine.work.discard(plan)
        done = True
    if as_json:
        document({"runId": plan.run_id, "branch": plan.branch, "words": plan.words, "discarded": done})
    elif done:
        say("discarded; subdeck undo brings it back")


def check_asking(*, as_json: bool, asks: bool, where: str) -> None:
    """Raise UsageError where nobody could be asked."""
    if not asks or (is_terminal(sys.stdin) and not as_json):
        return
    what = "--json cannot ask for confirmation" if as_json else "without a terminal there is no way to ask"
    hint = "add --yes, or --dry-run to see what it would do"
    raise UsageError(what, where=where, hint=hint, code="usage.confirmation_required")


def known(engine: Engine, ref: str) -> RunSnapshot:
    """Return the run that a word stands for. Raises UnknownRun."""
    (run_id,) = engine.find((ref,))
    for run in engine.snapshots((run_id,)):
        return run
    raise UnknownRun("it is not a run, or has just been deleted", where=engine.project.run_dir(run_id))
