"""What a preset's run would get here, and whether a text can be saved as a preset. Writes and starts nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from ..agents.choice import AgentChoice
from ..config.workspace import Workspace
from ..config.yaml_tree import check_size, decode
from ..errors import ContentError, SubdeckError, UsageError
from ..presets.catalog import PresetCatalog, Tier, parsed_in, tiers
from ..presets.file import SUFFIX, Preset, name_line
from ..presets.sources import PresetDirectory, preset_directories, preset_directory
from ..presets.write import stem_of
from ..run.changes import WorktreePlan
from ..run.model import Permissions, PresetSource, Tools, WorktreeFrom
from ..spec.layers import ResolvedSpec
from ..spec.request import RunRequest
from ..system import files
from ..text.plain import one_line
from .model import ResolvedModel
from .plan import Plan

_Part = TypeVar("_Part")


class Preview(Struct, frozen=True):
    """None marks a part that cannot be decided; `problems` say why."""

    agent: AgentChoice | None
    runner: str | None
    model: ResolvedModel | None
    tools: Tools | None
    spec: ResolvedSpec
    """The result of preset and settings."""
    permissions: Permissions | None
    """Rules of preset and settings; None if there are none."""
    talk: bool | None
    """Whether its agent is interactive."""
    max_attempts: int
    warnings: tuple[str, ...]
    problems: tuple[str, ...]
    """What would prevent a run."""


def preview(preset: Preset, workspace: Workspace, agent_name: str | None = None) -> Preview:
    """Return what a preset's run would get, on this agent if named, without starting anything; the preset does not have
    to be on disk.
    """
    request = RunRequest(task="-", preset=preset.name, agent=agent_name)
    plan = Plan(request, workspace, _only(preset))
    resources = _part(lambda: plan.agent_warnings) or ()
    agent, model, tools = _part(lambda: plan.agent), _part(lambda: plan.model), _part(lambda: plan.tools)
    return Preview(
        agent=agent,
        runner=_part(lambda: plan.runner),
        model=model,
        tools=tools,
        spec=plan.spec,
        permissions=_part(lambda: plan.permissions),
        talk=_part(lambda: plan.talk),
        max_attempts=plan.max_attempts,
        warnings=(
            *(model.notices if model else ()),
            *(tools.warnings if tools else ()),
            *plan.spec.warnings,
            *resources,
        ),
        problems=tuple(str(problem).replace("\n  ", "; ") for problem in plan.problems),
    )


def agent_of(request: RunRequest, preset: Preset | None, workspace: Workspace) -> AgentChoice | None:
    """Return the agent that a run would get now; None if it can get none. Starts nothing."""
    plan = Plan(request, workspace, lambda: PresetCatalog((preset,) if preset else (), (), ()))
    return _part(lambda: plan.agent)


def _part(decide: Callable[[], _Part]) -> _Part | None:
    try:
        return decide()
    except SubdeckError:
        return None


def run_warnings(preset: Preset, workspace: Workspace) -> tuple[str, ...]:
    """Return what a preset's run would not get here, and what prevents it, one line each."""
    view = preview(preset, workspace)
    return tuple(one_line(text.removeprefix(f"{preset.path}: ")) for text in (*view.warnings, *view.problems))


class Obstacle(Struct, frozen=True):
    """A reason why a preset cannot run here."""

    what: str
    hint: str = ""

    @property
    def words(self) -> str:
        """Both in one line."""
        return one_line("; ".join(filter(None, (self.what, self.hint))))


def obstacles(presets: Iterable[Preset], workspace: Workspace) -> dict[str, tuple[Obstacle, ...]]:
    """Return, by name, why presets cannot run here; presets that can are left out. git is called once for each kind of
    worktree, however many presets want one.
    """
    worktrees = _Worktrees()
    by_name: dict[str, tuple[Obstacle, ...]] = {}
    for preset in presets:
        plan = Plan(RunRequest(task="-", preset=preset.name), workspace, _only(preset), worktrees)
        if problems := plan.problems:
            by_name[preset.name] = tuple(_obstacle(problem, preset) for problem in problems)
    return by_name


