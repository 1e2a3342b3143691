"""The command `subdeck`: a table of commands, each imported when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING

import click

from .. import __version__
from ..errors import UsageError, nearest
from ..system.imports import import_msgspec, load
from ..text.plain import one_line
from ..text.shell import shell_word
from ._page import PageCommand
from .output import INTERRUPTED, run_to_end, say, terminal_width

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS = {
    "Run": {
        "run": ("run", "Start a run, show its progress and print its answer."),
        "bg": ("run", "Start a run in the background and print its id."),
        "wait": ("status", "Wait until runs finish."),
        "queue": ("queue", "List queued runs, move one, pause or resume the queue."),
        "demo": ("demo", "Open a demo project with simulated runs; no agent or key needed."),
    },
    "Follow": {
        "status": ("status", "List runs: the running ones, and the latest results."),
        "logs": ("logs", "Print a run's transcript or answer, or follow it."),
        "watch": ("watch", "Show up to six runs side by side, live."),
        "open": ("open", "Show a run's tmux pane or transcript, or continue it in the agent."),
        "grep": ("grep", "Search the tasks, answers and transcripts of all runs."),
        "report": ("report", "Show costs by preset, model and agent."),
    },
    "Respond": {
        "requests": ("messages", "List pending permission requests and questions."),
        "reply": ("messages", "Answer a permission request or question: allow, deny, or text."),
        "send": ("messages", "Send a message to running agents."),
        "web": ("web", "Answer requests from a browser: serve the reply page."),
        "stop": ("control", "Stop runs, or only their current turn."),
    },
    "Review and apply": {
        "diff": ("compare", "Print a run's changes as a patch."),
        "compare": ("compare", "Compare two to six runs, or print the difference of two."),
        "apply": ("changes", "Apply a run's changes to your files, or save them to a branch."),
        "merge": ("changes", "Merge a run's worktree, or squash it into one commit."),
        "undo": ("changes", "Undo the last apply, merge or delete."),
    },
    "Clean up": {
        "discard": ("changes", "Discard a run's worktree and branch."),
        "rm": ("rm", "Delete finished runs, by name or by a rule, or restore them."),
        "worktrees": ("worktrees", "List, repair or remove the worktrees of runs."),
        "adopt": ("control", "Trust runs that came with a copy, or from an old version."),
    },
    "Configure": {
        "init": ("init", "Write four starter presets, after confirmation."),
        "presets": ("catalogs", "List the presets, or show one."),
        "import": ("preset_import", "Convert another program's agent file to a preset."),
        "models": ("catalogs", "List the models of each installed agent, and your roles."),
        "settings": ("setup", "Show or check the settings, or print an example file."),
        "hosts": ("hosts", "Run agents on other machines: list, check and serve hosts."),
        "notify": ("notify", "Send waiting notifications, or a test."),
        "doctor": ("setup", "Check this machine and project, and show how to fix problems."),
    },
    "Integrate": {
        "connect": ("connect", "Let pi, Claude Code or Codex start runs: add the tools to it."),
        "disconnect": ("connect", "Remove the tools from pi, Claude Code or Codex."),
        "mcp": ("mcp", "Serve the tools to Claude Code, Codex and other MCP clients."),
        "completion": ("_completion", "Print a script that completes commands in bash, zsh or fish."),
        "events": ("programs", "Follow runs as a stream of events, for other programs."),
        "tool": ("programs", "Serve the delegation tools as JSON over stdio, for extensions."),
        "replay": ("logs", "Create a run from an agent's recorded output."),
    },
}
"""By title in the help, the commands: for each, the module of this package that defines it, and one line of help."""
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
UNLISTED = frozenset((
    "adopt", "completion", "demo", "disconnect", "events", "import", "mcp", "models", "notify", "queue", "replay",
    "report", "tool", "web", "worktrees",
))  # fmt: skip
"""Commands that only `subdeck --help --all` lists: rarely typed, or called by programs."""
LISTS_ALL = "subdeck.lists_all"
"""In `click.Context.meta`: whether the help lists all commands."""

EXAMPLES = (
    "subdeck demo # simulated runs; no agent or key needed",
    "subdeck init # write starter presets",
    'subdeck run explore-code "Where are tokens checked?"',
)

OpenApp = Callable[[Sequence[str], bool, bool], int]
"""Takes the runs to show (ids, or unambiguous beginnings), whether the app is read-only, and whether the runs are shown
side by side. Returns the exit code; raises SubdeckError if the app cannot open.
"""


class CommandGroup(PageCommand, click.Group):
    """A group of the commands in a table, which its help lists without importing one."""

    groups = GROUPS
    table = COMMANDS
    unlisted = UNLISTED
    """Commands that the help lists only with `--all`."""
    whole = "subdeck"
    """The words before its commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta.setdefault(LISTS_ALL, "--all" in args)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module, _ = self.table.get(cmd_name, (None, ""))
        if module is None:
            return None
        import_msgspec()
        # A function cannot have the name of a keyword, nor a hyphen.
        name = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        command: click.Command = getattr(load(f"{__package__}.{module}"), name)
        if ctx.resilient_parsing:
            from ._completion import attach

            attach(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=help_line)
            for name, (_, help_line) in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] == "help" and ctx.resilient_parsing:  # the line is completed
            return (None, None, []) if len(args) == 1 else self.resolve_command(ctx, args[1:])
        if args[0] == "help":
            if len(args) == 1 or args[1] == "--all":
                ctx.meta[LISTS_ALL] = len(args) > 1
                say(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        args = self.spelled_out(args)
        if args[0] not in self.table:
            hint = nearest(args[0], self.table) or f"{self.whole} --help lists all commands"
            if self.table is COMMANDS and os.path.isdir(args[0]):
                hint = f"subdeck -C {one_line(shell_word(args[0]), 200)} opens the app there"
            what = f'unknown command "{one_line(args[0], 60)}"'
            raise UsageError(what, hint=hint, code="usage.unknown_command")
        return super().resolve_command(ctx, args)

    def spelled_out(self, args: list[str]) -> list[str]:
        """Return the words of a command line without hidden spellings."""
        return args

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = self.sections(ctx, lists_all=ctx.meta.get(LISTS_ALL, False))
        width = max(len(name) for rows in sections.values() for name, _ in rows)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), help_line) for name, help_line in rows])

    def sections(self, ctx: click.Context, *, lists_all: bool) -> dict[str, list[tuple[str, str]]]:
        """Return the listed commands by title, each with its line of help."""
        return {
            title: [
                (name, help_line) for name, (_, help_line) in group.items() if lists_all or name not in self.unlisted
            ]
            for title, group in self.groups.items()
        }


