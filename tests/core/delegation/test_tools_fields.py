"""The arguments of a tool call, and the errors for wrong ones."""

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
    """A single call has one task with all options, and blank optional texts count as absent."""
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
    """A model may set unused fields to null."""
    parallel, _ = subagent_arguments({**TASK, "model": None, "tasks": None, "chain": None}, isolated=False)
    assert not parallel


@pytest.mark.parametrize("params", [{}, None, {"tasks": None}], ids=str)
def test_neither_mode_is_refused(params: Any) -> None:
    """The error of a call without preset, task and tasks lists the needed fields."""
    (error,) = errors_of(params)
    assert ("preset", "task", "tasks") == error.valid
    assert "are missing" in error.what


def test_both_modes_are_refused() -> None:
    """A call is single or parallel, never both."""
    (error,) = errors_of({**TASK, "tasks": [TASK]})
    assert ("cannot combine preset and task with tasks", ARGUMENT) == (error.what, error.where)


@pytest.mark.parametrize("name", ["model", "cwd", "description", "sessionId"])
def test_tasks_have_no_defaults(name: str) -> None:
    """Next to `tasks`, no other field is allowed as a default."""
    (error,) = errors_of({name: "x", "tasks": [TASK]})
    assert (name, "x") == (error.field, error.value)
    assert "no default" in error.what


def test_chain_is_refused_with_what_to_do() -> None:
    """`chain` is refused with the alternative, in both tools."""
    (error,) = errors_of({"chain": [TASK]})
    assert "chain" == error.field
    assert "once per step" in error.hint and "tasks" in error.hint
    with pytest.raises(CallRejected, match="chain"):
        background_arguments({"chain": [TASK]}, isolated=False)


def test_unknown_fields_are_refused_with_the_known_ones() -> None:
    """An unknown field is refused with the known ones, at the top and in a task."""
    (error,) = errors_of({**TASK, "modle": "a/b"})
    assert ("modle", ARGUMENT, "did you mean model?") == (error.field, error.where, error.hint)
    assert "model" in error.valid
    (inner,) = errors_of({"tasks": [TASK, {**TASK, "agent": "x"}]})
    assert ("agent", 1) == (inner.field, inner.index)


def test_isolated_is_unknown_where_it_is_not_shown() -> None:
    """`isolated` is accepted only if a setting exposes it to parents."""
    (error,) = errors_of({**TASK, "isolated": True})
    assert "isolated" == error.field
    _, (task,) = subagent_arguments({**TASK, "isolated": False}, isolated=True)
    assert task.isolated is False


def test_every_task_is_checked_at_once() -> None:
    """One error lists the problems of all tasks, so one more call is enough."""
    errors = errors_of({"tasks": [{"preset": "scout"}, TASK, {"task": "x", "preset": " "}, 7, {**TASK, "cwd": 1}]})
    assert [(0, "task"), (2, "preset"), (3, "tasks"), (4, "cwd")] == [(error.index, error.field) for error in errors]


@pytest.mark.parametrize("tasks", [[], {}, "x", 3], ids=str)
def test_tasks_is_a_list(tasks: Any) -> None:
    """Only a list of tasks is accepted."""
    (error,) = errors_of({"tasks": tasks})
    assert "tasks" == error.field


@pytest.mark.parametrize("params", [[], "x", 3], ids=str)
def test_arguments_are_an_object(params: Any) -> None:
    """Arguments other than an object are refused without a crash."""
    (error,) = errors_of(params)
    assert "not an object" in error.what


def test_background_is_single_only() -> None:
    """background_agent takes one task, and its error explains how to start several."""
    assert "scout" == background_arguments(TASK, isolated=False).preset
    with pytest.raises(CallRejected) as rejected:
        background_arguments({"tasks": [TASK]}, isolated=False)
    assert "once for each task" in rejected.value.errors[0].hint


def test_status_takes_a_run_and_a_switch() -> None:
    """A blank run id counts as absent, and only true or false are accepted."""
    assert (None, False) == status_arguments({})
    assert ("r1", True) == status_arguments({"runId": " r1 ", "includeCompleted": True})
    for params in ({"includeCompleted": "yes"}, {"runId": 3}, {"all": True}):
        with pytest.raises(CallRejected):
            status_arguments(params)


def test_errors_are_structured_and_short() -> None:
    """A refusal has what, value, at most 20 valid values, where and hint, and the same as text."""
    (error,) = errors_of({**TASK, "x" * 500: 1})
    answer = rejection([error])
    assert answer.is_error
    assert {"what", "field", "value", "valid", "where", "hint"} == set(answer.details["error"])
    assert len(answer.details["error"]["value"]) <= 200
    assert answer.text.startswith("Nothing was started.")
    assert "valid: preset, task" in answer.text
