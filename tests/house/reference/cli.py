"""`docs/reference/cli.md`: every command, from the table of commands and click's own help."""

from __future__ import annotations

from subdeck.core.cli._page import aligned
from subdeck.core.cli.hosts import HostsGroup
from subdeck.core.cli.main import GROUPS, UNLISTED

from . import markdown
from .commands import Explained, commands


def page() -> str:
    explained = list(commands())
    rows: dict[str, list[tuple[str, str]]] = {}
    for command in explained[1:]:
        link = f"[`{command.words}`](#{markdown.anchor(command.words)})"
        name, member = [*command.words.split()[1:], ""][:2]
        star = " \\*" if name in UNLISTED or member in HostsGroup.unlisted else ""
        rows.setdefault(name, []).append((link + star, markdown.text(command.about)))
    tables = [
        f"**{title}**\n\n{markdown.table(('Command', 'Description'), [row for name in group for row in rows[name]])}"
        for title, group in GROUPS.items()
    ]
    return markdown.page(
        "Commands",
        "Look up a command and its options. `subdeck COMMAND --help` prints the same, `man subdeck` has it as one page."
        " Exit codes and error codes are in [errors.md](errors.md), the JSON documents in [json.md](json.md).",
        *tables,
        "\\* `subdeck --help` lists it only with `--all`.",
        *map(_section, explained),
    )


def _section(command: Explained) -> str:
    parts = [f"## {command.words}", f"```\n{command.usage}\n```", *map(markdown.text, command.paragraphs)]
    if command.options:
        rows = [(markdown.code(names), markdown.text(words)) for names, words in command.options]
        parts.append(markdown.table(("Option", "Description"), rows))
    if command.examples:
        lines = "\n".join(aligned(command.examples))
        parts.append(f"Examples:\n\n```sh\n{lines}\n```")
    return "\n\n".join(parts)