def _only(preset: Preset) -> Callable[[], PresetCatalog]:
    return lambda: PresetCatalog((preset,), (), ())


def _obstacle(problem: SubdeckError, preset: Preset) -> Obstacle:
    is_where_obvious = problem.where in ("", preset.path) or problem.where in problem.what
    return Obstacle(problem.what if is_where_obvious else f"{problem.where}: {problem.what}", problem.hint)


class _Worktrees:
    """Plans each kind of worktree of a directory once."""

    def __init__(self) -> None:
        self._plans: dict[tuple[str, WorktreeFrom], WorktreePlan | UsageError] = {}

    def __call__(self, directory: str, begins: WorktreeFrom) -> WorktreePlan:
        from ..work.base import planned

        if (directory, begins) not in self._plans:
            try:
                self._plans[directory, begins] = planned(directory, begins)
            except UsageError as error:
                self._plans[directory, begins] = error
        plan = self._plans[directory, begins]
        if isinstance(plan, UsageError):
            raise plan
        return plan


def tools_words(preset: Preset, tools: Tools | None) -> str:
    """Return the names of a preset's tools; as written if they cannot be decided (None)."""
    if tools is None or tools.resolved is None:
        return preset.tools_words
    names = ", ".join(tools.resolved) or "none"
    return f"{names} (all but {', '.join(preset.denied_tools)})" if preset.denied_tools else names


class PresetCheck(Struct, frozen=True):
    preset: Preset | None
    """None if the text cannot be saved."""
    fault: ContentError | None = None
    """Why it cannot be saved, and the fix; None if it can."""
    warnings: tuple[str, ...] = ()
    """What differs from the text, or prevents a run here."""
    notes: tuple[str, ...] = ()
    """Information that needs no fix."""


def check_preset(
    content: bytes, workspace: Workspace, directory: str, source: PresetSource, path: str | None = None
) -> PresetCheck:
    """Check a preset's text with its parser, against its neighbors, and for what its run would get here.

    `path` is the file in `directory` that it replaces; None for a new one.
    """
    try:
        check_size(len(content))
        text = decode(content)
        preset_dir = preset_directory(directory, workspace) or PresetDirectory(source, directory)
        preset = parsed_in(preset_dir, text, path or os.path.join(directory, "preset.md"))
        namesakes = [tier for tier in tiers(preset.name, workspace) if path is None or not _is_same(tier.path, path)]
        _refuse_second(preset.name, text, directory, namesakes, is_new=path is None)
    except ContentError as error:
        return PresetCheck(None, error)
    return PresetCheck(
        preset,
        warnings=(*map(one_line, preset.warnings), *run_warnings(preset, workspace)),
        notes=tuple(_hiding(directory, namesakes, workspace)),
    )


def _refuse_second(name: str, text: str, directory: str, namesakes: Sequence[Tier], *, is_new: bool) -> None:
    file = stem_of(name) + SUFFIX
    beside = next((tier.path for tier in namesakes if _is_same(os.path.dirname(tier.path), directory)), None)
    if beside is not None:
        what = (
            f'the name "{one_line(name)}" is already used by {one_line(os.path.basename(beside), 80)} '
            "in the same directory"
        )
    elif is_new and file in files.names(directory):
        what = f"the file {one_line(file, 80)} already exists, which this name would use"
    else:
        return
    raise ContentError(what, line=name_line(text), hint="choose another name")


def _hiding(directory: str, namesakes: Sequence[Tier], workspace: Workspace) -> Iterator[str]:
    directories = preset_directories(workspace)
    rank = next(
        (rank for rank, preset_dir in enumerate(directories) if _is_same(preset_dir.directory, directory)),
        len(directories),
    )
    for tier in namesakes:
        yield f"{'hides' if tier.rank > rank else 'hidden by'} the {tier.source} preset of this name"


def _is_same(path: str, other_path: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(other_path)
