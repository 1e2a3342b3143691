"""Results, progress and errors of a tool call, as text for a model and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from ..errors import BudgetExceeded, SubdeckError, explained
from ..run.changes import Changes, CheckResult
from ..run.describe import check_words, latest_line
from ..run.documents import changes_document, check_document, usage_document
from ..run.model import RunMeta, RunReason, RunResult, RunStatus
from ..run.snapshot import RunSnapshot
from ..run.tool_policy import left_out
from ..text.plain import disarmed, one_line

ARGUMENT = "tool-call argument"
"""The source of a value that is in the call itself."""

VALID = 20
"""Maximum valid values in an error."""

VALUE_LENGTH = 200
"""Maximum characters of a wrong value in an error."""

LEFT_OUT_LENGTH = 400
"""Maximum characters of the line about missing tools."""


FILES = 20
"""Maximum changed files listed."""
PLACES = frozenset({"root", "runDir", "artifacts", "cwd"})
"""Fields with paths, which only work unchanged."""
EXACT = PLACES | {"requests"}
"""Fields left unchanged; requests have a `display` beside their exact texts."""


def harmless(value: Any) -> Any:
    """Return built-in values without control sequences in texts, except in `EXACT` fields: a parent displays them."""
    if isinstance(value, str):
        return disarmed(value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {name: item if name in EXACT else harmless(item) for name, item in fields.items()}
    if isinstance(value, list | tuple):
        return [harmless(item) for item in cast("Sequence[Any]", value)]
    return value


class ToolProgress(Struct, frozen=True):
    text: str
    details: dict[str, Any]


class CallResult(Struct, frozen=True):
    text: str
    """For the model."""
    details: dict[str, Any]
    """For users and a resumed session: like `structured`, with each run's whole timeline."""
    structured: dict[str, Any]
    """For the model, by the tool's output schema; without timelines."""
    is_error: bool = False
    """Whether the call was rejected, or none of its runs completed."""


class ToolError(Struct, frozen=True, kw_only=True):
    """An error for a parent's model: message, value, valid values, source, hint."""

    what: str
    field: str = ""
    """The argument's name; empty if it is not about one."""
    value: str = ""
    valid: tuple[str, ...] = ()
    """At most `VALID` values."""
    where: str = ARGUMENT
    hint: str = ""
    index: int | None = None
    """Task index in a parallel call."""

    @property
    def line(self) -> str:
        task = "" if self.index is None else f"task {self.index + 1}: "
        valid = f"valid: {', '.join(self.valid)}" if self.valid else ""
        return ". ".join(filter(None, (f"{task}{self.what} ({self.where})", valid, self.hint)))

    @property
    def fields(self) -> dict[str, Any]:
        fields = {**asdict(self), "valid": list(self.valid)}
        if self.index is None:
            del fields["index"]
        return fields


class CallRejected(Exception):
    """A call cannot be done; nothing was started."""

    def __init__(self, *errors: ToolError) -> None:
        self.errors = errors
        super().__init__(errors[0].what)

    def of_task(self, index: int) -> Iterator[ToolError]:
        """Yield the errors with the index of a parallel call's task."""
        return (replace(error, index=index) for error in self.errors)


def argument_error(
    what: str, *, field: str = "", value: object = "", valid: Iterable[str] = (), hint: str = "", where: str = ARGUMENT
) -> ToolError:
    """Return an argument's error; long values and long lists of valid values are shortened."""
    shown = one_line(value if isinstance(value, str) else repr(value), VALUE_LENGTH)
    return ToolError(what=what, field=field, value=shown, valid=tuple(valid)[:VALID], hint=hint, where=where)


def tool_error(error: SubdeckError | OSError) -> ToolError:
    """Convert an error of the engine or the system to the form for parents."""
    if isinstance(error, BudgetExceeded):
        return ToolError(what=error.what, where=error.where, hint="only the user can allow more; ask them")
    explanation = explained(error)
    where = ARGUMENT if isinstance(error, SubdeckError) else "disk"
    return ToolError(what=explanation.what, where=explanation.where or where, hint=explanation.hint)


