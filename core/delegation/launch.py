"""Start the runs that a call asks for, or report everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..agents.base import AgentKind
from ..agents.choice import choose_agent
from ..config.settings import Settings
from ..errors import AgentUnavailable, SubdeckError
from ..launch.model import INHERIT
from ..presets.catalog import Preset, PresetCatalog
from ..run.model import RunnerKind, RunRequest
from ..run.snapshot import RunSnapshot
from .arguments import TaskArguments
from .errors import CallRejected, ToolError, argument_error, find_preset, tool_error
from .models import available_models, spelled
from .parent import Parent, conversation_file

if TYPE_CHECKING:
    from ..engine import Engine


def launch(
    engine: Engine, tasks: Sequence[TaskArguments], parent: Parent, *, background: bool, parallel: bool
) -> tuple[RunSnapshot, ...]:
    """Start a run for each task. Raises CallRejected with all that is wrong, before anything exists."""
    models = _Models(engine, parent)
    with conversation_file(parent, engine.cwd) as conversation:
        errors: list[ToolError] = []
        requests: dict[int, RunRequest] = {}
        for index, task in enumerate(tasks):
            try:
                model, written = models.of(task, index if parallel else None)
            except CallRejected as rejected:
                errors += rejected.errors
                continue
            request = _request(task, model, parent, conversation, background=background)
            requests[index] = replace(request, written_model=written)
        if errors:
            raise CallRejected(*errors, *_problems(engine, requests, models, parallel=parallel))
        try:
            return engine.launch(tuple(requests.values()), background=background)
        except SubdeckError as error:
            problems = _problems(engine, requests, models, parallel=parallel) or [tool_error(error)]
            raise CallRejected(*problems) from error


def _request(
    task: TaskArguments, model: str | None, parent: Parent, conversation: str | None, *, background: bool
) -> RunRequest:
    return RunRequest(
        task=task.task,
        preset=task.preset,
        model=model,
        cwd=task.cwd,
        runner=RunnerKind.PROCESS if background else None,
        description=task.description,
        parent_tools=parent.active_tools,
        parent_model=parent.model,
        parent_session=conversation,
        isolated=task.isolated,
        child_session=task.session_id,
    )


def _problems(
    engine: Engine, requests: Mapping[int, RunRequest], models: _Models, *, parallel: bool
) -> list[ToolError]:
    """Return what keeps each of the requests from being launched, so that the next call can mend it all."""
    return [
        tool_error(
            problem,
            request,
            presets=models.presets,
            models=models.available,
            default_model=engine.settings.default_model,
            index=index if parallel else None,
        )
        for index, request in requests.items()
        for problem in engine.check(request)
    ]


class _Models:
    """What the models of a call stand for; presets and catalog are read when they are needed."""

    def __init__(self, engine: Engine, parent: Parent) -> None:
        self._engine = engine
        self._parent = parent

    @cached_property
    def presets(self) -> PresetCatalog:
        return self._engine.presets()

    @cached_property
    def available(self) -> tuple[str, ...]:
        return available_models(self._engine.settings, self._parent.models)

    def of(self, task: TaskArguments, index: int | None) -> tuple[str | None, str | None]:
        """Return the model that the request shall name, None to leave it to preset and settings; and what was written
        where the parent resolved that. Raises CallRejected.
        """
        if task.model is None and self._parent.resolve is None:
            return None, None
        preset = find_preset(self.presets, task.preset)
        if _takes_any_model(preset, self._engine.settings) and not (task.model or "").startswith("@"):
            return task.model, None
        ref = task.model or (preset and preset.model) or self._engine.settings.default_model
        found = self._of_parent(ref, task, preset, index)
        return (found, ref) if found else (self._checked(task, index), None)

    def _of_parent(self, ref: str | None, task: TaskArguments, preset: Preset | None, index: int | None) -> str | None:
        """Ask the parent what the reference in force stands for; None where it does not know."""
        if self._parent.resolve is None or not ref or ref == INHERIT:
            return None
        found = self._parent.resolve(ref)
        if found is None:
            return None
        if found.resolved:
            return f"{found.resolved}:{found.thinking_level}" if found.thinking_level else found.resolved
        if not found.error or not ref.startswith("@"):
            return None
        what = f'the model "{ref}" cannot be resolved: {found.error}'
        error = self._error(what, ref, "name a model as provider/id, or set up the role", index)
        if preset and preset.model and not task.model:
            error = replace(error, where=preset.path)
        raise CallRejected(error)

    def _checked(self, task: TaskArguments, index: int | None) -> str | None:
        if task.model is None:
            return None
        model = spelled(task.model, self.available)
        if model is None:
            hint = "name one of the currently available models, or a role like @fast"
            raise CallRejected(self._error(f'the model "{task.model}" is not available', task.model, hint, index))
        return model

    def _error(self, what: str, model: str, hint: str, index: int | None) -> ToolError:
        return argument_error(what, field="model", value=model, valid=self.available, hint=hint, index=index)


def _takes_any_model(preset: Preset | None, settings: Settings) -> bool:
    """Tell whether the child is the offline agent, which uses no model, whichever it is given."""
    try:
        return choose_agent((preset and preset.agent) or settings.agent, settings).name == AgentKind.OFFLINE
    except AgentUnavailable:
        return False
