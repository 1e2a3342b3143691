"""`subdeck init`: write starter presets, after asking."""

from __future__ import annotations

from typing import Any

import click

from ..engine import Engine
from ..paths import user_settings_file
from ..starters import Starter, StarterPlan, plan_lines, plan_starters, write_starters
from ..text.plain import one_line
from ._options import json_option
from .output import check_can_ask, document, note, say

HINT = "pass --yes, or --dry-run to see what would be written"


@click.command("init")
@click.option("--global", "for_all", is_flag=True, help="Write them for all your projects instead of only this one.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@json_option
def init(for_all: bool, dry_run: bool, yes: bool, as_json: bool) -> int:
    """Write four starter presets that run with any installed agent: explore-code, implement (in a git worktree),
    review-changes, and fix-tests with a check that runs the tests.

    Existing presets are listed and never replaced. The check is added to your settings. The exit code is 1 if
    something could not be written, 2 if confirmation is needed but stdin is not a terminal.
    """
    engine = Engine.open()
    plan = plan_starters(engine.workspace, for_all=for_all)
    is_asked = not (yes or dry_run or plan.is_done)
    if is_asked:
        check_can_ask("init", HINT, as_json=as_json)
    if not as_json:
        say("\n".join(plan_lines(plan)))
    written: tuple[Starter, ...] = ()
    troubles: tuple[str, ...] = ()
    if not (plan.is_done or dry_run):
        if is_asked and not click.confirm("Write this?", default=True):
            note("nothing was written")
            return 0
        written, troubles = write_starters(plan)
    if as_json:
        document(_document(plan, written, troubles, dry_run=dry_run))
        return int(bool(troubles))
    for trouble in troubles:
        note(f"! {one_line(trouble)}")
    if written:
        say(f"Wrote {len(written)} preset{'s' * (len(written) > 1)}. Try: subdeck run {written[0].name} TASK")
    elif plan.entries and not (dry_run or troubles):
        say("Added to your settings.")
    return int(bool(troubles))


def _document(
    plan: StarterPlan, written: tuple[Starter, ...], troubles: tuple[str, ...], *, dry_run: bool
) -> dict[str, Any]:
    return {
        "directory": plan.directory,
        "dryRun": dry_run,
        "agents": [
            {"name": agent.name, "version": agent.version or None, "login": agent.login.state} for agent in plan.agents
        ],
        "tests": [{"command": tests.argv, "file": tests.file} for tests in plan.tests],
        "check": plan.check or None,
        "presets": [
            {
                "name": starter.name,
                "path": starter.path,
                "state": "exists" if starter.exists else "written" if starter in written else "new",
            }
            for starter in plan.starters
        ],
        "settings": [
            {"file": user_settings_file(), "section": entry.section, "name": entry.name, "value": entry.value}
            for entry in plan.entries
        ],
        "cannotStart": {name: [reason.what for reason in reasons] for name, reasons in plan.cannot_start.items()},
        "troubles": troubles,
    }
