"""Parse and check a call's arguments; all errors are reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from ..errors import nearest
from ..run.model import LARGEST
from ..spec.fields import RunSpec, table
from ..text.plain import one_line
from .results import CallRejected, ToolError, argument_error

OF_SPEC = {field.argument.name: (name, field.argument) for name, field in table().items() if field.argument}
"""The run fields that a call may set, by argument name."""
TEXTS = ("preset", "task", "cwd", "description", "sessionId")
"""A call's other text arguments for a run."""

CHAIN_HINT = (
    "call subagent once per step and put the earlier answer into the next task; put "
    "independent steps into tasks, which run in parallel"
)

TASKS_HINT = "use [{preset, task}, …]"

_REQUIRED = {"preset": "use a preset from the tool's description", "task": "describe what the agent should do"}
"""Hints for missing arguments."""


class TaskArguments(Struct, frozen=True, kw_only=True):
    """One task of a call; blank optional texts count as absent."""

    preset: str
    task: str
    cwd: str | None
    description: str
    session_id: str | None
    isolated: bool | None
    spec: RunSpec
    """The run fields that it sets."""

    @property
    def names_host(self) -> bool:
        return self.spec.host is not None or self.spec.needs is not None


def subagent_arguments(
    params: object, *, isolated: bool, hosts: bool = False
) -> tuple[bool, tuple[TaskArguments, ...]]:
    """Return whether the call is parallel, and its tasks. `isolated` and `hosts`: whether parents see those fields.

    Raises CallRejected.
    """
    arguments = _mapping(params)
    if "chain" in arguments:
        raise _rejected("chain is not supported", field="chain", value=arguments["chain"], hint=CHAIN_HINT)
    single = _task_fields(isolated=isolated, hosts=hosts)
    _reject_any(_unknown_names(arguments, (*single, "tasks")))
    named = [name for name in single if name in arguments]
    if "tasks" not in arguments:
        if not named:
            hint = "use preset and task for one agent, or tasks: [{preset, task}, …] for several"
            valid = ("preset", "task", "tasks")
            raise _rejected("preset and task, or tasks, are missing", valid=valid, hint=hint)
        return False, (_task(arguments),)
    if named:
        both = {"preset", "task"} & set(named)
        what = "cannot combine preset and task with tasks" if both else f"tasks have no default {', '.join(named)}"
        hint = f"remove {', '.join(named)} beside tasks; each task sets its own"
        raise _rejected(what, field=named[0], value=arguments[named[0]], valid=("tasks",), hint=hint)
    return True, _tasks(arguments["tasks"], single)


def background_arguments(params: object, *, isolated: bool, hosts: bool = False) -> TaskArguments:
    """Return the task of a background call. Raises CallRejected."""
    arguments = _mapping(params)
    for name, hint in (("tasks", "call background_agent once for each task"), ("chain", CHAIN_HINT)):
        if name in arguments:
            raise _rejected(f"background_agent does not accept {name}", field=name, value=arguments[name], hint=hint)
    _reject_any(_unknown_names(arguments, _task_fields(isolated=isolated, hosts=hosts)))
    return _task(arguments)


def status_arguments(params: object) -> tuple[str | None, bool]:
    """Return the requested run, and whether to include finished runs. Raises CallRejected."""
    arguments = _mapping(params)
    _reject_any(_unknown_names(arguments, ("runId", "includeCompleted")))
    run_id, with_ended = arguments.get("runId", ""), arguments.get("includeCompleted", False)
    if not isinstance(run_id, str):
        hint = "use the runId that background_agent returned"
        raise _rejected("runId is not a string", field="runId", value=run_id, hint=hint)
    if not isinstance(with_ended, bool):
        raise CallRejected(_not_boolean("includeCompleted", with_ended))
    return run_id.strip() or None, with_ended


def send_arguments(params: object) -> tuple[str, str, bool]:
    """Return the run, the message, and whether to end the run's turn first. Raises CallRejected."""
    arguments = _mapping(params)
    _reject_any(_unknown_names(arguments, ("runId", "message", "interrupt")))
    run_id, message = (arguments.get(name, "") for name in ("runId", "message"))
    for name, value in (("runId", run_id), ("message", message)):
        if not isinstance(value, str):
            raise _rejected(f"{name} is not a string", field=name, value=value, hint="use a string")
    if not isinstance(interrupt := arguments.get("interrupt", False), bool):
        raise CallRejected(_not_boolean("interrupt", interrupt))
    if not run_id.strip():
        raise _rejected("runId is missing", field="runId", hint="use the runId that background_agent returned")
    if not message.strip() and not interrupt:
        raise _rejected(
            "message is empty", field="message", value=message, hint="write what the agent should know or do"
        )
    return run_id.strip(), message, interrupt


