"""Make runs of what a parent asked for, or say everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..agents.choice import choose_agent
from ..config.settings import Settings
from ..errors import AgentUnavailable, SubdeckError
from ..launch.model import INHERIT, OFFLINE_AGENT
from ..presets.catalog import Preset, PresetCatalog
from ..run.model import RunRequest, RunSnapshot
from .arguments import Asked
from .errors import Refused, ToolError, argument_error, explain, preset_called
from .models import available_models, spelled
from .parent import Parent, conversation_file

if TYPE_CHECKING:
    from ..engine import Engine


def launch(
    engine: Engine, asked: Sequence[Asked], parent: Parent, *, background: bool, parallel: bool
) -> tuple[RunSnapshot, ...]:
    """Start a run for each task. Raises Refused with all that is wrong, before anything exists."""
    models = _Models(engine, parent)
    with conversation_file(parent, engine.cwd) as conversation:
        errors: list[ToolError] = []
        requests: dict[int, RunRequest] = {}
        for index, task in enumerate(asked):
            try:
                model, written = models.of(task, index if parallel else None)
            except Refused as refused:
                errors += refused.errors
                continue
            request = _request(task, model, parent, conversation, background=background)
            requests[index] = replace(request, written_model=written)
        if errors:
            raise Refused([*errors, *_problems(engine, requests, models, parallel=parallel)])
        try:
            return engine.launch(tuple(requests.values()), background=background)
        except SubdeckError as error:
            raise Refused(_problems(engine, requests, models, parallel=parallel) or [explain(error)]) from error


def _request(
    task: Asked, model: str | None, parent: Parent, conversation: str | None, *, background: bool
) -> RunRequest:
    return RunRequest(
        task=task.task,
        preset=task.preset,
        model=model,
        cwd=task.cwd,
        runner="process" if background else None,
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
    """Ask of each request what keeps it from being launched, so that one answer mends them all."""
    return [
        explain(
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
    """What the models of a call mean; presets and catalog are read when they are needed."""

    def __init__(self, engine: Engine, parent: Parent) -> None:
        self._engine = engine
        self._parent = parent
        self._presets: PresetCatalog | None = None
        self._available: tuple[str, ...] | None = None

    @property
    def presets(self) -> PresetCatalog:
        if self._presets is None:
            self._presets = self._engine.presets()
        return self._presets

    @property
    def available(self) -> tuple[str, ...]:
        if self._available is None:
            self._available = available_models(self._engine.settings, self._parent.models)
        return self._available

    def of(self, task: Asked, index: int | None) -> tuple[str | None, str | None]:
        """Return the model that the request shall name, None to leave it to preset and settings; and what was written
        where the parent resolved that. Raises Refused."""
        if task.model is None and self._parent.resolve is None:
            return None, None
        preset = preset_called(self.presets, task.preset)
        if _takes_any(preset, self._engine.settings) and not (task.model or "").startswith("@"):
            return task.model, None
        ref = task.model or (preset and preset.model) or self._engine.settings.default_model
        found = self._of_parent(ref, task, preset, index)
        return (found, ref) if found else (self._checked(task, index), None)

    def _of_parent(self, ref: str | None, task: Asked, preset: Preset | None, index: int | None) -> str | None:
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
        where = preset.path if preset and preset.model and not task.model else ""
        error = argument_error(
            f'the model "{ref}" cannot be resolved: {found.error}',
            field="model",
            value=ref,
            valid=self.available,
            hint="name a model as provider/id, or set up the role",
            index=index,
        )
        raise Refused([replace(error, where=where) if where else error])

    def _checked(self, task: Asked, index: int | None) -> str | None:
        if task.model is None:
            return None
        model = spelled(task.model, self.available)
        if model is None:
            hint = "name one of the currently available models, or a role like @fast"
            what = f'the model "{task.model}" is not available'
            raise Refused(
                [argument_error(what, field="model", value=task.model, valid=self.available, hint=hint, index=index)]
            )
        return model


def _takes_any(preset: Preset | None, settings: Settings) -> bool:
    """The offline agent uses no model, whichever it is told."""
    try:
        return choose_agent((preset and preset.agent) or settings.agent, settings).name == OFFLINE_AGENT
    except AgentUnavailable:
        return False
