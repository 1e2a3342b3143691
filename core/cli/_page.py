"""The help page of a command, with examples after the options."""

from __future__ import annotations

from collections.abc import Sequence

import click


class PageCommand(click.Command):
    """A command whose page has examples."""

    examples: tuple[str, ...] = ()
    """Command lines; a remark begins with ` # `."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in aligned(self.examples):
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def aligned(examples: Sequence[str]) -> list[str]:
    """Return examples with their remarks in one column."""
    parts = [example.partition(" # ") for example in examples]
    width = max((len(line) for line, _, remark in parts if remark), default=0)
    return [f"{line:{width}}  # {remark}" if remark else line for line, _, remark in parts]
