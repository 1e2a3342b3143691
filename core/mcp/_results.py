"""What the model of a client reads back: the answers, and what it needs to know of each run, within a limit.

Claude Code and Codex show it the structured content of a result as JSON. What is longer than they allow, Claude Code
keeps from it, and Codex takes out of the middle; so it is cut here, with the path of a file that has the whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from ._protocol import CLAUDE_CODE, Fields

LIMITS = {CLAUDE_CODE: 45_000, "codex-mcp-client": 10_000}
"""Bytes of a result by the name of the client. Claude Code shows up to 50,000 characters, and no more than 25,000
tokens unless `TOKENS` is set in its environment; Codex 12,000 bytes for a model that it does not know."""
OTHER_LIMIT = 40_000
TOKENS = "MAX_MCP_OUTPUT_TOKENS"
TOKEN_BYTES = 2.4
"""Bytes that a token of Claude Code's limit stands for here, so that dense text fits too."""

LEAST = 400
"""Bytes of an answer that are left at least."""

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
"""The fields of a run, in their order; those that are empty are left out."""

OF_A_HANDLE = ("task", "cwd", "requestedModel", "createdAt", "startedAt", "endedAt", "runDir", "artifacts")
"""Fields of document 000 that the rows of a status and the handle of a background run have beyond the other results,
whose model knows what it asked for. They and the model are null while they are not known."""

USAGE = ("input", "output", "cost", "turns", "toolUses")

WriteWhole = Callable[[str, str], str]
"""Takes the id of a run and its answer; returns the path of a file with it."""


def limit_of(client: str) -> int:
    tokens = os.environ.get(TOKENS, "")
    if client == CLAUDE_CODE and tokens.isascii() and tokens.isdecimal() and int(tokens):
        return min(LIMITS[client], int(int(tokens) * TOKEN_BYTES))
    return LIMITS.get(client, OTHER_LIMIT)


def brief(structured: Fields, limit: int, write_whole: WriteWhole, *, with_handles: bool = False) -> Fields:
    """Return the structured content of a result in at most `limit` bytes, as long as there is something to cut.

    `with_handles`: its runs have the fields of `OF_A_HANDLE`.
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
    """Cut the answers in the text of a result as they were cut in what `brief` made of its structured content."""
    for whole, row in zip(_rows(structured), _rows(shown), strict=False):
        if row.get("answer") and row["answer"] != whole["answer"]:
            text = text.replace(whole["answer"], row["answer"])
    return text


def _rows(result: Fields) -> list[Fields]:
    return cast("list[Fields]", result.get("runs", [result]))


def _errors(structured: Fields) -> Fields:
    """Return each error once: a single one by itself, several as a list."""
    errors = [_saying(error) for error in cast("Sequence[Fields]", structured.get("errors", [structured["error"]]))]
    return {"error": errors[0]} if len(errors) == 1 else {"errors": errors}


def _run(row: Fields, with_handle: bool) -> Fields:
    plan = row.get("worktree")
    left_out = () if with_handle else tuple(name for name in OF_A_HANDLE if not (plan and name == "cwd"))
    names = [name for name in OF_A_RUN if name in row and name not in left_out]
    kept = (*OF_A_HANDLE, "resolvedModel") if with_handle else ()
    known = _saying({name: row[name] for name in names})
    fields: Fields = {name: known.get(name) for name in names if name in known or name in kept}
    if plan:
        fields["worktree"] = {"branch": plan["branch"]}
    if "durationMs" in fields:  # it has ended
        fields.pop("activity", None)
    if "usage" in fields:
        fields["usage"] = _used(fields["usage"])
    if "changes" in fields and not (fields["changes"]["files"] or fields["changes"].get("note")):
        del fields["changes"]
    if "finalized" in fields:
        said = (fields.get("answer"), fields.get("error"))
        fields["finalized"] = {name: text for name, text in fields["finalized"].items() if text not in said}
    return fields


def _used(usage: Fields) -> Fields:
    """Return what was used, without a cost that is not known, or not that of all."""
    known = {name: usage.get(name) for name in USAGE if not (name == "cost" and usage.get("unpriced"))}
    return _saying(known, none_of=(0,))


def _saying(fields: Fields, none_of: tuple[Any, ...] = (None, "", [])) -> Fields:
    return {name: value for name, value in fields.items() if value not in none_of}


def _fitting(rows: Sequence[Fields], limit: int) -> int:
    """Return how many of the rows fit, if each has the least of its answer."""
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
    left = len(sizes)
    for number, size in sorted(sizes.items(), key=lambda item: item[1]):
        share = max(LEAST, room // left)
        if size > share:
            row = rows[number]
            path = write_whole(row["runId"], row["answer"])
            row["answer"] = _beginning(row["answer"], share, path)
            size = share
        room -= size
        left -= 1
    return result


def _beginning(text: str, limit: int, path: str) -> str:
    """Cut a text so that with the path of the whole it takes so many bytes."""
    end = f"\n[… truncated from {len(text)} characters; the whole answer is in {path}]"
    most = limit - _size(end)
    head = text[: max(0, most)]
    while head and _size(head) > most:
        head = head[: min(len(head) - 1, len(head) * most // _size(head))]
    return head + end


def _size(value: object) -> int:
    """Return its bytes as JSON."""
    try:
        return len(msgspec.json.encode(value))
    except UnicodeEncodeError:  # a half of a surrogate pair, which is sent as another character
        return len(repr(value))
