"""Every recorded stream of a real pi replays to its correct outcome."""

from __future__ import annotations

import pytest
from subdeck.core.agents.pi.stream import QUIET_AFTER_END
from subdeck.core.run.events import AssistantText, ErrorReported, Notice, Retry, Thinking, ToolCall, ToolResult

from tests.replay import cases, lines, replay, stdout

pytestmark = pytest.mark.processes

PLAIN = "Hello from the fake model. This is a plain answer."
OVERFLOW = "This model's maximum context length is 128000 tokens."
NO_KEY = "the agent exited with code 1 before it finished: No API key found for anthropic."
NO_MODEL = 'the agent exited with code 1 before it finished: Error: Model "nopeprov/whatever" not found.'
TERMED = "the agent exited with code 143 before it finished"

EXPECTED: dict[str, tuple[str, str, str]] = {
    "0.73.1/a_text": ("completed", "done", PLAIN),
    "0.73.1/b_read_grep_find_ls": ("completed", "done", "All done."),
    "0.73.1/c_edit_write": ("completed", "done", "All done."),
    "0.73.1/d_bash": ("completed", "done", "All done."),
    "0.73.1/e_tool_errors": ("completed", "done", "All done."),
    "0.73.1/f_401": ("failed", "model_error", "401 Invalid API key"),
    "0.73.1/f_429_always_fast_settings": ("failed", "model_error", "429 Rate limit"),
    "0.73.1/f_500_then_ok": ("completed", "done", "All done."),
    "0.73.1/f_context_overflow": ("failed", "model_error", OVERFLOW),
    "0.73.1/f_empty_answer": ("failed", "empty_answer", "the agent finished without writing any text"),
    "0.73.1/f_length_stop": ("completed", "truncated", "cut off he"),
    "0.73.1/g_thinking": ("completed", "done", "Done."),
    "0.73.1/h_sigkill": ("failed", "agent_exit", "the agent was killed by SIGKILL before it finished"),
    "0.73.1/h_sigterm": ("failed", "agent_exit", TERMED),
    "0.73.1/h_sigterm_in_bash": ("failed", "agent_exit", TERMED),
    "0.73.1/i_resume_1": ("completed", "done", "First answer."),
    "0.73.1/i_resume_2": ("completed", "done", "Second answer, I remember."),
    "0.73.1/k_no_key_builtin": ("failed", "agent_exit", NO_KEY),
    "0.73.1/k_unknown_provider": ("failed", "agent_exit", NO_MODEL),
    "0.73.1/l_oneline_5mb": ("completed", "done", "All done."),
    "0.73.1/m_unicode_ansi": ("completed", "done", "All done."),
    "0.73.1/p_extension_finalize": ("completed", "done", "Finishing."),
    "0.73.1/p_finalize_parallel_with_read": ("completed", "done", "asked again"),
    # An rpc stream has a prompt's events like any other, and answers to commands are not events.
    "0.73.1/s_rpc_basic": ("completed", "done", "hi from rpc"),
    # The recorder killed it long after its last event, so it had finished.
    "0.73.1/y_extension_timer_keeps_process_alive": ("completed", "done", "All done."),
    "0.87.1/a_text": ("completed", "done", PLAIN),
    "0.87.1/b_read_grep_find_ls": ("completed", "done", "All done."),
    "0.87.1/p_extension_finalize": ("completed", "done", "Finishing."),
    "1.5.2/a_text": ("completed", "done", PLAIN),
    "1.5.2/b_read_grep_find_ls": ("completed", "done", "All done."),
    "1.5.2/c_edit_write": ("completed", "done", "All done."),
    "1.5.2/d_bash": ("completed", "done", "All done."),
    "1.5.2/e_tool_errors": ("completed", "done", "All done."),
    "1.5.2/f_401": ("failed", "model_error", "401 Invalid API key"),
    "1.5.2/f_429_always_fast_settings": ("failed", "model_error", "429 Rate limit"),
    # 1.5.2 asks four times, and the recorded server returned 500 each time.
    "1.5.2/f_500_then_ok": ("failed", "model_error", "500 boom"),
    "1.5.2/f_context_overflow": ("failed", "model_error", OVERFLOW),
    "1.5.2/f_empty_answer": ("failed", "empty_answer", "the agent finished without writing any text"),
    "1.5.2/f_length_stop": ("completed", "truncated", "cut off he"),
    "1.5.2/g_thinking": ("completed", "done", "Done."),
    "1.5.2/h_sigkill": ("failed", "agent_exit", "the agent was killed by SIGKILL before it finished"),
    "1.5.2/h_sigterm": ("failed", "agent_exit", TERMED),
    "1.5.2/h_sigterm_in_bash": ("failed", "agent_exit", TERMED),
    "1.5.2/i_resume_1": ("completed", "done", "First answer."),
    "1.5.2/i_resume_2": ("completed", "done", "Second answer, I remember."),
    "1.5.2/k_no_key_builtin": ("failed", "agent_exit", NO_KEY),
    "1.5.2/k_unknown_provider": ("failed", "agent_exit", NO_MODEL),
    "1.5.2/l_oneline_5mb": ("completed", "done", "All done."),
    "1.5.2/m_unicode_ansi": ("completed", "done", "All done."),
    "1.5.2/p_extension_finalize": ("completed", "done", "Finishing."),
    "1.5.2/p_finalize_parallel_with_read": ("completed", "done", "asked again"),
    "1.5.2/s_rpc_basic": ("completed", "done", "hi from rpc"),
    "1.5.2/y_extension_timer_keeps_process_alive": ("completed", "done", "All done."),
}
BOTH = pytest.mark.parametrize("version", ["0.73.1", "1.5.2"])


