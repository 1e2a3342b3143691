"""What a launch dialog shows at first, and the request its fields ask for; pure."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import structs

from ..core.plain import one_line
from ..core.runs import RunRequest
from .present import short_path

if TYPE_CHECKING:
    from ..core.presets import Preset
    from ..core.runs import RunSnapshot
    from ..core.settings import Settings

PREVIOUS = "{previous}"
"""In a task: the answer of an earlier run."""


class Takes(Enum):
    """What a new run has of the earlier one it is launched from, besides `{previous}`."""

    NOTHING = "nothing"
    CONTEXT = "context"
    """Its conversation goes before the task."""
    SESSION = "session"
    """The same child session goes on: same preset, same directory, same agent."""


class LaunchForm:
    """Knows which values came from where: only what the operator changed goes into the request."""

    def __init__(
        self,
        preset: Preset | None,
        settings: Settings,
        cwd: str,
        *,
        run: RunSnapshot | None = None,
        takes: Takes = Takes.NOTHING,
        prompt: str = "",
    ) -> None:
        """`run` is the highlighted one; `prompt` is that of an ad hoc run whose session goes on."""
        self.preset = preset
        self._settings = settings
        self._run = run
        self._takes = takes if run else Takes.NOTHING
        goes_on = run.meta if run and takes is Takes.SESSION else None
        self.cwd = goes_on.cwd if goes_on else cwd
        self._usual_model, self._usual_origin = _model(preset, settings)
        self._usual_runner = (preset.runner if preset else None) or settings.runner
        self.model = (goes_on and one_line(goes_on.requested_model)) or self._usual_model
        self.runner = goes_on.runner if goes_on else self._usual_runner
        self.tools = " ".join((goes_on and goes_on.tools.resolved) or ()) if preset is None else ""
        """For an ad hoc run's field; empty means the agent's own set."""
        self.prompt = prompt

    @property
    def title(self) -> str:
        verb = "Follow up" if self.goes_on else "Launch"
        if self.preset:
            return f"{verb} {one_line(self.preset.name, 50)}"
        return "Follow up a run without a preset" if self.goes_on else "Run without a preset"

    @property
    def badge(self) -> str:
        return str(self.preset.source) if self.preset else "ad hoc"

    @property
    def description(self) -> str:
        return one_line(self.preset.description, 200) if self.preset else ""

    @property
    def goes_on(self) -> bool:
        """Whether a child session goes on, so that preset and directory are settled."""
        return self._takes is Takes.SESSION

    @property
    def session(self) -> str:
        """Which conversation this run has, where that is not simply a new one."""
        if self._run and self.goes_on:
            return f"goes on with {(self._run.meta.child_session_id or '')[:8]}… of run {self._run.meta.short_id}"
        if self.preset and self.preset.sticky:
            return "goes on with the newest one of this preset in the directory (sticky)"
        return "" if self.preset is None or self.preset.keeps_session else "none is kept"

    @property
    def context(self) -> str:
        """What can be handed over, for a choice; empty when that was not asked for or is not taken."""
        if not self._run or self._takes is not Takes.CONTEXT or self.context_refusal:
            return ""
        return f"from {self._run.meta.short_id} (its conversation)"

    @property
    def context_refusal(self) -> str:
        """Why the conversation that was asked for is not handed over; empty when it is."""
        if self._takes is not Takes.CONTEXT:
            return ""
        wish = self.preset.inherit_context if self.preset else None
        if wish is False:
            return "none: this preset takes none (inherit_context: false)"
        return "" if wish or self._settings.inherit_context else "none: it is off by the setting inherit_context"

    @property
    def previous(self) -> str:
        """What `{previous}` can stand for; empty where no run is highlighted."""
        return f"{PREVIOUS} stands for the answer of {self._run.meta.short_id}" if self._run else ""

    def origin_of(self, model: str) -> str:
        """Say where a model in the field comes from."""
        model = model.strip()
        if model in ("", self._usual_model):
            return self._usual_origin
        return "as in that run" if self.goes_on and model == self.model else "for this run"

    def request(
        self,
        *,
        task: str,
        model: str,
        cwd: str,
        runner: str,
        tools: str,
        prompt: str,
        context: bool = True,
        previous: bool = True,
    ) -> RunRequest:
        """Answer the request for what stands in the fields; `context` and `previous`: whether they are wished."""
        model, cwd = model.strip(), cwd.strip()
        request = RunRequest(
            task=task,
            preset=self.preset.name if self.preset else None,
            model=None if model in ("", self._usual_model) else model,
            cwd=None if cwd in ("", short_path(self.cwd)) else os.path.expanduser(cwd),
            runner=None if runner == self._usual_runner else runner,
            tools=tuple(tools.replace(",", " ").split()) or None,
            prompt=prompt,
        )
        if self._run is None:
            return request
        meta = self._run.meta
        if previous and PREVIOUS in task:
            request = structs.replace(request, previous=meta.run_id)
        if self.goes_on:
            session = meta.child_session_id
            return structs.replace(
                request, cwd=meta.cwd, agent=meta.agent, child_session=session, follow_up=meta.run_id
            )
        return structs.replace(request, parent_session=meta.session_path) if context and self.context else request

    def with_some_task(self, request: RunRequest) -> RunRequest:
        """The same with a task, so that a check tells of everything but the task not yet typed."""
        return structs.replace(request, task="-")


def _model(preset: Preset | None, settings: Settings) -> tuple[str, str]:
    if preset and preset.model:
        return one_line(preset.model), "from the preset"
    if settings.default_model:
        return one_line(settings.default_model), "default_model"
    return "", "the preset names none" if preset else ""