def rejection(errors: Sequence[ToolError], **more: Any) -> CallResult:
    """Return the result of a rejected call; `more` has its other fields."""
    lines = "\n".join(error.line for error in errors)
    fields: dict[str, Any] = {"error": errors[0].fields, "errors": [error.fields for error in errors], **more}
    return CallResult(f"Nothing was started.\n{lines}" if not more else lines, fields, fields, is_error=True)


_PARTIAL = "Partial findings (incomplete: the run ended while the agent was writing them):"
_UNVERIFIED = "The agent cannot report errors. The text below may be an error or incomplete; check it:"
_TRUNCATED = "The answer was cut off at the model's length limit; this is its beginning:"


def result_text(run: RunSnapshot, result: RunResult) -> str:
    """Return a finished run for the parent's model: status, session id, missing tools, changes, branch and check, a
    rule, then the answer or the error.
    """
    header = f"**Status:** {_status_word(result)}"
    if result.child_session_id:
        header += f"  \n**Session ID:** `{result.child_session_id}`"
    if missed := left_out(run.meta.tools):
        header += f"  \n**Tools:** {one_line(missed, LEFT_OUT_LENGTH)}"
    changes = result.changes
    if changes and (changes.files or changes.settings or changes.ignored or (changes.shared and changes.note)):
        header += f"  \n**Changes:** {one_line(_changes_line(changes), LEFT_OUT_LENGTH)}"
    if run.meta.worktree and result.changes is not None and result.changes.files:
        location = f"the changes are on branch {run.meta.worktree.branch}, in {run.meta.cwd}, not in your files"
        header += f"  \n**Worktree:** {one_line(location, LEFT_OUT_LENGTH)}"
    if result.branch:
        location = f"the changes are on branch {result.branch}, not in your files"
        header += f"  \n**Branch:** {one_line(location, LEFT_OUT_LENGTH)}"
    if result.check:
        header += f"  \n**Check:** {one_line(check_words(result.check), LEFT_OUT_LENGTH)}"
    return f"{header}\n\n---\n\n{_body(result)}{_check_output(result.check)}"


def _check_output(check: CheckResult | None) -> str:
    """Return a failed check's last lines, below a rule, so that a parent can have them fixed."""
    if check is None or not (check.failed and check.output):
        return ""
    from ..run.markdown import fenced  # few runs have a check

    return f"\n\n---\n\nLast output of the check:\n\n{fenced(check.output)}"


def _changes_line(changes: Changes) -> str:
    """Format as `2 files +14 −3: src/auth.py, src/tokens.py`."""
    return ": ".join(filter(None, (changes.words, ", ".join(file.path for file in changes.named))))


def _status_word(result: RunResult) -> str:
    if result.reason is RunReason.TRUNCATED:
        return "TRUNCATED"
    if result.reason is RunReason.UNVERIFIED:
        return "UNVERIFIED"
    return "SUCCESS" if result.status is RunStatus.COMPLETED else "ERROR"


def _body(result: RunResult) -> str:
    answer = result.final_text or ""
    if result.reason is RunReason.TRUNCATED:
        return f"{_TRUNCATED}\n\n{answer}"
    if result.reason is RunReason.UNVERIFIED:
        return f"{_UNVERIFIED}\n\n{answer}"
    if result.status is RunStatus.COMPLETED:
        return answer
    reason = f"{result.status}: {result.reason}"
    error = f"{reason}: {result.error_message}" if result.error_message else reason
    findings = _PARTIAL if result.partial else "Partial findings:"
    return f"{error}\n\n{findings}\n\n{answer}" if answer else error


def _worktree(meta: RunMeta) -> dict[str, Any] | None:
    """Return a run's worktree; None if it works in the project's files."""
    if meta.worktree is None:
        return None
    plan = meta.worktree
    fields = {"branch": plan.branch, "commit": plan.commit, "origin": plan.origin, "uncommitted": plan.uncommitted}
    return fields | ({"host": plan.host} if plan.host else {})


