"""Turn a request into everything decided about a run, before anything exists."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from . import paths
from .agents.choice import AgentChoice, choose_agent
from .artifacts import read_result
from .errors import RunnerUnavailable, SubdeckError, UsageError, nearest
from .models import ResolvedModel, resolve_model
from .plain import one_line
from .presets import Preset, PresetCatalog, discover
from .runners.base import Runner
from .runs import LaunchedBy, Origin, PresetSource, RunMeta, RunRequest, Tools
from .settings import Settings
from .tool_policy import checked_tools, resolve_tools

PREVIOUS = "{previous}"
RUNNERS = ("process", "tmux")


class Plan:
    """One request against the files as they are now; each part raises a SubdeckError of its own."""

    def __init__(self, request: RunRequest, *, project: paths.Project, cwd: str, settings: Settings) -> None:
        """`cwd` is the launcher's own: presets are looked for from there, and a relative cwd starts there."""
        self._request = request
        self._project = project
        self._launcher_cwd = cwd
        self._settings = settings
        self._catalog: PresetCatalog | None = None

    def problems(self) -> tuple[SubdeckError, ...]:
        """Everything that would keep the run from being launched, as far as it can be told at once."""
        found: dict[str, SubdeckError] = {}
        parts: tuple[Callable[[], Any], ...] = (
            self.preset, self.task, self.cwd, self.agent, self.runner, self.model, self.tools,
        )  # fmt: skip
        for part in parts:
            try:
                part()
            except SubdeckError as error:
                found.setdefault(str(error), error)
        return tuple(found.values())

    def meta(self, *, background: bool, launched_by: LaunchedBy) -> RunMeta:
        """Decide everything. Raises the first problem."""
        request, preset, settings = self._request, self.preset(), self._settings
        task, cwd, agent = self.task(), self.cwd(), self.agent()
        runner, model, tools = self.runner(), self.model(), self.tools()
        run_id = paths.new_run_id()
        run_dir = self._project.run_dir(run_id)
        prompt = preset.prompt if preset else request.prompt
        has_prompt = bool(prompt.strip())
        return RunMeta(
            run_id=run_id,
            task=task,
            cwd=cwd,
            agent=agent.name,
            agent_command=agent.command,
            runner=runner.name,
            created_at=paths.now_iso(),
            launched_by=launched_by,
            background=background,
            preset=preset.name if preset else "",
            preset_source=preset.source if preset else PresetSource.ADHOC,
            preset_path=preset.path if preset else None,
            description=one_line(request.description),
            requested_model=model.requested,
            resolved_model=model.resolved,
            tools=tools,
            system_prompt=prompt if has_prompt else None,
            system_prompt_path=os.path.join(run_dir, paths.SYSTEM_PROMPT) if has_prompt else None,
            session_path=os.path.join(run_dir, paths.CHILD_SESSION),
            max_running=settings.max_running,
            limits=settings.limits,
            grace_seconds=settings.grace_seconds,
            log_caps=settings.log_caps,
            origin=Origin(previous=request.previous),
        )

    def preset(self) -> Preset | None:
        """None for an ad hoc run."""
        if self._request.preset is None:
            return None
        if self._catalog is None:
            self._catalog = discover(self._project, self._launcher_cwd, self._settings)
        return self._catalog.get(self._request.preset)

    def task(self) -> str:
        """Answer the task with `{previous}` filled in, as valid UTF-8."""
        task = self._request.task.encode("utf-8", "replace").decode()
        if not task.strip():
            raise UsageError("the task is empty", where="task", hint="say what the child shall do")
        if self._request.previous is None or PREVIOUS not in task:
            return task
        source = self._request.previous
        result = read_result(self._project.run_dir(source))
        if result is None or not result.final_text:
            state = "has not ended yet" if result is None else "ended without an answer"
            raise UsageError(
                f"run {source[-6:]} {state}, so nothing can stand for {PREVIOUS}",
                where="previous",
                hint="choose a run that has an answer, or write the task without it",
            )
        return task.replace(PREVIOUS, result.final_text)

    def cwd(self) -> str:
        named = os.path.expanduser(self._request.cwd or "")
        cwd = os.path.normpath(os.path.join(self._launcher_cwd, named))
        if not os.path.isdir(cwd):
            state = "is no directory" if os.path.lexists(cwd) else "does not exist"
            raise UsageError(f"{one_line(cwd)} {state}", where="cwd", hint="choose a directory that exists")
        if not os.access(cwd, os.R_OK | os.X_OK):
            raise UsageError(f"{one_line(cwd)} cannot be entered", where="cwd", hint="check its rights")
        return cwd

    def agent(self) -> AgentChoice:
        preset = self.preset()
        return choose_agent(self._request.agent or (preset and preset.agent) or self._settings.agent, self._settings)

    def runner(self) -> Runner:
        preset = self.preset()
        runner = runner_of(self._request.runner or (preset and preset.runner) or self._settings.runner, self._settings)
        runner.check()
        return runner

    def model(self) -> ResolvedModel:
        return resolve_model(self._request.model, self.preset(), self._settings, self.agent().name)

    def tools(self) -> Tools:
        preset, agent = self.preset(), self.agent()
        named = self._request.tools
        allow = preset.tools if preset else (None if named is None else checked_tools(named))
        return resolve_tools(allow, agent.tools, closed=not agent.offers_more)


def runner_of(name: str, settings: Settings) -> Runner:
    """Answer a runner by its name; libtmux is loaded only for the one that needs it."""
    if name == "process":
        from .runners.process import ProcessRunner

        return ProcessRunner()
    if name == "tmux":
        from .runners.tmux import TmuxRunner

        return TmuxRunner(settings.tmux.socket)
    hint = nearest(name, RUNNERS) or f"known are {', '.join(RUNNERS)}"
    raise RunnerUnavailable(f'no runner is called "{one_line(name, 40)}"', where="runner", hint=hint)
