"""The table of git operations has everything that the command line, the app and undo need."""

from __future__ import annotations

import inspect
from importlib import import_module

import pytest
from subdeck.core.work.operation import BY_KIND, OPERATIONS, ActKind, Operation, Plan

PLANNED = [one for one in OPERATIONS if one.module != "deletion"]


def named(operation: Operation) -> str:
    return str(operation.kind or operation.module)


def test_every_kind_of_act_is_there() -> None:
    """Every kind of act on the stack can be undone."""
    assert set(ActKind) == BY_KIND.keys()
    assert all(one.doing for one in BY_KIND.values())


@pytest.mark.parametrize("operation", OPERATIONS, ids=named)
def test_its_module_is_whole(operation: Operation) -> None:
    """An operation's module has plan and act, unless it deletes, and undo for the act that it records."""
    module = import_module(f"subdeck.core.work.{operation.module}")
    wanted = {
        "plan": ["project", "run"] if operation in PLANNED else [],
        "act": ["project", "plan", "message"] if operation in PLANNED else [],
        "undo": ["project", "act"] if operation.kind else [],
        "is_void": [] if operation in PLANNED else ["project", "act"],
    }
    for name, arguments in wanted.items():
        function = getattr(module, name, None)
        takes = list(inspect.signature(function).parameters.values()) if function else []
        assert arguments == [one.name.strip("_") for one in takes if one.kind is one.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("operation", PLANNED, ids=named)
def test_its_plan_is_its_own(operation: Operation) -> None:
    """The plan names its own operation and describes itself."""
    module = import_module(f"subdeck.core.work.{operation.module}")
    classes = (one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__)
    (plan,) = (one for one in classes if issubclass(one, Plan))
    defaults = dict(zip(plan.__struct_fields__[::-1], plan.__struct_defaults__[::-1], strict=False))
    assert operation.module == defaults["operation"].module
    assert plan.describe is not Plan.describe
    assert bool(operation.command) == (plan.document is not Plan.document)


@pytest.mark.parametrize("operation", PLANNED, ids=named)
def test_its_words_go_together(operation: Operation) -> None:
    """A dialog has a title, a button and a past form; a command with a question has words for a refusal."""
    assert len({bool(operation.title), bool(operation.verb), bool(operation.done)}) == 1
    assert bool(operation.command) == bool(operation.outcome)
    assert operation.title or not operation.in_view
    assert bool(operation.question) == bool(operation.declined)
    assert all("{}" in text for text in (operation.title, operation.done) if text)
