"""Decides everything about a run from its request, before anything exists."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property

from msgspec import Struct
from msgspec.structs import astuple, replace

from .. import paths
from ..agents.agent import AgentChoice, Wanted
from ..agents.choice import (
    AUTO,
    agent_elsewhere,
    ask_again,
    catalog_of,
    choose_agent,
    find_out,
    may_serve,
    offers,
    settled,
    with_model,
)
from ..config.workspace import Workspace
from ..errors import AgentUnavailable, SubdeckError, UsageError, nearest
from ..models.catalog import Catalog
from ..presets.catalog import Preset, PresetCatalog, discover
from ..project.ownership import check_own
from ..run.artifacts import read_result
from ..run.changes import CheckCommand, WorktreePlan
from ..run.model import (
    Group,
    InheritedContext,
    LaunchedBy,
    Origin,
    Permissions,
    PresetSource,
    PromptMode,
    RunMeta,
    RunnerKind,
    Tools,
    WorktreeFrom,
)
from ..run.outcome import INSTRUCTION
from ..run.prices import Price, price_of
from ..run.signature import check_key
from ..run.tool_policy import checked_tools, resolve_tools, with_finalize, without
from ..runners.process import usable_runner
from ..spec.layers import ResolvedSpec, resolve
from ..spec.request import RunRequest
from ..text.plain import one_line
from ._eligible_hosts import NONE_HERE, Placement, placement, refuse_conversation, refuse_worktree
from ._inherit import Inherited, inherit_from, prompt_with_context
from .child_session import OURS, ChildSession, Keeper, directory_of, own_session, sticky_session
from .model import ResolvedModel, inherits, resolve_model, wanted_model

PREVIOUS = "{previous}"

_PARTS = (
    "preset",
    "task",
    "cwd",
    "worktree",
    "agent",
    "runner",
    "placement",
    "model",
    "tools",
    "agent_warnings",
    "child_session",
    "inherited",
    "check",
    "price",
    "key",
)
"""Parts of a plan that can raise, in the order in which a person would fix them."""


DEMO_REFUSAL = UsageError(
    "this is a demo with simulated runs: nothing can be launched",
    hint="quit the demo, then start subdeck in your project",
)


SPENT = ("budget", "max_tokens")
"""Limits of a run's usage."""


class PlannedRun(Struct, frozen=True):
    """A run that does not exist yet."""

    meta: RunMeta
    prompt: str
    """The agent's stdin."""
    child_session: ChildSession | None
    agent_env: Mapping[str, str] = {}
    """Variables that the settings add for the agent; never recorded, because they may be keys."""
    keeper: Keeper = OURS
    check: CheckCommand | None = None


