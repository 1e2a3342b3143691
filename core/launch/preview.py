"""What a preset comes to here and now: its model, tools and limits as a run would get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from ..agents.choice import AgentChoice
from ..config.settings import Settings
from ..errors import SubdeckError
from ..paths import Project
from ..presets.catalog import Preset, PresetCatalog
from ..run.model import Limits, RunRequest, Tools
from .model import ResolvedModel
from .plan import Plan

_Part = TypeVar("_Part")


class Preview(Struct, frozen=True):
    """Each part is None where it cannot be decided; `problems` say why."""

    agent: AgentChoice | None
    runner: str | None
    model: ResolvedModel | None
    tools: Tools | None
    limits: Limits
    max_attempts: int
    warnings: tuple[str, ...]
    problems: tuple[str, ...]
    """What would keep a run of it from being launched."""


def preview(name: str, *, project: Project, cwd: str, settings: Settings) -> Preview:
    """Resolve a preset without starting anything. Raises PresetError for one that is not there."""
    return _preview(name, None, project, cwd, settings)


def preview_of(preset: Preset, *, project: Project, cwd: str, settings: Settings) -> Preview:
    """Resolve a preset that need not be on disk."""
    return _preview(preset.name, PresetCatalog((preset,), (), ()), project, cwd, settings)


def _preview(name: str, catalog: PresetCatalog | None, project: Project, cwd: str, settings: Settings) -> Preview:
    plan = Plan(RunRequest(task="-", preset=name), project=project, cwd=cwd, settings=settings, catalog=catalog)
    plan.preset()
    limits, limit_warnings = plan.limits()
    agent, model, tools, runner = (_part(plan.agent), _part(plan.model), _part(plan.tools), _part(plan.runner))
    return Preview(
        agent=agent,
        runner=runner.name if runner else None,
        model=model,
        tools=tools,
        limits=limits,
        max_attempts=plan.max_attempts(),
        warnings=(*(model.notices if model else ()), *(tools.warnings if tools else ()), *limit_warnings),
        problems=tuple(str(problem).replace("\n  ", "; ") for problem in plan.problems()),
    )


def _part(decide: Callable[[], _Part]) -> _Part | None:
    try:
        return decide()
    except SubdeckError:
        return None  # `Plan.problems` has it
