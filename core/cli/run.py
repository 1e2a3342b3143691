"""`subdeck run` and `bg`: start a run and show its progress, or start it in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import click

from ..config import values
from ..spec.fields import table
from . import execution
from ._command import command, is_json
from ._options import Dollars, OneOf, Whole, strict_option
from ._page import PageCommand

if TYPE_CHECKING:
    from ..run.documents import ResultDocument

EPILOG = (
    'TASK "-" reads stdin. Put a task that begins with "-" after "--": subdeck run PRESET -- '
    '"-v prints …". Exit codes: 0 completed, 1 failed, 3 aborted, 4 completed but the check '
    "failed, 2 nothing was started."
)

_TYPES: dict[Any, click.ParamType[Any]] = {values.Dollars: Dollars(), values.Count: Whole(min=1)}


def _asked(*, without_preset: bool = False) -> tuple[Callable[..., Any], ...]:
    """Return the options for fields that a call may set; `without_preset`: for fields that a preset decides."""
    return tuple(
        click.option(
            *(field.option.flag, name),
            metavar=field.option.metavar,
            type=_TYPES.get(field.kind),
            help=field.option.meaning,
            multiple=field.option.is_list,
        )
        for name, field in table().items()
        if field.option and field.is_of_preset == without_preset
    )


_OPTIONS = (
    *_asked(),
    click.option(
        "--worktree",
        metavar="[=FROM]",
        type=OneOf(("files", "head")),
        help="Work in a separate git worktree, from your current files, or with =head from the last commit.",
    ),
    click.option(
        "--no-worktree",
        is_flag=True,
        help="Work directly in your files, even if the preset or settings ask for a worktree.",
    ),
    click.option("--cwd", metavar="DIR", help="Working directory of the agent (default: the current one)."),
    click.option("--previous", metavar="RUN", help="Run whose answer replaces {previous} in the task."),
    click.option(
        *("--session-id", "child_session"),
        metavar="ID",
        help="Continue this agent session of the same preset and directory.",
    ),
    click.option(
        "--parent-session", metavar="FILE", help="A pi session file; the agent gets its last turns as context."
    ),
    click.option("--over-budget", is_flag=True, help="Launch even if today's budget is used up."),
    click.option("--description", metavar="TEXT", default="", help="Short description for the list of runs."),
    click.option("--no-preset", is_flag=True, help="Run without a preset; takes only TASK."),
    *_asked(without_preset=True),
    click.option("--save-as", metavar="NAME", help="With --no-preset: also save this as a project preset."),
    strict_option,
)


class _LaunchCommand(PageCommand):
    """Takes `--worktree` with or without a value: click itself would take the next argument for it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        before = ["--worktree=files" if word == "--worktree" else word for word in args[:end]]
        return super().parse_args(ctx, before + args[end:])


def _launch_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return click.argument("args", metavar="PRESET TASK", nargs=-1)(function)


@command(
    "run",
    'subdeck run explore-code "Where are tokens checked?"',
    "git log -5 | subdeck run review-changes - # the task from stdin",
    'subdeck run implement "Port the tests" --worktree --budget 2',
    cls=_LaunchCommand,
    epilog=EPILOG,
)
@_launch_options
def run(args: tuple[str, ...], **options: Any) -> Annotated[int, ResultDocument]:
    """Start a run, show its progress on stderr and print its answer on stdout.

    ctrl-C, TERM, HUP or closing the output pipe cancels the run. If this command is killed with KILL, the run
    continues.
    """
    return execution.run(args, as_json=is_json(), **options)


@command(
    "bg",
    'subdeck bg fix-tests "Make the tests pass"',
    'run=$(subdeck bg implement "Port the tests") && subdeck wait "$run"',
    cls=_LaunchCommand,
    epilog=EPILOG,
)
@_launch_options
def bg(args: tuple[str, ...], **options: Any) -> Annotated[int, execution.Started]:
    """Start a run in the background and print its id. The run outlives this command and the terminal.

    The exit code is 0 once the run has started, or that of `run` if it has already finished by then.
    """
    return execution.start(args, as_json=is_json(), **options)
