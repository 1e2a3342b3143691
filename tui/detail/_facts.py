"""The facts of a run, as rows of the overview; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from ...core.config.host_settings import needs_words
from ...core.run.artifacts import RunnerFacts
from ...core.run.changes import Changes
from ...core.run.describe import (
    check_words,
    checking_words,
    clock,
    cost_words,
    doing,
    elapsed,
    limits_words,
    moment,
    permissions_words,
    prompt_mode_words,
    span,
    state,
    still_running,
    whereabouts,
)
from ...core.run.model import RunMeta, RunResult, RunStatus, ToolPolicy, Usage
from ...core.run.outcome import REASONS
from ...core.run.placement import PlaceState
from ...core.run.prices import dollars
from ...core.run.snapshot import RunSnapshot
from ...core.spec.layers import origin_words
from ...core.text.plain import one_line, plain
from ..text.cells import wrap
from ..text.format import short_path
from ._usage import usage_words
from .page import Row, heading, joined

LABEL = 16
"""Cells of the left column."""
VALUE = 2000
"""Characters of one value."""
REASON, ACTIVITY = 300, 100
"""Characters of the reason of an end, and of the activity of a running run."""

Facts = Iterator[tuple[str, str]]
"""Labels with their values; a label without a value is not shown."""


def facts_rows(
    run: RunSnapshot,
    meta: RunMeta,
    result: RunResult | None,
    runner: RunnerFacts | None,
    now: datetime,
    width: int,
    changes: Changes | None = None,
    lease: float = 0.0,
) -> tuple[list[Row], list[Row]]:
    """Lay out a run's facts in groups, the most important first; ids, processes and paths apart, for the end.

    `changes` are the run's changes so far, `lease` is the number of seconds that it continues on an unreachable host,
    0 for ever.
    """
    first = {
        "Problems": _problems(run, result),
        "Result": _result(run, result),
        "Launch": _request(meta),
        "Agent": _agent(meta),
        "Tools and limits": _limits(meta),
        "Times": _times(run, meta, now),
    }
    last = {
        "Ids": _ids(run, meta, result),
        "Process": _process(run, result, runner, now, lease),
        "Paths": _paths(meta, result),
    }
    check = (result and result.check) or run.check
    failed = [*(["status"] if run.status is RunStatus.FAILED else ()), *(["check"] if check and check.failed else ())]
    summary = _rows(_summary(run, meta, result, changes, now), width, failed)
    return joined((summary, *_groups(first, width))), joined(_groups(last, width))


def _groups(groups: Mapping[str, Facts], width: int) -> list[list[Row]]:
    return [[heading(title), *rows] for title, facts in groups.items() if (rows := _rows(facts, width))]


def _rows(facts: Facts, width: int, failed: Collection[str] = ()) -> list[Row]:
    """Lay out facts in two columns; `failed` are the labels whose values are failures."""
    rows: list[Row] = []
    for label, value in facts:
        if not value:
            continue
        style = "error" if label in failed else ""
        lines = wrap(plain(value)[:VALUE].strip(), max(10, width - LABEL - 2))
        rows.append(((f"  {label}".ljust(LABEL + 2), "muted"), (lines[0], style)))
        rows += [((" " * (LABEL + 2), ""), (line, style)) for line in lines[1:]]
    return rows


# --- what happened --------------------------------------------------------------------------------------------------


def _summary(
    run: RunSnapshot, meta: RunMeta, result: RunResult | None, changes: Changes | None, now: datetime
) -> Facts:
    yield "status", _status(run)
    yield "check", _check(run, meta, result, now)
    yield "cost", _cost(meta, result.usage if result else run.usage)
    yield "changes", _changes(run, meta, changes)
    model = (result and result.resolved_model) or meta.resolved_model or "agent default"
    yield "model", f"{model} · thinking {meta.thinking}" if meta.thinking else model


def _status(run: RunSnapshot) -> str:
    """Return `✗ failed: model_error · the model answered with an error: 401`, `● running · Reading a`."""
    glyph, _, word = state(run).partition(" ")
    end = run.end
    if end is None or run.is_left_alone or run.elsewhere or end.late:
        activity = doing(run, ACTIVITY)
        return f"{glyph} {activity if activity.startswith(word) else f'{word} · {activity}'}"
    reason = REASONS[end.reason]
    message = "" if end.status is RunStatus.COMPLETED else one_line(end.message, REASON)
    if message and message != reason:
        reason = message if message.startswith(reason) else f"{reason}: {message}"
    return f"{glyph} {word}: {end.reason} · {reason}"


def _check(run: RunSnapshot, meta: RunMeta, result: RunResult | None, now: datetime) -> str:
    if check := (result and result.check) or run.check:
        return check_words(check)
    if run.checking:
        return checking_words(run.checking, now)
    if not meta.check:
        return "none"
    return f"{one_line(meta.check, 40)}: {'not run' if run.has_ended else 'runs when the agent has finished'}"


def _cost(meta: RunMeta, usage: Usage) -> str:
    budget = meta.limits.budget if usage.cost else None
    limit = "" if budget is None else f" of {dollars(budget)}"
    return f"{cost_words(usage) or dollars(0)}{limit} · {usage_words(usage)}"


def _changes(run: RunSnapshot, meta: RunMeta, changes: Changes | None) -> str:
    """Return the changes, and where they are: in a worktree they can be applied, in the directory they are."""
    if changes is None:
        return "unknown" if run.has_ended else "not known yet"
    figures, *remarks = [changes.words] if changes.shared else changes.words.split("; ")
    if not run.has_ended:
        figures += " so far"
    branch = meta.worktree.branch if meta.worktree else run.branch
    if changes.files:
        figures += f" · on branch {one_line(branch, 100)}" if branch else f" · in {short_path(meta.cwd)}"
    return "; ".join((figures, *remarks))


def _result(run: RunSnapshot, result: RunResult | None) -> Facts:
    if result is None:
        return
    message = result.error_message or ""
    is_shown = len(message) <= REASON and one_line(message, REASON) in _status(run)
    yield "message", "" if is_shown else message
    if finalized := result.finalized:
        yield "result status", finalized.status
        yield "result text", finalized.result or ""
        yield "result error", finalized.error or ""
    yield "attempts used", str(result.attempts) if result.attempts > 1 else ""
    yield "check output", result.check.output if result.check else ""


def _problems(run: RunSnapshot, result: RunResult | None) -> Facts:
    yield "files", "\n".join(result.artifact_errors) if result else ""
    yield "tampered with", "\n".join(result.tampered) if result else ""
    yield "processes", still_running(result.not_ended) if result else ""
    yield "later warnings", "\n".join(warning for warning in run.warnings if warning not in run.meta.all_warnings)


# --- how it was launched --------------------------------------------------------------------------------------------


def _request(meta: RunMeta) -> Facts:
    yield "task", meta.task
    yield "description", meta.description
    yield "preset", f"{one_line(meta.preset, 100)} ({meta.preset_source})" if meta.preset else "none (one-off)"
    yield "set by", origin_words(meta.decided_by)
    yield "directory", short_path(meta.cwd)
    if meta.worktree:
        yield "worktree of", short_path(meta.worktree.origin)
        yield "worktree", meta.worktree.words
    yield "launched by", f"{one_line(meta.launched_by.session, 80)} ({one_line(meta.launched_by.kind, 20)})"
    yield "mode", "background" if meta.background else "foreground (the caller waits)"
    if meta.group:
        group = meta.group
        yield "group", f"{group.index + 1} of {group.size}, {group.max_parallel} at a time ({one_line(group.id, 60)})"
    yield "rerun of", meta.origin.rerun or ""
    yield "follow-up of", meta.origin.follow_up or ""
    yield "previous answer", meta.origin.previous or ""


def _agent(meta: RunMeta) -> Facts:
    yield "agent", meta.agent
    yield "model requested", meta.requested_model or "none"
    yield (
        "system prompt",
        prompt_mode_words(meta.prompt_mode) if meta.system_prompt is not None else "agent default",
    )
    if inherited := meta.inherited:
        yield "parent context", inherited.words
    elif meta.isolated:
        yield "parent context", "not passed on (isolated)"
    if meta.context_files is not None:
        yield "context files", "read" if meta.context_files else "not read"
    yield "project resources", "not loaded" if meta.project_resources is False else ""


def _limits(meta: RunMeta) -> Facts:
    tools = meta.tools
    policy = {
        ToolPolicy.AGENT: "agent default",
        ToolPolicy.ALLOW: "only the allowed tools",
        ToolPolicy.DENY: "all except the denied tools",
    }
    yield "tools", policy.get(tools.policy, tools.policy)
    if tools.resolved is not None:
        yield "tools available", ", ".join(tools.resolved) or "none"
    yield "tools denied", ", ".join(tools.excluded)
    yield "MCP servers", "" if tools.starts_servers else "not started, so their tools are not available"
    yield "tools dropped", "\n".join(tools.warnings)
    yield "limits", limits_words(meta.limits) or "none"
    yield "permissions", permissions_words(meta.permissions)
    if meta.talk is not None:
        yield "interactive", "yes" if meta.talk else "no"
    if meta.talk and meta.answer_timeout:
        yield "reply timeout", f"requests are denied after {clock(meta.answer_timeout)}"
    if meta.talk and meta.idle_timeout:
        yield "after interrupt", f"waits {clock(meta.idle_timeout)} for your message"
    yield "max attempts", str(meta.max_attempts) if meta.max_attempts > 1 else ""
    yield "result format", "structured, sent with a tool call" if meta.finalize else ""
    yield "check", meta.check
    yield "grace", f"{meta.grace_seconds:g} s between stop and kill"
    yield "warnings", "\n".join(meta.warnings)


def _times(run: RunSnapshot, meta: RunMeta, now: datetime) -> Facts:
    yield "created", _local(meta.created_at)
    yield "started", _local(run.started_at)
    yield "finished", _local(run.end and run.end.ended_at)
    yield "duration" if run.has_ended else "elapsed", elapsed(run, now)


def _local(iso: str | None) -> str:
    read = moment(iso) if iso else None
    return read.astimezone().strftime("%Y-%m-%d %H:%M:%S") if read else ""


# --- ids, processes and paths ---------------------------------------------------------------------------------------


def _ids(run: RunSnapshot, meta: RunMeta, result: RunResult | None) -> Facts:
    yield "run id", meta.run_id
    yield "agent session", (result and result.child_session_id) or run.child_session_id or ""
    yield "shared", "with other runs, one at a time" if meta.session_lock else ""


def _paths(meta: RunMeta, result: RunResult | None) -> Facts:
    yield "session file", _session_file(meta, result)
    yield "preset file", short_path(meta.preset_path) if meta.preset_path else ""
    yield "prompt file", short_path(meta.system_prompt_path) if meta.system_prompt_path else ""
    yield "command", " ".join(short_path(word) for word in meta.agent_command)


def _session_file(meta: RunMeta, result: RunResult | None) -> str:
    if meta.agent_session:
        kept = result.conversation if result else None
        return short_path(kept) if kept else f"stored by {meta.agent}"
    return short_path(meta.session_path) if meta.session_path else "none"


def _process(
    run: RunSnapshot, result: RunResult | None, runner: RunnerFacts | None, now: datetime, lease: float
) -> Facts:
    yield "runner", run.meta.runner
    if run.is_remote:
        yield from _place(run, now, lease)
    elif runner is not None:
        yield "host", runner.host
        yield "wrapper", f"pid {runner.pid}"
        if tmux := runner.tmux:
            yield "tmux", f"socket {tmux.socket}, session {tmux.session}, window {tmux.window}"
    if result is not None:
        yield "exit code", "" if result.exit_code is None else str(result.exit_code)
        yield "signal", result.signal or ""
        yield "stop reason", result.stop_reason or ""
        yield "written by", result.written_by


def _place(run: RunSnapshot, now: datetime, lease: float) -> Facts:
    """Yield where a run on another machine is; its processes are not visible here."""
    meta, place = run.meta, run.place
    yield "requested host", one_line(meta.host, 64)
    yield "requires", needs_words(meta.needs)
    if place is None or place.is_waiting:
        yield "host", whereabouts(run) or "none yet"
        return
    yield "host", one_line(place.host, 64)
    yield "on host since" if place.state is PlaceState.PLACED else "lost contact", _local(place.since)
    yield "last seen", _local(place.heard_at) if run.is_out_of_reach else ""
    yield "lease left", _lease_left(place.heard_at, now, lease) if run.is_out_of_reach else ""
    yield "host report", one_line(place.why, 300)
    yield "ssh", one_line(place.address, 100)


def _lease_left(heard_at: str, now: datetime, lease: float) -> str:
    """Estimate how long a run continues on an unreachable host; only the host knows exactly."""
    heard = moment(heard_at)
    if not lease or heard is None:
        return "" if lease else "unlimited: it runs until its host is back (hosts.lease)"
    seconds = lease - (now - heard).total_seconds()
    return f"about {span(seconds)}, then the run stops itself (hosts.lease)" if seconds > 0 else "expired: run stopped"