def test_every_recording_is_expected() -> None:
    """Every recording has an expected outcome."""
    assert sorted(EXPECTED) == cases()


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_outcome(case: str) -> None:
    """A recording has the run's outcome: status, reason, and the answer or error."""
    run = replay(case)
    status, reason, text = EXPECTED[case]
    assert (status, reason) == (run.outcome.status, run.outcome.reason)
    assert text in ((run.facts.final_text if status == "completed" else run.outcome.message) or "")
    assert 0 == run.facts.unreadable


@pytest.mark.parametrize("case", sorted(EXPECTED))
def test_completion(case: str) -> None:
    """Newer pi reports that it has settled, 0.73.1 has finished after a quiet moment, and a cut stream never
    finishes.
    """
    finished = EXPECTED[case][1] != "agent_exit" and case != "0.73.1/f_context_overflow"
    after = QUIET_AFTER_END if case.startswith("0.73.1") else 0
    assert (after if finished else None) == replay(case).stream.finished_after


@BOTH
def test_usage(version: str) -> None:
    """Tokens, cost, turns and tool uses are summed over the assistant messages, each counted once."""
    usage = replay(f"{version}/a_text").facts.usage
    assert (200, 20, 1000, 0, 1, 0) == (
        usage.input,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.turns,
        usage.tool_uses,
    )
    assert pytest.approx(0.00034) == usage.cost
    assert (5, 4) == (
        replay(f"{version}/d_bash").facts.usage.turns,
        replay(f"{version}/d_bash").facts.usage.tool_uses,
    )


@BOTH
def test_model_and_session(version: str) -> None:
    """The agent's model and session id are kept."""
    facts = replay(f"{version}/g_thinking").facts
    assert "fake/think" == facts.model
    assert f'"id":"{facts.session_id}"' in stdout(f"{version}/g_thinking").split(b"\n")[0].decode()


@BOTH
def test_bash_exit_code(version: str) -> None:
    """A failing command has an exit code, a timed-out one does not."""
    out, failing, timed_out, _ = replay(f"{version}/d_bash").of(ToolResult)
    assert (0 if version == "1.5.2" else None) == out.exit_code
    assert (3, True) == (failing.exit_code, failing.is_error)
    assert (None, True) == (timed_out.exit_code, timed_out.is_error)
    assert "Command timed out after 1 seconds" == timed_out.content


def test_reported_duration() -> None:
    """pi's reported duration is used instead of the measured one."""
    assert [921, 9, 1008] == [result.duration_ms for result in replay("1.5.2/d_bash").of(ToolResult)][:3]


