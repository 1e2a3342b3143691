"""The launch dialog's calls to the engine: the facts of a run, problems, and its start; in threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import PresetError, SubdeckError
from ...core.launch.preview import tools_words
from ...core.run.describe import limits_words, permissions_words, runs_word
from ...core.run.model import WorktreeFrom
from ...core.spec.request import RunRequest
from ...core.text.plain import one_line
from ..presets.draft import preset_dir
from ..text.format import short_path
from ._values import LaunchValues, SaveAs

if TYPE_CHECKING:
    from ...core.agents.installed import KnownAgent
    from ...core.launch.model_choices import ModelChoice
    from ...core.launch.preview import Preview
    from ...core.presets.catalog import Preset
    from ..engine_api import EngineApi
    from ._form import LaunchForm

SAVE_FIELDS = "save"
"""The `where` of errors about the preset to be saved."""
WARNINGS = 2
"""Warnings that fit into a dialog; more are counted."""


class LaunchFacts(Struct, frozen=True):
    """The dialog's facts about its preset, a line each; possibly empty."""

    thinking: str = ""
    tools: str = ""
    limits: str = ""
    warnings: str = ""
    agents: tuple[KnownAgent, ...] = ()
    """All agents that can be named."""
    taken: KnownAgent | None = None
    """The agent that a run would get; None if it can get none."""
    note: str = ""
    """Why `auto` takes it although it is the last resort."""
    models: tuple[ModelChoice, ...] = ()
    """The choices of the model field."""
    has_hosts: bool = False
    """Whether runs can be on other machines."""
    hosts: tuple[str, ...] = ()
    """Names of the known hosts."""
    leaves_default: bool = False
    """Whether the agent does not have default_model, and uses its own."""


def written_facts(preset: Preset | None) -> LaunchFacts:
    """Return the facts of the preset's file only."""
    return _facts(preset, None, ()) if preset else LaunchFacts()


def read_facts(engine: EngineApi, form: LaunchForm, values: LaunchValues) -> LaunchFacts:
    """Return the effective facts of a run with these values, and the agents and models to choose from.

    Reads files, and starts nothing.
    """
    from ...core.agents.installed import known_agents
    from ...core.config.effective_hosts import effective_hosts
    from ...core.launch.model_choices import leaves_default
    from ...core.launch.preview import preview
    from ...core.run.placement import read_host_states

    preset, agent = form.preset, values.agent or form.usual_agent
    view = preview(preset, engine.workspace, form.request(values).agent) if preset else None
    models = read_models(engine, agent)
    facts = _facts(preset, view, models) if preset else LaunchFacts(models=models)
    is_set = effective_hosts(engine.settings.hosts).is_set
    states = read_host_states(engine.project) if is_set else None
    taken, note = read_agent(engine, form, values)
    return replace(
        facts,
        agents=known_agents(engine.settings),
        taken=taken,
        note=note,
        leaves_default=leaves_default(agent, engine.settings),
        has_hosts=is_set,
        hosts=tuple(one_line(host.name, 64) for host in states.hosts) if states else (),
    )


def read_agent(engine: EngineApi, form: LaunchForm, values: LaunchValues) -> tuple[KnownAgent | None, str]:
    """Return the agent that a run with these values would get, None for none, and why it is the last resort, if it is.

    Reads files, and starts nothing.
    """
    from ...core.agents.installed import described
    from ...core.launch.preview import agent_of

    choice = agent_of(form.to_check(values), form.preset, engine.workspace)
    if choice is None:
        return None, ""
    return described(choice, engine.settings), one_line(choice.note, 80) if choice.own_model else ""


def read_models(engine: EngineApi, agent: str) -> tuple[ModelChoice, ...]:
    """Return the models that a run on this agent can name. Reads files."""
    from ...core.launch.model_choices import model_choices

    return model_choices(agent, engine.settings)


def ask_for_models(engine: EngineApi, agent: str, news: Callable[[bool], None]) -> bool:
    """Query agents for their models if that is due; return True if so. Then `news` is called in a thread after each
    reply, with True after the last.
    """
    from ...core.launch.model_choices import refresh_choices

    return refresh_choices(agent, engine.settings, news)


def _facts(preset: Preset, view: Preview | None, models: tuple[ModelChoice, ...]) -> LaunchFacts:
    limits = limits_words(view.spec.limits if view else preset.limits)
    tries = view.max_attempts if view else preset.max_attempts
    finalize = f"structured result, at most {tries} attempts" if tries else "structured result"
    tools = tools_words(preset, view.tools if view else None)
    rules = permissions_words(view.permissions if view else preset.permissions)
    thinking = (view.model.thinking if view and view.model else None) or preset.thinking
    return LaunchFacts(
        thinking=one_line(thinking or "", 40),
        tools=one_line("; ".join(filter(None, (tools, rules))), 300),
        limits=", ".join(filter(None, (limits, finalize if preset.structured_result else ""))),
        warnings=_warnings((*preset.warnings, *(view.warnings if view else ()))),
        models=models,
    )


