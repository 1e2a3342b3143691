"""Fixed texts: other programs, old runs and the original designs depend on them."""

from __future__ import annotations

import pytest
from subdeck.core import paths
from subdeck.core.delegation import channels
from subdeck.core.delegation.schema import NAMES, lenient, specs
from subdeck.core.launch._inherit import (
    THINKING_OMITTED,
    TOOL_OUTPUT_OMITTED,
    TRUNCATED,
    Inherited,
    prompt_with_context,
)
from subdeck.core.launch.plan import PREVIOUS
from subdeck.core.project.session import BG_DONE, BG_RUN, BG_UPDATE
from subdeck.core.run.describe import background_counts
from subdeck.core.run.events import ToolCall, ToolResult
from subdeck.core.run.model import RunReason, RunStatus
from subdeck.core.run.outcome import FINALIZE_TOOL, feedback
from subdeck.core.run.progress import ProgressFormatter
from subdeck.core.run.snapshot import Counts


def test_statuses_and_reasons() -> None:
    """Statuses and reasons use the words of run files, filters and documents."""
    assert ["queued", "running", "completed", "failed", "aborted"] == [status.value for status in RunStatus]
    reasons = {
        "done truncated finalized unverified denied model_error empty_answer agent_exit agent_missing start_failed",
        "finalize_error finalize_missing lost stopped killed cancelled signal timeout max_turns stalled interrupted",
        "budget lease",
    }
    assert set(" ".join(reasons).split()) == {reason.value for reason in RunReason}


def test_artifacts() -> None:
    """The files of a run keep the names that other programs know."""
    assert (
        *("meta.json", "prompt.md", "system-prompt.md", "events.jsonl", "transcript.log", "stdout.log", "stderr.log"),
        *("child-session.jsonl", "result.json", "answer.md", "changes.patch", "check.log"),
    ) == (
        *(paths.META, paths.PROMPT, paths.SYSTEM_PROMPT, paths.EVENTS, paths.TRANSCRIPT, paths.STDOUT, paths.STDERR),
        *(paths.CHILD_SESSION, paths.RESULT, paths.ANSWER, paths.CHANGES_PATCH, paths.CHECK_LOG),
    )


def test_delegation_tools() -> None:
    """The delegation tools keep their names and parameters, also for parents that check a call first."""
    assert ("subagent", "background_agent", "background_agent_status", "background_agent_send") == NAMES
    task = {"preset", "task", "model", "cwd", "description", "sessionId", "budget", "maxTokens", "worktree"}
    whole = task | {"host", "needs", "isolated"}
    expected = [whole | {"tasks"}, whole, {"runId", "includeCompleted"}, {"runId", "message", "interrupt"}]
    tools = specs(("a/b",), (), isolated=True, hosts=True)
    assert expected == [set(tool.parameters["properties"]) for tool in tools]
    assert expected == [set(lenient(tool.parameters)["properties"]) for tool in tools]


@pytest.mark.parametrize(
    ("tool", "args", "call", "finished", "failed"),
    [
        ("read", {"path": "a.ts"}, "Reading a.ts", "Finished reading a.ts", "Read failed: a.ts"),
        ("grep", {"pattern": "auth"}, "Searching code for auth", "Search finished", "Search failed: auth"),
        ("find", {"pattern": "*.ts"}, "Scanning for *.ts", "Scan finished", "Scan failed: *.ts"),
        ("ls", {"path": "src/"}, "Listing src/", "Finished listing src/", "Listing failed: src/"),
        ("edit", {"path": "a.ts"}, "Editing a.ts", "Finished editing a.ts", "Edit failed: a.ts"),
        ("write", {"path": "a.md"}, "Writing a.md", "Finished writing a.md", "Write failed: a.md"),
        ("bash", {"command": "npm test"}, "npm test", "Command finished", "Command failed: npm test"),
        ("other", {}, "Running other", "other finished", "other failed"),
    ],
)
def test_progress(tool: str, args: dict[str, str], call: str, finished: str, failed: str) -> None:
    """Live progress uses the sentences of its design."""
    for is_error, outcome in ((False, finished), (True, failed)):
        formatter = ProgressFormatter()
        begun = ToolCall(seq=1, ts="", tool_call_id="1", tool_name=tool, args=dict(args))
        done = ToolResult(seq=2, ts="", tool_call_id="1", tool_name=tool, content="", is_error=is_error)
        assert (call, outcome) == (formatter.text(begun), formatter.text(done))


def test_corrective_feedback() -> None:
    """The corrective feedback names the fault, the tool and both statuses, and does not ask to repeat the work."""
    text = feedback("SUCCESS requires a non-empty result")
    facts = ("SUCCESS requires a non-empty result", FINALIZE_TOOL, "SUCCESS", "ERROR", "Do not repeat the work")
    assert all(fact in text for fact in facts)
    assert "subagent_finalize" == FINALIZE_TOOL


def test_inherited_context() -> None:
    """The placeholders and the frame of an inherited conversation stay the ones that agents know."""
    placeholders = ("[…tool output omitted, see earlier message]", "[…thinking omitted…]", "[…truncated…]")
    assert placeholders == (TOOL_OUTPUT_OMITTED, THINKING_OMITTED, TRUNCATED)
    prompt = prompt_with_context(Inherited("Before.", 1, 7), "Now.")
    assert "<parent-context>\nBefore.\n</parent-context>\n\nNow." == prompt
    assert "{previous}" == PREVIOUS


def test_channels_and_session_entries() -> None:
    """Event channels and custom session entry types keep their names."""
    names = ("subagents:created", "subagents:started", "subagents:completed", "subagents:failed")
    assert names == (channels.CREATED, channels.STARTED, channels.COMPLETED, channels.FAILED)
    entries = ("pi-subagents:bg-run", "pi-subagents:bg-update", "pi-subagents:bg-done")
    assert entries == (BG_RUN, BG_UPDATE, BG_DONE)


def test_footer_of_background_runs() -> None:
    """The parent's footer counts background runs in its fixed format."""
    assert "bg: 2 running / 5 total" == background_counts(Counts(running=2, total=5))
