"""`subdeck apply`, `merge`, `discard` and `undo`: use the changes of a run, drop them, or undo either."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .. import paths
from ..engine import Engine
from ..errors import SubdeckError, UsageError, not_for_agents
from ..run.describe import ago
from ..text.plain import one_line
from ..work.operation import APPLY, DISCARD, MERGE, OPERATIONS, SAVE, SQUASH, Operation, Plan
from ._command import Document, check_can_ask, command, preface
from ._options import run_argument, snapshot_of
from .output import Output, note

if TYPE_CHECKING:
    from ..work.apply import ApplyDocument
    from ..work.commit import CommitDocument
    from ..work.discard import DiscardDocument
    from ..work.merge import MergeDocument
    from ..work.save import SaveDocument

REFUSED = 1
"""The exit code if git or subdeck refuses the operation. Nothing has changed then."""
UNASKED_HINT = "add --yes, or --dry-run to see what would be done"

yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Only show what would be done.")
message_option = click.option("-m", "--message", default="", help="Commit message.")

Function = TypeVar("Function", bound=Callable[..., Any])


def _operation_options(command_name: str) -> Callable[[Function], Function]:
    """Add the options of a command: a flag for each further operation, and the options that all operations have.

    The function gets the flags as keyword arguments, for `_chosen`.
    """
    operations = [operation for operation in OPERATIONS if operation.command == command_name]
    choices = (
        click.option(operation.option, is_flag=True, help=operation.option_help)
        for operation in operations
        if operation.option
    )
    message = [message_option] if any(operation.takes_message for operation in operations) else []
    options = (*choices, *message, dry_run_option, yes_option)

    def add(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def _chosen(usual: Operation, flags: Mapping[str, bool]) -> Operation:
    """Return the operation that a flag chooses, or the command's own. Raises UsageError for several."""
    chosen = [
        operation for operation in OPERATIONS if operation.command == usual.command and flags.get(operation.parameter)
    ]
    if len(chosen) > 1:
        options = " and ".join(sorted(operation.option for operation in chosen))
        raise UsageError(f"{options} cannot be combined", where=usual.command, hint="use only one of them")
    return chosen[0] if chosen else usual


@command(
    "apply",
    "subdeck apply 4ae0bd",
    "subdeck apply 4ae0bd src/auth.py --hunk src/token.py:1,3",
    "subdeck apply 4ae0bd --to-branch tokens # its commits; no file changes",
)
@run_argument
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option("--hunk", "hunks", metavar="FILE:N,N…", multiple=True, help="Apply only these hunks of a file.")
@click.option("--reverse", is_flag=True, help="Remove the changes from your files again.")
@click.option("--to", metavar="DIR", default="", help="Apply to another working tree of the repository.")
@click.option(
    *("--to-branch", "branch"),
    metavar="[NAME]",
    is_flag=False,
    flag_value="",
    help="Only save the run's commits to a branch, by default its own without subdeck/. Your files stay unchanged.",
)
@click.option("--running", is_flag=True, help="Apply the changes so far of a run that is still running.")
@_operation_options("apply")
def apply(
    ref: str,
    files: tuple[str, ...],
    hunks: tuple[str, ...],
    reverse: bool,
    to: str,
    branch: str | None,
    running: bool,
    dry_run: bool,
    yes: bool,
    message: str = "",
    **flags: bool,
) -> Output[ApplyDocument | SaveDocument] | int:
    """Apply a run's changes to your working tree, three-way: all of them, or only the named files and hunks.

    The changes stay unstaged; index, branch and stash are untouched. If your own changes conflict, nothing is written
    and the exit code is 1. FILE is a file or directory, relative to the root of the repository. Hunks are numbered as
    subdeck diff prints them. subdeck undo reverts the changes. With --json, print one document: {"runId", "root",
    "files", "conflicts", "refusal", "notes", "applied"}.

    With --to-branch, the branch stays when the run is deleted. Commit uncommitted changes first with
    subdeck merge --commit. With --json, print one document: {"runId", "branch", "saved"}.
    """
    operation = _chosen(APPLY, flags)
    if branch is not None and (files or hunks or reverse or to or running or operation is not APPLY):
        hint = "it saves all commits of the run: use it without FILE and other options"
        raise UsageError("--to-branch takes no choice of changes", where="--to-branch", hint=hint)
    engine = Engine.open()
    run = snapshot_of(engine, engine.find((ref,))[0])
    if branch is not None:
        return _carry_out(engine, engine.work.plan(SAVE, run, name=branch), dry_run=dry_run, yes=yes)
    chosen = _hunks(hunks)
    files_chosen = files or (() if chosen else None)
    plan = engine.work.plan(
        operation, run, files=files_chosen, hunks=chosen, reverse=reverse, to=os.path.abspath(to) if to else ""
    )
    if plan.is_running and not (running or dry_run or plan.refusal):
        raise UsageError(
            f"{plan.run} is still running",
            where="apply",
            hint="add --running to apply its changes so far",
            code="run.busy",
        )
    return _carry_out(engine, plan, message, dry_run=dry_run, yes=yes)


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
            raise UsageError("write hunks as FILE:1,3", where="--hunk", hint="subdeck diff shows them")
    return chosen