def _warnings(warnings: tuple[str, ...]) -> str:
    shown = [f"! {one_line(warning, 200)}" for warning in dict.fromkeys(warnings)]
    if len(shown) > WARNINGS:
        shown[WARNINGS - 1 :] = [f"! {len(shown) - WARNINGS + 1} more warnings"]
    return "\n".join(shown)


# --- launching -------------------------------------------------------------------------------------------------------


class FailedAfterSaving(Exception):
    """The preset was saved, but no run of it was started."""

    def __init__(self, preset: str, reason: Exception) -> None:
        super().__init__(str(reason))
        self.preset = preset
        self.reason = reason


class Launched(Struct, frozen=True):
    run_id: str
    """Id of the first one."""
    summary: str
    saved: str = ""
    """The saved preset and its path, for display; empty for none."""


def what_would_fail(
    engine: EngineApi, form: LaunchForm, values: LaunchValues, saved: str = ""
) -> tuple[SubdeckError, ...]:
    """Return everything that would prevent the launch of these values, except an empty task.

    `saved` is a preset saved by an earlier try.
    """
    problems = engine.check(form.to_check(values))
    if values.save_as is None or values.save_as.name.strip() == saved:
        return problems
    try:
        _check_name(engine, values.save_as)
    except SubdeckError as error:
        return (*problems, error)
    return problems


def launch(
    engine: EngineApi, form: LaunchForm, values: LaunchValues, saved: str = "", *, over_budget: bool = False
) -> Launched:
    """Save the preset if requested, then start the runs; `saved` is a preset saved by an earlier try, `over_budget`
    ignores the day's budget.

    Raises the engine's errors, and FailedAfterSaving.
    """
    request, note, name = form.request(values), "", ""
    if values.save_as is not None:
        name = values.save_as.name.strip()
        if name != saved:
            if problems := engine.check(request, asks=True):
                raise problems[0]
            agent = None if values.agent in ("", form.usual_agent) else values.agent
            path = _save(engine, values.save_as, request, values.model, agent)
            note = f"Saved the preset {one_line(name, 40)} as {short_path(path)}"
        request = replace(request, preset=name, tools=None, prompt="")
    request = replace(request, over_budget=over_budget)
    try:
        runs = engine.launch((request,) * values.count, background=True)
    except Exception as error:
        if name:
            raise FailedAfterSaving(name, error) from error
        raise
    what = one_line(runs[0].meta.title, 40)
    summary = f"Launched {what} {runs[0].meta.short_id}" if len(runs) == 1 else f"Launched {runs_word(len(runs))}"
    return Launched(runs[0].run_id, summary, note)


def worktree_words(engine: EngineApi, form: LaunchForm, values: LaunchValues) -> str:
    """Describe the worktree for these values; empty for none. Takes as long as git."""
    if values.worktree is WorktreeFrom.NONE or form.shared_worktree:
        return ""
    from ...core.work.base import uncommitted

    cwd = form.request(values).cwd or ""
    try:
        count = uncommitted(os.path.join(engine.cwd, os.path.expanduser(cwd)))
    except SubdeckError:
        return ""  # shown as a problem instead
    if values.worktree is WorktreeFrom.HEAD:
        return f"without {count:,} uncommitted" if count else "all committed"
    return f"with {count:,} uncommitted" if count else "all committed"


def _check_name(engine: EngineApi, save_as: SaveAs) -> None:
    from ...core.presets.catalog import tiers
    from ...core.presets.write import check_new_name

    try:
        check_new_name(save_as.name.strip())
    except PresetError as error:
        raise PresetError(error.what, where=SAVE_FIELDS, hint=error.hint) from error
    taken = tiers(save_as.name.strip(), engine.workspace)
    if taken:
        where = "is broken" if not taken[0].usable else str(taken[0].source)
        what = f'a preset "{one_line(save_as.name.strip(), 60)}" already exists ({where})'
        raise PresetError(what, where=SAVE_FIELDS, hint="choose another name")
    if not save_as.description.strip():
        raise PresetError("the preset needs a description", where=SAVE_FIELDS, hint="describe it in one sentence")


def _save(engine: EngineApi, save_as: SaveAs, request: RunRequest, model: str, agent: str | None) -> str:
    from ...core.presets.write import save_preset

    _check_name(engine, save_as)
    directory = preset_dir(engine, save_as.where)
    try:
        spec = replace(request, model=model, agent=agent, runner=None, host=None, needs=None)
        return save_preset(directory, save_as.name, save_as.description, spec)
    except PresetError as error:
        raise PresetError(error.what, where=SAVE_FIELDS, hint=error.hint) from error
