"""The overview of a run, and the usage of each model message, as rows; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from ...core.config.host_settings import needs_words
from ...core.delegation.report import model_name
from ...core.run.artifacts import RunnerFacts
from ...core.run.changes import Changes
from ...core.run.describe import (
    NOTHING,
    check_words,
    clock,
    cost_words,
    elapsed,
    known_cost,
    limits_words,
    moment,
    permissions_words,
    prompt_mode_words,
    span,
    still_running,
    unreadable_lines,
    whereabouts,
)
from ...core.run.events import UsageReported
from ...core.run.model import RunMeta, RunResult, ToolPolicy, Usage
from ...core.run.outcome import REASONS
from ...core.run.placement import PlaceState
from ...core.run.snapshot import RunSnapshot
from ...core.spec.layers import origin_words
from ...core.text.plain import one_line, plain
from ..text.cells import fit, wrap
from ..text.format import local_time, short_path
from .page import Row, heading, joined, note

LABEL = 16
"""Cells of the left column."""
VALUE = 2000
"""Characters of one value."""

Facts = Iterator[tuple[str, str]]
"""Labels with their values; a label without a value is not shown."""


def facts_rows(
    run: RunSnapshot,
    meta: RunMeta,
    result: RunResult | None,
    runner: RunnerFacts | None,
    now: datetime,
    width: int,
    unreadable: int = 0,
    changes: Changes | None = None,
    lease: float = 0.0,
) -> list[Row]:
    """Lay out a run's facts in groups; `unreadable` counts the lines that are not events, `changes` are the run's
    changes so far, `lease` is the number of seconds that it continues on an unreachable host, 0 for ever.
    """
    groups = {
        "Launch": _request(meta),
        "Agent": _agent(meta, result),
        "Tools and limits": _limits(meta),
        "Conversation": _conversation(run, meta, result),
        "Process": _process(run, runner, now, lease),
        "Times": _times(run, meta, now),
        "Result": _result(result),
        "Changes": _changes(changes, run.branch),
        "Problems": _problems(run, result, unreadable),
    }
    blocks = [[heading(title), *rows] for title, facts in groups.items() if (rows := _rows(facts, width))]
    return joined(blocks)


def _rows(facts: Facts, width: int) -> list[Row]:
    rows: list[Row] = []
    for label, value in facts:
        if not value:
            continue
        lines = wrap(plain(value)[:VALUE].strip(), max(10, width - LABEL - 2))
        rows.append(((f"  {label}".ljust(LABEL + 2), "muted"), (lines[0], "")))
        rows += [((" " * (LABEL + 2), ""), (line, "")) for line in lines[1:]]
    return rows


def _request(meta: RunMeta) -> Facts:
    yield "task", meta.task
    yield "description", meta.description
    yield "preset", f"{one_line(meta.preset, 100)} ({meta.preset_source})" if meta.preset else "none (one-off)"
    yield "preset file", short_path(meta.preset_path) if meta.preset_path else ""
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


def _agent(meta: RunMeta, result: RunResult | None) -> Facts:
    yield "agent", meta.agent
    yield "command", " ".join(short_path(word) for word in meta.agent_command)
    yield "model requested", meta.requested_model or "none"
    yield "model used", (result and result.resolved_model) or meta.resolved_model
    yield "thinking", meta.thinking or ""
    yield (
        "system prompt",
        prompt_mode_words(meta.prompt_mode) if meta.system_prompt is not None else "agent default",
    )
    yield "prompt file", short_path(meta.system_prompt_path) if meta.system_prompt_path else ""
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


def _session_file(meta: RunMeta, result: RunResult | None) -> str:
    if meta.agent_session:
        kept = result.conversation if result else None
        return short_path(kept) if kept else f"stored by {meta.agent}"
    return short_path(meta.session_path) if meta.session_path else "none"


def _conversation(run: RunSnapshot, meta: RunMeta, result: RunResult | None) -> Facts:
    yield "agent session", (result and result.child_session_id) or run.child_session_id or ""
    yield "session file", _session_file(meta, result)
    yield "shared", "with other runs, one at a time" if meta.session_lock else ""
    if inherited := meta.inherited:
        yield "parent context", inherited.words
    elif meta.isolated:
        yield "parent context", "not passed on (isolated)"


def _process(run: RunSnapshot, runner: RunnerFacts | None, now: datetime, lease: float) -> Facts:
    yield "runner", run.meta.runner
    if run.is_remote:
        yield from _place(run, now, lease)
        return
    if runner is None:
        return
    yield "host", runner.host
    yield "wrapper", f"pid {runner.pid}"
    if tmux := runner.tmux:
        yield "tmux", f"socket {tmux.socket}, session {tmux.session}, window {tmux.window}"


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
    left = lease - (now - heard).total_seconds()
    return f"about {span(left)}, then the run stops itself (hosts.lease)" if left > 0 else "expired: run stopped"


def _times(run: RunSnapshot, meta: RunMeta, now: datetime) -> Facts:
    yield "run id", meta.run_id
    yield "created", _local(meta.created_at)
    yield "started", _local(run.started_at)
    yield "finished", _local(run.end and run.end.ended_at)
    yield "duration" if run.has_ended else "elapsed", elapsed(run, now)


def _result(result: RunResult | None) -> Facts:
    if result is None:
        return
    yield "status", f"{result.status}: {result.reason}"
    yield "meaning", REASONS[result.reason]
    yield "message", result.error_message or ""
    yield "exit code", "" if result.exit_code is None else str(result.exit_code)
    yield "signal", result.signal or ""
    yield "stop reason", result.stop_reason or ""
    if finalized := result.finalized:
        yield "result status", finalized.status
        yield "result text", finalized.result or ""
        yield "result error", finalized.error or ""
    yield "attempts used", str(result.attempts) if result.attempts > 1 else ""
    if check := result.check:
        yield "check", "\n".join(filter(None, (check_words(check), check.output)))
    yield "usage", usage_words(result.usage)
    yield "written by", result.written_by


def _changes(changes: Changes | None, branch: str) -> Facts:
    if changes is None:
        return
    yield "changed", changes.words
    yield "branch", one_line(branch, 100)


def _problems(run: RunSnapshot, result: RunResult | None, unreadable: int) -> Facts:
    lines = unreadable_lines(unreadable)
    yield "events", lines
    yield "files", "\n".join(result.artifact_errors) if result else ""
    yield "tampered with", "\n".join(result.tampered) if result else ""
    yield "processes", still_running(result.not_ended) if result else ""
    known = (*run.meta.all_warnings, lines)
    yield "later warnings", "\n".join(warning for warning in run.warnings if warning not in known)


def usage_words(usage: Usage) -> str:
    """`12,345 tokens in 8 turns, 14 tool calls, $0.0312`; `…, cost unknown: the agent gave no price`."""
    cost = cost_words(usage)
    counted = "an unknown number of" if usage.uncounted and not usage.tokens else f"{usage.tokens:,}"
    words = f"{'at least ' if usage.uncounted and usage.tokens else ''}{counted} tokens in {_turns_words(usage)}"
    return ", ".join(filter(None, (words, cost if usage.cost > 0 else cost and f"cost {cost}")))


def _turns_words(usage: Usage) -> str:
    turns = "1 turn" if usage.turns == 1 else f"{usage.turns:,} turns"
    return f"{turns}, 1 tool call" if usage.tool_uses == 1 else f"{turns}, {usage.tool_uses:,} tool calls"


def _local(iso: str | None) -> str:
    read = moment(iso) if iso else None
    return read.astimezone().strftime("%Y-%m-%d %H:%M:%S") if read else ""


_HEAD = ("#", "time", "input", "output", "cache read", "cache write", "cost", "stop reason, model")


def usage_rows(newest: Sequence[UsageReported], total: Usage, messages: int, width: int) -> list[Row]:
    """Lay out the newest messages below the totals of all."""
    if not messages:
        return [note("No usage has been reported yet.")]
    table = [_HEAD, ("all", "", *_figures(total), _turns_words(total))]
    for number, used in enumerate(newest, messages - len(newest) + 1):
        end = filter(None, (one_line(used.stop_reason, 30), one_line(model_name(used.model) or "", 60)))
        table.append((f"{number:,}", local_time(used.ts), *_figures(used), "  ".join(end)))
    widths = [max(len(cells[column]) for cells in table) for column in range(len(_HEAD) - 1)]
    head, sums, *rows = (_line(cells, widths, width) for cells in table)
    cut = [note(f"(the newest {len(newest):,} of {messages:,} messages)")] if messages > len(newest) else []
    return [note(head), ((sums, "strong"),), *cut, *(((row, ""),) for row in rows)]


def _figures(used: Usage | UsageReported) -> tuple[str, ...]:
    counts = (used.input, used.output, used.cache_read, used.cache_write)
    cost = f"${used.cost:.4f}" if used.cost else ""
    known = known_cost(cost, used.unpriced) if isinstance(used, Usage) else cost or NOTHING
    return (*(f"{count:,}" if count else NOTHING for count in counts), known)


def _line(cells: Sequence[str], widths: Sequence[int], width: int) -> str:
    """Align all columns but the last to the right; the last gets the rest of the width."""
    left = "  ".join(cell.rjust(size) for cell, size in zip(cells, widths, strict=False))
    return f"{left}  {fit(cells[-1], max(0, width - len(left) - 2))}".rstrip()