class Undone(Document, frozen=True):
    """The result of an undo."""

    act: str
    """Name of the action, such as `applying editor 4ae0bd`."""
    at: str
    """Time of the action."""
    begun: bool
    """Whether the action was interrupted before its end."""
    undone: bool
    """Whether it is undone now: not with --dry-run or --forget."""
    said: str
    """The effect, as a sentence for people."""


@command(
    "undo",
    "subdeck undo",
    "subdeck undo --dry-run # only show the action",
    "subdeck undo --forget",
)
@click.option("--forget", is_flag=True, help="Change nothing; the next undo reverts the action before this one.")
@dry_run_option
@yes_option
def undo(forget: bool, dry_run: bool, yes: bool) -> Output[Undone] | int:
    """Undo the last action in this project: delete, apply, commit, merge, save as branch or discard.

    Shows the action and asks for confirmation. If it can no longer be undone, subdeck explains why and changes nothing;
    the exit code is 2. --forget skips that action, so that you can undo the one before it. With --json, print one
    document: {"act", "at", "begun", "undone", "said"}.
    """
    if paths.is_child():
        raise not_for_agents("undo actions", where="undo")
    engine = Engine.open()
    act = engine.last_act()
    if act is None:
        raise SubdeckError("nothing to undo", where=engine.project.root, code="undo.nothing")
    if not (yes or dry_run):
        check_can_ask("undo", UNASKED_HINT)
    begun = " (it was interrupted before its end)" if act.begun else ""
    preface(f"{act.title}, {ago(act.at, datetime.now(UTC))}{begun}")
    question = "Forget this action? It can then no longer be undone." if forget else "Undo this?"
    if not (yes or dry_run) and not click.confirm(question, default=False):
        note("nothing was undone")
        return 0
    effect = ""
    if forget and not dry_run:
        engine.work.forget(act)
        effect = f"forgot {act.title}"
    elif not dry_run:
        effect = engine.take_back(act).outcome
    return Output(Undone(act.title, act.at, act.begun, not (dry_run or forget), effect), (effect,) if effect else ())


@command(
    "merge",
    "subdeck merge 4ae0bd",
    'subdeck merge 4ae0bd --squash -m "Check tokens" --yes',
    "subdeck merge 4ae0bd --commit # on its own branch",
)
@run_argument
@click.option("--pick", is_flag=True, hidden=True)
@_operation_options("merge")
def merge(
    ref: str, pick: bool, message: str, dry_run: bool, yes: bool, **flags: bool
) -> Output[MergeDocument | CommitDocument] | int:
    """Merge a run's worktree into your current branch, including its uncommitted changes.

    Without -m, the message starts as the first lines of the answer and opens in $EDITOR; with --yes, it is used
    unchanged. Your own uncommitted changes stay uncommitted. If git would refuse the merge, nothing changes and the
    exit code is 1. Hooks are not run. subdeck undo reverts the merge. With --json, print one document: {"runId",
    "branch", "files", "conflicts", "refusal", "notes", "message", "done"}.
    """
    engine = Engine.open()
    operation = _chosen(MERGE, flags | {SQUASH.parameter: pick or flags[SQUASH.parameter]})
    run = snapshot_of(engine, engine.find((ref,))[0])
    plan = engine.work.plan(operation, run)
    return _carry_out(engine, plan, message, dry_run=dry_run, yes=yes)


def edited(message: str) -> str:
    """Open a message in the user's editor. Raises SubdeckError if the edited message is empty."""
    try:
        text = click.edit(f"{message}\n", require_save=False)
    except click.ClickException as error:
        raise SubdeckError(error.format_message(), where="$EDITOR", hint="pass the message with -m") from error
    if not (text or "").strip():
        raise SubdeckError("the commit message is empty: nothing was done", where="merge", hint="pass it with -m")
    return (text or "").strip()


@command(
    "discard",
    "subdeck discard 4ae0bd",
    "subdeck discard 4ae0bd --yes",
)
@run_argument
@_operation_options("discard")
def discard(ref: str, dry_run: bool, yes: bool) -> Output[DiscardDocument] | int:
    """Discard a run's worktree and branch with all changes in them. The run itself stays.

    subdeck undo restores both for a day. With --json, print one document: {"runId", "branch", "words", "discarded"}.
    """
    engine = Engine.open()
    plan = engine.work.plan(DISCARD, snapshot_of(engine, engine.find((ref,))[0]))
    return _carry_out(engine, plan, dry_run=dry_run, yes=yes)


def _carry_out(
    engine: Engine, plan: Plan, message: str = "", *, dry_run: bool = False, yes: bool = False
) -> Output[Any] | int:
    """Show a plan, ask for confirmation if its operation has a question, and do it.

    Without a message the plan's own is used, and can be edited before if a question is asked.
    """
    operation = plan.operation
    asks = bool(operation.question) and not (yes or dry_run or plan.refusal)
    if asks:
        check_can_ask(operation.command, UNASKED_HINT)
    if operation.question or dry_run:
        preface(plan.words)
    done = not (plan.refusal or dry_run)
    if done:
        if asks and not click.confirm(operation.question, default=False):
            note(operation.declined)
            return 0
        if plan.message and asks:
            message = message or edited(plan.message)
        engine.work.act(plan, message)
    document = plan.document(done=done, message=message or plan.message)
    lines = (operation.outcome.format(one_line(plan.branch)),) if done else ()
    return Output(document, lines, REFUSED if plan.refusal else 0)
