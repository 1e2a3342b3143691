"""Start a call's runs, or report everything that is wrong with the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from ..agent_kinds import KINDS
from ..agents.choice import AUTO, choose_agent, offers, usual_model
from ..engine import Engine
from ..errors import AgentUnavailable, ModelError, PresetError, RunnerUnavailable, SubdeckError, nearest
from ..launch.model import known_roles
from ..models.catalog import INHERIT, split_thinking
from ..presets.catalog import Preset
from ..run.model import RunnerKind
from ..run.snapshot import RunSnapshot
from ..spec.request import RunRequest
from ..text.plain import one_line
from ._arguments import TaskArguments
from .parent import Parent, conversation_file
from .results import ARGUMENT, VALID, CallRejected, ToolError, argument_error, tool_error
from .schema import available_models


def launch(
    engine: Engine, tasks: Sequence[TaskArguments], parent: Parent, *, background: bool, parallel: bool = False
) -> tuple[RunSnapshot, ...]:
    """Start a run for each task. Raises CallRejected with all errors, before any run is created."""
    models = _Models(engine, parent)
    with conversation_file(parent, engine.cwd) as conversation:
        errors: list[ToolError] = []
        requests: dict[int, RunRequest] = {}
        for index, task in enumerate(tasks):
            try:
                requests[index] = _request(task, models, parent, conversation, background=background)
            except CallRejected as rejected:
                errors += rejected.of_task(index)
        if errors:
            errors += _problems(engine, requests, models)
        else:
            try:
                return engine.launch(tuple(requests.values()), background=background)
            except SubdeckError as error:
                errors = _problems(engine, requests, models) or [tool_error(error)]
    raise CallRejected(*(errors if parallel else [replace(error, index=None) for error in errors]))


def _request(
    task: TaskArguments, models: _Models, parent: Parent, conversation: str | None, *, background: bool
) -> RunRequest:
    model, written = models.of(task)
    announced = parent.models
    if written and model and announced is not None:
        announced = (*announced, split_thinking(model)[0])  # the parent resolved it, so it has this model
    asked: dict[str, Any] = {name: getattr(task.spec, name) for name in task.spec.__struct_fields__}
    asked |= {"model": model, "runner": models.runner(task, background=background)}
    return RunRequest(
        **asked,
        task=task.task,
        preset=task.preset,
        written_model=written,
        cwd=task.cwd,
        description=task.description,
        parent_tools=parent.active_tools,
        parent_has=parent.all_tools,
        parent_model=parent.model,
        parent_models=announced,
        parent_session=conversation,
        isolated=task.isolated,
        child_session=task.session_id,
        only_lowers=True,
    )


def _problems(engine: Engine, requests: Mapping[int, RunRequest], models: _Models) -> list[ToolError]:
    """Return all launch problems of the requests, so that the next call can fix them together."""
    return [
        replace(_request_error(problem, request, models), index=index)
        for index, request in requests.items()
        for problem in engine.check(request, asks=True)
    ]


def _request_error(error: SubdeckError, request: RunRequest, models: _Models) -> ToolError:
    """Convert an engine error to one that names the argument and the valid values."""
    where = error.where or ARGUMENT
    match error:
        case PresetError():
            names = [preset.name for preset in models.presets.values()]
            return argument_error(
                error.what, field="preset", value=request.preset or "", valid=names, hint=error.hint, where=where
            )
        case ModelError():
            return _model_error(error, request, models)
        case AgentUnavailable() | RunnerUnavailable():
            return replace(tool_error(error), where=error.where or "settings")
        case _:
            pass
    arguments = {
        "cwd": ("cwd", request.cwd),
        "task": ("task", request.task),
        "session id": ("sessionId", request.child_session),
        "host": ("host", request.host),
        "needs": ("needs", ", ".join(request.needs or ())),
    }
    if where not in arguments:
        return tool_error(error)
    field, value = arguments[where]
    return argument_error(error.what, field=field, value=value or "", hint=error.hint)


def _model_error(error: ModelError, request: RunRequest, models: _Models) -> ToolError:
    preset, hint = models.preset(request.preset), error.hint
    if request.model:
        value, where = request.model, ARGUMENT
    elif preset and preset.model:
        value, where = preset.model, preset.path
    else:
        value, where = models.default or "", error.where or ARGUMENT
        if not value:
            hint = 'set a model in the call, add "model: provider/id" to the preset, or set default_model'
    return argument_error(error.what, field="model", value=value, valid=models.valid(value), hint=hint, where=where)


class _Models:
    """Resolves a call's models; reads presets and catalog on demand."""

    def __init__(self, engine: Engine, parent: Parent) -> None:
        self._engine = engine
        self.default = engine.settings.default_model
        self._parent = parent

    @cached_property
    def presets(self) -> dict[str, Preset]:
        return {preset.name: preset for preset in self._engine.presets().presets}

    @cached_property
    def available(self) -> tuple[str, ...]:
        return available_models(self._engine.settings, self._parent.models)

    def runner(self, task: TaskArguments, *, background: bool) -> RunnerKind | None:
        """Return the request's runner: a background run gets no pane, and a call that names a host needs hosts."""
        if task.names_host:
            return RunnerKind.HOSTS
        if not background:
            return None
        preset = self.preset(task.preset)
        usual = (preset and preset.runner) or self._engine.settings.runner
        return None if usual == RunnerKind.HOSTS else RunnerKind.PROCESS

    def preset(self, name: str | None) -> Preset | None:
        return self.presets.get(name or "")

    def of(self, task: TaskArguments) -> tuple[str | None, str | None]:
        """Return the request's model (None: left to preset and settings), and the original text if the parent resolved
        it. Raises CallRejected.
        """
        preset = self.preset(task.preset)
        if preset is not None and not task.spec.model and (preset.model == INHERIT or self._is_of_another_kind(preset)):
            return None, None
        if self._is_for_any_model(preset) and not (task.spec.model or "").startswith("@"):
            return task.spec.model, None
        if not task.spec.model and not (preset and preset.model) and self._is_default_for_others(preset):
            return None, None
        ref = task.spec.model or (preset and preset.model) or self.default
        if resolved := self._of_parent(ref, task, preset):
            return resolved, ref
        return task.spec.model, None

    def _is_for_any_model(self, preset: Preset | None) -> bool:
        """Whether the agent is the offline agent, which uses no model and accepts any."""
        settings = self._engine.settings
        try:
            return bool(choose_agent((preset and preset.agent) or settings.agent, settings).own_model)
        except AgentUnavailable:
            return False

    def _is_default_for_others(self, preset: Preset | None) -> bool:
        """Whether the agent lacks default_model, which the launch then ignores."""
        settings = self._engine.settings
        try:
            agent = choose_agent((preset and preset.agent) or settings.agent, settings)
        except AgentUnavailable:
            return False
        return not offers(agent, usual_model(settings))

    def _is_of_another_kind(self, preset: Preset) -> bool:
        """Whether a preset names an agent whose models are unknown: neither announced by the parent nor those of the
        settings' agent.
        """
        settings = self._engine.settings
        if preset.agent in (None, AUTO):
            return False
        try:
            kind = choose_agent(preset.agent, settings).kind
            if self._parent.models is not None:
                return not KINDS[kind].announces_models
            return kind != choose_agent(settings.agent, settings).kind
        except AgentUnavailable:
            return False

    def _of_parent(self, ref: str | None, task: TaskArguments, preset: Preset | None) -> str | None:
        """Resolve the effective reference through the parent; None if the parent does not know it."""
        if self._parent.resolve is None or not ref or ref == INHERIT:
            return None
        answer = self._parent.resolve(ref)
        if answer is None:
            return None
        if answer.resolved:
            return f"{answer.resolved}:{answer.thinking_level}" if answer.thinking_level else answer.resolved
        if not answer.error or not ref.startswith("@") or ref[1:] in self._engine.settings.roles:
            return None
        where = preset.path if preset and preset.model and not task.spec.model else ARGUMENT
        roles = answer.known_roles
        role_list = ", ".join(f"{role} ({model})" for role, model in tuple(roles.items())[:VALID])
        hints = (
            nearest(ref, roles),
            f"known roles: {role_list}" if role_list else "",
            "use a model as provider/id, or configure the role",
        )
        raise CallRejected(
            argument_error(
                f'cannot resolve the model "{ref}": {one_line(answer.error, 400)}',
                field="model",
                value=ref,
                valid=dict.fromkeys((*roles, *self.valid(ref))),
                hint="; ".join(filter(None, hints)),
                where=where,
            )
        )

    def valid(self, ref: str) -> tuple[str, ...]:
        """Return the valid references: the roles for a role, otherwise the available models."""
        return tuple(known_roles(self._engine.settings)) if ref.startswith("@") else self.available
