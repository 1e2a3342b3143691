"""Changes, checks, usage, results and requests as they are in JSON documents: with all fields, also empty ones.

The string under a field is its description in `docs/reference/json.md`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from .changes import ChangedFile, Changes, ChangesSource, CheckResult
from .events import Field, Request
from .model import RequestKind, RunResult, Usage
from .requests import is_marked, request_hash, request_text


def _fields(record: Struct, **others: Any) -> dict[str, Any]:
    return asdict(record) | others


class FileDocument(ChangedFile, frozen=True, omit_defaults=False):
    """A changed file."""

    old_path: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    """Path before a rename."""


class ChangesDocument(Struct, frozen=True, rename="camel"):
    """A run's changes."""

    files: int
    """Number of changed files."""
    added: int
    """Lines."""
    removed: int
    source: ChangesSource
    """How the changes were found."""
    shared: str
    """Other runs that may have made some of the changes; empty for none."""
    note: str
    """Why changes are unknown or incomplete; empty if they are complete."""
    settings: tuple[str, ...]
    """Changed settings, hooks and lists of the repository."""
    ignored: tuple[str, ...]
    """New files that are hidden by new ignore rules."""
    edited: bool
    """Whether the worktree was edited after the run; then these are its current changes."""
    tree: str
    """Id of the git tree with the changes; empty outside git."""
    named: tuple[FileDocument, ...]
    """The first files by path."""


def changes_document(changes: Changes | None) -> ChangesDocument | None:
    """Return a run's changes for a JSON document."""
    if changes is None:
        return None
    files = (FileDocument(**_fields(file, old_path=file.old_path or None)) for file in changes.named)
    return ChangesDocument(**_fields(changes, named=tuple(files)))


class CheckDocument(Struct, frozen=True, rename="camel"):
    """The result of a run's check."""

    name: str
    passed: bool
    exit_code: int | None
    seconds: float
    output: str
    """The end of its output."""
    note: str
    """Why there is no exit code."""


def check_document(check: CheckResult) -> CheckDocument:
    """Return the result of a check for a JSON document."""
    return CheckDocument(check.name, check.passed, check.exit_code, check.seconds, check.output, check.note)


class UsageDocument(Struct, frozen=True, rename="camel"):
    """Tokens, and cost in dollars; null if the agent reports none."""

    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None
    cost: float | None
    """Without tokens whose price is unknown."""
    turns: int
    tool_uses: int
    unpriced: int
    """Tokens whose price is unknown."""
    estimated: float
    """Part of the cost that is computed from your own price table."""
    uncounted: int
    """Messages without a complete token count."""


def usage_document(usage: Usage) -> UsageDocument:
    """Return the usage of a run for a JSON document: an unknown figure is null, never 0."""
    unknown: tuple[str, ...] = ()
    if usage.uncounted and not usage.tokens:
        unknown = ("input", "output", "cache_read", "cache_write")
    if usage.unpriced and usage.cost <= 0:
        unknown = (*unknown, "cost")
    return UsageDocument(**_fields(usage, **dict.fromkeys(unknown)))


class ResultDocument(RunResult, frozen=True, kw_only=True):
    """The result of a run."""

    # JSON has null for unknown figures, which the record does not have.
    usage: UsageDocument  # pyright: ignore[reportIncompatibleVariableOverride, reportGeneralTypeIssues]


def result_document(result: RunResult) -> ResultDocument:
    """Return the result of a run for a JSON document."""
    return ResultDocument(**_fields(result, usage=usage_document(result.usage)))


class FieldDocument(Field, frozen=True, omit_defaults=False):
    """A field of a form."""


class RequestDocument(Struct, frozen=True, rename="camel"):
    """A pending request. Its texts are exact; `display` has them as they are shown."""

    id: str
    """Such as `q1`."""
    kind: RequestKind
    title: str
    """Such as `wants to run a command`."""
    tool_name: str
    text: str
    """The agent's question."""
    command: str
    """The command that would run."""
    cwd: str
    """Its directory; empty for the run's own."""
    paths: tuple[str, ...]
    diff: str
    """The edit that would be made, as a unified diff."""
    choices: tuple[str, ...]
    tool_call_id: str
    rule: str
    """The permission rule that requires the request; empty if the agent asks on its own."""
    run_rule: str
    """The rule that `allow --run` adds; empty if it cannot add one."""
    missing: int
    """Characters of the request that were not stored. Such a request cannot be allowed."""
    display: str
    """The whole request as text, with visible control characters."""
    fields: tuple[FieldDocument, ...]
    """Fields of a form."""
    at: str
    """Time of the request."""
    marked: bool
    """Whether it has invisible characters."""
    hash: str
    """For `reply --hash`."""


def request_document(request: Request, run_id: str, cwd: str) -> RequestDocument:
    """Return a request of a run for a JSON document. `cwd` is the directory of the run."""
    more: dict[str, Any] = {
        "display": request_text(request, cwd),
        "fields": tuple(FieldDocument(**asdict(field)) for field in request.fields),
        "at": request.ts,
        "marked": is_marked(request),
        "hash": request_hash(run_id, request),
    }
    names = set(RequestDocument.__struct_fields__) - more.keys()
    return RequestDocument(**{name: getattr(request, name) for name in names}, **more)
