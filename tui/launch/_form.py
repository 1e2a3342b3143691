"""What a launch dialog shows first, and the request that its fields make; pure."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from msgspec import structs

from ...core.errors import UsageError
from ...core.run.model import RunnerKind, WorktreeFrom
from ...core.run.outcome import INSTRUCTION
from ...core.spec.fields import RunSpec
from ...core.spec.layers import Layer, ResolvedSpec, resolve
from ...core.spec.request import RunRequest
from ...core.text.plain import one_line, plain
from ..text.format import short_path
from ._memory import ADHOC, LastValues
from ._values import (
    COPIES,
    PREVIOUS,
    LaunchValues,
    asked_model,
    asked_tools,
    tool_names,
    worktree_of,
    written_amount,
    written_needs,
)

if TYPE_CHECKING:
    from ...core.agents.offered import KnownAgent
    from ...core.config.settings import Settings
    from ...core.launch.model_choices import ModelChoice
    from ...core.presets.catalog import Preset
    from ...core.run.model import RunMeta
    from ...core.run.snapshot import RunSnapshot


AUTO = "auto"
"""The agent of the settings that is chosen by what is installed, and by the model."""


DEFAULT_MODEL, OWN_DEFAULT = "default_model", "the agent's default"
"""Where the model comes from if none is written."""
AUTO_WORDS = "the first installed agent with this model"
AGENT_LENGTH = 40
"""Characters of the name of an agent that can be chosen here."""


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
        self._repeated = run.meta if run and reuse in (Reuse.SESSION, Reuse.EVERYTHING) else None
        """The run that the values are taken from; then none are remembered."""
        self._last = LastValues()
        self._prompt = ""
        usual = resolve(RunSpec(), preset, settings)
        self._usual_model, self._usual_origin = _model(preset, usual)
        self._written_default = (self._usual_model, self._usual_origin)
        """What preset and settings say, although the chosen agent may do without."""
        self.usual_agent = one_line(usual.agent or AUTO, AGENT_LENGTH)
        self._agents: Sequence[KnownAgent] = ()
        """All that can be named; none until they were looked for."""
        self._models: dict[str, ModelChoice] = {}
        """The same by what is written for it; of several agents the first one's."""
        self.known: Sequence[ModelChoice] = ()
        """What is known, agent by agent."""
        self._chosen: ModelChoice | None = None
        """The one that was chosen last, from the list of all agents."""
        self._only_model = ""
        """The only one that is known here; empty where there is another, or where one is named."""
        self._usual_runner = usual.runner or RunnerKind.PROCESS
        self._usual_host = usual.host or ""
        self._usual_needs = written_needs(usual.needs)
        self._usual_check = usual.check or ""
        self.usual_limits = usual.limits
        """Those that hold where nothing is written."""
        self._usual_worktree = usual.worktree or WorktreeFrom.NONE
        self._usual = usual
        self.first = self._first()
        """What is in the fields before anything is remembered or typed."""

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
            budget=self._other_than_usual(meta, "budget"),
            max_tokens=self._other_than_usual(meta, "max_tokens"),
            tools=asked_tools(meta) if self.preset is None else "",
            previous=not again or PREVIOUS not in task,
        )

    def _other_than_usual(self, meta: RunMeta, name: str) -> str:
        limit = getattr(meta.limits, name)
        return "" if limit == getattr(self.usual_limits, name) else written_amount(limit)

    # --- what it is about ----------------------------------------------------------------------------------------

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
        """What the preset is for; or that the run's own is gone."""
        if self.preset:
            return one_line(self.preset.description, 200)
        if self._run and self._reuse is Reuse.EVERYTHING and self._run.meta.preset:
            name = one_line(self._run.meta.preset, 40)
            return f'! The preset "{name}" is missing or broken. Using the prompt and tools of the run.'
        return ""

    @property
    def key(self) -> str:
        """By which the values and the draft of this launch are remembered."""
        return self.preset.name if self.preset else ADHOC

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks to choose from, with one that is asked for and not in the settings; none where there are none."""
        return tuple(dict.fromkeys((*self._settings.checks, *filter(None, (self._usual_check, self.first.check)))))

    def runners(self, *, has_hosts: bool) -> tuple[str, ...]:
        """Return the runners to choose from; hosts only where there are some, or where it is asked for already."""
        is_asked = RunnerKind.HOSTS in (self._usual_runner, self.first.runner)
        return tuple(kind for kind in RunnerKind if kind is not RunnerKind.HOSTS or has_hosts or is_asked)

    @property
    def has_hosts(self) -> bool:
        """Whether the settings name hosts; where a cluster is only tried is found in files."""
        return self._settings.hosts.is_set

    @property
    def continues(self) -> bool:
        """Whether a child session is continued, so that preset and directory are settled."""
        return self._reuse is Reuse.SESSION

    @property
    def prompt_source(self) -> str | None:
        """The run whose system prompt has to be read for the field; None where there is nothing to read."""
        return self._repeated.run_id if self._repeated and self.preset is None else None

    # --- the agent -----------------------------------------------------------------------------------------------

    def agents(self, values: LaunchValues) -> tuple[str, ...]:
        """Return the names to choose from: those that can be used here, on other machines all, and what is chosen."""
        names = (agent.name for agent in self._agents if agent.is_here or values.is_remote)
        return tuple(dict.fromkeys((AUTO, *names, self.usual_agent, self.first.agent, values.agent)))

    def agent_rows(self, values: LaunchValues) -> tuple[Sequence[str], Sequence[str]]:
        """Return the names of all agents, usable or not, and a line for each with what it is."""
        about = {agent.name: f"{agent.words}{f': {agent.hint}' if agent.hint else ''}" for agent in self._agents}
        about = {AUTO: AUTO_WORDS} | about
        names = tuple(about) + tuple(name for name in self.agents(values) if name not in about)
        width = max(map(len, names))
        return names, [f"{name:{width}}  {one_line(about.get(name, ''), 300)}" for name in names]

    def take_agents(self, agents: Sequence[KnownAgent]) -> None:
        """Know these agents."""
        self._agents = tuple(agent for agent in agents if agent.name == one_line(agent.name, AGENT_LENGTH))

    def agent_words(self, values: LaunchValues, taken: KnownAgent | None, note: str = "") -> str:
        """Say what the chosen agent is and why it is this one; of `auto`, which one it takes now (`taken`, if that is
        known yet) and why no other (`note`).
        """
        if values.agent != AUTO:
            known = next((agent for agent in self._agents if agent.name == values.agent), None)
            # Without another machine the way out stands below, as the problem of the field.
            words = known.words if known and (known.is_here or values.is_remote) else ""
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
        """Return the agent that has a model, where the model decides which it is; None for one that is not listed."""
        model = values.model.strip()
        if values.agent != AUTO or (model == self._usual_model and not self._chosen):
            return None
        known = self._known(model)
        return (known.agent or None) if known else None

    def _agent(self, values: LaunchValues) -> str | None:
        """Return the agent that is asked for; None for that of preset and settings."""
        agent = values.agent or self.usual_agent
        return self._owner_of(structs.replace(values, agent=agent)) or (None if agent == self.usual_agent else agent)

    def _known(self, model: str) -> ModelChoice | None:
        return self._chosen if self._chosen and self._chosen.ref == model else self._models.get(model)

    def choose(self, choice: ModelChoice) -> None:
        """Take a model of an agent, which several may have."""
        self._chosen = choice

    @property
    def shared_worktree(self) -> str:
        """The worktree of the run before, where this one goes on in it; empty where it does not."""
        plan = self._run.meta.worktree if self._run and self.continues else None
        return f"continues that of {self._run.meta.short_id}: {one_line(plan.branch)}" if self._run and plan else ""

    @property
    def session(self) -> str:
        """Which conversation this run has, where that is not simply a new one."""
        if self._run and self.continues:
            return f"continues {one_line(self._run.child_session_id or '')[:8]}… of run {self._run.meta.short_id}"
        if self.preset and self.preset.sticky:
            return "continues this preset's newest session in the directory (sticky)"
        return "" if self.preset is None or self.preset.keeps_session else "not saved"

    @property
    def context(self) -> str | None:
        """The conversation that can be handed over; None where none was asked for, or it is refused."""
        if not self._run or self._reuse is not Reuse.CONTEXT or self.context_refusal:
            return None
        return f"the conversation of {self._run.meta.short_id}"

    @property
    def context_refusal(self) -> str | None:
        """Why the conversation that was asked for is not handed over; None when it is."""
        wanted = self.preset.inherit_context if self.preset else None
        if self._reuse is not Reuse.CONTEXT or wanted:
            return None
        if wanted is False:
            return "none (the preset sets inherit_context: false)"
        return None if self._settings.inherit_context else "none (disabled by the setting inherit_context)"

    @property
    def previous(self) -> str:
        """What `{previous}` can stand for; empty where no run is highlighted."""
        if self._run is None:
            return ""
        of_several = " (highlighted, not selected)" if self._marked else ""
        return f"{PREVIOUS} is the answer of {self._run.meta.short_id}{of_several}"

    # --- what is remembered --------------------------------------------------------------------------------------

    def remember(self, last: LastValues) -> None:
        """Take what was chosen at the last launch for the values to begin with."""
        if self._repeated is None:
            self._last = last

    def take_prompt(self, prompt: str) -> None:
        """Take the system prompt of the run that is repeated, without the line about handing over a result."""
        meta = self._repeated
        self._prompt = prompt.removesuffix(INSTRUCTION).rstrip("\n") if meta and meta.finalize else prompt
        self.first = structs.replace(self.first, prompt=plain(self._prompt))

    def take_models(self, known: Sequence[ModelChoice]) -> None:
        """Know these models, and begin with the only one where nobody names any."""
        self._models = {choice.ref: choice for choice in reversed(known)}
        self.known = known
        models = [model for model in self._models if not model.startswith("@")]
        self._only_model = models[0] if len(models) == 1 and not (self._asked_model or self._usual_model) else ""
        self._settle_model()

    def take_default(self, *, leaves: bool) -> None:
        """Begin without default_model, where it would be used, if the chosen agent does not have it."""
        does_without = leaves and self._written_default[1] == DEFAULT_MODEL
        self._usual_model, self._usual_origin = ("", OWN_DEFAULT) if does_without else self._written_default
        self._settle_model()

    def _settle_model(self) -> None:
        self.first = structs.replace(self.first, model=self._asked_model or self._usual_model or self._only_model)

    @property
    def _asked_model(self) -> str:
        """The model that the run which is repeated asked for."""
        return asked_model(self._repeated) if self._repeated else ""

    @property
    def remembered(self) -> LaunchValues:
        """What is in the fields at first when the last launch is taken into account."""
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
        return agent == AUTO or any(known.name == agent and (known.is_here or is_remote) for known in self._agents)

    def as_last_time(self, values: LaunchValues) -> str:
        """Say which of the values are remembered ones; empty for none."""
        labels = {"agent": "agent", "model": "model", "cwd": "where", "runner": "runner", "copies": "attempts"}
        names = [
            label
            for name, label in labels.items()
            if getattr(values, name) == getattr(self.remembered, name) != getattr(self.first, name)
        ]
        return f"from last launch: {', '.join(names)}" if names else ""

    def to_remember(self, values: LaunchValues) -> LastValues | None:
        """Return what the operator chose, for the next launch; None where the values were those of a run."""
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
        """Return what its agent tells of a model; empty where nothing is known."""
        known = self._known(model)
        return known.about if known else ""

    # --- what is asked for ---------------------------------------------------------------------------------------

    def request(self, values: LaunchValues) -> RunRequest:
        model = values.model.strip()
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
            budget=values.dollars,
            max_tokens=values.tokens,
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
        """Return what was written of the host; None where that is what the preset says, or makes no sense."""
        try:
            return values.needed if values.is_remote and values.needs.strip() != self._usual_needs else None
        except UsageError:
            return None

    def to_check(self, values: LaunchValues) -> RunRequest:
        """Return the request as far as it can be checked while the task is still being typed."""
        request = self.request(values)
        return request if request.previous else structs.replace(request, task="-")

    def problems(self, values: LaunchValues) -> tuple[UsageError, ...]:
        """Return what is wrong without asking the engine; a task not yet typed is part of it."""
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
        if values.dollars == 0:
            problems.append(UsageError("Budget: enter an amount above 0, such as 0.50", where="budget"))
        if values.tokens == 0:
            problems.append(UsageError("Tokens: enter a number above 0", where="max-tokens"))
        return tuple(problems)

    def _cwd(self, written: str) -> str | None:
        """Return the directory that is meant; None for the launcher's own."""
        written = written.strip()
        written = written.rstrip("/") or written
        if written in ("", short_path(self.launcher_cwd)):
            return None
        if self._repeated and written == self.first.cwd:
            return self._repeated.cwd if self.continues else self._repeated.origin_cwd
        return os.path.expanduser(written)


def _model(preset: Preset | None, usual: ResolvedSpec) -> tuple[str, str]:
    """Return the model that is used where none is typed, and where it comes from."""
    if usual.model is None:
        return "", "no model in the preset" if preset else ""
    return one_line(usual.model), "from the preset" if usual.origin("model") is Layer.PRESET else DEFAULT_MODEL
