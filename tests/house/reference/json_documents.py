"""`docs/reference/json.md`: the JSON document of each command, from recorded calls."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import msgspec
from subdeck.core.run.model import RunMeta, RunResult

from . import markdown
from .recording import FILE, Recorded, fields

NAMED_BY_USER = {
    "settings": ("settings",),
    "models": ("roles",),
    "bg": ("artifacts",),
    "status": ("runs[].artifacts",),
    "wait": ("runs[].artifacts",),
}
"""By command: objects whose keys are names, so that only one of them is described."""

OPTIONAL = {
    **dict.fromkeys(("askedAt", "problem", "version"), "string or null"),
    **dict.fromkeys(("ahead", "maxMb", "olderThanDays", "silentMs"), "number or null"),
    "deniedTools": "array or null",
    "inheritContext": "boolean or null",
}
"""Types of fields that are null in every recorded document, and missing in a run's records."""

LONGEST_LIST, LONGEST_TEXT, MOST_KEYS, FEW = 2, 160, 40, 4
"""Limits of an example."""

OTHERS = {
    "take-over": ("argv: array of strings", "The command that continues the run interactively."),
    "hosts doctor": ("ok: boolean; hosts[]: host (string or null), checks[]", "Checks as in `doctor`."),
    "hosts give-up": ("givenUp: array of strings", "Run ids."),
    "events": ("channel: string; payload: object", "One document per line, until ctrl-C."),
    "tool call, tool watch": ("one document per line", "For extensions of parent agents."),
    "watch, demo, hosts serve, hosts scheduler, hosts try, hosts agent": ("none", "`--json` only changes errors."),
}


def recorded() -> Recorded:
    return json.loads(FILE.read_text(encoding="utf-8"))


def page() -> str:
    sections = recorded()
    errors = sections.pop("errors")
    others = markdown.table(
        ("Command", "Document", "Description"), [(f"`{name}`", *words) for name, words in OTHERS.items()]
    )
    return markdown.page(
        "JSON documents",
        "Read the output of any command in a script. With `--json` a command prints one JSON document on stdout, and"
        " an error as one JSON document on stderr. The fields below are those of recorded calls: new fields may be"
        " added; a field that is there keeps its name and type. Exit codes are in [errors.md](errors.md).",
        *(_section(name, calls) for name, calls in sections.items()),
        f"## Other commands\n\n{others}",
        _section("Errors", errors),
    )


def _section(name: str, calls: list[dict[str, Any]]) -> str:
    heading = name if name == "Errors" else f"subdeck {name}"
    named = NAMED_BY_USER.get(name, ())
    shown = _shortened(calls[0]["document"])
    for path in named:
        if isinstance(members := shown.get(path), dict):
            shown[path] = dict(list(members.items())[:FEW])
    example = json.dumps(shown, indent=2, ensure_ascii=False)
    return "\n\n".join(
        (
            f"## {heading}",
            markdown.table(
                ("Field", "Type"),
                [_with_declared(*row) for row in described([call["document"] for call in calls], named)],
            ),
            f"Example: `{calls[0]['call']}`",
            f"```json\n{example}\n```",
        )
    )


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


def _with_declared(path: str, kinds: str) -> tuple[str, str]:
    """Return a field with its declared type if every recorded value is null."""
    name = path.strip("`").rpartition(".")[2]
    return path, declared().get(name, OPTIONAL.get(name, kinds)) if kinds == "null" else kinds


@cache
def declared() -> dict[str, str]:
    """Return the types of the fields in a run's records, by name, without ambiguous ones."""
    types: dict[str, set[str]] = {}
    _, components = msgspec.json.schema_components((RunMeta, RunResult))
    for struct in components.values():
        for name, schema in struct.get("properties", {}).items():
            camel = re.sub("_(.)", lambda found: found[1].upper(), name)
            types.setdefault(camel, set()).update(_kinds(schema, components))
    words = {name: " or ".join(sorted(kinds, key=lambda kind: kind == "null")) for name, kinds in types.items()}
    return {name: words[name] for name, kinds in types.items() if len(kinds - {"null"}) == 1}


def _kinds(schema: dict[str, Any], components: dict[str, Any]) -> set[str]:
    if "anyOf" in schema:
        return {kind for one in schema["anyOf"] for kind in _kinds(one, components)}
    if "$ref" in schema:
        return _kinds(components[schema["$ref"].rpartition("/")[2]], components)
    if "enum" in schema:
        return {"string" if isinstance(word, str) else "number" for word in schema["enum"]}
    kind = str(schema.get("type", ""))
    return {"number" if kind == "integer" else kind} if kind else set()


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
