"""Status and reason of a run, decided after its agent ended."""

from __future__ import annotations

import errno

import pytest
from msgspec.structs import replace
from subdeck.core.run.model import STATUS_OF, RunReason, StopRequest
from subdeck.core.run.outcome import ChildExit, Failure, StreamFacts, decide

ANSWERED = StreamFacts(finished=True, final_text="The answer.", stop_reason="stop")
WORKING = StreamFacts(final_text="I will look.", stop_reason="toolUse")
FAILED = StreamFacts(finished=True, stop_reason="error", error_message="401 Invalid API key")
CLEAN = ChildExit(code=0)


def asked_to_stop(*, by: str = "", force: bool = False, reason: str = "stopped") -> StopRequest:
    return StopRequest(by=by, force=force, at="", reason=reason)


STOP = asked_to_stop(by="operator")


def test_done() -> None:
    """A positive terminal event and an answer complete a run."""
    outcome = decide(ANSWERED, exit=CLEAN)
    assert ("completed", "done", None, 0, None, "stop") == (
        outcome.status,
        outcome.reason,
        outcome.message,
        outcome.exit_code,
        outcome.signal,
        outcome.stop_reason,
    )


def test_exit_code_alone_completes_nothing() -> None:
    """An agent that exits cleanly without reporting its end has failed."""
    outcome = decide(WORKING, exit=CLEAN)
    assert ("failed", "agent_exit") == (outcome.status, outcome.reason)
    assert "the agent exited with code 0 before it finished" == outcome.message


def test_model_error_with_exit_0() -> None:
    """A model error is a failure although pi exits with 0."""
    outcome = decide(FAILED, exit=CLEAN)
    assert ("failed", "model_error", "401 Invalid API key") == (outcome.status, outcome.reason, outcome.message)


def test_model_error_after_text() -> None:
    """Text of earlier messages does not hide an error in the last one."""
    assert "model_error" == decide(replace(FAILED, final_text="I will look."), exit=CLEAN).reason


def test_silent_model_error() -> None:
    """An error without a message still gets a sentence."""
    outcome = decide(replace(FAILED, error_message=None), exit=CLEAN)
    assert ("model_error", "the model ended with an error without a message") == (outcome.reason, outcome.message)


def test_model_error_before_a_clean_exit() -> None:
    """pi 0.73.1 exits with 0 in the middle of a compaction: the model error before it is the reason."""
    assert "model_error" == decide(replace(FAILED, finished=False), exit=CLEAN).reason


def test_crash_after_a_model_error() -> None:
    """An agent that dies while waiting for a retry failed by its exit, and the message adds the model error."""
    outcome = decide(replace(FAILED, finished=False), exit=ChildExit(signal="SIGKILL"))
    assert "agent_exit" == outcome.reason
    assert (
        "the agent was killed by SIGKILL before it finished (last model error: 401 Invalid API key)" == outcome.message
    )


def test_empty_answer() -> None:
    """No text in any assistant message is a failure."""
    outcome = decide(StreamFacts(finished=True, stop_reason="stop"), exit=CLEAN)
    assert ("failed", "empty_answer") == (outcome.status, outcome.reason)


def test_empty_answer_at_the_length_limit() -> None:
    """The message names the length limit if the model reached it without text."""
    outcome = decide(StreamFacts(finished=True, stop_reason="length"), exit=CLEAN)
    assert "empty_answer" == outcome.reason
    assert "the model reached its length limit before it wrote any text" == outcome.message


def test_truncated() -> None:
    """An answer cut at the length limit completes the run and is marked as truncated."""
    outcome = decide(replace(ANSWERED, stop_reason="length"), exit=CLEAN)
    assert ("completed", "truncated") == (outcome.status, outcome.reason)


def test_terminating_tool_without_text() -> None:
    """A run that ends in a terminating tool is empty, unless the tool accepted a result."""
    silent = StreamFacts(finished=True, stop_reason="toolUse")
    assert "empty_answer" == decide(silent, exit=CLEAN).reason
    assert "finalized" == decide(replace(silent, finalized={"status": "success"}), exit=CLEAN).reason


@pytest.mark.parametrize("gone", [ChildExit(code=143), ChildExit(signal="SIGTERM"), ChildExit(signal="SIGKILL")])
def test_ended_by_us_after_the_end(gone: ChildExit) -> None:
    """A finished agent that subdeck had to end has completed, and its exit is kept."""
    outcome = decide(ANSWERED, exit=gone)
    assert ("completed", gone.code, gone.signal) == (outcome.status, outcome.exit_code, outcome.signal)


@pytest.mark.parametrize(
    ("stop", "reason", "message"),
    [
        (STOP, "stopped", "stopped by the user"),
        (asked_to_stop(), "stopped", "stopped"),
        (asked_to_stop(force=True, by="operator"), "killed", "killed by the user"),
        (asked_to_stop(reason="cancelled", by="cli"), "cancelled", "cancelled by cli"),
        (asked_to_stop(reason="cancelled", force=True), "cancelled", "cancelled"),
    ],
)
def test_stop_request(stop: StopRequest, reason: str, message: str) -> None:
    """A stop request gives the run its reason."""
    outcome = decide(WORKING, exit=ChildExit(code=143), stop=stop)
    assert ("aborted", reason, message) == (outcome.status, outcome.reason, outcome.message)


