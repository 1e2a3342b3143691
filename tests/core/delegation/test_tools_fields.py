"""What a call of a tool may say, and how it is told what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from subdeck.core.delegation._arguments import background_arguments, status_arguments, subagent_arguments
from subdeck.core.delegation.results import ARGUMENT, CallRejected, ToolError, rejection

TASK = {"preset": "scout", "task": "look"}


def errors_of(params: object, *, isolated: bool = False) -> tuple[ToolError, ...]:
    with pytest.raises(CallRejected) as rejected:
        subagent_arguments(params, isolated=isolated)
    return rejected.value.errors


def test_single_mode() -> None:
    """One task, with all that may be said about it; blank optional texts count as absent."""
    parallel, (task,) = subagent_arguments(
        {**TASK, "model": " @fast ", "cwd": " ", "description": "d", "sessionId": "abc"}, isolated=False
    )
    assert not parallel
    assert ("scout", "look", "@fast", None, "d", "abc", None) == (
        task.preset, task.task, task.spec.model, task.cwd, task.description, task.session_id, task.isolated,
    )  # fmt: skip


def test_parallel_mode() -> None:
    """Each task has its own preset and options."""
    parallel, tasks = subagent_arguments({"tasks": [TASK, {**TASK, "preset": "other", "model": "a/b"}]}, isolated=False)
    assert parallel
    assert [("scout", None), ("other", "a/b")] == [(task.preset, task.spec.model) for task in tasks]


def test_null_counts_as_absent() -> None:
    """A model that fills every field with null is understood."""
    parallel, _ = subagent_arguments({**TASK, "model": None, "tasks": None, "chain": None}, isolated=False)
    assert not parallel


@pytest.mark.parametrize("params", [{}, None, {"tasks": None}], ids=str)
def test_neither_mode_is_refused(params: Any) -> None:
    """A call without preset, task and tasks says which of them are needed."""
    (error,) = errors_of(params)
    assert ("preset", "task", "tasks") == error.valid
    assert "are missing" in error.what


def test_both_modes_are_refused() -> None:
    """A call is single or parallel, never both."""
    (error,) = errors_of({**TASK, "tasks": [TASK]})
    assert ("cannot combine preset and task with tasks", ARGUMENT) == (error.what, error.where)


@pytest.mark.parametrize("name", ["model", "cwd", "description", "sessionId"])
def test_tasks_have_no_defaults(name: str) -> None:
    """Beside `tasks` there is no top-level default for anything."""
    (error,) = errors_of({name: "x", "tasks": [TASK]})
    assert (name, "x") == (error.field, error.value)
    assert "no default" in error.what


def test_chain_is_refused_with_what_to_do() -> None:
    """`chain` is answered with the way to do it instead, in both tools."""
    (error,) = errors_of({"chain": [TASK]})
    assert "chain" == error.field
    assert "once per step" in error.hint and "tasks" in error.hint
    with pytest.raises(CallRejected, match="chain"):
        background_arguments({"chain": [TASK]}, isolated=False)


def test_unknown_fields_are_refused_with_the_known_ones() -> None:
    """A field that is not there is named together with those that are, at the top and in a task."""
    (error,) = errors_of({**TASK, "modle": "a/b"})
    assert ("modle", ARGUMENT, "did you mean model?") == (error.field, error.where, error.hint)
    assert "model" in error.valid
    (inner,) = errors_of({"tasks": [TASK, {**TASK, "agent": "x"}]})
    assert ("agent", 1) == (inner.field, inner.index)


def test_isolated_is_unknown_where_it_is_not_shown() -> None:
    """`isolated` counts only where the operator shows it to parents."""
    (error,) = errors_of({**TASK, "isolated": True})
    assert "isolated" == error.field
    _, (task,) = subagent_arguments({**TASK, "isolated": False}, isolated=True)
    assert task.isolated is False


def test_every_task_is_checked_at_once() -> None:
    """One answer names what is wrong with each task, so that one more call is enough."""
    errors = errors_of({"tasks": [{"preset": "scout"}, TASK, {"task": "x", "preset": " "}, 7, {**TASK, "cwd": 1}]})
    assert [(0, "task"), (2, "preset"), (3, "tasks"), (4, "cwd")] == [(error.index, error.field) for error in errors]


@pytest.mark.parametrize("tasks", [[], {}, "x", 3], ids=str)
def test_tasks_is_a_list(tasks: Any) -> None:
    """Anything but a list with tasks in it is refused."""
    (error,) = errors_of({"tasks": tasks})
    assert "tasks" == error.field


@pytest.mark.parametrize("params", [[], "x", 3], ids=str)
def test_arguments_are_an_object(params: Any) -> None:
    """Arguments that are no object are refused, not a crash."""
    (error,) = errors_of(params)
    assert "not an object" in error.what


def test_background_is_single_only() -> None:
    """background_agent takes one task, and says how to start several."""
    assert "scout" == background_arguments(TASK, isolated=False).preset
    with pytest.raises(CallRejected) as rejected:
        background_arguments({"tasks": [TASK]}, isolated=False)
    assert "once for each task" in rejected.value.errors[0].hint


def test_status_takes_a_run_and_a_switch() -> None:
    """A blank run id counts as absent; what is neither true nor false is refused."""
    assert (None, False) == status_arguments({})
    assert ("r1", True) == status_arguments({"runId": " r1 ", "includeCompleted": True})
    for params in ({"includeCompleted": "yes"}, {"runId": 3}, {"all": True}):
        with pytest.raises(CallRejected):
            status_arguments(params)


def test_errors_are_structured_and_short() -> None:
    """A refusal has what, value, valid values (20 at most), where and hint, and says all of it in words too."""
    (error,) = errors_of({**TASK, "x" * 500: 1})
    answer = rejection([error])
    assert answer.is_error
    assert {"what", "field", "value", "valid", "where", "hint"} == set(answer.details["error"])
    assert len(answer.details["error"]["value"]) <= 200
    assert answer.text.startswith("Nothing was started.")
    assert "valid: preset, task" in answer.text
