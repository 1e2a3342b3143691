"""A run's answer as its parent gets it."""

from __future__ import annotations

from typing import Any

import pytest
from subdeck.core.delegation.results import end_fields, result_text
from subdeck.core.project.registry import finished_snapshot
from subdeck.core.run.changes import Changes
from subdeck.core.run.model import Finalized, RunReason

from tests.factories import make_meta, make_result

RUN = "20261121-000000-abcdef"
ID = "550e8400-e29b-41d4-a716-446655440000"


def answer(reason: RunReason = RunReason.DONE, **result: Any) -> str:
    made = make_result(RUN, reason, **{"child_session_id": ID, **result})
    return result_text(finished_snapshot(make_meta(RUN), made), made)


@pytest.mark.parametrize("reason", [RunReason.DONE, RunReason.FINALIZED])
def test_the_header_word_for_word(reason: RunReason) -> None:
    """The answer of a completed run starts with status and session id, followed by the unchanged text."""
    expected = f"**Status:** SUCCESS  \n**Session ID:** `{ID}`\n\n---\n\n## Answer\n\n* a.py:1\n"

    assert expected == answer(reason, final_text="## Answer\n\n* a.py:1\n")


def test_a_run_without_a_session() -> None:
    """Without a kept conversation, no session id is shown."""
    assert "**Status:** SUCCESS\n\n---\n\nok" == answer(child_session_id=None)


def test_a_failed_run() -> None:
    """A failed run has ERROR, its reason and the session id to continue with, without findings."""
    said = answer(RunReason.FINALIZE_ERROR, final_text=None, error_message="No network.")

    assert f"**Status:** ERROR  \n**Session ID:** `{ID}`\n\n---\n\nfailed: finalize_error: No network." == said


def test_partial_findings() -> None:
    """A failed or aborted run's findings are separate from its error."""
    said = answer(RunReason.TIMEOUT, final_text="Half of it.", error_message="the run exceeded its time limit")

    body = "aborted: timeout: the run exceeded its time limit\n\nPartial findings:\n\nHalf of it."
    assert ("**Status:** ERROR", body) == (said.partition("  \n")[0], said.partition("---\n\n")[2])


def test_what_breaks_off() -> None:
    """Text cut off by the end of a run is marked as incomplete, for the model and as a field."""
    said = answer(RunReason.TIMEOUT, final_text="Half of it.", error_message="it took too long", partial=True)
    assert said.endswith("(incomplete: the run ended while the agent was writing them):\n\nHalf of it.")
    result = make_result(RUN, RunReason.TIMEOUT, partial=True)
    assert end_fields(finished_snapshot(make_meta(RUN), result), result)["partial"] is True
    assert "partial" not in end_fields(finished_snapshot(make_meta(RUN), make_result(RUN)), make_result(RUN))


def test_a_truncated_answer_is_no_success() -> None:
    """An answer cut at the model's length limit is marked as truncated for the parent."""
    said = answer(RunReason.TRUNCATED, final_text="The first half")
    assert said.startswith("**Status:** TRUNCATED  \n")
    assert said.endswith("The answer was cut off at the model's length limit; this is its beginning:\n\nThe first half")


def test_a_failure_without_a_message() -> None:
    """A missing message is replaced by status and reason."""
    assert answer(RunReason.LOST, final_text=None).endswith("---\n\nfailed: lost")


@pytest.mark.parametrize("finalized", [
    {"status": "SUCCESS", "result": "Found."},
    {"status": "ERROR", "error": "No network.", "result": "Half."},
])  # fmt: skip
def test_details_of_a_finalized_run(finalized: dict[str, Any]) -> None:
    """Besides the text, a parent gets the session id and the structured result."""
    result = make_result(RUN, child_session_id=ID, finalized=Finalized(**finalized))
    fields = end_fields(finished_snapshot(make_meta(RUN), result), result)

    assert (ID, finalized) == (fields["sessionId"], fields["finalized"])


def test_details_of_a_run_that_does_not_finalize() -> None:
    """Without finalization there is no structured result."""
    result = make_result(RUN, child_session_id=ID)
    fields = end_fields(finished_snapshot(make_meta(RUN), result), result)

    assert ID == fields["sessionId"]
    assert "finalized" not in fields


def test_changes_of_nobody_are_not_a_line() -> None:
    """Without changes, the header has no line about them, even if another run shared the directory. Unknown changes are
    a full sentence.
    """
    assert "Changes" not in answer(changes=Changes(shared="other runs there: scout 4ae0bd"))
    note = "not recorded: the disk is full"
    assert f"**Changes:** {note}\n" in answer(changes=Changes(shared="other runs there: scout 4ae0bd", note=note))