class DeckGroup(CommandGroup):
    """The command `subdeck`; with `--all`, its help also lists the commands of `subdeck hosts` and `subdeck web`."""

    def spelled_out(self, args: list[str]) -> list[str]:
        from ._aliases import spelled_out

        return spelled_out(args)

    def sections(self, ctx: click.Context, *, lists_all: bool) -> dict[str, list[tuple[str, str]]]:
        listed = super().sections(ctx, lists_all=lists_all)
        for title, name in (("Configure", "hosts"), ("Respond", "web")) if lists_all else ():
            group = self.get_command(ctx, name)
            if isinstance(group, CommandGroup):
                rows = listed[title]
                position = [row for row, _ in rows].index(name) + 1
                rows[position:position] = [
                    (f"{name} {inner}", help_line) for inner, (_, help_line) in group.table.items()
                ]
        return listed


def main(open_app: OpenApp, arguments: Sequence[str] | None = None) -> int:
    """Run one command, or without a command `open_app`; return the exit code."""
    args = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in args[: args.index("--") if "--" in args else None]

    def command() -> object:
        try:
            return deck_command(open_app).main(args, prog_name="subdeck", standalone_mode=False)
        except click.Abort:
            return INTERRUPTED
        except click.ClickException as error:
            from ._usage import explained  # not needed for help

            raise explained(error, " ".join(("subdeck", *(word for word in args[:1] if word in COMMANDS)))) from error

    return run_to_end(command, as_json=as_json)


def deck_command(open_app: OpenApp) -> CommandGroup:
    """Return the command `subdeck` with all its commands below it."""
    # The width of help is the one click would choose, found without its shutil.
    settings = {"help_option_names": ["-h", "--help"], "terminal_width": max(50, min(80, terminal_width()) - 2)}

    @click.command(cls=DeckGroup, invoke_without_command=True, context_settings=settings)
    @click.option("-C", "directory", metavar="DIR", help="Work as if started in DIR.")
    @click.option("--run", "run", metavar="RUN", help="Open the app on this run, with its transcript full screen.")
    @click.option("--readonly", is_flag=True, help="Open the app read-only.")
    @click.option(
        *("--all", "lists_all"),
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_list_all,
        help="With --help: also list commands that are rarely typed, or called by programs.",
    )
    @click.version_option(__version__, message="%(prog)s %(version)s", help="Print the version.")
    @click.pass_context
    def deck(ctx: click.Context, directory: str | None, run: str | None, readonly: bool) -> int:
        """Run many coding agents from one terminal. Without a command, open the app on the current directory.

        Exit codes: 0 completed, 1 failed, 2 nothing was started, 3 aborted, 4 completed but the check failed,
        70 unexpected error (started runs continue).
        Every command takes --json, which also prints errors as JSON on stderr.
        """
        if directory is not None:
            try:
                os.chdir(os.path.expanduser(directory))
            except OSError as error:
                what, hint = f"{one_line(directory)}: {error.strerror}", "choose an existing directory"
                raise UsageError(what, where="-C", hint=hint, code="directory.not_found") from error
        if ctx.invoked_subcommand is None:
            return open_app(() if run is None else (run,), readonly, False)
        ctx.obj = open_app
        if run is not None or readonly:
            option = "--readonly" if run is None else "--run"
            raise UsageError(
                f"{option} opens the app and cannot be used with a command", where=option, hint="remove it"
            )
        return 0

    deck.examples = EXAMPLES
    return deck


def _list_all(ctx: click.Context, _param: click.Parameter, lists_all: bool) -> None:
    if lists_all:
        say(ctx.get_help())
        ctx.exit()
