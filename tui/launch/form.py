"""What a launch dialog shows first, and the request that its fields make; pure."""

from __future__ import annotations

import os
from copy import copy
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import structs

from ...core.errors import UsageError
from ...core.run.model import RunRequest
from ...core.text.plain import one_line, plain
from ..text.format import short_path
from .memory import ADHOC, LastValues
from .values import COPIES, LaunchValues, asked_model, asked_prompt, asked_tools, tool_names

if TYPE_CHECKING:
    from ...core.config.settings import Settings
    from ...core.presets.catalog import Preset
    from ...core.run.snapshot import RunSnapshot

PREVIOUS = "{previous}"
"""In a task: the answer of an earlier run."""


class Reuse(Enum):
    """What a new run takes over from the earlier one it is launched from, besides `{previous}`."""

    NOTHING = "nothing"
    CONTEXT = "context"
    """Its conversation goes before the task."""
    SESSION = "session"
    """Its child session is continued: same preset, same directory, same agent."""
    EVERYTHING = "everything"
    """All that was requested, to be edited."""


class LaunchForm:
    """Knows which values came from where: only what the operator changed goes into the request."""

    def __init__(
        self,
        preset: Preset | None,
        settings: Settings,
        cwd: str,
        *,
        run: RunSnapshot | None = None,
        reuse: Reuse = Reuse.NOTHING,
        marked: int = 0,
    ) -> None:
        """`run` is the highlighted one, `marked` how many others are marked."""
        self.preset = preset
        self._settings = settings
        self.launcher_cwd = cwd
        self._run = run
        self._marked = marked
        self._reuse = reuse if run else Reuse.NOTHING
        self._last = LastValues()
        self._prompt = ""
        self._usual_model, self._usual_origin = _model(preset, settings)
        self._usual_runner = (preset.runner if preset else None) or settings.runner
        self.first = self._first()
        """What is in the fields before anything is remembered or typed."""

    def _first(self) -> LaunchValues:
        usual = LaunchValues(model=self._usual_model, cwd=short_path(self.launcher_cwd), runner=self._usual_runner)
        if not self._run or not self.repeats:
            return usual
        meta = self._run.meta
        again = self._reuse is Reuse.EVERYTHING
        task = plain(meta.task) if again else ""
        return structs.replace(
            usual,
            task=task,
            model=asked_model(meta) or self._usual_model,
            cwd=short_path(meta.cwd),
            runner=meta.runner,
            tools=asked_tools(meta) if self.preset is None else "",
            previous=not again or PREVIOUS not in task,
        )

    # --- what it is about ----------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        verb = {Reuse.SESSION: "Follow up with", Reuse.EVERYTHING: "Rerun"}.get(self._reuse, "Launch")
        of_run = f" ({self._run.meta.short_id})" if self._run and self._reuse is Reuse.EVERYTHING else ""
        if self.preset:
            return f"{verb} {one_line(self.preset.name, 50)}{of_run}"
        return "Run without a preset" if verb == "Launch" else f"{verb} a run without a preset{of_run}"

    @property
    def badge(self) -> str:
        return str(self.preset.source) if self.preset else "ad hoc"

    @property
    def description(self) -> str:
        """What the preset is for; or that the run's own is gone."""
        if self.preset:
            return one_line(self.preset.description, 200)
        if self._run and self._reuse is Reuse.EVERYTHING and self._run.meta.preset:
            name = one_line(self._run.meta.preset, 40)
            return f'! The preset "{name}" is gone or broken; prompt and tools are those of the run.'
        return ""

    @property
    def key(self) -> str:
        """By which the values and the draft of this launch are remembered."""
        return self.preset.name if self.preset else ADHOC

    @property
    def continues(self) -> bool:
        """Whether a child session is continued, so that preset and directory are settled."""
        return self._reuse is Reuse.SESSION

    @property
    def repeats(self) -> bool:
        """Whether the values are those of a run; then none are remembered."""
        return self._reuse in (Reuse.SESSION, Reuse.EVERYTHING)

    @property
    def prompt_source(self) -> str | None:
        """The run whose system prompt has to be read for the field; None where there is nothing to read."""
        return self._run.run_id if self._run and self.repeats and self.preset is None else None

    @property
    def agent(self) -> str:
        """The agent, where it is that of a run whatever is usual."""
        return self._run.meta.agent if self._run and self.repeats else ""

    @property
    def session(self) -> str:
        """Which conversation this run has, where that is not simply a new one."""
        if self._run and self.continues:
            return f"continues {(self._run.meta.child_session_id or '')[:8]}… of run {self._run.meta.short_id}"
        if self.preset and self.preset.sticky:
            return "continues the newest one of this preset in the directory (sticky)"
        return "" if self.preset is None or self.preset.keeps_session else "not kept"

    @property
    def context(self) -> str:
        """What can be handed over, for a choice; empty when that was not asked for or is not taken."""
        if not self._run or self._reuse is not Reuse.CONTEXT or self.context_refusal:
            return ""
        return f"the conversation of {self._run.meta.short_id}"

    @property
    def context_refusal(self) -> str:
        """Why the conversation that was asked for is not handed over; empty when it is."""
        if self._reuse is not Reuse.CONTEXT:
            return ""
        wish = self.preset.inherit_context if self.preset else None
        if wish is False:
            return "none: this preset takes none (inherit_context: false)"
        return "" if wish or self._settings.inherit_context else "none: switched off by the setting inherit_context"

    @property
    def previous(self) -> str:
        """What `{previous}` can stand for; empty where no run is highlighted."""
        if self._run is None:
            return ""
        of_several = " (highlighted, not marked)" if self._marked else ""
        return f"{PREVIOUS} stands for the answer of {self._run.meta.short_id}{of_several}"

    # --- what is remembered --------------------------------------------------------------------------------------

    def with_last(self, last: LastValues) -> LaunchForm:
        """Return the same, knowing what was chosen at the last launch."""
        form = copy(self)
        form._last = LastValues() if self.repeats else last
        return form

    def with_prompt(self, prompt: str) -> LaunchForm:
        """Return the same, knowing the system prompt of the run it repeats."""
        form = copy(self)
        form._prompt = asked_prompt(prompt, self._run.meta) if self._run else ""
        form.first = structs.replace(self.first, prompt=plain(form._prompt))
        return form

    @property
    def remembered(self) -> LaunchValues:
        """What stands in the fields at first when the last launch is taken into account."""
        last = self._last
        return structs.replace(
            self.first,
            model=last.model or self.first.model,
            cwd=short_path(last.cwd) if last.cwd else self.first.cwd,
            runner=last.runner or self.first.runner,
            copies=str(last.copies),
        )

    def as_last_time(self, values: LaunchValues) -> str:
        """Say which of the values are remembered ones; empty for none."""
        now, first = self.remembered, self.first
        names = [
            label
            for label, attribute in (("model", "model"), ("where", "cwd"), ("runner", "runner"), ("copies", "copies"))
            if getattr(values, attribute) == getattr(now, attribute) != getattr(first, attribute)
        ]
        return f"as last time: {', '.join(names)}" if names else ""

    def to_remember(self, values: LaunchValues) -> LastValues | None:
        """Return what the operator chose, for the next launch; None where the values were those of a run."""
        if self.repeats:
            return None
        request = self.request(values)
        return LastValues(request.model or "", request.cwd or "", request.runner or "", max(1, values.count))

    def origin_of(self, model: str) -> str:
        """Say where a model in the field comes from."""
        model = model.strip()
        if model in ("", self._usual_model):
            return (
                f"{self._usual_model} {self._usual_origin}" if not model and self._usual_model else self._usual_origin
            )
        if self.repeats and model == self.first.model:
            return "as in that run"
        return "as last time" if model == self._last.model else "for this run"

    # --- what is asked for ---------------------------------------------------------------------------------------

    def request(self, values: LaunchValues) -> RunRequest:
        """Return the request for what stands in the fields."""
        model = values.model.strip()
        adhoc = self.preset is None
        request = RunRequest(
            task=values.task,
            preset=self.preset.name if self.preset else None,
            model=None if model in ("", self._usual_model) else model,
            cwd=self._cwd(values.cwd),
            runner=None if values.runner == self._usual_runner else values.runner,
            tools=tool_names(values.tools) if adhoc else None,
            prompt=self._prompt if values.prompt == self.first.prompt else values.prompt,
        )
        if self._run is None:
            return request
        meta = self._run.meta
        if values.previous and PREVIOUS in values.task:
            request = structs.replace(request, previous=meta.run_id)
        match self._reuse:
            case Reuse.SESSION:
                session = meta.child_session_id
                return structs.replace(
                    request, cwd=meta.cwd, agent=meta.agent, child_session=session, follow_up=meta.run_id
                )
            case Reuse.EVERYTHING:
                same = values.task == self.first.task
                return structs.replace(
                    request,
                    task=meta.task if same else values.task,
                    description=meta.description if same else "",
                    agent=meta.agent,
                    rerun=meta.run_id,
                )
            case Reuse.CONTEXT if values.context and self.context:
                return structs.replace(request, parent_session=meta.session_path)
            case _:
                return request

    def to_check(self, values: LaunchValues) -> RunRequest:
        """Return the request as far as it can be checked while the task is still being typed."""
        request = self.request(values)
        return request if request.previous else structs.replace(request, task="-")

    def problems(self, values: LaunchValues) -> tuple[UsageError, ...]:
        """Return what is wrong without asking the engine; a task not yet typed is part of it."""
        problems: list[UsageError] = []
        if not values.task.strip():
            problems.append(UsageError("The task is empty", where="task", hint="say what the agent should do"))
        if not values.count:
            problems.append(UsageError(f"Copies: enter a number from 1 to {COPIES}", where="copies"))
        elif values.count > 1 and self.continues:
            what = "Copies: only one, because one run at a time can continue a conversation"
            problems.append(UsageError(what, where="copies"))
        elif values.count > 1 and self.preset and self.preset.sticky:
            what = "Copies: only one, because this preset is sticky: its runs share one conversation"
            problems.append(UsageError(what, where="copies"))
        return tuple(problems)

    def _cwd(self, written: str) -> str | None:
        """Return the directory that is meant; None for the launcher's own."""
        written = written.strip()
        written = written.rstrip("/") or written
        if written in ("", short_path(self.launcher_cwd)):
            return None
        if self._run and self.repeats and written == self.first.cwd:
            return self._run.meta.cwd
        return os.path.expanduser(written)


def _model(preset: Preset | None, settings: Settings) -> tuple[str, str]:
    if preset and preset.model:
        return one_line(preset.model), "from the preset"
    if settings.default_model:
        return one_line(settings.default_model), "default_model"
    return "", "the preset names none" if preset else ""