@BOTH
def test_tool_errors(version: str) -> None:
    """Failing tools, unknown tools and wrong arguments are error results, and the run continues."""
    run = replay(f"{version}/e_tool_errors")
    results = run.of(ToolResult)
    assert [True, True, True, version == "1.5.2"] == [result.is_error for result in results]
    assert "Tool nonexistent_tool not found" == results[1].content
    assert ["read", "nonexistent_tool", "read", "read"] == [call.tool_name for call in run.of(ToolCall)]


@BOTH
def test_parallel_tools(version: str) -> None:
    """Results come in finishing order and name their call."""
    run = replay(f"{version}/b_read_grep_find_ls")
    assert {call.tool_call_id for call in run.of(ToolCall)} == {result.tool_call_id for result in run.of(ToolResult)}
    assert ["call_ls_1", "call_find_0"] == [result.tool_call_id for result in run.of(ToolResult)][2:]
    assert 0 == run.stream.running_tools


@BOTH
def test_running_tool(version: str) -> None:
    """A tool without an end counts as running."""
    assert 1 == replay(f"{version}/h_sigterm_in_bash").stream.running_tools


@BOTH
def test_thinking(version: str) -> None:
    """Thinking and text keep their order in the message, followed by the tool call."""
    kinds = [type(event) for event in replay(f"{version}/g_thinking").events]
    told = [kind for kind in kinds if kind in (Thinking, AssistantText, ToolCall, ToolResult)]
    assert [Thinking, AssistantText, ToolCall, ToolResult, Thinking, AssistantText] == told


def test_recovered_retry() -> None:
    """A successful retry leaves its error in the events but not in the outcome."""
    run = replay("0.73.1/f_500_then_ok")
    assert ["500 boom"] == [event.message for event in run.of(ErrorReported)]
    assert [(1, 3, 2000, "500 boom")] == [
        (event.attempt, event.max_attempts, event.delay_ms, event.reason) for event in run.of(Retry)
    ]
    assert run.outcome.message is None
    assert 1 == run.facts.usage.turns


@BOTH
def test_exhausted_retries(version: str) -> None:
    """All failed retries are reported."""
    run = replay(f"{version}/f_429_always_fast_settings")
    assert [1, 2] == [event.attempt for event in run.of(Retry)]
    assert 3 == len(run.of(ErrorReported))


def test_compaction_is_told() -> None:
    """The start of a compaction is a notice, although 0.73.1 exits during it."""
    assert ["compacting the conversation (overflow)"] == [
        notice.text for notice in replay("0.73.1/f_context_overflow").of(Notice)
    ]


@pytest.mark.parametrize(("version", "count"), [("0.73.1", 45), ("1.5.2", 48)])
def test_unicode(version: str, count: int) -> None:
    """Only newline bytes end a record: U+2028 and U+0085 stay inside, and control characters are kept."""
    case = f"{version}/m_unicode_ansi"
    assert count == len(lines(case)) == stdout(case).count(b"\n")
    assert count < len(stdout(case).decode().splitlines())
    run = replay(case)
    text, _ = run.of(AssistantText)
    assert "Ünïcödé ✓ 日本語 😀 \u2028 sep \x85 nel \x1b[31mred\x1b[0m \x07 bell \x00 nul" == text.text
    assert "\x1b]0;title\x07日本語 😀\n" in run.of(ToolResult)[0].content


@pytest.mark.parametrize("case", ["0.73.1/p_extension_finalize", "0.87.1/p_extension_finalize"])
def test_finalize_payload(case: str) -> None:
    """The agent's arguments to `subagent_finalize` are kept."""
    assert {"status": "success", "summary": "It works."} == replay(case).facts.finalized


@BOTH
def test_rpc_answers_are_no_garbage(version: str) -> None:
    """Answers to rpc commands are skipped without a warning."""
    run = replay(f"{version}/s_rpc_basic")
    assert ["hi from rpc"] == [event.text for event in run.of(AssistantText)]
    assert [] == run.of(Notice)


def test_long_tool_output() -> None:
    """A line of more than a megabyte is read, and the part that the model saw is kept complete."""
    run = replay("1.5.2/l_oneline_5mb")
    assert max(map(len, lines("1.5.2/l_oneline_5mb"))) > 1_000_000
    (result,) = run.of(ToolResult)
    assert 0 < len(result.content) <= 64 * 1024