def run_fields(run: RunSnapshot) -> dict[str, Any]:
    """Return the fields known from a run's beginning."""
    meta = run.meta
    return {
        "runId": meta.run_id,
        "preset": meta.preset,
        "description": meta.description,
        "task": meta.task,
        "cwd": meta.cwd,
        "worktree": _worktree(meta),
        "requestedModel": meta.requested_model,
        "resolvedModel": meta.resolved_model,
        "createdAt": meta.created_at,
        "startedAt": run.started_at,
        "endedAt": run.end.ended_at if run.end else None,
        "status": run.status.value,
        "reason": run.reason.value if run.reason else None,
        "sessionId": run.child_session_id,
        "toolsLeftOut": one_line(left_out(meta.tools), LEFT_OUT_LENGTH) or None,
        **({"host": one_line(run.host, 64) or None} if run.is_remote else {}),
    }


def end_fields(run: RunSnapshot, result: RunResult | None, *, limit: int | None = None) -> dict[str, Any]:
    """Return a run's result fields, with at most `limit` characters of the answer; `finalized` only with a structured
    result, `partial` only if the answer is cut off.
    """
    if result is None:
        end = run.end
        return {"answer": None, "error": (end and end.message) or None, "durationMs": end and end.duration_ms}
    fields = {
        "resolvedModel": result.resolved_model or run.meta.resolved_model,
        "answer": _shortened(result.final_text, limit),
        "error": None if result.status is RunStatus.COMPLETED else result.error_message or result.reason.value,
        "exitCode": result.exit_code,
        "stopReason": result.stop_reason,
        "durationMs": result.duration_ms,
        "usage": msgspec.to_builtins(usage_document(result.usage)),
        "sessionId": result.child_session_id,
    }
    if result.changes is not None:
        fields["changes"] = _brief_changes(result.changes)
    if result.branch:
        fields["branch"] = result.branch
    if result.partial:
        fields["partial"] = True
    if result.check is not None:
        fields["check"] = msgspec.to_builtins(check_document(result.check))
        if result.check.passed:
            del fields["check"]["output"]  # there is nothing to fix
    if result.finalized is not None:
        fields["finalized"] = msgspec.to_builtins(result.finalized)
    return fields


def _brief_changes(changes: Changes) -> dict[str, Any]:
    """Return a run's changes, with as many files as a model may want to read."""
    fields = msgspec.to_builtins(changes_document(changes))
    named = [{name: file[name] for name in ("path", "status", "added", "removed")} for file in fields["named"]]
    brief = {name: fields[name] for name in ("files", "added", "removed", "source")}
    remarks = {name: fields[name] for name in ("shared", "note") if fields[name]}
    return {**brief, **remarks, "named": named[:FILES]}


def _shortened(text: str | None, limit: int | None) -> str | None:
    if text is None or limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n[…truncated: call the status tool with only this runId…]"


def facts_line(fields: dict[str, Any]) -> str:
    """Return one line with the run's directory, model, times and files; and its task, if `run_line` shows the
    description instead.
    """
    requested, model = fields["requestedModel"], fields["resolvedModel"] or fields["requestedModel"]
    asked = f" (requested: {requested})" if requested not in ("", model) else ""
    artifacts = ", ".join(fields.get("artifacts", ()))
    parts = (
        f"task: {one_line(fields['task'], 80)}" if fields["description"] else "",
        f"model: {model}{asked}" if model else "",
        f"cwd: {fields['cwd']}",
        *(f"{name}: {fields[name]}" for name in ("createdAt", "startedAt", "endedAt") if fields[name]),
        f"runDir: {fields['runDir']}{artifacts and f' ({artifacts})'}",
    )
    return "; ".join(one_line(part) for part in parts if part)


def run_line(run: RunSnapshot) -> str:
    """Return one line about a run: id, preset, status, subject, and its activity or result."""
    reason = f" ({run.reason})" if run.reason else ""
    subject = run.meta.description or run.meta.task
    waits = ", needs input from the user" if run.is_waiting else ""
    parts = (
        f"{run.run_id} {run.meta.title} {run.status}{reason}{waits}",
        one_line(subject, 80),
        latest_line(run, 160),
    )
    return " — ".join(part for part in parts if part)
