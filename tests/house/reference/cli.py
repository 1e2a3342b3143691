"""`docs/reference/cli.md`: every command, from the table of commands and click's own help."""

from __future__ import annotations

from . import markdown
from .commands import Explained, commands


def page() -> str:
    explained = list(commands())
    listed = [
        (f"[`{command.words}`](#{markdown.anchor(command.words)})", markdown.text(command.about))
        for command in explained
        if command.about
    ]
    return markdown.page(
        "Commands",
        "Look up a command and its options. `subdeck COMMAND --help` prints the same, `man subdeck` has it as one page."
        " Exit codes and error codes are in [errors.md](errors.md), the JSON documents in [json.md](json.md).",
        markdown.table(("Command", "Description"), listed),
        *map(_section, explained),
    )


def _section(command: Explained) -> str:
    parts = [f"## {command.words}", f"```\n{command.usage}\n```", *map(markdown.text, command.paragraphs)]
    if command.options:
        rows = [(markdown.code(names), markdown.text(words)) for names, words in command.options]
        parts.append(markdown.table(("Option", "Description"), rows))
    return "\n\n".join(parts)
