"""What completes a word of the command line: runs, presets, agents and models as files have them.

No agent is started, nothing is written, and what cannot be read completes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import click
from click.shell_completion import CompletionItem

from ..errors import SubdeckError
from ..text.plain import one_line

MOST = 60
"""Runs that are offered, the newest ones."""
DESCRIBED = 60
"""Characters of a description."""

Found = Iterator[tuple[str, str]]
"""Values, each with its description."""
Source = Callable[[click.Context, str], Found]


def attach(command: click.Command) -> None:
    """Have each parameter of a command complete what its name in the help stands for."""
    for param in command.params:
        name = name_of(command, param)
        if source := SOURCES.get(name):
            param.shell_complete = partial(_completed, source)
        elif kind := PATHS.get(name):
            param.shell_complete = partial(_path, kind)


def name_of(command: click.Command, param: click.Parameter) -> str:
    """Return the name of a value in the help: `RUN` for `[RUN...]`. A NAME may be that of anything."""
    name = (param.metavar or param.name or "").replace("...", "").strip("[]")
    of = param.opts[0] if isinstance(param, click.Option) else command.name
    return f"{of} {name}" if name == "NAME" else name


def _path(kind: str, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(incomplete, type=kind)]


def _completed(source: Source, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
    try:
        if directory := ctx.find_root().params.get("directory"):
            os.chdir(os.path.expanduser(directory))
        found = list(source(ctx, incomplete))
    except (SubdeckError, OSError):
        return []
    return [CompletionItem(value, help=about) for value, about in found if value.startswith(incomplete)]


def _runs(ctx: click.Context, incomplete: str) -> Found:
    """Yield runs by their short ids, the newest first; by the whole id where that was begun."""
    from .. import trust
    from ..run import artifacts

    project = trust.find_project(os.getcwd())
    trust.check(project)
    directory = project.trash if ctx.params.get("undo") else project.runs
    given: set[str] = {*(ctx.params.get("refs") or ()), *(ctx.params.get("words") or ())}
    ids = sorted(artifacts.run_ids(directory), reverse=True)
    wanted = [name for name in ids if name.startswith(incomplete) or name[-6:].startswith(incomplete)]
    for name in [name for name in wanted if not {name, name[-6:]} & given][:MOST]:
        meta = artifacts.read_meta(os.path.join(directory, name))
        about = f"{meta.title}: {meta.description or meta.task}" if meta else ""
        yield name[-6:] if name[-6:].startswith(incomplete) else name, one_line(about, DESCRIBED)


def _presets(ctx: click.Context, _: str) -> Found:
    from ..engine import Engine

    for preset in Engine.open(readonly=True).presets().presets:
        yield preset.name, one_line(preset.description, DESCRIBED)


def _preset_of_run(ctx: click.Context, incomplete: str) -> Found:
    return iter(()) if ctx.params.get("args") or ctx.params.get("no_preset") else _presets(ctx, incomplete)


def _reply(ctx: click.Context, incomplete: str) -> Found:
    return iter((("allow", ""), ("deny", ""))) if ctx.params.get("words") else _runs(ctx, incomplete)


def _agents(_: click.Context, __: str) -> Found:
    from ..agent_kinds import KINDS
    from ..engine import Engine

    for name in dict.fromkeys(("auto", *KINDS, *Engine.open(readonly=True).settings.agents)):
        yield name, ""


def _models(ctx: click.Context, _: str) -> Found:
    """Yield the models that are known of the agent that is named, or of all that are installed, and the roles."""
    from ..agents.offered import agents_of, models_of
    from ..engine import Engine

    settings = Engine.open(readonly=True).settings
    for agent in agents_of(ctx.params.get("agent") or "auto", settings):
        for model in models_of(agent, settings).models:
            yield model.ref, agent.label
    for name, model in settings.roles.items():
        yield f"@{name}", model


def _checks(_: click.Context, __: str) -> Found:
    from ..engine import Engine

    for name, argv in Engine.open(readonly=True).settings.checks.items():
        yield name, one_line(" ".join(argv), DESCRIBED)


def _runners(_: click.Context, __: str) -> Found:
    from ..run.kinds import RunnerKind

    return _plain(map(str, RunnerKind))


def _plain(names: Iterable[str]) -> Found:
    return ((name, "") for name in names)


SOURCES: dict[str, Source] = {
    "--check NAME": _checks,
    "A": _agents,
    "A B": _runs,
    "M": _models,
    "PRESET TASK": _preset_of_run,
    "R": _runners,
    "RUN": _runs,
    "RUN [REQUEST] allow|deny|TEXT": _reply,
    "RUN TEXT": _runs,
    "presets NAME": _presets,
}
"""By the name that a value has in the help."""
PATHS = {"DIR": "dir", "FILE": "file"}
