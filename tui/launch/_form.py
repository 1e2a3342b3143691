"""The first values of a launch dialog, and the request made from its fields; pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ...core.errors import UsageError
from ...core.run.limits import Unit
from ...core.run.model import RunnerKind, WorktreeFrom
from ...core.run.outcome import INSTRUCTION
from ...core.spec.fields import RunSpec
from ...core.spec.layers import Layer, ResolvedSpec, resolve
from ...core.spec.request import RunRequest
from ...core.text.plain import one_line, plain
from ..text.format import short_path
from ._memory import ADHOC, LastValues
from ._values import (
    ASKED_LIMITS,
    COPIES,
    PREVIOUS,
    LaunchValues,
    asked_model,
    asked_tools,
    field_name,
    tool_names,
    worktree_of,
    written_amount,
    written_needs,
)

if TYPE_CHECKING:
    from ...core.agents.installed import KnownAgent
    from ...core.config.settings import Settings
    from ...core.launch.model_choices import ModelChoice
    from ...core.presets.catalog import Preset
    from ...core.run.model import RunMeta
    from ...core.run.snapshot import RunSnapshot


AUTO = "auto"
"""The setting that chooses the agent by what is installed, and by the model."""


DEFAULT_MODEL, OWN_DEFAULT = "default_model", "the agent's default"
"""The model's origin if none is typed."""
AUTO_WORDS = "the first installed agent with this model"
AGENT_LENGTH = 40
"""Characters of the name of an agent that can be chosen here."""


class Reuse(Enum):
    """The parts of an earlier run that a new run reuses, besides `{previous}`."""

    NOTHING = "nothing"
    CONTEXT = "context"
    """Its conversation precedes the task."""
    SESSION = "session"
    """Its agent session continues: same preset, same directory, same agent."""
    EVERYTHING = "everything"
    """The whole request, to be edited."""


