"""Results for a client's model: the answers and the necessary data of each run, within a size limit.

Claude Code and Codex show the model the structured content as JSON. If it is too long, Claude Code withholds it and
Codex removes its middle; so it is cut here, with the path of a file that has the whole answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from ._protocol import CLAUDE_CODE, Fields

LIMITS = {CLAUDE_CODE: 45_000, "codex-mcp-client": 10_000}
"""Bytes of a result by client name. Claude Code shows up to 50,000 characters, and at most 25,000 tokens unless
`TOKENS` is set in its environment; Codex shows 12,000 bytes for a model that it does not know.
"""
OTHER_LIMIT = 40_000
TOKENS = "MAX_MCP_OUTPUT_TOKENS"
TOKEN_BYTES = 2.4
"""Bytes counted per token of Claude Code's limit, so that dense text also fits."""

LEAST = 400
"""Minimum bytes kept of an answer."""

OF_A_RUN = (
    *("index", "runId", "preset", "description", "task", "cwd", "worktree", "requestedModel", "resolvedModel"),
    *("createdAt", "startedAt", "endedAt", "status", "reason", "sessionId", "toolsLeftOut", "runDir", "artifacts"),
    *(
        "activity",
        "requests",
        "delivery",
        "why",
        "error",
        "durationMs",
        "usage",
        "finalized",
        "partial",
        "changes",
        "branch",
        "check",
        "answer",
    ),
)
"""A run's fields, in order; empty ones are omitted."""

OF_A_HANDLE = ("task", "cwd", "requestedModel", "createdAt", "startedAt", "endedAt", "runDir", "artifacts")
"""Additional fields for status rows and the handle of a background run; with other results, the model
knows its own request. These and the model are null while unknown.
"""

USAGE = ("input", "output", "cost", "turns", "toolUses")

WriteWhole = Callable[[str, str], str]
"""Takes a run's id and answer; returns the path of a file with the answer."""


def limit_of(client: str) -> int:
    tokens = os.environ.get(TOKENS, "")
    if client == CLAUDE_CODE and tokens.isascii() and tokens.isdecimal() and int(tokens):
        return min(LIMITS[client], int(int(tokens) * TOKEN_BYTES))
    return LIMITS.get(client, OTHER_LIMIT)


def brief(structured: Fields, limit: int, write_whole: WriteWhole, *, with_handles: bool = False) -> Fields:
    """Return a result's structured content in at most `limit` bytes, if there is enough to cut.

    `with_handles`: include the fields of `OF_A_HANDLE` for its runs.
    """
    result = {name: value for name, value in structured.items() if name not in ("runs", "errors", "error")}
    if "runId" in structured:
        result = {**_run(structured, with_handles), "counts": structured["counts"]}
    if "error" in structured and "runId" not in structured:
        result |= _errors(structured)
    if "runs" in structured:
        rows = [_run(row, with_handles) for row in cast("Sequence[Fields]", structured["runs"])]
        kept = _fitting(rows, limit - _size(result)) if "omitted" in result else len(rows)
        if kept < len(rows):
            result["omitted"] += len(rows) - kept
        result["runs"] = rows[:kept]
    return _cut(result, limit, write_whole)


def cut_alike(text: str, structured: Fields, shown: Fields) -> str:
    """Cut the answers in a result's text as `brief` cut them in its structured content."""
    for whole, row in zip(_rows(structured), _rows(shown), strict=False):
        if row.get("answer") and row["answer"] != whole["answer"]:
            text = text.replace(whole["answer"], row["answer"])
    return text


def _rows(result: Fields) -> list[Fields]:
    return cast("list[Fields]", result.get("runs", [result]))


def _errors(structured: Fields) -> Fields:
    """Return each error once: a single one as `error`, several as a list."""
    errors = [_saying(error) for error in cast("Sequence[Fields]", structured.get("errors", [structured["error"]]))]
    return {"error": errors[0]} if len(errors) == 1 else {"errors": errors}


def _run(row: Fields, with_handle: bool) -> Fields:
    plan = row.get("worktree")
    left_out = () if with_handle else tuple(name for name in OF_A_HANDLE if not (plan and name == "cwd"))
    names = [name for name in OF_A_RUN if name in row and name not in left_out]
    kept = (*OF_A_HANDLE, "resolvedModel") if with_handle else ()
    values = _saying({name: row[name] for name in names})
    fields: Fields = {name: values.get(name) for name in names if name in values or name in kept}
    if plan:
        fields["worktree"] = {"branch": plan["branch"]}
    if "durationMs" in fields:  # it has finished
        fields.pop("activity", None)
    if "usage" in fields:
        fields["usage"] = _used(fields["usage"])
    if "changes" in fields and not (fields["changes"]["files"] or fields["changes"].get("note")):
        del fields["changes"]
    if "finalized" in fields:
        shown_texts = (fields.get("answer"), fields.get("error"))
        fields["finalized"] = {name: text for name, text in fields["finalized"].items() if text not in shown_texts}
    return fields


def _used(usage: Fields) -> Fields:
    """Return the usage, without a cost that is unknown or incomplete."""
    values = {name: usage.get(name) for name in USAGE if not (name == "cost" and usage.get("unpriced"))}
    return _saying(values, none_of=(0,))


def _saying(fields: Fields, none_of: tuple[Any, ...] = (None, "", [])) -> Fields:
    return {name: value for name, value in fields.items() if value not in none_of}


def _fitting(rows: Sequence[Fields], limit: int) -> int:
    """Return how many rows fit, each with the minimum of its answer."""
    held = 0
    for number, row in enumerate(rows):
        held += _size(row | {"answer": ""}) + min(_size(row.get("answer", "")), LEAST)
        if held > limit and number:
            return number
    return len(rows)


def _cut(result: Fields, limit: int, write_whole: WriteWhole) -> Fields:
    """Cut the longest answers to equal lengths until all fit."""
    rows = _rows(result)
    sizes = {number: _size(row["answer"]) for number, row in enumerate(rows) if row.get("answer")}
    room = limit - (_size(result) - sum(sizes.values()))
    if sum(sizes.values()) <= room:
        return result
    remaining = len(sizes)
    for number, size in sorted(sizes.items(), key=lambda item: item[1]):
        share = max(LEAST, room // remaining)
        if size > share:
            row = rows[number]
            path = write_whole(row["runId"], row["answer"])
            row["answer"] = _beginning(row["answer"], share, path)
            size = share
        room -= size
        remaining -= 1
    return result


def _beginning(text: str, limit: int, path: str) -> str:
    """Cut a text so that it fits the limit together with the path of the whole text."""
    end = f"\n[… truncated from {len(text)} characters; the whole answer is in {path}]"
    most = limit - _size(end)
    head = text[: max(0, most)]
    while head and _size(head) > most:
        head = head[: min(len(head) - 1, len(head) * most // _size(head))]
    return head + end


def _size(value: object) -> int:
    """Return a value's size as JSON, in bytes."""
    try:
        return len(msgspec.json.encode(value))
    except UnicodeEncodeError:  # a lone surrogate, which is sent as another character
        return len(repr(value))
