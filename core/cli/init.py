"""`subdeck init`: write starter presets, after confirmation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import click

from ..agents.login import LoginState
from ..engine import Engine
from ..paths import user_settings_file
from ..starters import Starter, StarterPlan, plan_lines, plan_starters, write_starters
from ..text.plain import one_line
from ._command import Document, check_can_ask, command, preface
from .output import Note, Output, Piece, note

HINT = "pass --yes, or --dry-run to see what would be written"


class FoundAgent(Document, frozen=True):
    """An installed agent."""

    name: str
    version: str | None
    login: LoginState
    """Whether it has a login or a key."""


class FoundTests(Document, frozen=True):
    """A way to run the project's tests."""

    command: tuple[str, ...]
    file: str
    """The file that it was found in."""


class StarterPreset(Document, frozen=True):
    name: str
    path: str
    state: Literal["exists", "written", "new"]
    """`new` is not written."""


class AddedSetting(Document, frozen=True):
    """An entry for your settings."""

    file: str
    section: str
    name: str
    value: str
    """As YAML."""


class Starters(Document, frozen=True):
    """The starter presets, and the facts behind them."""

    directory: str
    """Directory of the presets."""
    dry_run: bool
    agents: tuple[FoundAgent, ...]
    tests: tuple[FoundTests, ...]
    check: str | None
    """Name of the check that runs the tests; null without one."""
    presets: tuple[StarterPreset, ...]
    settings: tuple[AddedSetting, ...]
    cannot_start: dict[str, tuple[str, ...]]
    """By preset: why it cannot start here."""
    troubles: tuple[str, ...]
    """Files that could not be written, and why."""


@command(
    "init",
    "subdeck init --dry-run",
    "subdeck init --global --yes",
)
@click.option("--global", "for_all", is_flag=True, help="Write them for all your projects instead of only this one.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def init(for_all: bool, dry_run: bool, yes: bool) -> Output[Starters] | int:
    """Write four starter presets that run with any installed agent: explore-code, implement (in a git worktree),
    review-changes, and fix-tests with a check that runs the tests.

    Existing presets are listed and never replaced. The check is added to your settings. The exit code is 1 if
    something could not be written, 2 if confirmation is needed but stdin is not a terminal.
    """
    engine = Engine.open()
    plan = plan_starters(engine.workspace, for_all=for_all)
    is_asked = not (yes or dry_run or plan.is_done)
    if is_asked:
        check_can_ask("init", HINT)
    preface("\n".join(plan_lines(plan)))
    written: tuple[Starter, ...] = ()
    troubles: tuple[str, ...] = ()
    if not (plan.is_done or dry_run):
        if is_asked and not click.confirm("Write this?", default=True):
            note("nothing was written")
            return 0
        written, troubles = write_starters(plan)
    document = _document(plan, written, troubles, dry_run=dry_run)
    return Output(document, _text(plan, written, troubles, dry_run=dry_run), int(bool(troubles)))


def _text(
    plan: StarterPlan, written: tuple[Starter, ...], troubles: tuple[str, ...], *, dry_run: bool
) -> Iterator[Piece]:
    for trouble in troubles:
        yield Note(f"! {one_line(trouble)}")
    if written:
        yield f"Wrote {len(written)} preset{'s' * (len(written) > 1)}. Try: subdeck run {written[0].name} TASK"
    elif plan.entries and not (dry_run or troubles):
        yield "Added to your settings."


def _document(plan: StarterPlan, written: tuple[Starter, ...], troubles: tuple[str, ...], *, dry_run: bool) -> Starters:
    def state(starter: Starter) -> Literal["exists", "written", "new"]:
        return "exists" if starter.exists else "written" if starter in written else "new"

    file = user_settings_file()
    return Starters(
        directory=plan.directory,
        dry_run=dry_run,
        agents=tuple(FoundAgent(agent.name, agent.version or None, agent.login.state) for agent in plan.agents),
        tests=tuple(FoundTests(tests.argv, tests.file) for tests in plan.tests),
        check=plan.check or None,
        presets=tuple(StarterPreset(starter.name, starter.path, state(starter)) for starter in plan.starters),
        settings=tuple(AddedSetting(file, entry.section, entry.name, entry.value) for entry in plan.entries),
        cannot_start={name: tuple(reason.what for reason in reasons) for name, reasons in plan.cannot_start.items()},
        troubles=troubles,
    )