class LaunchForm:
    """Knows the origin of each value: only your changes go into the request."""

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
        """`run` is the highlighted one, `marked` the number of selected runs."""
        self.preset = preset
        self._settings = settings
        self.launcher_cwd = cwd
        self._run = run
        self._marked = marked
        self._reuse = reuse if run else Reuse.NOTHING
        self._repeated = run.meta if run and reuse in (Reuse.SESSION, Reuse.EVERYTHING) else None
        """The run whose values are used; then none are remembered."""
        self._last = LastValues()
        self._prompt = ""
        usual = resolve(RunSpec(), preset, settings)
        self._usual_model, self._usual_origin = _model(preset, usual)
        self._written_default = (self._usual_model, self._usual_origin)
        """From preset and settings, even if the chosen agent does not use it."""
        self.usual_agent = one_line(usual.agent or AUTO, AGENT_LENGTH)
        self._agents: Sequence[KnownAgent] = ()
        """All agents that can be named; empty until they are read."""
        self._models: dict[str, ModelChoice] = {}
        """The same by reference; of several agents with the same one, the first."""
        self.known: Sequence[ModelChoice] = ()
        """The known models, agent by agent."""
        self._chosen: ModelChoice | None = None
        """The last model chosen from the list of all agents."""
        self._only_model = ""
        """The only known model; empty if there are several, or if one is configured."""
        self._usual_runner = usual.runner or RunnerKind.PROCESS
        self._usual_host = usual.host or ""
        self._usual_needs = written_needs(usual.needs)
        self._usual_check = usual.check or ""
        self.usual_limits = usual.limits
        """The limits without typed ones."""
        self._usual_worktree = usual.worktree or WorktreeFrom.NONE
        self._usual = usual
        self.first = self._first()
        """The fields' values before anything is remembered or typed."""

    def _first(self) -> LaunchValues:
        usual = LaunchValues(
            agent=self.usual_agent,
            model=self._usual_model,
            cwd=short_path(self.launcher_cwd),
            runner=self._usual_runner,
            host=self._usual_host,
            needs=self._usual_needs,
            worktree=self._usual_worktree,
        )
        usual = structs.replace(usual, check=self._usual_check)
        meta = self._repeated
        if meta is None:
            return usual
        again = self._reuse is Reuse.EVERYTHING
        task = plain(meta.task) if again else ""
        return structs.replace(
            usual,
            task=task,
            agent=one_line(meta.agent, AGENT_LENGTH),
            model=asked_model(meta) or self._usual_model,
            cwd=short_path(meta.cwd if self.continues else meta.origin_cwd),
            runner=meta.runner,
            host=meta.host,
            needs=written_needs(meta.needs),
            worktree=worktree_of(meta),
            check=one_line(meta.check, 64),
            limits=self._limits_of(meta),
            tools=asked_tools(meta) if self.preset is None else "",
            previous=not again or PREVIOUS not in task,
        )

    def _limits_of(self, meta: RunMeta) -> dict[str, str]:
        """Return the limits of a run that differ from the usual ones, as typed text."""
        limits = {name: getattr(meta.limits, name) for name in ASKED_LIMITS}
        return {
            name: written_amount(value)
            for name, value in limits.items()
            if value not in (None, getattr(self.usual_limits, name))
        }

    # --- subject -------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        verb = {Reuse.SESSION: "Follow up with", Reuse.EVERYTHING: "Rerun"}.get(self._reuse, "Launch")
        of_run = f" ({self._run.meta.short_id})" if self._run and self._reuse is Reuse.EVERYTHING else ""
        if self.preset:
            return f"{verb} {one_line(self.preset.name, 50)}{of_run}"
        return "One-off run" if verb == "Launch" else f"{verb} a one-off run{of_run}"

    @property
    def badge(self) -> str:
        return str(self.preset.source) if self.preset else "one-off"

    @property
    def description(self) -> str:
        """The preset's description, or that the preset is gone."""
        if self.preset:
            return one_line(self.preset.description, 200)
        if self._run and self._reuse is Reuse.EVERYTHING and self._run.meta.preset:
            name = one_line(self._run.meta.preset, 40)
            return f'! The preset "{name}" is missing or broken. Using the prompt and tools of the run.'
        return ""

    @property
    def key(self) -> str:
        """Key of the remembered values and draft of this launch."""
        return self.preset.name if self.preset else ADHOC

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks to choose from: those of the settings, and a requested one that is not among them."""
        return tuple(dict.fromkeys((*self._settings.checks, *filter(None, (self._usual_check, self.first.check)))))

    def runners(self, *, has_hosts: bool) -> tuple[str, ...]:
        """Return the runners to choose from; hosts only if some are known, or if it is requested already."""
        is_asked = RunnerKind.HOSTS in (self._usual_runner, self.first.runner)
        return tuple(kind for kind in RunnerKind if kind is not RunnerKind.HOSTS or has_hosts or is_asked)

    @property
    def has_hosts(self) -> bool:
        """Whether the settings name hosts; a trial cluster is found in files."""
        return self._settings.hosts.is_set

    @property
    def continues(self) -> bool:
        """Whether an agent session is continued, so that preset and directory are fixed."""
        return self._reuse is Reuse.SESSION

    @property
    def prompt_source(self) -> str | None:
        """The run whose system prompt is read for the field; None if it is not needed."""
        return self._repeated.run_id if self._repeated and self.preset is None else None

    # --- the agent -----------------------------------------------------------------------------------------------

    def agents(self, values: LaunchValues) -> tuple[str, ...]:
        """Return the names to choose from: usable agents, on other machines all, and the chosen one."""
        names = (agent.name for agent in self._agents if agent.is_here or values.is_remote)
        return tuple(dict.fromkeys((AUTO, *names, self.usual_agent, self.first.agent, values.agent)))

    def agent_rows(self, values: LaunchValues) -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of all agents, usable or not, and a line that describes each."""
        descriptions = {agent.name: f"{agent.words}{f': {agent.hint}' if agent.hint else ''}" for agent in self._agents}
        descriptions = {AUTO: AUTO_WORDS} | descriptions
        names = tuple(descriptions) + tuple(name for name in self.agents(values) if name not in descriptions)
        width = max(map(len, names))
        return names, [f"{name:{width}}  {one_line(descriptions.get(name, ''), 300)}" for name in names]

    def take_agents(self, agents: Sequence[KnownAgent]) -> None:
        """Set the known agents."""
        self._agents = tuple(agent for agent in agents if agent.name == one_line(agent.name, AGENT_LENGTH))

    def agent_words(self, values: LaunchValues, taken: KnownAgent | None, note: str = "") -> str:
        """Describe the chosen agent and where the choice comes from; for `auto`, which agent it takes now (`taken`, if
        known yet) and why it is the last resort (`note`).
        """
        if values.agent != AUTO:
            chosen = next((agent for agent in self._agents if agent.name == values.agent), None)
            # If the agent is not usable here, the field's problem below names the way out.
            words = chosen.words if chosen and (chosen.is_here or values.is_remote) else ""
        elif taken is None:
            words = AUTO_WORDS
        else:
            why = f"({note}) ·" if note else ""
            words = " ".join(filter(None, ("now", one_line(taken.name, AGENT_LENGTH), why, taken.words)))
        return " · ".join(filter(None, (words, self._origin_of_agent(values.agent))))

    def _origin_of_agent(self, agent: str) -> str:
        if self._repeated:
            return "from that run" if agent == self.first.agent else ""
        if agent == self.usual_agent:
            if self._usual.origin("agent") is Layer.PRESET:
                return "from the preset"
            return "" if agent == AUTO else "from your settings"
        return "from last launch" if agent == self._last.agent else ""

    def _owner_of(self, values: LaunchValues) -> str | None:
        """Return the agent that has a model, if the model decides; None for a model that is not listed."""
        model = values.model.strip()
        if values.agent != AUTO or (model == self._usual_model and not self._chosen):
            return None
        choice = self._choice_of(model)
        return (choice.agent or None) if choice else None

    def _agent(self, values: LaunchValues) -> str | None:
        """Return the requested agent; None for that of preset and settings."""
        agent = values.agent or self.usual_agent
        return self._owner_of(structs.replace(values, agent=agent)) or (None if agent == self.usual_agent else agent)

    def _choice_of(self, model: str) -> ModelChoice | None:
        return self._chosen if self._chosen and self._chosen.ref == model else self._models.get(model)

    def choose(self, choice: ModelChoice) -> None:
        """Choose a model of an agent; several agents may have it."""
        self._chosen = choice

    @property
    def shared_worktree(self) -> str:
        """The worktree of the earlier run if this run continues in it; otherwise empty."""
        plan = self._run.meta.worktree if self._run and self.continues else None
        return f"continues that of {self._run.meta.short_id}: {one_line(plan.branch)}" if self._run and plan else ""

    @property
    def session(self) -> str:
        """The run's conversation, unless it is simply a new one."""
        if self._run and self.continues:
            return f"continues {one_line(self._run.child_session_id or '')[:8]}… of run {self._run.meta.short_id}"
        if self.preset and self.preset.sticky:
            return "continues this preset's newest session in the directory (sticky)"
        return "" if self.preset is None or self.preset.keeps_session else "not saved"

    @property
    def context(self) -> str | None:
        """The conversation that can be passed on; None if none was requested, or it is refused."""
        if not self._run or self._reuse is not Reuse.CONTEXT or self.context_refusal:
            return None
        return f"the conversation of {self._run.meta.short_id}"

    @property
    def context_refusal(self) -> str | None:
        """Why the requested conversation is not passed on; None if it is."""
        inherits = self.preset.inherit_context if self.preset else None
        if self._reuse is not Reuse.CONTEXT or inherits:
            return None
        if inherits is False:
            return "none (the preset sets inherit_context: false)"
        return None if self._settings.inherit_context else "none (disabled by the setting parent_context.inherit)"

    @property
    def previous(self) -> str:
        """The answer that `{previous}` stands for; empty if no run is highlighted."""
        if self._run is None:
            return ""
        of_several = " (highlighted, not selected)" if self._marked else ""
        return f"{PREVIOUS} is the answer of {self._run.meta.short_id}{of_several}"

    # --- memory --------------------------------------------------------------------------------------------------

    def remember(self, last: LastValues) -> None:
        """Begin with the values of the last launch."""
        if self._repeated is None:
            self._last = last

    def take_prompt(self, prompt: str) -> None:
        """Use the repeated run's system prompt, without the instruction to send a structured result."""
        meta = self._repeated
        self._prompt = prompt.removesuffix(INSTRUCTION).rstrip("\n") if meta and meta.finalize else prompt
        self.first = structs.replace(self.first, prompt=plain(self._prompt))

    def take_models(self, choices: Sequence[ModelChoice]) -> None:
        """Set the known models, and begin with the only one if none is configured."""
        self._models = {choice.ref: choice for choice in reversed(choices)}
        self.known = choices
        models = [model for model in self._models if not model.startswith("@")]
        self._only_model = models[0] if len(models) == 1 and not (self._asked_model or self._usual_model) else ""
        self._settle_model()

    def take_default(self, *, leaves: bool) -> None:
        """Begin without default_model if the chosen agent does not have it."""
        does_without = leaves and self._written_default[1] == DEFAULT_MODEL
        self._usual_model, self._usual_origin = ("", OWN_DEFAULT) if does_without else self._written_default
        self._settle_model()

    def _settle_model(self) -> None:
        self.first = structs.replace(self.first, model=self._asked_model or self._usual_model or self._only_model)

    @property
    def _asked_model(self) -> str:
        """The model requested by the repeated run."""
        return asked_model(self._repeated) if self._repeated else ""

    @property
    def remembered(self) -> LaunchValues:
        """The fields' first values, with the last launch taken into account."""
        last = self._last
        if last.agent and not self._can_be_chosen(last.agent, last.runner):
            last = structs.replace(last, agent="", model="")
        return structs.replace(
            self.first,
            agent=last.agent or self.first.agent,
            model=last.model or self.first.model,
            cwd=short_path(last.cwd) if last.cwd else self.first.cwd,
            runner=last.runner or self.first.runner,
            copies=str(last.copies),
        )

    def _can_be_chosen(self, agent: str, runner: str) -> bool:
        is_remote = runner == RunnerKind.HOSTS
        return agent == AUTO or any(each.name == agent and (each.is_here or is_remote) for each in self._agents)

    def as_last_time(self, values: LaunchValues) -> str:
        """Return which of the values are remembered ones; empty for none."""
        labels = {"agent": "agent", "model": "model", "cwd": "where", "runner": "runner", "copies": "attempts"}
        names = [
            label
            for name, label in labels.items()
            if getattr(values, name) == getattr(self.remembered, name) != getattr(self.first, name)
        ]
        return f"from last launch: {', '.join(names)}" if names else ""

    def to_remember(self, values: LaunchValues) -> LastValues | None:
        """Return your choices for the next launch; None if the values came from a run."""
        if self._repeated:
            return None
        request = self.request(values)
        model = request.model if request.model != self._only_model else ""
        return LastValues(
            agent="" if values.agent == self.usual_agent else values.agent,
            model=model or "",
            cwd=request.cwd or "",
            runner=request.runner or "",
            copies=max(1, values.count),
        )

    def origin_of(self, model: str) -> str:
        model = model.strip()
        if not model:
            return f"{self._usual_model} {self._usual_origin}".strip()
        if model == self._usual_model:
            return self._usual_origin
        if model == self._only_model:
            return "the only known model"
        if self._repeated and model == self.first.model:
            return "from that run"
        return "from last launch" if model == self._last.model else self.about(model) or "for this run"

    def about(self, model: str) -> str:
        """Return the agent's description of a model; empty if it is unknown."""
        choice = self._choice_of(model)
        return choice.about if choice else ""

    # --- the request ---------------------------------------------------------------------------------------------

    def request(self, values: LaunchValues) -> RunRequest:
        model = values.model.strip()
        limits: dict[str, Any] = {name: values.limit(name) for name in ASKED_LIMITS}
        request = RunRequest(
            task=values.task,
            preset=self.preset.name if self.preset else None,
            model=None if model in ("", self._usual_model) else model,
            agent=self._agent(values),
            cwd=self._cwd(values.cwd),
            runner=None if values.runner == self._usual_runner else values.runner,
            host=self._host(values),
            needs=self._needs(values),
            worktree=None if values.worktree == self._usual_worktree else values.worktree,
            check=None if values.check == self._usual_check else values.check,
            tools=tool_names(values.tools) if self.preset is None else None,
            prompt=self._prompt if values.prompt == self.first.prompt else values.prompt,
            **limits,
        )
        if self._run is None:
            return request
        meta = self._run.meta
        if values.previous and PREVIOUS in values.task:
            request = structs.replace(request, previous=meta.run_id)
        match self._reuse:
            case Reuse.SESSION:
                session = self._run.child_session_id
                return structs.replace(
                    request, cwd=meta.cwd, agent=meta.agent, child_session=session, follow_up=meta.run_id
                )
            case Reuse.EVERYTHING:
                same = values.agent in ("", self.first.agent)
                agent = meta.agent if same else self._owner_of(values) or values.agent
                request = structs.replace(request, agent=agent, rerun=meta.run_id)
                if values.task == self.first.task:
                    request = structs.replace(request, task=meta.task, description=meta.description)
                return request
            case Reuse.CONTEXT if values.context and self.context:
                return structs.replace(request, parent_session=meta.session_path)
            case _:
                return request

    def _host(self, values: LaunchValues) -> str | None:
        host = values.host.strip()
        return host if values.is_remote and host != self._usual_host else None

    def _needs(self, values: LaunchValues) -> dict[str, float] | None:
        """Return the typed host requirements; None if they equal the preset's, or are invalid."""
        try:
            return values.needed if values.is_remote and values.needs.strip() != self._usual_needs else None
        except UsageError:
            return None

    def to_check(self, values: LaunchValues) -> RunRequest:
        """Return the request in a form that can be checked while the task is still being typed."""
        request = self.request(values)
        return request if request.previous else structs.replace(request, task="-")

    def problems(self, values: LaunchValues) -> tuple[UsageError, ...]:
        """Return the problems that need no engine, including an empty task."""
        problems: list[UsageError] = []
        if not values.task.strip():
            problems.append(UsageError("The task is empty", where="task", hint="describe what the agent should do"))
        wrong = None
        if not values.count:
            wrong = f"enter a number from 1 to {COPIES}"
        elif values.count > 1 and self.continues:
            wrong = "must be 1, because only one run at a time can continue a conversation"
        elif values.count > 1 and self.preset and self.preset.sticky:
            wrong = "must be 1, because the runs of a sticky preset share one conversation"
        if wrong:
            problems.append(UsageError(f"Attempts: {wrong}", where="copies"))
        if values.is_remote:
            try:
                _ = values.needed
            except UsageError as error:
                problems.append(error)
        for name, limit in ASKED_LIMITS.items():
            if values.limit(name) == 0:
                expected = "an amount above 0, such as 0.50" if limit.unit is Unit.DOLLARS else "a number above 0"
                problems.append(UsageError(f"{limit.label}: enter {expected}", where=field_name(name)))
        return tuple(problems)

    def _cwd(self, written: str) -> str | None:
        """Return the chosen directory; None for the launcher's own."""
        written = written.strip()
        written = written.rstrip("/") or written
        if written in ("", short_path(self.launcher_cwd)):
            return None
        if self._repeated and written == self.first.cwd:
            return self._repeated.cwd if self.continues else self._repeated.origin_cwd
        return os.path.expanduser(written)


def _model(preset: Preset | None, usual: ResolvedSpec) -> tuple[str, str]:
    """Return the model that is used if none is typed, and its origin."""
    if usual.model is None:
        return "", "no model in the preset" if preset else ""
    return one_line(usual.model), "from the preset" if usual.origin("model") is Layer.PRESET else DEFAULT_MODEL
