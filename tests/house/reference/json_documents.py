"""`docs/reference/json.md`: the JSON document of each command, from its class, with a recorded example."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from . import markdown, shapes
from .commands import commands
from .recording import FILE, Recorded, fields

NAMED_BY_USER = {
    "settings": ("settings",),
    "models": ("roles",),
    "bg": ("artifacts",),
    "status": ("runs[].artifacts",),
    "wait": ("runs[].artifacts",),
}
"""By command: objects whose keys are names, so that two recordings differ in them."""

LONGEST_LIST, LONGEST_TEXT, MOST_KEYS, FEW = 2, 160, 40, 4
"""Limits of an example."""

OTHERS = {"tool call, tool watch": "One document per line, for extensions of parent agents."}


def recorded() -> Recorded:
    return json.loads(FILE.read_text(encoding="utf-8"))


def page() -> str:
    sections = recorded()
    errors = sections.pop("errors")
    names = [command.words.removeprefix("subdeck ") for command in commands()][1:]
    documents = {name: shape for name, shape in zip(names, map(shapes.of, [*commands()][1:]), strict=True) if shape}
    silent = [name for name in names if name not in documents and name not in sections and name != "tool"]
    others = OTHERS | {", ".join(silent): "None: `--json` only changes errors."}
    table = markdown.table(("Command", "Document"), [(f"`{name}`", words) for name, words in others.items()])
    return markdown.page(
        "JSON documents",
        "Read the output of any command in a script. With `--json` a command prints one JSON document on stdout, and"
        " an error as one JSON document on stderr. New fields may be added; a field that is there keeps its name and"
        " type. Examples are recorded calls. Exit codes are in [errors.md](errors.md).",
        *(_section(name, documents.get(name), sections.get(name, [])) for name in sorted({*documents, *sections})),
        f"## Other commands\n\n{table}",
        _section("Errors", None, errors),
    )


def _section(name: str, shape: object, calls: list[dict[str, Any]]) -> str:
    """Return the fields of a command's document, by its class if it has one, and an example."""
    heading = f"## {name if name == 'Errors' else f'subdeck {name}'}"
    if shape:
        table = markdown.table(("Field", "Type", "Description"), shapes.rows(shape))
    else:
        table = markdown.table(("Field", "Type"), described([call["document"] for call in calls]))
    if not calls:
        return f"{heading}\n\n{table}"
    shown = _shortened(calls[0]["document"])
    for path in NAMED_BY_USER.get(name, ()):
        if isinstance(members := shown.get(path), dict):
            shown[path] = dict(list(members.items())[:FEW])
    example = json.dumps(shown, indent=2, ensure_ascii=False)
    return "\n\n".join((heading, table, f"Example: `{calls[0]['call']}`", f"```json\n{example}\n```"))


def described(documents: Iterable[Any], named: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the fields of all these documents, each with its types."""
    types: dict[str, list[str]] = {}
    for document in documents:
        for path, kind in fields(document):
            for parent in named:
                path = re.sub(rf'^{re.escape(parent)}\.("[^"]*"|\w+)', f"{parent}.NAME", path)
            known = types.setdefault(path, [])
            if kind not in known:
                known.append(kind)
    order = {path: number for number, path in enumerate(types)}

    def place(path: str) -> list[int]:
        """Put a field behind its object."""
        ends = [found.start() for found in re.finditer(r"[.\[]", path)]
        return [order.get(path[:end], 0) for end in (*ends, len(path))]

    return [
        (f"`{path}`", " or ".join(sorted(types[path], key=lambda kind: kind == "null")))
        for path in sorted(types, key=place)
    ]


def _shortened(value: Any) -> Any:
    match value:
        case dict():
            members = list(value.items())
            short = {name: _shortened(member) for name, member in members[:MOST_KEYS]}
            return short | ({"…": f"{len(members) - MOST_KEYS} more"} if len(members) > MOST_KEYS else {})
        case list():
            more = [f"… {len(value) - LONGEST_LIST} more"] if len(value) > LONGEST_LIST else []
            return [*map(_shortened, value[:LONGEST_LIST]), *more]
        case str() if len(value) > LONGEST_TEXT:
            return f"{value[:LONGEST_TEXT]}…"
        case _:
            return value
