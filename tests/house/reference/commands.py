"""Every command of `subdeck`, as click parses it."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc
from typing import NamedTuple

import click
from subdeck.core.cli._page import PageCommand
from subdeck.core.cli.main import CommandGroup, deck_command

ROOT = deck_command(lambda _runs, _readonly, _beside: 0)


class Explained(NamedTuple):
    words: str
    """The typed command, such as `subdeck hosts serve`."""
    about: str
    """One line; empty for `subdeck` itself."""
    command: click.Command
    context: click.Context

    @property
    def usage(self) -> str:
        return " ".join((self.words, *self.command.collect_usage_pieces(self.context)))

    @property
    def examples(self) -> tuple[str, ...]:
        return self.command.examples if isinstance(self.command, PageCommand) else ()

    @property
    def paragraphs(self) -> list[str]:
        """Return the help and the epilog, each paragraph on one line."""
        texts = (self.command.help or "", self.command.epilog or "")
        return [" ".join(part.split()) for text in texts for part in cleandoc(text).split("\n\n") if part.strip()]

    @property
    def options(self) -> list[tuple[str, str]]:
        """Return the options as typed, each with its help, except --help, which every command has."""
        records = (
            param.get_help_record(self.context)
            for param in self.command.get_params(self.context)
            if isinstance(param, click.Option) and "--help" not in param.opts
        )
        return [record for record in records if record]


def commands() -> Iterator[Explained]:
    """Yield `subdeck`, then each command in the order of its help, and the commands of groups behind their group."""
    yield from _commands(ROOT, "subdeck", "", None)


def _commands(command: click.Command, words: str, about: str, parent: click.Context | None) -> Iterator[Explained]:
    context = click.Context(command, info_name=words.rpartition(" ")[2], parent=parent, max_content_width=10_000)
    context.help_option_names = ["-h", "--help"]
    yield Explained(words, about, command, context)
    if isinstance(command, CommandGroup):
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None, name
            yield from _commands(member, f"{words} {name}", command.table[name][1], context)
