"""What a preset comes to here and now: its model, tools and limits as a run would get them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from ..agents.choice import AgentChoice
from ..config.workspace import Workspace
from ..errors import SubdeckError
from ..presets.catalog import PresetCatalog
from ..presets.file import Preset
from ..run.model import Limits, RunRequest, Tools
from ..text.plain import one_line
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


def preview(preset: Preset, workspace: Workspace) -> Preview:
    """Work out what a run of a preset would get, without starting anything; the preset need not be on disk."""
    plan = Plan(RunRequest(task="-", preset=preset.name), workspace, lambda: PresetCatalog((preset,), (), ()))
    limits, limit_warnings = plan.limits
    agent, model, tools = _part(lambda: plan.agent), _part(lambda: plan.model), _part(lambda: plan.tools)
    runner = _part(lambda: plan.runner)
    return Preview(
        agent=agent,
        runner=runner.name if runner else None,
        model=model,
        tools=tools,
        limits=limits,
        max_attempts=plan.max_attempts,
        warnings=(*(model.notices if model else ()), *(tools.warnings if tools else ()), *limit_warnings),
        problems=tuple(str(problem).replace("\n  ", "; ") for problem in plan.problems),
    )


def _part(decide: Callable[[], _Part]) -> _Part | None:
    try:
        return decide()
    except SubdeckError:
        return None


def run_warnings(preset: Preset, workspace: Workspace) -> tuple[str, ...]:
    """Return what a run of a preset would not get here, and what would keep it from being launched; a line each."""
    view = preview(preset, workspace)
    return tuple(one_line(text.removeprefix(f"{preset.path}: ")) for text in (*view.warnings, *view.problems))


OWN_SET = "the agent's own set"


def tools_words(preset: Preset, tools: Tools | None) -> str:
    """Name the tools of a run of it; as written where they cannot be decided (None)."""
    if tools is None:
        return ", ".join(preset.tools or ())
    if tools.resolved is None:
        return OWN_SET
    names = ", ".join(tools.resolved) or "none"
    return f"{names} (all but {', '.join(preset.denied_tools)})" if preset.denied_tools else names