def _task_fields(*, isolated: bool, hosts: bool) -> tuple[str, ...]:
    of_spec = (name for name, (_, argument) in OF_SPEC.items() if hosts or not argument.is_of_hosts)
    return (*TEXTS, *of_spec, *(("isolated",) if isolated else ()))


def _mapping(params: object) -> dict[str, Any]:
    """Return the fields that have a value; null counts as absent, also for `params` itself."""
    if params is None:
        return {}
    if not isinstance(params, dict):
        hint = 'pass arguments by name, such as {"preset": "…"}'
        raise _rejected("the arguments are not an object", value=params, hint=hint)
    fields = cast("dict[str, Any]", params)
    return {name: value for name, value in fields.items() if value is not None}


def _tasks(tasks: object, known_fields: tuple[str, ...]) -> tuple[TaskArguments, ...]:
    if not isinstance(tasks, list):
        raise _rejected("tasks is not a list", field="tasks", value=tasks, hint=TASKS_HINT)
    if not tasks:
        raise _rejected("tasks is empty", field="tasks", value="[]", hint=TASKS_HINT)
    errors: list[ToolError] = []
    read: list[TaskArguments] = []
    for index, task in enumerate(cast("list[Any]", tasks)):
        try:
            if not isinstance(task, dict):
                raise _rejected("this task is not an object", field="tasks", value=task, hint="use {preset, task, …}")
            arguments = _mapping(cast("dict[str, Any]", task))
            _reject_any(_unknown_names(arguments, known_fields))
            read.append(_task(arguments))
        except CallRejected as rejected:
            errors += rejected.of_task(index)
    _reject_any(errors)
    return tuple(read)


def _task(arguments: Mapping[str, Any]) -> TaskArguments:
    _reject_any(_wrong_values(arguments))
    texts: dict[str, str] = {name: arguments.get(name, "") for name in TEXTS}
    fields = {
        field: argument.parse(arguments[name]) for name, (field, argument) in OF_SPEC.items() if name in arguments
    }
    return TaskArguments(
        preset=texts["preset"].strip(),
        task=texts["task"],
        cwd=texts["cwd"].strip() or None,
        description=texts["description"],
        session_id=texts["sessionId"].strip() or None,
        isolated=arguments.get("isolated"),
        spec=RunSpec(**fields),
    )


def _unknown_names(arguments: Mapping[str, Any], known_fields: tuple[str, ...]) -> Iterator[ToolError]:
    for name in arguments:
        if name not in known_fields:
            shown, hint = one_line(name, 60), nearest(name, known_fields) or "remove it"
            yield argument_error(f'unknown field "{shown}"', field=shown, value=name, valid=known_fields, hint=hint)


def _wrong_values(arguments: Mapping[str, Any]) -> Iterator[ToolError]:
    for name, hint in _REQUIRED.items():
        value = arguments.get(name, "")
        if isinstance(value, str) and not value.strip():
            what = f"{name} is {'empty' if name in arguments else 'missing'}"
            yield argument_error(what, field=name, value=value, hint=hint)
    types = {**dict.fromkeys(TEXTS, "string"), **{name: argument.type for name, (_, argument) in OF_SPEC.items()}}
    for name, kind in (types | {"isolated": "boolean"}).items():
        if name in arguments:
            yield from _wrong_value(name, kind, arguments[name])


def _wrong_value(name: str, kind: str, value: object) -> Iterator[ToolError]:
    match kind:
        case "string" if not isinstance(value, str):
            yield argument_error(f"{name} is not a string", field=name, value=value, hint="use a string")
        case "number" | "integer" if not _is_amount(value, whole=kind == "integer"):
            words = "whole number" if kind == "integer" else "number"
            hint = "use the maximum for the agent, or remove it"
            yield argument_error(f"{name} is not a {words} above 0", field=name, value=value, hint=hint)
        case "amounts" if not _are_amounts(value):
            hint = 'use numbers above 0 by resource, such as {"gpu": 1}'
            yield argument_error(f"{name} is not an object of numbers", field=name, value=value, hint=hint)
        case "boolean" if not isinstance(value, bool):
            yield _not_boolean(name, value)
        case _:
            pass


def _are_amounts(value: object) -> bool:
    return isinstance(value, dict) and all(
        _is_amount(amount, whole=False) for amount in cast("dict[str, Any]", value).values()
    )


def _is_amount(value: object, *, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LARGEST:
        return False
    return not whole or value == int(value)


def _not_boolean(name: str, value: object) -> ToolError:
    return argument_error(f"{name} is not true or false", field=name, value=value, valid=("true", "false"))


def _rejected(what: str, **more: Any) -> CallRejected:
    return CallRejected(argument_error(what, **more))


def _reject_any(errors: Iterable[ToolError]) -> None:
    if tool_errors := tuple(errors):
        raise CallRejected(*tool_errors)
