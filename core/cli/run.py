"""`subdeck run` and `bg`: start a run and show what it does, or leave it in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..agent_kinds import KINDS
from . import execution
from .options import Dollars, OneOf, Whole, json_option, strict_option

EPILOG = (
    'TASK may be "-" for stdin. A task that begins with "-" goes after "--": subdeck run PRESET -- "-v prints …". '
    "Exit codes: 0 completed, 1 failed, 3 aborted, 4 completed but the check did not pass; 2 when nothing was started."
)

_OPTIONS = (
    click.option("--model", metavar="M", help="Model as provider/id, instead of the preset's."),
    click.option("--cwd", metavar="DIR", help="Directory the child works in (default: the current one)."),
    click.option("--runner", metavar="R", help="How the child runs: process, tmux or hosts."),
    click.option("--host", metavar="NAME", help="With --runner hosts: the host to run on (default: any)."),
    click.option(
        *("--needs", "needs"),
        metavar="LABEL=N",
        multiple=True,
        help="With --runner hosts: what the host has to have, as gpu=1; may be given several times.",
    ),
    click.option("--agent", metavar="A", help=f"Which agent: auto, {', '.join(KINDS)}, or a name from the settings."),
    click.option("--previous", metavar="RUN", help="The run whose answer replaces {previous} in the task."),
    click.option(
        *("--session-id", "child_session"),
        metavar="ID",
        help="Continue this child session of the same preset and directory.",
    ),
    click.option(
        "--parent-session", metavar="FILE", help="A pi session file; its last turns become the child's context."
    ),
    click.option(
        "--check", metavar="NAME", help="Run this check of your settings when the child has ended; empty for none."
    ),
    click.option(
        "--worktree",
        metavar="[=FROM]",
        type=OneOf(("files", "head")),
        help="Work in a git worktree of its own: of the files as they are, or with =head of the commit.",
    ),
    click.option("--no-worktree", is_flag=True, help="Work in the files themselves, whatever preset and settings say."),
    click.option("--budget", metavar="DOLLARS", type=Dollars(), help="End the run when it has spent this much."),
    click.option("--max-tokens", metavar="N", type=Whole(min=1), help="End the run at this many tokens."),
    click.option("--over-budget", is_flag=True, help="Launch it although the day's budget is used up."),
    click.option("--description", metavar="TEXT", default="", help="A few words for the list of runs."),
    click.option("--no-preset", is_flag=True, help="Run without a preset; give only TASK."),
    click.option("--tools", metavar="CSV", help="With --no-preset: the tools the child may use; empty for none."),
    click.option("--prompt", metavar="FILE", help="With --no-preset: a file with the system prompt."),
    click.option("--save-as", metavar="NAME", help="With --no-preset: also save this as a preset of the project."),
    strict_option,
    json_option,
)


class _LaunchCommand(click.Command):
    """Takes `--worktree` with or without a value: click itself would take the next argument for it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        before = ["--worktree=files" if word == "--worktree" else word for word in args[:end]]
        return super().parse_args(ctx, before + args[end:])


def _launch_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return click.argument("args", metavar="PRESET TASK", nargs=-1)(command)


@click.command("run", cls=_LaunchCommand, epilog=EPILOG)
@_launch_options
def run(args: tuple[str, ...], **options: Any) -> int:
    """Start a run, show its progress on stderr and print its answer on stdout.

    ctrl-C, TERM, HUP, or closing the pipe that reads the output cancels the run. If this command is killed with KILL,
    the run continues.
    """
    return execution.run(args, **options)


@click.command("bg", cls=_LaunchCommand, epilog=EPILOG)
@_launch_options
def bg(args: tuple[str, ...], **options: Any) -> int:
    """Start a run in the background and print its id. The run outlives this command and the terminal.

    The exit code is 0 once the run has started, or that of `run` if it has already ended by then.
    """
    return execution.start(args, **options)
