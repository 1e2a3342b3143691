"""What a launch dialog shows at first, and the request its fields ask for; pure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import structs

from ..core.plain import one_line
from ..core.runs import RunRequest
from .present import short_path

if TYPE_CHECKING:
    from ..core.presets import Preset
    from ..core.settings import Settings

OWN_TOOLS = "the agent's own set"


class LaunchForm:
    """Knows which values came from where: only what the operator changed goes into the request."""

    def __init__(self, preset: Preset | None, settings: Settings, cwd: str) -> None:
        self._preset = preset
        self.cwd = cwd
        self.model, self.model_origin = _model(preset, settings)
        self.runner = (preset.runner if preset else None) or settings.runner

    @property
    def title(self) -> str:
        return f"Launch {one_line(self._preset.name, 50)}" if self._preset else "Run without a preset"

    @property
    def badge(self) -> str:
        return str(self._preset.source) if self._preset else "ad hoc"

    @property
    def description(self) -> str:
        """The preset's purpose; a warning about it comes first."""
        if self._preset is None:
            return ""
        return one_line("; ".join((*self._preset.warnings, self._preset.description)), 200)

    @property
    def tools(self) -> str:
        tools = self._preset.tools if self._preset else None
        if tools is None:
            return OWN_TOOLS
        return one_line(" ".join(tools), 300) or "none"

    def request(self, *, task: str, model: str, cwd: str, runner: str, tools: str, prompt: str) -> RunRequest:
        """Answer the request for what stands in the fields."""
        model, cwd = model.strip(), cwd.strip()
        return RunRequest(
            task=task,
            preset=self._preset.name if self._preset else None,
            model=None if model in ("", self.model) else model,
            cwd=None if cwd in ("", short_path(self.cwd)) else os.path.expanduser(cwd),
            runner=None if runner == self.runner else runner,
            tools=tuple(tools.replace(",", " ").split()) or None,
            prompt=prompt,
        )

    def with_some_task(self, request: RunRequest) -> RunRequest:
        """The same with a task, so that a check tells of everything but the task not yet typed."""
        return structs.replace(request, task="-")


def _model(preset: Preset | None, settings: Settings) -> tuple[str, str]:
    if preset and preset.model:
        return one_line(preset.model), "from the preset"
    if settings.default_model:
        return one_line(settings.default_model), "default_model"
    return "", "the preset names none" if preset else ""
