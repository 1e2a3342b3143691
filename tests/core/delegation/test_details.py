"""A run as AgentDetails: every documented field, under its documented name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from subdeck.core.delegation.report import (
    AgentDetails,
    TextEntry,
    Timeline,
    details_of,
    model_name,
    status_of,
    tokens_text,
)
from subdeck.core.run.model import (
    STATUS_OF,
    InheritedContext,
    LaunchedBy,
    Limits,
    PresetSource,
    RunMeta,
    RunReason,
    RunResult,
    RunStatus,
    Usage,
)
from subdeck.core.run.snapshot import Ended, Queued, Running, RunSnapshot

from tests.factories import changed

META = RunMeta(
    run_id="20261121-200913-a1b2c3",
    task="Look through src/auth and summarize OAuth providers",
    cwd="/project",
    agent="pi",
    agent_command=("pi",),
    runner="process",
    created_at="2026-11-21T20:00:00.000Z",
    launched_by=LaunchedBy("operator", "cli"),
    preset="Explore",
    preset_source=PresetSource.PROJECT,
    preset_path="/project/.pi/subagents/Explore.md",
    description="Find auth flows",
    resolved_model="anthropic/claude-sonnet-4-6",
    thinking="high",
    limits=Limits(max_turns=30),
)
USAGE = Usage(input=10_000, output=2_000, cache_read=300, cache_write=40, turns=4, tool_uses=5)
RUNNING = RunSnapshot(
    meta=META,
    state=Running(started_at="2026-11-21T20:00:02.000Z", activity="Reading src/auth.ts"),
    usage=USAGE,
)
COMPLETED = RunSnapshot(
    meta=META,
    state=Ended(
        reason=RunReason.DONE,
        message="Two providers.",
        started_at="2026-11-21T20:00:02.000Z",
        ended_at="2026-11-21T20:00:09.000Z",
        duration_ms=7_000,
    ),
    usage=USAGE,
)
NOW = datetime(2026, 11, 21, 20, 0, 5, tzinfo=UTC)
TIMELINE = Timeline((TextEntry(text="I look.", ts=1),), total=1, tool_uses=3)


def json_of(details: AgentDetails) -> dict[str, Any]:
    return msgspec.json.decode(msgspec.json.encode(details))


def ended(reason: RunReason, message: str = "") -> RunSnapshot:
    return changed(COMPLETED, reason=reason, message=message)


def test_a_running_run() -> None:
    """A running run has everything known so far, except the exact token counts."""
    assert {
        "agentId": "20261121-200913-a1b2c3",
        "displayName": "Explore",
        "description": "Find auth flows",
        "subagentType": "Explore",
        "status": "running",
        "activity": "Reading src/auth.ts",
        "entries": [{"kind": "text", "text": "I look.", "ts": 1}],
        "toolUses": 3,
        "tokens": "12.3k",
        "turnCount": 4,
        "maxTurns": 30,
        "durationMs": 5000,
        "modelName": "claude-sonnet-4-6",
        "tags": ["thinking: high"],
        "agentMdPath": "/project/.pi/subagents/Explore.md",
        "agentMdSource": "project",
    } == json_of(details_of(RUNNING, TIMELINE, now=NOW))


def test_a_completed_run() -> None:
    """A finished run has token counts and no activity. Its duration is its waiting time plus its measured time."""
    details = json_of(details_of(COMPLETED, TIMELINE, now=NOW))

    assert {"input": 10_000, "output": 2_000, "total": 12_340} == details["tokensUsage"]
    assert 9000 == details["durationMs"]
    assert {"activity", "error"}.isdisjoint(details)


def test_a_failed_run() -> None:
    """The error is the complete one of the result, if that is available."""
    failed = ended(RunReason.MODEL_ERROR, "401 Invalid …")
    result = RunResult(
        run_id=META.run_id,
        status=RunStatus.FAILED,
        reason=RunReason.MODEL_ERROR,
        written_by="wrapper",
        error_message="401 Invalid API key",
    )

    assert "401 Invalid …" == details_of(failed, now=NOW).error
    assert "401 Invalid API key" == details_of(failed, None, result, now=NOW).error


def test_an_end_without_words() -> None:
    """A run without a message has its reason as the error."""
    assert "timeout" == details_of(ended(RunReason.TIMEOUT), now=NOW).error


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (RunStatus.QUEUED, None, "queued"),
        (RunStatus.RUNNING, None, "running"),
        *((STATUS_OF[reason], reason, "error") for reason in RunReason if STATUS_OF[reason] is RunStatus.FAILED),
        *((STATUS_OF[reason], reason, "completed") for reason in RunReason if STATUS_OF[reason] is RunStatus.COMPLETED),
        (RunStatus.ABORTED, RunReason.STOPPED, "aborted"),
        (RunStatus.ABORTED, RunReason.KILLED, "aborted"),
        (RunStatus.ABORTED, RunReason.CANCELLED, "aborted"),
        (RunStatus.ABORTED, RunReason.SIGNAL, "aborted"),
        (RunStatus.ABORTED, RunReason.TIMEOUT, "stopped"),
        (RunStatus.ABORTED, RunReason.MAX_TURNS, "stopped"),
        (RunStatus.ABORTED, RunReason.STALLED, "stopped"),
    ],
)
def test_the_names_of_statuses(status: RunStatus, reason: RunReason | None, expected: str) -> None:
    """Failed is error, aborted by a limit is stopped, stopped by somebody is aborted."""
    assert expected == status_of(status, reason)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (PresetSource.PROJECT, "project"),
        (PresetSource.DIR, "project"),
        (PresetSource.GLOBAL, "user"),
        (PresetSource.BUNDLED, "bundled"),
    ],
)
def test_the_names_of_sources(source: PresetSource, expected: str) -> None:
    """Global is called user, and a preset_dirs directory counts as project."""
    assert expected == details_of(replace(RUNNING, meta=replace(META, preset_source=source)), now=NOW).agent_md_source


def test_an_ad_hoc_run() -> None:
    """A one-off run has no file and no source, and its task is the description."""
    bare = replace(META, preset="", preset_source=PresetSource.ADHOC, preset_path=None, description="", thinking=None)
    details = json_of(details_of(replace(RUNNING, meta=replace(bare, task="Look\n" * 50)), now=NOW))

    assert ("ad hoc", "ad hoc") == (details["displayName"], details["subagentType"])
    assert details["description"].startswith("Look Look")
    assert 80 >= len(details["description"])
    assert {"agentMdPath", "agentMdSource", "tags", "entries"}.isdisjoint(details)


def test_the_presets_own_name() -> None:
    """A preset's description is shown instead of its name."""
    details = details_of(RUNNING, now=NOW, display_name="Fast read-only exploration")

    assert ("Fast read-only exploration", "Explore") == (details.display_name, details.subagent_type)