def test_order_of_ends() -> None:
    """A stop request outranks a limit, a limit a signal, and a signal a failed start."""
    missing = Failure(RunReason.AGENT_MISSING, "no pi")
    limit = RunReason.TIMEOUT
    assert "stopped" == decide(WORKING, stop=STOP, limit=limit, signal="SIGTERM", failure=missing).reason
    assert "timeout" == decide(WORKING, limit=limit, signal="SIGTERM", failure=missing).reason
    assert "signal" == decide(WORKING, signal="SIGTERM", failure=missing).reason
    assert "agent_missing" == decide(WORKING, failure=missing).reason


@pytest.mark.parametrize("limit", [RunReason.TIMEOUT, RunReason.MAX_TURNS, RunReason.STALLED])
def test_limits(limit: RunReason) -> None:
    """A limit aborts the run under its own reason, with a sentence."""
    outcome = decide(WORKING, exit=ChildExit(code=143), limit=limit)
    assert ("aborted", limit) == (outcome.status, outcome.reason)
    assert outcome.message


def test_signal_to_the_wrapper() -> None:
    """A signal without a stop request aborts the run and is named."""
    outcome = decide(WORKING, exit=ChildExit(code=143), signal="SIGHUP")
    assert ("aborted", "signal", "its wrapper was ended by SIGHUP") == (
        outcome.status,
        outcome.reason,
        outcome.message,
    )


@pytest.mark.parametrize("facts", [ANSWERED, FAILED])
def test_too_late(facts: StreamFacts) -> None:
    """A run that finished before the stop keeps its outcome."""
    ended = {"stop": STOP, "limit": RunReason.TIMEOUT, "signal": "SIGTERM"}
    alone = decide(facts, exit=CLEAN).reason
    assert {alone} == {decide(facts, exit=CLEAN, **{name: value}).reason for name, value in ended.items()}


def test_abort_that_settles() -> None:
    """An orderly abort after our stop is a stop; without a stop, the agent broke off its own answer."""
    facts = StreamFacts(finished=True, final_text="I will look.", stop_reason="aborted")
    assert "stopped" == decide(facts, exit=CLEAN, stop=STOP).reason
    outcome = decide(facts, exit=CLEAN)
    assert ("agent_exit", "the agent aborted its own answer") == (outcome.reason, outcome.message)


def test_queued_run_that_is_stopped() -> None:
    """A run can be stopped before its agent starts."""
    outcome = decide(StreamFacts(), stop=STOP)
    assert ("stopped", None, None) == (outcome.reason, outcome.exit_code, outcome.signal)


def test_last_words() -> None:
    """The agent's last words on stderr explain its exit."""
    outcome = decide(WORKING, exit=ChildExit(code=1), stderr="starting\n\n  no key for fake\n")
    assert "the agent exited with code 1 before it finished: starting no key for fake" == outcome.message


def test_last_words_of_node() -> None:
    """The message quotes the error of a node stack trace, not its frames."""
    trace = (
        "file:///opt/pi/cli.js:2\nimport {x} from 'node:module'\n        ^\n"
        "SyntaxError: no export named 'x'\n    at run (node:internal:1:2)\n\nNode.js v20.20.2\n"
    )
    outcome = decide(StreamFacts(), exit=ChildExit(code=1), stderr=trace)
    assert "the agent exited with code 1 before it finished: SyntaxError: no export named 'x'" == outcome.message


def test_last_words_without_an_error() -> None:
    """Stack frames are never quoted, even if no line names an error."""
    outcome = decide(
        StreamFacts(), exit=ChildExit(code=1), stderr="out of luck\n    at run (x.js:1:2)\nNode.js v20.20.2\n"
    )
    assert "the agent exited with code 1 before it finished: out of luck" == outcome.message


def test_untrusted_words() -> None:
    """An agent's control sequences never get into a message."""
    outcome = decide(StreamFacts(), exit=ChildExit(code=1), stderr="\x1b]0;owned\x07\x1b[31mred\x1b[0m")
    assert "the agent exited with code 1 before it finished: red" == outcome.message
    assert "bad" == decide(replace(FAILED, error_message="\x1b[1mbad\x00"), exit=CLEAN).message


def test_no_exit_known() -> None:
    """An agent with an unknown exit just exited."""
    assert "the agent exited before it finished" == decide(WORKING).message


@pytest.mark.parametrize(
    ("returncode", "code", "signal"),
    [(0, 0, None), (143, 143, None), (-15, None, "SIGTERM"), (-9, None, "SIGKILL"), (-99, None, "signal 99")],
)
def test_child_exit(returncode: int, code: int | None, signal: str | None) -> None:
    """Negative return codes are named signals; codes above 128 stay as the agent reported them."""
    assert ChildExit(code, signal) == ChildExit.of(returncode)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/opt/pi"), "agent_missing"),
        (PermissionError(errno.EACCES, "Permission denied", "/opt/pi"), "agent_missing"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/gone"), "start_failed"),
        (OSError(errno.ENOEXEC, "Exec format error", "/opt/pi"), "start_failed"),
        (OSError(errno.EAGAIN, "Resource temporarily unavailable"), "start_failed"),
    ],
)
def test_start_error(error: OSError, reason: str) -> None:
    """A missing and a non-executable program have their own reasons, and the message names program and cause."""
    failure = Failure.of_start(error, "/opt/pi")
    outcome = decide(StreamFacts(), failure=failure)
    assert ("failed", reason) == (outcome.status, outcome.reason)
    assert "/opt/pi" in (outcome.message or "")
    assert (error.strerror or "") in (outcome.message or "")


def test_every_reason_has_a_status() -> None:
    """Every reason has a status."""
    assert set(RunReason) == set(STATUS_OF)
