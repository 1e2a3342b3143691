"""What a preset comes to here and now: its model, tools and limits as a run would get them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct

from ..agents.choice import AgentChoice
from ..config.settings import Settings
from ..config.yaml_tree import SIZE_LIMIT, decode
from ..errors import ContentError, SubdeckError
from ..paths import Project
from ..presets.catalog import PresetCatalog, Tier, preset_files, preset_places, tiers
from ..presets.file import SUFFIX, Preset, parse_preset
from ..presets.frontmatter import split_markdown
from ..presets.write import stem_of
from ..run.describe import clock
from ..run.model import Limits, PresetSource, RunRequest, Tools
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


def preview(name: str, *, project: Project, cwd: str, settings: Settings) -> Preview:
    """Resolve a preset without starting anything. Raises PresetError for one that is not there."""
    return _preview(name, None, project, cwd, settings)


def preview_of(preset: Preset, *, project: Project, cwd: str, settings: Settings) -> Preview:
    """Resolve a preset that need not be on disk."""
    return _preview(preset.name, PresetCatalog((preset,), (), ()), project, cwd, settings)


def _preview(name: str, catalog: PresetCatalog | None, project: Project, cwd: str, settings: Settings) -> Preview:
    plan = Plan(RunRequest(task="-", preset=name), project=project, cwd=cwd, settings=settings, catalog=catalog)
    plan.preset()
    limits, limit_warnings = plan.limits()
    agent, model, tools, runner = (_part(plan.agent), _part(plan.model), _part(plan.tools), _part(plan.runner))
    return Preview(
        agent=agent,
        runner=runner.name if runner else None,
        model=model,
        tools=tools,
        limits=limits,
        max_attempts=plan.max_attempts(),
        warnings=(*(model.notices if model else ()), *(tools.warnings if tools else ()), *limit_warnings),
        problems=tuple(str(problem).replace("\n  ", "; ") for problem in plan.problems()),
    )


def _part(decide: Callable[[], _Part]) -> _Part | None:
    try:
        return decide()
    except SubdeckError:
        return None  # `Plan.problems` has it


class PresetCheck(Struct, frozen=True):
    preset: Preset | None
    """None where the text cannot be saved."""
    fault: ContentError | None = None
    """Why not, and what to do; None where it can."""
    warnings: tuple[str, ...] = ()
    """What will not be as written, or keeps a run from being launched here."""
    notes: tuple[str, ...] = ()
    """What is worth knowing and nothing to mend."""


class PresetDraft(Struct, frozen=True):
    """Where a text is to be a preset."""

    directory: str
    source: PresetSource
    path: str | None = None
    """None while it has no file."""


def check_preset(content: bytes, draft: PresetDraft, *, project: Project, cwd: str, settings: Settings) -> PresetCheck:
    """Judge a text by the parser that will read it, by its neighbours, and by what a run of it would get here."""
    try:
        if len(content) > SIZE_LIMIT:
            raise ContentError(f"it is too large: {len(content) / SIZE_LIMIT:.1f} MB, at most 1 MB is read")
        text = decode(content)
        preset = parse_preset(text, draft.path or os.path.join(draft.directory, "preset.md"), draft.source)
        others = _others(preset.name, draft, project, cwd, settings)
        _refuse_second(preset.name, text, draft, others)
    except ContentError as error:
        return PresetCheck(None, error)
    return PresetCheck(
        preset,
        warnings=(*map(one_line, preset.warnings), *run_warnings(preset, project=project, cwd=cwd, settings=settings)),
        notes=tuple(_hiding(draft, others, [place for _, place in preset_places(project, cwd, settings)])),
    )


def run_warnings(preset: Preset, *, project: Project, cwd: str, settings: Settings) -> tuple[str, ...]:
    """Say what a run of a preset would not get here, and what would keep it from being launched; a line each."""
    view = preview_of(preset, project=project, cwd=cwd, settings=settings)
    return tuple(one_line(text.removeprefix(f"{preset.path}: ")) for text in (*view.warnings, *view.problems))


def _others(name: str, draft: PresetDraft, project: Project, cwd: str, settings: Settings) -> tuple[Tier, ...]:
    return tuple(
        tier
        for tier in tiers(name, project=project, cwd=cwd, settings=settings)
        if draft.path is None or not _is_same(tier.path, draft.path)
    )


def _refuse_second(name: str, text: str, draft: PresetDraft, others: tuple[Tier, ...]) -> None:
    for other in others:
        if _is_same(os.path.dirname(other.path), draft.directory):
            what = f'the name "{one_line(name)}" is taken by {one_line(os.path.basename(other.path), 80)} beside it'
            raise ContentError(what, line=_line_of_name(text), hint="choose another name")
    file = stem_of(name) + SUFFIX
    if draft.path is None and file in _names_in(draft.directory):
        what = f"there is a file {one_line(file, 80)} already, which this name would get"
        raise ContentError(what, line=_line_of_name(text), hint="choose another name")


def _names_in(directory: str) -> frozenset[str]:
    try:
        return frozenset(map(os.path.basename, preset_files(directory)))
    except OSError:
        return frozenset()  # what keeps it from being read keeps the file from being written, and is said then


def _line_of_name(text: str) -> int | None:
    fields = split_markdown(text).fields
    return fields.pairs["name"].line if fields and "name" in fields.pairs else None


def _hiding(draft: PresetDraft, others: tuple[Tier, ...], places: Sequence[str]) -> Iterator[str]:
    """Say which presets of the same name it hides, and which one hides it."""
    rank = next((rank for rank, place in enumerate(places) if _is_same(place, draft.directory)), len(places))
    for other in others:
        yield f"{'hides' if other.rank > rank else 'hidden by'} the {other.source} one of this name"


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


OWN_SET = "the agent's own set"


def tools_words(preset: Preset, tools: Tools | None) -> str:
    """Name the tools of a run of it; as written where they cannot be decided (None)."""
    if tools is None:
        return ", ".join(preset.tools or ())
    if tools.resolved is None:
        return OWN_SET
    names = ", ".join(tools.resolved) or "none"
    return f"{names} (all but {', '.join(preset.denied_tools)})" if preset.denied_tools else names


def limits_words(limits: Limits) -> str:
    """`timeout 30:00, 100 turns, stall 10:00`; empty where nothing ends a run from outside."""
    said = (
        "" if limits.timeout is None else f"timeout {clock(limits.timeout)}",
        "" if limits.max_turns is None else f"{limits.max_turns} turns",
        "" if limits.stall is None else f"stall {clock(limits.stall)}",
    )
    return ", ".join(filter(None, said))