def test_the_last_entries() -> None:
    """A shortened timeline has the total number of entries. A complete one does not."""
    assert 50 == details_of(RUNNING, replace(TIMELINE, total=50), now=NOW).entries_total
    assert details_of(RUNNING, TIMELINE, now=NOW).entries_total is None


def test_without_a_timeline() -> None:
    """Without the run's events, there are no entries."""
    details = details_of(RUNNING, now=NOW)

    assert (None, 5) == (details.entries, details.tool_uses)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"thinking": None, "inherited": InheritedContext(3, 900)}, ("inherited turns: 3",)),
        ({"thinking": "off", "isolated": True, "finalize": True}, ("thinking: off", "isolated", "finalize")),
        ({"thinking": None, "runner": "tmux"}, ("runner: tmux",)),
        ({"thinking": None}, None),
    ],
)
def test_tags(changes: dict[str, Any], expected: tuple[str, ...] | None) -> None:
    """Notable settings of a run are short tags."""
    assert expected == details_of(replace(RUNNING, meta=replace(META, **changes)), now=NOW).tags


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (replace(RUNNING, state=Queued()), 5000),
        (replace(RUNNING, meta=replace(META, created_at="2027-01-01T00:00:00Z")), 0),
        (replace(RUNNING, meta=replace(META, created_at="yesterday")), 0),
        (changed(COMPLETED, duration_ms=None), 9000),
        (changed(COMPLETED, duration_ms=None, started_at=None, ended_at=""), 0),
        (changed(COMPLETED, started_at=None), 7000),
    ],
)
def test_durations(run: RunSnapshot, expected: int) -> None:
    """Time counts from the launch and is never negative."""
    assert expected == details_of(run, now=NOW).duration_ms


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0"),
        (812, "812"),
        (1000, "1.0k"),
        (12_340, "12.3k"),
        (999_949, "999.9k"),
        (999_950, "1.0M"),
        (1_234_567, "1.2M"),
    ],
)
def test_tokens(count: int, expected: str) -> None:
    """Tokens are shown with one decimal and a unit."""
    assert expected == tokens_text(count)


@pytest.mark.parametrize(
    ("resolved", "expected"),
    [
        ("anthropic/claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("openrouter/org/model-x", "org/model-x"),
        ("ollama/llama:8b", "llama:8b"),
        ("offline", "offline"),
        ("", None),
    ],
)
def test_model_names(resolved: str, expected: str | None) -> None:
    """The model's id is shown without its provider."""
    assert expected == model_name(resolved)