class Plan:
    """One request, planned against the current files.

    Parts are computed on first use, once each; each raises its own SubdeckError.
    """

    def __init__(
        self,
        request: RunRequest,
        workspace: Workspace,
        presets: Callable[[], PresetCatalog],
        plan_worktree: Callable[[str, WorktreeFrom], WorktreePlan] | None = None,
        *,
        asks: bool = False,
    ) -> None:
        """`presets` reads the available presets; `plan_worktree` replaces `planned` of `work.base`. With `asks` an
        agent may be started, for ten seconds at most, for its list of models before a model counts as unknown, and for
        its modes if the tools depend on them.
        """
        self._plan_worktree = plan_worktree
        self._asks = asks
        self._request = request
        self._workspace = workspace
        self._settings = workspace.settings
        self._presets = presets

    @cached_property
    def problems(self) -> tuple[SubdeckError, ...]:
        """Everything that prevents the launch, if it can be found at once."""
        if paths.is_demo():
            return (DEMO_REFUSAL,)
        errors: dict[str, SubdeckError] = {}
        for part in _PARTS:
            try:
                getattr(self, part)
            except SubdeckError as error:
                errors.setdefault(str(error), error)
        return tuple(errors.values())

    def decide(self, *, background: bool, launched_by: LaunchedBy) -> PlannedRun:
        """Decide everything. Raises the first of `problems`."""
        for problem in self.problems:
            raise problem
        request, settings = self._request, self._settings
        preset, task, agent, model = self.preset, self.task, self.agent, self.model
        session, inherited = self.child_session, self.inherited
        spec = self.spec
        run_id = paths.new_run_id()
        run_dir = self._workspace.project.run_dir(run_id)
        system_prompt = self._system_prompt()
        worktree, worktree_warnings = self.worktree
        meta = RunMeta(
            run_id=run_id,
            task=task,
            cwd=self._directory(run_id),
            agent=agent.name,
            agent_kind=agent.kind,
            agent_command=agent.command,
            runner=self.runner,
            created_at=paths.now_iso(),
            launched_by=launched_by,
            background=background,
            preset=preset.name if preset else "",
            preset_source=preset.source if preset else PresetSource.ADHOC,
            preset_path=preset.path if preset else None,
            description=one_line(request.description),
            requested_model=request.written_model or model.requested,
            resolved_model=model.resolved,
            thinking=model.thinking,
            tools=self.tools,
            system_prompt=system_prompt,
            system_prompt_path=os.path.join(run_dir, paths.SYSTEM_PROMPT) if system_prompt else None,
            prompt_mode=spec.prompt_mode if spec.prompt.strip() else PromptMode.APPEND,
            context_files=spec.context_files,
            project_resources=spec.project_resources,
            child_session_id=session.id if session else None,
            session_path=session.path_in(run_dir) if session and session.agent_session is None else None,
            agent_session=session.agent_session if session else None,
            session_lock=session.lock if session and session.shared else None,
            inherited=InheritedContext(inherited.turns, inherited.chars) if inherited else None,
            isolated=None if request.parent_session is None else inherited is None,
            finalize=spec.structured_result,
            max_attempts=self.max_attempts,
            max_running=settings.max_running,
            limits=spec.limits,
            grace_seconds=settings.grace_seconds,
            log_caps=settings.logs.caps,
            talk=self.talk,
            permissions=self.permissions,
            answer_timeout=spec.reply_timeout,
            idle_timeout=spec.idle_timeout,
            by_hand=request.by_hand,
            check=spec.check or "",
            host=self.placement.host,
            needs=dict(self.placement.needs),
            prices=self.prices,
            result_signed=True,
            decided_by=spec.decided,
            origin=Origin(rerun=request.rerun, follow_up=request.follow_up, previous=request.previous),
            worktree=worktree,
            warnings=(
                *model.notices,
                *spec.warnings,
                *self.agent_warnings,
                *worktree_warnings,
                *self.placement.warnings,
            ),
        )
        prompt = prompt_with_context(inherited, task) if inherited else task
        return PlannedRun(meta, prompt, session, agent.env, self.keeper, self.check)

    @cached_property
    def key(self) -> None:
        """Raises if the key that signs runs is unusable: the run could not be controlled."""
        check_key()

    @cached_property
    def preset(self) -> Preset | None:
        """None for a one-off run."""
        if self._request.preset is None:
            return None
        return self._presets().get(self._request.preset)

    @cached_property
    def spec(self) -> ResolvedSpec:
        """The result of call, preset and settings."""
        return resolve(self._request, self.preset, self._settings, only_lowers=self._request.only_lowers)

    @cached_property
    def task(self) -> str:
        """The task with `{previous}` filled in, as valid UTF-8."""
        task = self._request.task.encode("utf-8", "replace").decode()
        if not task.strip():
            raise UsageError(
                "the task is empty", where="task", hint="describe what the agent should do", code="task.empty"
            )
        if self._request.previous is None or PREVIOUS not in task:
            return task
        source = self._request.previous
        check_own(self._workspace.project, source)
        result = read_result(self._workspace.project.run_dir(source))
        if result is None or not result.final_text:
            state = "has not finished yet" if result is None else "ended without an answer"
            raise UsageError(
                f"run {source[-6:]} {state}, so {PREVIOUS} has no value",
                where="previous",
                hint="choose a run with an answer, or write the task without it",
            )
        return task.replace(PREVIOUS, result.final_text)

    @cached_property
    def cwd(self) -> str:
        named = os.path.expanduser(self._request.cwd or "")
        cwd = os.path.normpath(os.path.join(self._workspace.cwd, named))
        if self._request.child_session and not (self.preset and self.preset.sticky):
            cwd = directory_of(self._workspace.project, self._request.child_session, cwd)
        if not os.path.isdir(cwd):
            self._refuse_gone(cwd)
            state = "is not a directory" if os.path.lexists(cwd) else "does not exist"
            hint = "choose an existing directory"
            raise UsageError(f"{one_line(cwd)} {state}", where="cwd", hint=hint, code="directory.not_found")
        if not os.access(cwd, os.R_OK | os.X_OK):
            raise UsageError(f"{one_line(cwd)} cannot be opened", where="cwd", hint="check its permissions")
        return cwd

    def _refuse_gone(self, cwd: str) -> None:
        """Raise UsageError for a directory in a run's removed worktree."""
        if f"{cwd}/".startswith(f"{paths.works_dir(self._workspace.project)}/"):
            from ..work.base import host_of

            host_of(self._workspace.project, cwd)

    @cached_property
    def worktree(self) -> tuple[WorktreePlan | None, tuple[str, ...]]:
        """The run's worktree, without what only the launch decides, or None; and a warning if the one in the settings
        has no effect.

        Raises UsageError if the preset or call asks for one and it is not possible.
        """
        if f"{os.path.realpath(self.cwd)}/".startswith(f"{os.path.realpath(paths.state_file('work'))}/"):
            from ..work.base import host_of

            if host := host_of(self._workspace.project, self.cwd):
                if self.runner is RunnerKind.HOSTS:
                    refuse_worktree()
                return host, ()
        begins = self.spec.worktree
        if begins is None or begins is WorktreeFrom.NONE:
            return None, ()
        try:
            if self.runner is RunnerKind.HOSTS:
                refuse_worktree()
            if self.spec.sticky:
                raise UsageError(
                    "the preset is sticky: its conversation belongs to one directory, and each worktree is a new one",
                    where="worktree",
                    hint='launch it without a worktree, or remove "sticky"',
                )
            from ..work.base import planned

            return (self._plan_worktree or planned)(self.cwd, begins), ()
        except UsageError as error:
            if self.spec.is_asked("worktree"):
                raise
            return None, (f"running without the worktree that your settings ask for: {error.what}",)

    def _directory(self, run_id: str) -> str:
        """Return the agent's working directory."""
        worktree, _ = self.worktree
        if worktree is None or worktree.host:
            return self.cwd
        from ..work.base import directory_of

        return directory_of(self._workspace.project, run_id, worktree)

    @cached_property
    def agent(self) -> AgentChoice:
        name, model = self._agent_name, wanted_model(self._request.model, self.preset, self._settings)
        try:
            choice = choose_agent(name, self._settings, model)
            return self._with_model(choice, model) if name == AUTO and model else choice
        except AgentUnavailable as missing:
            if self.runner is not RunnerKind.HOSTS:
                raise
            return agent_elsewhere(name, self._settings, missing)

    def _with_model(self, choice: AgentChoice, model: str) -> AgentChoice:
        catalog = catalog_of(choice, self._settings, self._request.parent_models)
        return with_model(choice, model, self._settings, catalog)

    def _catalog(self, agent: AgentChoice) -> Catalog | None:
        """Return the agent's known models; the agent is asked again before a model counts as unknown."""
        catalog = catalog_of(agent, self._settings, self._request.parent_models)
        if catalog is not None:
            catalog.is_of_this_machine = self.runner is not RunnerKind.HOSTS
            if self._asks and catalog.is_of_this_machine:
                catalog.ask_again = lambda: ask_again(agent)
        return catalog

    @property
    def _agent_name(self) -> str:
        return self.spec.agent or AUTO

    @cached_property
    def runner(self) -> RunnerKind:
        return usable_runner(self.spec.runner or RunnerKind.PROCESS)

    @cached_property
    def placement(self) -> Placement:
        """Where the run may be placed. Raises UsageError for what is impossible on another machine."""
        settled = placement(self._request, self.preset, self.spec, self.runner, self._settings)
        if self.runner is RunnerKind.HOSTS and self._request.child_session:
            refuse_conversation(self.agent.naming, self.agent.name)
        is_last_resort = self._agent_name == AUTO and bool(self.agent.own_model)
        if self.runner is RunnerKind.HOSTS and is_last_resort and self._settings.hosts.is_set:
            return replace(settled, warnings=(*settled.warnings, NONE_HERE))
        return settled

    @cached_property
    def model(self) -> ResolvedModel:
        agent = self.agent
        parent = self._request.parent_model or self._model_of_parent()
        is_served = parent is None or may_serve(agent, parent)
        model = resolve_model(
            self._request.model,
            self.preset,
            self._settings,
            agent.own_model,
            has_default=agent.has_default_model,
            catalog=self._catalog(agent),
            levels=agent.levels,
            parent=parent if is_served else None,
            is_offered=lambda model: offers(agent, model),
        )
        if is_served or not model.inherits or agent.own_model:
            return model
        notice = f"{agent.name} does not have the parent's model {parent}, so it uses its own default"
        return replace(model, notices=(*model.notices, notice))

    def _model_of_parent(self) -> str | None:
        path, preset = self._parent_session(), self.preset
        named = (self._request.model, preset and preset.model, self._settings.default_model)
        if path is None or not any(inherits(text, self._settings) for text in named):
            return None
        from ..agents.pi.session import open_history

        with open_history(path, recent_turns=1) as conversation:
            return conversation.model or None

    def _parent_session(self) -> str | None:
        named = self._request.parent_session
        return None if named is None else os.path.join(self._workspace.cwd, os.path.expanduser(named))

    @cached_property
    def tools(self) -> Tools:
        named = self.spec.tools
        allow = named if named is None or self.preset else checked_tools(named)
        active, has = self._request.parent_tools, self._request.parent_has
        tools = resolve_tools(allow, self.spec.denied_tools, offer=self.agent.offer, parent=active, parent_has=has)
        if self.permissions and self.agent.takes_tools:
            from ..permissions.rules import denied_tools

            offer = self.agent.offer
            tools = without(tools, denied_tools(self.permissions, offer.known or ()), offer)
        return with_finalize(tools) if self.spec.structured_result else tools

    @cached_property
    def talk(self) -> bool:
        """Whether the agent takes messages and asks questions."""
        return bool(self.spec.interactive) and self.agent.talks

    @property
    def permissions(self) -> Permissions | None:
        """The rules of settings and preset; None if there are none."""
        rules = self.spec.permissions
        return rules if any(astuple(rules)) else None

    @cached_property
    def keeper(self) -> Keeper:
        return Keeper(self.agent.name, self.agent.naming)

    @cached_property
    def child_session(self) -> ChildSession | None:
        """None for a run that saves no conversation."""
        preset, session_id = self.preset, self._request.child_session
        name = preset.name if preset else ""
        if preset and preset.sticky:
            project = self._workspace.project
            return sticky_session(session_id=session_id, preset=name, cwd=self.cwd, agent=self.keeper, project=project)
        if preset is None or preset.keeps_session:
            return own_session(
                self._workspace.project, session_id=session_id, preset=name, cwd=self.cwd, agent=self.keeper
            )
        if session_id is not None:
            raise UsageError(
                f'the preset "{one_line(name)}" saves no agent session to continue',
                where="session id",
                hint='remove "session: none" from the preset, or remove the id',
            )
        return None

    @cached_property
    def inherited(self) -> Inherited | None:
        """The inherited part of a parent's conversation; None without a parent or if nothing is inherited."""
        settings = self._settings
        path, isolated = self._parent_session(), self._request.isolated
        call_decides = settings.expose_isolated and isolated is not None
        is_inherited = not isolated if call_decides else self.spec.inherit_context
        return inherit_from(path, settings.inheritance) if is_inherited and path is not None else None

    def _system_prompt(self) -> str | None:
        """Return the preset's prompt, and the instructions for a structured result if required."""
        parts = [self.spec.prompt] if self.spec.prompt.strip() else []
        if self.spec.structured_result:
            parts.append(INSTRUCTION)
        return "\n\n".join(parts) or None

    @cached_property
    def check(self) -> CheckCommand | None:
        """The command to run after the agent has finished. Raises UsageError for a name that is not in the settings."""
        name, checks = (self.spec.check or "").strip(), self._settings.checks
        if not name:
            return None
        if argv := checks.get(name):
            return CheckCommand(argv, self._settings.check_timeout)
        known_checks = f"known: {', '.join(checks)}" if checks else "there are none yet"
        hint = f"{near} {known_checks}" if (near := nearest(name, checks)) and len(checks) > 1 else known_checks
        raise UsageError(
            f'unknown check "{one_line(name, 60)}"',
            where="check",
            hint=f"{hint}; set checks in {paths.user_settings_file()}, as checks: {{tests: [make, test]}}",
            brief_hint=known_checks,
            code="check.not_found",
        )

    @cached_property
    def price(self) -> None:
        """Raises if a budget is the only limit of usage but the price is unknown."""
        limits = self.spec.limits
        if limits.budget is None or limits.max_tokens is not None:
            return
        agent = self.agent
        if agent.tells_price:
            return
        model = self.model.resolved
        if price_of(model, self.prices):
            return
        named = one_line(model, 100) or "its default model"
        quoted = f'"{one_line(model, 100) or "*"}"'
        raise UsageError(
            f"a budget requires the price of {named}, and {agent.name} reports none",
            where="budget",
            hint=f"set its price in {paths.user_settings_file()}, as budget: {{prices: {{{quoted}: {{input: 1, "
            "output: 5}}}}, or also limit max_tokens",
            brief_hint="set its price in the settings, or also limit max_tokens",
        )

    @cached_property
    def prices(self) -> tuple[Price, ...]:
        """The user's prices of tokens; the whole table if the agent uses its own default model."""
        model = self.model.resolved if self._settings.prices else ""
        table = (Price(name, *astuple(costs)) for name, costs in self._settings.prices.items())
        return tuple(price for price in table if not model or price.is_for(model))

    @cached_property
    def agent_warnings(self) -> tuple[str, ...]:
        """Parts of the preset that are only advice to the agent or have no effect. Raises UsageError for parts that the
        agent cannot do.
        """
        if self._asks and self.runner is not RunnerKind.HOSTS:
            find_out(self.agent, self._wanted)
        return settled(self.agent, self._wanted)

    @cached_property
    def _wanted(self) -> Wanted:
        """The run's requirements for its agent. Raises what its parts raise."""
        preset, spec = self.preset, self.spec
        return Wanted(
            where=(preset and preset.path) or "",
            cwd="" if self.runner is RunnerKind.HOSTS else self.cwd,
            model=self.model.resolved,
            thinking=self.model.thinking,
            tools=self.tools,
            has_prompt=self._system_prompt() is not None,
            prompt_mode=spec.prompt_mode if spec.prompt.strip() else PromptMode.APPEND,
            context_files=spec.context_files,
            project_resources=spec.project_resources,
            keeps_session=spec.keeps_session,
            finalize=spec.structured_result,
            max_turns=spec.max_turns,
            talk=self.talk,
            permissions=self.permissions,
            spends=tuple(name for name in SPENT if name in self._set_here),
            caps=tuple(name for name in SPENT if getattr(spec, name) and name not in self._set_here),
        )

    @property
    def _set_here(self) -> frozenset[str]:
        """The limits in `SPENT` that the call or preset sets."""
        asked = (self._request, *((self.preset,) if self.preset else ()))
        return frozenset(name for name in SPENT if any(getattr(each, name) is not None for each in asked))

    @cached_property
    def max_attempts(self) -> int:
        """Most attempts; more than one only for a structured result."""
        return (self.spec.max_attempts or 1) if self.spec.structured_result else 1


def plan_all(requests: Sequence[RunRequest], workspace: Workspace, *, asks: bool = False) -> list[Plan]:
    """Plan several runs that choose from the same presets; `asks` as in `Plan`."""
    presets = cache(lambda: discover(workspace))
    return [Plan(request, workspace, presets, asks=asks) for request in requests]


def as_group(planned: Sequence[PlannedRun], max_parallel: int) -> list[PlannedRun]:
    """Give runs launched together their shared slots."""
    group, size = planned[0].meta.run_id, len(planned)
    return [
        replace(run, meta=replace(run.meta, group=Group(group, index, size, max_parallel)))
        for index, run in enumerate(planned)
    ]
