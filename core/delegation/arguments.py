"""Read the arguments of a call; what is wrong with them is told all at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from ..errors import nearest
from ..text.plain import one_line
from .errors import Refused, ToolError, argument_error, refuse

TEXTS = ("preset", "task", "model", "cwd", "description", "sessionId")

CHAIN_HINT = (
    "call subagent once for each step, with the earlier answer in the next task; "
    "what does not depend on each other goes into tasks, which run at the same time"
)


TASKS_HINT = "give [{preset, task}, …]"


class Asked(Struct, frozen=True, kw_only=True):
    """One task of a call; blank optional texts count as absent."""

    preset: str
    task: str
    model: str | None
    cwd: str | None
    description: str
    session_id: str | None
    isolated: bool | None


def read_subagent(params: object, *, isolated: bool) -> tuple[bool, tuple[Asked, ...]]:
    """Return whether the call is parallel, and its tasks. `isolated` tells whether that field is shown to parents.

    Raises Refused.
    """
    given = _mapping(params)
    if "chain" in given:
        raise refuse("chain is not supported", field="chain", value=given["chain"], hint=CHAIN_HINT)
    single = _single_fields(isolated=isolated)
    _check_names(given, (*single, "tasks"))
    named = [name for name in single if name in given]
    if "tasks" not in given:
        if not named:
            hint = "give preset and task for one child, or tasks: [{preset, task}, …] for several"
            raise refuse("neither preset and task nor tasks is given", valid=("preset", "task", "tasks"), hint=hint)
        return False, (_asked(given, None),)
    if named:
        both = {"preset", "task"} & set(named)
        what = "both modes at once" if both else f"there is no default {', '.join(named)} for tasks"
        hint = f"leave out {', '.join(named)} beside tasks; each task names its own"
        raise refuse(what, field=named[0], value=given[named[0]], valid=("tasks",), hint=hint)
    return True, tuple(_tasks(given["tasks"], single))


def read_background(params: object, *, isolated: bool) -> Asked:
    """Read the one task of a background call. Raises Refused."""
    given = _mapping(params)
    for name in ("tasks", "chain"):
        if name in given:
            hint = "call background_agent once for each task" if name == "tasks" else CHAIN_HINT
            raise refuse(f"background_agent takes no {name}", field=name, value=given[name], hint=hint)
    _check_names(given, _single_fields(isolated=isolated))
    return _asked(given, None)


def read_status(params: object) -> tuple[str | None, bool]:
    """Return the run asked for, and whether those that ended are wanted. Raises Refused."""
    given = _mapping(params)
    _check_names(given, ("runId", "includeCompleted"))
    run_id, whole = given.get("runId"), given.get("includeCompleted", False)
    if run_id is not None and not isinstance(run_id, str):
        raise refuse("runId is no text", field="runId", value=run_id, hint="copy it from background_agent's answer")
    if not isinstance(whole, bool):
        raise refuse(
            "includeCompleted is neither true nor false", field="includeCompleted", value=whole, valid=("true", "false")
        )
    return (run_id or "").strip() or None, whole


def _single_fields(*, isolated: bool) -> tuple[str, ...]:
    return (*TEXTS, "isolated") if isolated else TEXTS


def _mapping(params: object) -> dict[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise refuse("the arguments are no object", value=params, hint='give them by name, as {"preset": "…"}')
    return {name: value for name, value in cast("dict[str, Any]", params).items() if value is not None}


def _check_names(given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if errors := list(_unknown_names(given, known, None)):
        raise Refused(errors)


def _unknown_names(given: Mapping[str, Any], known: tuple[str, ...], index: int | None) -> Iterator[ToolError]:
    for name in given:
        if name not in known:
            hint = nearest(name, known) or "leave it out"
            what = f'there is no field "{one_line(name, 60)}"'
            yield argument_error(what, field=one_line(name, 60), value=name, valid=known, hint=hint, index=index)


def _tasks(tasks: object, known: tuple[str, ...]) -> Iterator[Asked]:
    if not isinstance(tasks, list):
        raise refuse("tasks is no list", field="tasks", value=tasks, hint=TASKS_HINT)
    listed = cast("list[Any]", tasks)
    if not listed:
        raise refuse("tasks is empty", field="tasks", value="[]", hint=TASKS_HINT)
    errors: list[ToolError] = []
    asked: list[Asked] = []
    for index, task in enumerate(listed):
        if not isinstance(task, dict):
            hint = "give {preset, task, …}"
            errors.append(argument_error("this task is no object", field="tasks", value=task, hint=hint, index=index))
            continue
        given = {name: value for name, value in cast("dict[str, Any]", task).items() if value is not None}
        try:
            _refuse_some(_unknown_names(given, known, index))
            asked.append(_asked(given, index))
        except Refused as refused:
            errors += refused.errors
    _refuse_some(errors)
    return iter(asked)


def _asked(given: Mapping[str, Any], index: int | None) -> Asked:
    _refuse_some(_wrong_values(given, index))
    texts: dict[str, str] = {name: given.get(name, "") for name in TEXTS}
    return Asked(
        preset=texts["preset"].strip(),
        task=texts["task"],
        model=texts["model"].strip() or None,
        cwd=texts["cwd"].strip() or None,
        description=texts["description"],
        session_id=texts["sessionId"].strip() or None,
        isolated=given.get("isolated"),
    )


def _wrong_values(given: Mapping[str, Any], index: int | None) -> Iterator[ToolError]:
    for name in ("preset", "task"):
        value = given.get(name, "")
        if isinstance(value, str) and not value.strip():
            hints = {
                "preset": "name one of the presets in the tool's description",
                "task": "say what the child shall do",
            }
            what = f"{name} is missing" if name not in given else f"{name} is empty"
            yield argument_error(what, field=name, value=value, hint=hints[name], index=index)
    for name in TEXTS:
        if name in given and not isinstance(given[name], str):
            yield argument_error(f"{name} is no text", field=name, value=given[name], hint="give a string", index=index)
    if "isolated" in given and not isinstance(given["isolated"], bool):
        valid = ("true", "false")
        what = "isolated is neither true nor false"
        yield argument_error(what, field="isolated", value=given["isolated"], valid=valid, index=index)


def _refuse_some(errors: Iterable[ToolError]) -> None:
    if found := list(errors):
        raise Refused(found)
